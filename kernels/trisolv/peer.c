// L · x = b by rows: sequential, every row a dot product with what is there already.
void kernel_trisolv(const T L[restrict N][N], T x[restrict N], const T b[restrict N]) {
  for (long i = 0; i < N; i++) {
    T sum = b[i];
#pragma omp simd reduction(- : sum)
    for (long j = 0; j < i; j++)
      sum -= L[i][j] * x[j];
    x[i] = sum / L[i][i];
  }
}
