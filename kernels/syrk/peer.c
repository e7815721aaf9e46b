// The lower triangle of C; every element is a dot product of two rows.
void kernel_syrk(T alpha, T beta, T C[restrict N][N], const T A[restrict N][M]) {
  // Row i has i + 1 elements: guided, so that equal shares are equal work.
#pragma omp parallel for schedule(guided)
  for (long i = 0; i < N; i++)
    for (long j = 0; j <= i; j++) {
      T sum = beta * C[i][j];
#pragma omp simd reduction(+ : sum)
      for (long k = 0; k < M; k++)
        sum += alpha * A[i][k] * A[j][k];
      C[i][j] = sum;
    }
}
