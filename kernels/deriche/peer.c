// Recursive smoothing: along rows every row by itself, down columns whole rows at a time, so that
// the columns are the vector. What lies outside the image is 0.
#include <tgmath.h>

void kernel_deriche(T alpha, const T imgIn[restrict W][H], T imgOut[restrict W][H],
                    T y1[restrict W][H], T y2[restrict W][H]) {
  const T e1 = exp(-alpha), e2 = exp(-2 * alpha), e3 = exp(2 * alpha);
  const T k = (1 - e1) * (1 - e1) / (1 + 2 * alpha * e1 - e3);
  const T a1 = k, a2 = k * e1 * (alpha - 1), a3 = k * e1 * (alpha + 1), a4 = -k * e2;
  const T b1 = pow((T)2, -alpha), b2 = -e2;
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (long i = 0; i < W; i++) {
      T x1 = 0, x2 = 0, v1 = 0, v2 = 0;
      for (long j = 0; j < H; j++) {
        const T v = a1 * imgIn[i][j] + a2 * x1 + b1 * v1 + b2 * v2;
        y1[i][j] = v;
        x1 = imgIn[i][j];
        v2 = v1;
        v1 = v;
      }
      x1 = v1 = v2 = 0;
      for (long j = H - 1; j >= 0; j--) {
        const T v = a3 * x1 + a4 * x2 + b1 * v1 + b2 * v2;
        y2[i][j] = v;
        x2 = x1;
        x1 = imgIn[i][j];
        v2 = v1;
        v1 = v;
      }
      for (long j = 0; j < H; j++)
        imgOut[i][j] = y1[i][j] + y2[i][j];
    }
    // The same static split of j in every loop below: no thread reads a column of another one.
    for (long i = 0; i < W; i++)
#pragma omp for simd schedule(static) nowait
      for (long j = 0; j < H; j++) {
        const T x1 = i > 0 ? imgOut[i - 1][j] : 0;
        const T v1 = i > 0 ? y1[i - 1][j] : 0, v2 = i > 1 ? y1[i - 2][j] : 0;
        y1[i][j] = a1 * imgOut[i][j] + a2 * x1 + b1 * v1 + b2 * v2;
      }
    for (long i = W - 1; i >= 0; i--)
#pragma omp for simd schedule(static) nowait
      for (long j = 0; j < H; j++) {
        const T x1 = i < W - 1 ? imgOut[i + 1][j] : 0, x2 = i < W - 2 ? imgOut[i + 2][j] : 0;
        const T v1 = i < W - 1 ? y2[i + 1][j] : 0, v2 = i < W - 2 ? y2[i + 2][j] : 0;
        y2[i][j] = a3 * x1 + a4 * x2 + b1 * v1 + b2 * v2;
      }
    for (long i = 0; i < W; i++)
#pragma omp for simd schedule(static) nowait
      for (long j = 0; j < H; j++)
        imgOut[i][j] = y1[i][j] + y2[i][j];
  }
}
