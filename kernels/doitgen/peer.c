// A[r, q, :] = A[r, q, :] · C4; every (r, q) sums into a row of its own.
void kernel_doitgen(T A[restrict NR][NQ][NP], const T C4[restrict NP][NP], T sum[restrict NP]) {
#pragma omp parallel for collapse(2) schedule(static)
  for (long r = 0; r < NR; r++)
    for (long q = 0; q < NQ; q++) {
      T row[NP];
      for (long p = 0; p < NP; p++)
        row[p] = 0;
      for (long s = 0; s < NP; s++)
        for (long p = 0; p < NP; p++)
          row[p] += A[r][q][s] * C4[s][p];
      for (long p = 0; p < NP; p++)
        A[r][q][p] = row[p];
    }
  for (long p = 0; p < NP; p++)
    sum[p] = A[NR - 1][NQ - 1][p];
}
