// Both layers of one row of the batch after the other: its h stays in the cache.
#ifndef LARGER
#define LARGER(x, y) ((x) > (y) ? (x) : (y))
#endif

void kernel_mlp(const T x[restrict BATCH][IN], const T w1[restrict IN][HIDDEN],
                const T b1[restrict HIDDEN], const T w2[restrict HIDDEN][OUT],
                const T b2[restrict OUT], T h[restrict BATCH][HIDDEN], T y[restrict BATCH][OUT]) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < BATCH; i++) {
    for (long j = 0; j < HIDDEN; j++)
      h[i][j] = b1[j];
    for (long k = 0; k < IN; k++)
      for (long j = 0; j < HIDDEN; j++)
        h[i][j] += x[i][k] * w1[k][j];
    for (long j = 0; j < HIDDEN; j++)
      h[i][j] = LARGER(h[i][j], 0);
    for (long o = 0; o < OUT; o++)
      y[i][o] = b2[o];
    for (long k = 0; k < HIDDEN; k++)
      for (long o = 0; o < OUT; o++)
        y[i][o] += h[i][k] * w2[k][o];
  }
}
