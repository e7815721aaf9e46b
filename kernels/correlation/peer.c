// Means, deviations, normalised data, then the triangle j > i of the matrix and its mirror image.
#include <tgmath.h>

void kernel_correlation(T float_n, T data[restrict N][M], T corr[restrict M][M],
                        T mean[restrict M], T stddev[restrict M]) {
  for (long j = 0; j < M; j++)
    mean[j] = stddev[j] = 0;
#pragma omp parallel for schedule(static) reduction(+ : mean[:M])
  for (long i = 0; i < N; i++)
    for (long j = 0; j < M; j++)
      mean[j] += data[i][j];
  for (long j = 0; j < M; j++)
    mean[j] /= float_n;
#pragma omp parallel for schedule(static) reduction(+ : stddev[:M])
  for (long i = 0; i < N; i++)
    for (long j = 0; j < M; j++)
      stddev[j] += (data[i][j] - mean[j]) * (data[i][j] - mean[j]);
  for (long j = 0; j < M; j++) {
    const T deviation = sqrt(stddev[j] / float_n);
    stddev[j] = deviation <= (T)0.1 ? 1 : deviation;
  }
  const T root = sqrt(float_n);
#pragma omp parallel for schedule(static)
  for (long i = 0; i < N; i++)
    for (long j = 0; j < M; j++)
      data[i][j] = (data[i][j] - mean[j]) / (root * stddev[j]);
  // Row i has M - i elements: guided, so that equal shares are equal work.
#pragma omp parallel for schedule(guided)
  for (long i = 0; i < M; i++) {
    corr[i][i] = 1;
    for (long j = i + 1; j < M; j++)
      corr[i][j] = 0;
    for (long k = 0; k < N; k++)
      for (long j = i + 1; j < M; j++)
        corr[i][j] += data[k][i] * data[k][j];
    for (long j = i + 1; j < M; j++)
      corr[j][i] = corr[i][j];
  }
}
