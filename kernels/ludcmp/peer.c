// Elimination as in lu, then two substitutions, which are sequential: dot products as vectors.
void kernel_ludcmp(T A[restrict N][N], const T b[restrict N], T x[restrict N], T y[restrict N]) {
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
  for (long i = 0; i < N; i++) {
    T sum = b[i];
#pragma omp simd reduction(- : sum)
    for (long j = 0; j < i; j++)
      sum -= A[i][j] * y[j];
    y[i] = sum;
  }
  for (long i = N - 1; i >= 0; i--) {
    T sum = y[i];
#pragma omp simd reduction(- : sum)
    for (long j = i + 1; j < N; j++)
      sum -= A[i][j] * x[j];
    x[i] = sum / A[i][i];
  }
}
