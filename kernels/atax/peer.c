// y = Aᵀ · (A · x): one pass over A, y summed by every thread for itself.
void kernel_atax(const T A[restrict M][N], const T x[restrict N], T y[restrict N],
                 T tmp[restrict M]) {
  for (long j = 0; j < N; j++)
    y[j] = 0;
#pragma omp parallel for schedule(static) reduction(+ : y[:N])
  for (long i = 0; i < M; i++) {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long j = 0; j < N; j++)
      sum += A[i][j] * x[j];
    tmp[i] = sum;
    for (long j = 0; j < N; j++)
      y[j] += A[i][j] * sum;
  }
}
