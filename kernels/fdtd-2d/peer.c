// ey and ex read hz only and are made in one sweep; hz needs both.
void kernel_fdtd_2d(T ex[restrict NX][NY], T ey[restrict NX][NY], T hz[restrict NX][NY],
                    const T fict[restrict TMAX]) {
#pragma omp parallel
  for (long t = 0; t < TMAX; t++) {
#pragma omp for schedule(static)
    for (long i = 0; i < NX; i++) {
      if (i == 0)
        for (long j = 0; j < NY; j++)
          ey[0][j] = fict[t];
      else
        for (long j = 0; j < NY; j++)
          ey[i][j] -= (T)0.5 * (hz[i][j] - hz[i - 1][j]);
      for (long j = 1; j < NY; j++)
        ex[i][j] -= (T)0.5 * (hz[i][j] - hz[i][j - 1]);
    }
#pragma omp for schedule(static)
    for (long i = 0; i < NX - 1; i++)
      for (long j = 0; j < NY - 1; j++)
        hz[i][j] -= (T)0.7 * (ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j]);
  }
}
