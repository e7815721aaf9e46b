// Explicit steps there and back: every rank its own planes, with one more at either end that comes
// from its neighbour while the planes inside are made.
static void step(MPI_Comm comm, int rank, int ranks, T from[restrict][N][N], T to[restrict][N][N]) {
  const long low = FIRST_ROW(N, rank), high = FIRST_ROW(N, rank + 1), planes = high - low;
  const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int below = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
  // Of the planes 1 … planes that are its own, those that are not on the edge of the whole.
  const long first = low == 0 ? 2 : 1, last = high == N ? planes - 1 : planes;
  MPI_Request requests[4];
  MPI_Irecv(from[0], N * N, MPI_T, above, 0, comm, &requests[0]);
  MPI_Irecv(from[planes + 1], N * N, MPI_T, below, 1, comm, &requests[1]);
  MPI_Isend(from[1], N * N, MPI_T, above, 1, comm, &requests[2]);
  MPI_Isend(from[planes], N * N, MPI_T, below, 0, comm, &requests[3]);
  for (int part = 0; part < 2; part++) {
    if (part == 1)
      MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    // First the planes between the first and the last, then those two, which need a neighbour's.
    const long count = part == 0 ? last - first - 1 : last > first ? 2 : last == first;
    const long start = part == 0 ? first + 1 : first, stride = part == 0 ? 1 : last - first;
#pragma omp parallel for collapse(2) schedule(static)
    for (long r = 0; r < count; r++)
      for (long j = 1; j < N - 1; j++) {
        const long i = start + r * stride;
        for (long k = 1; k < N - 1; k++)
          to[i][j][k] =
              (T)0.125 * (from[i + 1][j][k] - 2 * from[i][j][k] + from[i - 1][j][k]) +
              (T)0.125 * (from[i][j + 1][k] - 2 * from[i][j][k] + from[i][j - 1][k]) +
              (T)0.125 * (from[i][j][k + 1] - 2 * from[i][j][k] + from[i][j][k - 1]) +
              from[i][j][k];
      }
  }
}

void kernel_heat_3d(MPI_Comm comm, int rank, int ranks, int64_t tsteps, T A[restrict][N][N],
                    T B[restrict][N][N]) {
  for (int64_t t = 0; t < tsteps; t++) {
    step(comm, rank, ranks, A, B);
    step(comm, rank, ranks, B, A);
  }
}
