// s = Aᵀ · r and q = A · p: one pass over A, s summed by every thread for itself.
void kernel_bicg(const T A[restrict N][M], T s[restrict M], T q[restrict N], const T p[restrict M],
                 const T r[restrict N]) {
  for (long j = 0; j < M; j++)
    s[j] = 0;
#pragma omp parallel for schedule(static) reduction(+ : s[:M])
  for (long i = 0; i < N; i++) {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long j = 0; j < M; j++)
      sum += A[i][j] * p[j];
    q[i] = sum;
    for (long j = 0; j < M; j++)
      s[j] += r[i] * A[i][j];
  }
}
