// G = (A · B) · (C · D): every rank its own rows of E, F and G; F is gathered by all in between.
static void product(long rows, long depth, long columns, T to[restrict rows][columns],
                    const T left[restrict rows][depth], const T right[restrict depth][columns]) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < rows; i++) {
    for (long j = 0; j < columns; j++)
      to[i][j] = 0;
    for (long k = 0; k < depth; k++)
      for (long j = 0; j < columns; j++)
        to[i][j] += left[i][k] * right[k][j];
  }
}

void kernel_3mm(MPI_Comm comm, int rank, int ranks, T E[restrict][NJ], const T A[restrict][NK],
                const T B[restrict NK][NJ], T F[restrict NJ][NL], const T C[restrict][NM],
                const T D[restrict NM][NL], T G[restrict][NL]) {
  const long rows = FIRST_ROW(NI, rank + 1) - FIRST_ROW(NI, rank);
  const long low = FIRST_ROW(NJ, rank), high = FIRST_ROW(NJ, rank + 1);
  int *counts = malloc(2 * ranks * sizeof(int)), *starts = counts + ranks;
  for (int r = 0; r < ranks; r++) {
    starts[r] = FIRST_ROW(NJ, r) * NL;
    counts[r] = FIRST_ROW(NJ, r + 1) * NL - starts[r];
  }
  MPI_Request gathered;
  product(high - low, NM, NL, F + low, C, D);
  // E needs nothing of F: it is made while F comes together.
  MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_T, F, counts, starts, MPI_T, comm, &gathered);
  product(rows, NK, NJ, E, A, B);
  MPI_Wait(&gathered, MPI_STATUS_IGNORE);
  product(rows, NJ, NL, G, E, F);
  free(counts);
}
