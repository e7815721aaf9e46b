// In place and row by row, the nine weights from W; nothing is independent as written.
void kernel_seidel_9pt(int64_t tsteps, const T W[restrict 3][3], T A[restrict NX][NY]) {
  for (int64_t t = 0; t < tsteps; t++)
    for (long i = 1; i < NX - 1; i++)
      for (long j = 1; j < NY - 1; j++) {
        T sum = 0;
        for (long p = 0; p < 3; p++)
          for (long q = 0; q < 3; q++)
            sum += W[p][q] * A[i + p - 1][j + q - 1];
        A[i][j] = sum;
      }
}
