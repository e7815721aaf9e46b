// Means, centred data, then the triangle j >= i of the matrix and its mirror image.
void kernel_covariance(T float_n, T data[restrict N][M], T cov[restrict M][M],
                       T mean[restrict M]) {
  for (long j = 0; j < M; j++)
    mean[j] = 0;
#pragma omp parallel for schedule(static) reduction(+ : mean[:M])
  for (long i = 0; i < N; i++)
    for (long j = 0; j < M; j++)
      mean[j] += data[i][j];
  for (long j = 0; j < M; j++)
    mean[j] /= float_n;
#pragma omp parallel for schedule(static)
  for (long i = 0; i < N; i++)
    for (long j = 0; j < M; j++)
      data[i][j] -= mean[j];
  // Row i has M - i elements: guided, so that equal shares are equal work.
#pragma omp parallel for schedule(guided)
  for (long i = 0; i < M; i++) {
    for (long j = i; j < M; j++)
      cov[i][j] = 0;
    for (long k = 0; k < N; k++)
      for (long j = i; j < M; j++)
        cov[i][j] += data[k][i] * data[k][j];
    for (long j = i; j < M; j++) {
      cov[i][j] /= float_n - 1;
      cov[j][i] = cov[i][j];
    }
  }
}
