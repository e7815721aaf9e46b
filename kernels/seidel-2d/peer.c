// In place and row by row: a row needs the one above it of the same step, and the one below it of
// the step before. So a step runs behind the one before, two rows apart, on a thread of its own.
void kernel_seidel_2d(int64_t tsteps, T A[restrict N][N]) {
#pragma omp parallel for ordered(2) schedule(static, 1)
  for (long t = 0; t < tsteps; t++)
    for (long i = 1; i < N - 1; i++) {
#pragma omp ordered depend(sink : t - 1, i + 1)
      for (long j = 1; j < N - 1; j++)
        A[i][j] = (A[i - 1][j - 1] + A[i - 1][j] + A[i - 1][j + 1] + A[i][j - 1] + A[i][j] +
                   A[i][j + 1] + A[i + 1][j - 1] + A[i + 1][j] + A[i + 1][j + 1]) /
                  9;
#pragma omp ordered depend(source)
    }
}
