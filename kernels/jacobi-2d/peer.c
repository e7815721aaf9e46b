// Explicit steps there and back; the threads stay together through all of them.
void kernel_jacobi_2d(int64_t tsteps, T A[restrict N][N], T B[restrict N][N]) {
#pragma omp parallel
  for (int64_t t = 0; t < tsteps; t++) {
#pragma omp for schedule(static)
    for (long i = 1; i < N - 1; i++)
      for (long j = 1; j < N - 1; j++)
        B[i][j] = (T)0.2 * (A[i][j] + A[i][j - 1] + A[i][j + 1] + A[i + 1][j] + A[i - 1][j]);
#pragma omp for schedule(static)
    for (long i = 1; i < N - 1; i++)
      for (long j = 1; j < N - 1; j++)
        A[i][j] = (T)0.2 * (B[i][j] + B[i][j - 1] + B[i][j + 1] + B[i + 1][j] + B[i - 1][j]);
  }
}
