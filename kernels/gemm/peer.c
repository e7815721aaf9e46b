// C = alpha · A · B + beta · C, row by row, the columns of B as the vector.
void kernel_gemm(T alpha, T beta, T C[restrict NI][NJ], const T A[restrict NI][NK],
                 const T B[restrict NK][NJ]) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < NI; i++) {
    for (long j = 0; j < NJ; j++)
      C[i][j] *= beta;
    for (long k = 0; k < NK; k++)
      for (long j = 0; j < NJ; j++)
        C[i][j] += alpha * A[i][k] * B[k][j];
  }
}
