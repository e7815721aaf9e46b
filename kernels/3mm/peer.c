// G = (A · B) · (C · D): E and F side by side, then G once all of F is there.
void kernel_3mm(T E[restrict NI][NJ], const T A[restrict NI][NK], const T B[restrict NK][NJ],
                T F[restrict NJ][NL], const T C[restrict NJ][NM], const T D[restrict NM][NL],
                T G[restrict NI][NL]) {
#pragma omp parallel
  {
#pragma omp for schedule(static) nowait
    for (long i = 0; i < NI; i++) {
      for (long j = 0; j < NJ; j++)
        E[i][j] = 0;
      for (long k = 0; k < NK; k++)
        for (long j = 0; j < NJ; j++)
          E[i][j] += A[i][k] * B[k][j];
    }
#pragma omp for schedule(static)
    for (long j = 0; j < NJ; j++) {
      for (long l = 0; l < NL; l++)
        F[j][l] = 0;
      for (long m = 0; m < NM; m++)
        for (long l = 0; l < NL; l++)
          F[j][l] += C[j][m] * D[m][l];
    }
#pragma omp for schedule(static)
    for (long i = 0; i < NI; i++) {
      for (long l = 0; l < NL; l++)
        G[i][l] = 0;
      for (long j = 0; j < NJ; j++)
        for (long l = 0; l < NL; l++)
          G[i][l] += E[i][j] * F[j][l];
    }
  }
}
