// D = alpha · A · B · C + beta · D: row i of D needs row i of tmp only, so one loop over rows.
void kernel_2mm(T alpha, T beta, T tmp[restrict NI][NJ], const T A[restrict NI][NK],
                const T B[restrict NK][NJ], const T C[restrict NJ][NL], T D[restrict NI][NL]) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < NI; i++) {
    for (long j = 0; j < NJ; j++)
      tmp[i][j] = 0;
    for (long k = 0; k < NK; k++)
      for (long j = 0; j < NJ; j++)
        tmp[i][j] += alpha * A[i][k] * B[k][j];
    for (long l = 0; l < NL; l++)
      D[i][l] *= beta;
    for (long j = 0; j < NJ; j++)
      for (long l = 0; l < NL; l++)
        D[i][l] += tmp[i][j] * C[j][l];
  }
}
