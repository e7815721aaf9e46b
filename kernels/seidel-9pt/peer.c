// In place and row by row, the nine weights from W: a row needs the one above it of the same step,
// and the one below it of the step before. So a step runs behind the one before, on a thread of its
// own.
void kernel_seidel_9pt(int64_t tsteps, const T W[restrict 3][3], T A[restrict NX][NY]) {
#pragma omp parallel for ordered(2) schedule(static, 1)
  for (long t = 0; t < tsteps; t++)
    for (long i = 1; i < NX - 1; i++) {
#pragma omp ordered depend(sink : t - 1, i + 1)
      for (long j = 1; j < NY - 1; j++) {
        T sum = 0;
        for (long p = 0; p < 3; p++)
          for (long q = 0; q < 3; q++)
            sum += W[p][q] * A[i + p - 1][j + q - 1];
        A[i][j] = sum;
      }
#pragma omp ordered depend(source)
    }
}
