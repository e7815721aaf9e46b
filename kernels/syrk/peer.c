// The lower triangle of C, row by row; with A transposed once the elements of a row are the vector.
void kernel_syrk(T alpha, T beta, T C[restrict N][N], const T A[restrict N][M]) {
  T(*across)[N] = (T(*)[N])malloc(sizeof(T[M][N]));
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (long k = 0; k < M; k++)
      for (long j = 0; j < N; j++)
        across[k][j] = A[j][k];
    // Row i has i + 1 elements: guided, so that equal shares are equal work.
#pragma omp for schedule(guided)
    for (long i = 0; i < N; i++) {
      T row[N];
      for (long j = 0; j <= i; j++)
        row[j] = beta * C[i][j];
      for (long k = 0; k < M; k++) {
        const T left = alpha * A[i][k];
        for (long j = 0; j <= i; j++)
          row[j] += left * across[k][j];
      }
      for (long j = 0; j <= i; j++)
        C[i][j] = row[j];
    }
  }
  free(across);
}
