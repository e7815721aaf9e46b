// A = L · Lᵀ column by column: the elements of a column are independent dot products.
#include <tgmath.h>

void kernel_cholesky(T A[restrict N][N]) {
#pragma omp parallel
  for (long j = 0; j < N; j++) {
#pragma omp single
    {
      T sum = A[j][j];
#pragma omp simd reduction(- : sum)
      for (long k = 0; k < j; k++)
        sum -= A[j][k] * A[j][k];
      A[j][j] = sqrt(sum);
    }
#pragma omp for schedule(static)
    for (long i = j + 1; i < N; i++) {
      T sum = A[i][j];
#pragma omp simd reduction(- : sum)
      for (long k = 0; k < j; k++)
        sum -= A[i][k] * A[j][k];
      A[i][j] = sum / A[j][j];
    }
  }
}
