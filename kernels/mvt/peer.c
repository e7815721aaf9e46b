// x1 += A · y_1 and x2 += Aᵀ · y_2: one pass over A, x2 summed by every thread for itself.
void kernel_mvt(T x1[restrict N], T x2[restrict N], const T y_1[restrict N],
                const T y_2[restrict N], const T A[restrict N][N]) {
#pragma omp parallel for schedule(static) reduction(+ : x2[:N])
  for (long i = 0; i < N; i++) {
    T sum = x1[i];
#pragma omp simd reduction(+ : sum)
    for (long j = 0; j < N; j++)
      sum += A[i][j] * y_1[j];
    x1[i] = sum;
    for (long j = 0; j < N; j++)
      x2[j] += A[i][j] * y_2[i];
  }
}
