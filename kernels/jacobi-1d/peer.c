// Explicit steps there and back; the threads stay together through all of them.
void kernel_jacobi_1d(int64_t tsteps, T A[restrict N], T B[restrict N]) {
#pragma omp parallel
  for (int64_t t = 0; t < tsteps; t++) {
#pragma omp for simd schedule(static)
    for (long i = 1; i < N - 1; i++)
      B[i] = (T)0.33333 * (A[i - 1] + A[i] + A[i + 1]);
#pragma omp for simd schedule(static)
    for (long i = 1; i < N - 1; i++)
      A[i] = (T)0.33333 * (B[i - 1] + B[i] + B[i + 1]);
  }
}
