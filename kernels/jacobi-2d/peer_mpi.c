// Explicit steps there and back: every rank its own rows, with one more at either end that comes
// from its neighbour while the rows inside are made.
static void step(MPI_Comm comm, int rank, int ranks, T from[restrict][N], T to[restrict][N]) {
  const long low = FIRST_ROW(N, rank), high = FIRST_ROW(N, rank + 1), rows = high - low;
  const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int below = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
  // Of the rows 1 … rows that are its own, those that are not on the edge of the whole.
  const long first = low == 0 ? 2 : 1, last = high == N ? rows - 1 : rows;
  MPI_Request requests[4];
  MPI_Irecv(from[0], N, MPI_T, above, 0, comm, &requests[0]);
  MPI_Irecv(from[rows + 1], N, MPI_T, below, 1, comm, &requests[1]);
  MPI_Isend(from[1], N, MPI_T, above, 1, comm, &requests[2]);
  MPI_Isend(from[rows], N, MPI_T, below, 0, comm, &requests[3]);
  for (int part = 0; part < 2; part++) {
    if (part == 1)
      MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    // First the rows between the first and the last, then those two, which need a neighbour's.
    const long count = part == 0 ? last - first - 1 : last > first ? 2 : last == first;
    const long start = part == 0 ? first + 1 : first, stride = part == 0 ? 1 : last - first;
#pragma omp parallel for schedule(static)
    for (long r = 0; r < count; r++) {
      const long i = start + r * stride;
      for (long j = 1; j < N - 1; j++)
        to[i][j] = (T)0.2 * (from[i][j] + from[i][j - 1] + from[i][j + 1] + from[i + 1][j] +
                             from[i - 1][j]);
    }
  }
}

void kernel_jacobi_2d(MPI_Comm comm, int rank, int ranks, int64_t tsteps, T A[restrict][N],
                      T B[restrict][N]) {
  for (int64_t t = 0; t < tsteps; t++) {
    step(comm, rank, ranks, A, B);
    step(comm, rank, ranks, B, A);
  }
}
