// y = alpha · A · x + beta · B · x, both products in one pass over x.
void kernel_gesummv(T alpha, T beta, const T A[restrict N][N], const T B[restrict N][N],
                    T tmp[restrict N], const T x[restrict N], T y[restrict N]) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < N; i++) {
    T first = 0, second = 0;
#pragma omp simd reduction(+ : first, second)
    for (long j = 0; j < N; j++) {
      first += A[i][j] * x[j];
      second += B[i][j] * x[j];
    }
    tmp[i] = first;
    y[i] = alpha * first + beta * second;
  }
}
