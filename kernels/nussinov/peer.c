// Row i from the rows below it, left to right; once table[i][k] is final it is tried as the head of
// every longer stretch, so that the longer stretches are the vector. Rows are sequential.
void kernel_nussinov(const int8_t seq[restrict N], T table[restrict N][N]) {
  for (long i = N - 2; i >= 0; i--)
    for (long k = i + 1; k < N; k++) {
      const T pair = k > i + 1 && seq[i] + seq[k] == 3;
      const T left = table[i][k - 1], below = table[i + 1][k];
      const T both = table[i + 1][k - 1] + pair;
      T best = table[i][k];
      best = left > best ? left : best;
      best = below > best ? below : best;
      best = both > best ? both : best;
      table[i][k] = best;
#pragma omp simd
      for (long j = k + 1; j < N; j++) {
        const T split = best + table[k + 1][j];
        table[i][j] = table[i][j] > split ? table[i][j] : split;
      }
    }
}
