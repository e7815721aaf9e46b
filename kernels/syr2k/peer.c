// The lower triangle of C; every element is two dot products of rows.
void kernel_syr2k(T alpha, T beta, T C[restrict N][N], const T A[restrict N][M],
                  const T B[restrict N][M]) {
  // Row i has i + 1 elements: guided, so that equal shares are equal work.
#pragma omp parallel for schedule(guided)
  for (long i = 0; i < N; i++)
    for (long j = 0; j <= i; j++) {
      T sum = beta * C[i][j];
#pragma omp simd reduction(+ : sum)
      for (long k = 0; k < M; k++)
        sum += alpha * A[j][k] * B[i][k] + alpha * B[j][k] * A[i][k];
      C[i][j] = sum;
    }
}
