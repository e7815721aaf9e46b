// Modified Gram-Schmidt: column k is made, then taken out of all columns behind it.
#include <tgmath.h>

void kernel_gramschmidt(T A[restrict M][N], T R[restrict N][N], T Q[restrict M][N]) {
#pragma omp parallel
  for (long k = 0; k < N; k++) {
#pragma omp single
    {
      T sum = 0;
      for (long i = 0; i < M; i++)
        sum += A[i][k] * A[i][k];
      R[k][k] = sqrt(sum);
      for (long i = 0; i < M; i++)
        Q[i][k] = A[i][k] / R[k][k];
    }
    // The same static split of j in the three loops: no thread reads a column of another one.
#pragma omp for simd schedule(static) nowait
    for (long j = k + 1; j < N; j++)
      R[k][j] = 0;
    for (long i = 0; i < M; i++)
#pragma omp for simd schedule(static) nowait
      for (long j = k + 1; j < N; j++)
        R[k][j] += Q[i][k] * A[i][j];
    for (long i = 0; i < M; i++)
#pragma omp for simd schedule(static) nowait
      for (long j = k + 1; j < N; j++)
        A[i][j] -= Q[i][k] * R[k][j];
#pragma omp barrier
  }
}
