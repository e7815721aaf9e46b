// C = alpha · A · B + beta · C: every rank its own rows of C and A, and all of B. No messages.
void kernel_gemm(MPI_Comm comm, int rank, int ranks, T alpha, T beta, T C[restrict][NJ],
                 const T A[restrict][NK], const T B[restrict NK][NJ]) {
  const long rows = FIRST_ROW(NI, rank + 1) - FIRST_ROW(NI, rank);
#pragma omp parallel for schedule(static)
  for (long i = 0; i < rows; i++) {
    for (long j = 0; j < NJ; j++)
      C[i][j] *= beta;
    for (long k = 0; k < NK; k++)
      for (long j = 0; j < NJ; j++)
        C[i][j] += alpha * A[i][k] * B[k][j];
  }
}
