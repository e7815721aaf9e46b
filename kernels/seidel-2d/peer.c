// In place and row by row: neither a step nor a row nor a point is independent of the one before.
void kernel_seidel_2d(int64_t tsteps, T A[restrict N][N]) {
  for (int64_t t = 0; t < tsteps; t++)
    for (long i = 1; i < N - 1; i++)
      for (long j = 1; j < N - 1; j++)
        A[i][j] = (A[i - 1][j - 1] + A[i - 1][j] + A[i - 1][j + 1] + A[i][j - 1] + A[i][j] +
                   A[i][j + 1] + A[i + 1][j - 1] + A[i + 1][j] + A[i + 1][j + 1]) /
                  9;
}
