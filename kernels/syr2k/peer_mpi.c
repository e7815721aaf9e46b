// The lower triangle of C: every rank rows with an equal share of it, and all of A and B.
void kernel_syr2k(MPI_Comm comm, int rank, int ranks, T alpha, T beta, T C[restrict][N],
                  const T A[restrict N][M], const T B[restrict N][M]) {
  const long low = FIRST_OF_TRIANGLE(N, rank), high = FIRST_OF_TRIANGLE(N, rank + 1);
#pragma omp parallel for schedule(guided)
  for (long i = low; i < high; i++)
    for (long j = 0; j <= i; j++) {
      T sum = beta * C[i - low][j];
#pragma omp simd reduction(+ : sum)
      for (long k = 0; k < M; k++)
        sum += alpha * A[j][k] * B[i][k] + alpha * B[j][k] * A[i][k];
      C[i - low][j] = sum;
    }
}
