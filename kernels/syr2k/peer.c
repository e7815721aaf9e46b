// The lower triangle of C, row by row; with A and B transposed once the elements of a row are the
// vector.
void kernel_syr2k(T alpha, T beta, T C[restrict N][N], const T A[restrict N][M],
                  const T B[restrict N][M]) {
  T(*across)[2][N] = (T(*)[2][N])malloc(sizeof(T[M][2][N]));
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (long k = 0; k < M; k++)
      for (long j = 0; j < N; j++) {
        across[k][0][j] = A[j][k];
        across[k][1][j] = B[j][k];
      }
    // Row i has i + 1 elements: guided, so that equal shares are equal work.
#pragma omp for schedule(guided)
    for (long i = 0; i < N; i++) {
      T row[N];
      for (long j = 0; j <= i; j++)
        row[j] = beta * C[i][j];
      for (long k = 0; k < M; k++) {
        const T a = alpha * A[i][k], b = alpha * B[i][k];
        for (long j = 0; j <= i; j++)
          row[j] += across[k][0][j] * b + across[k][1][j] * a;
      }
      for (long j = 0; j <= i; j++)
        C[i][j] = row[j];
    }
  }
  free(across);
}
