// Elimination row by row: in step k the rows below k are independent.
void kernel_lu(T A[restrict N][N]) {
#pragma omp parallel
  for (long k = 0; k < N; k++) {
#pragma omp for schedule(static)
    for (long i = k + 1; i < N; i++) {
      const T factor = A[i][k] / A[k][k];
      A[i][k] = factor;
#pragma omp simd
      for (long j = k + 1; j < N; j++)
        A[i][j] -= factor * A[k][j];
    }
  }
}
