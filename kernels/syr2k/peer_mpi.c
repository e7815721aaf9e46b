// The lower triangle of C: every rank rows with an equal share of it, and all of A and B, which it
// transposes once, as far as it needs them.
void kernel_syr2k(MPI_Comm comm, int rank, int ranks, T alpha, T beta, T C[restrict][N],
                  const T A[restrict N][M], const T B[restrict N][M]) {
  const long low = FIRST_OF_TRIANGLE(N, rank), high = FIRST_OF_TRIANGLE(N, rank + 1);
  T(*across)[2][N] = malloc(sizeof(T[M][2][N]));
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (long k = 0; k < M; k++)
      for (long j = 0; j < high; j++) {
        across[k][0][j] = A[j][k];
        across[k][1][j] = B[j][k];
      }
#pragma omp for schedule(guided)
    for (long i = low; i < high; i++) {
      T row[N];
      for (long j = 0; j <= i; j++)
        row[j] = beta * C[i - low][j];
      for (long k = 0; k < M; k++) {
        const T a = alpha * A[i][k], b = alpha * B[i][k];
        for (long j = 0; j <= i; j++)
          row[j] += across[k][0][j] * b + across[k][1][j] * a;
      }
      for (long j = 0; j <= i; j++)
        C[i - low][j] = row[j];
    }
  }
  free(across);
}
