// Tridiagonal systems down every column, then along every row; the systems are independent.
void kernel_adi(int64_t tsteps, T u[restrict N][N], T v[restrict N][N], T p[restrict N][N],
                T q[restrict N][N]) {
  const T dx = 1 / (T)N, dt = 1 / (T)tsteps;
  const T mul1 = 2 * dt / (dx * dx), mul2 = dt / (dx * dx);
  const T a = -mul1 / 2, b = 1 + mul1, d = -mul2 / 2, e = 1 + mul2;
#pragma omp parallel
  for (int64_t t = 0; t < tsteps; t++) {
    // Down the columns: threads take blocks of them, and in a block they are the vector. p and q are
    // scratch and lie as the columns do.
#pragma omp for schedule(static)
    for (long first = 1; first < N - 1; first += 64) {
      const long last = first + 64 < N - 1 ? first + 64 : N - 1;
      for (long i = first; i < last; i++) {
        v[0][i] = 1;
        p[0][i] = 0;
        q[0][i] = 1;
      }
      for (long j = 1; j < N - 1; j++)
        for (long i = first; i < last; i++) {
          const T pivot = a * p[j - 1][i] + b;
          p[j][i] = -a / pivot;
          q[j][i] =
              (-d * u[j][i - 1] + (1 + 2 * d) * u[j][i] - d * u[j][i + 1] - a * q[j - 1][i]) /
              pivot;
        }
      for (long i = first; i < last; i++)
        v[N - 1][i] = 1;
      for (long j = N - 2; j > 0; j--)
        for (long i = first; i < last; i++)
          v[j][i] = p[j][i] * v[j + 1][i] + q[j][i];
    }
    // Along the rows.
#pragma omp for schedule(static)
    for (long i = 1; i < N - 1; i++) {
      u[i][0] = 1;
      p[i][0] = 0;
      q[i][0] = 1;
      for (long j = 1; j < N - 1; j++) {
        const T pivot = d * p[i][j - 1] + e;
        p[i][j] = -d / pivot;
        q[i][j] = (-a * v[i - 1][j] + (1 + 2 * a) * v[i][j] - a * v[i + 1][j] - d * q[i][j - 1]) /
                  pivot;
      }
      u[i][N - 1] = 1;
      for (long j = N - 2; j > 0; j--)
        u[i][j] = p[i][j] * u[i][j + 1] + q[i][j];
    }
  }
}
