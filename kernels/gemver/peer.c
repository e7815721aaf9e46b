// A is made and, row by row, added to x at once; then w needs all of x.
void kernel_gemver(T alpha, T beta, T A[restrict N][N], const T u1[restrict N],
                   const T v1[restrict N], const T u2[restrict N], const T v2[restrict N],
                   T w[restrict N], T x[restrict N], const T y[restrict N],
                   const T z[restrict N]) {
#pragma omp parallel for schedule(static) reduction(+ : x[:N])
  for (long i = 0; i < N; i++)
    for (long j = 0; j < N; j++) {
      A[i][j] += u1[i] * v1[j] + u2[i] * v2[j];
      x[j] += beta * A[i][j] * y[i];
    }
  for (long j = 0; j < N; j++)
    x[j] += z[j];
#pragma omp parallel for schedule(static)
  for (long i = 0; i < N; i++) {
    T sum = w[i];
#pragma omp simd reduction(+ : sum)
    for (long j = 0; j < N; j++)
      sum += alpha * A[i][j] * x[j];
    w[i] = sum;
  }
}
