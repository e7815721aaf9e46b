// Explicit steps there and back; the threads stay together through all of them.
#define HEAT(from, to)                                                                             \
  to[i][j][k] =                                                                                    \
      (T)0.125 * (from[i + 1][j][k] - 2 * from[i][j][k] + from[i - 1][j][k]) +                     \
      (T)0.125 * (from[i][j + 1][k] - 2 * from[i][j][k] + from[i][j - 1][k]) +                     \
      (T)0.125 * (from[i][j][k + 1] - 2 * from[i][j][k] + from[i][j][k - 1]) + from[i][j][k]

void kernel_heat_3d(int64_t tsteps, T A[restrict N][N][N], T B[restrict N][N][N]) {
#pragma omp parallel
  for (int64_t t = 0; t < tsteps; t++) {
#pragma omp for schedule(static)
    for (long i = 1; i < N - 1; i++)
      for (long j = 1; j < N - 1; j++)
        for (long k = 1; k < N - 1; k++)
          HEAT(A, B);
#pragma omp for schedule(static)
    for (long i = 1; i < N - 1; i++)
      for (long j = 1; j < N - 1; j++)
        for (long k = 1; k < N - 1; k++)
          HEAT(B, A);
  }
}
#undef HEAT
