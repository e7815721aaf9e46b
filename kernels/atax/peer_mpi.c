// y = Aᵀ · (A · x): every rank its own rows of A and all of x; y is summed at rank 0.
void kernel_atax(MPI_Comm comm, int rank, int ranks, const T A[restrict][N], const T x[restrict N],
                 T y[restrict N], T tmp[restrict]) {
  const long rows = FIRST_ROW(M, rank + 1) - FIRST_ROW(M, rank);
  for (long j = 0; j < N; j++)
    y[j] = 0;
#pragma omp parallel for schedule(static) reduction(+ : y[:N])
  for (long i = 0; i < rows; i++) {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long j = 0; j < N; j++)
      sum += A[i][j] * x[j];
    tmp[i] = sum;
    for (long j = 0; j < N; j++)
      y[j] += A[i][j] * sum;
  }
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : y, y, N, MPI_T, MPI_SUM, 0, comm);
}
