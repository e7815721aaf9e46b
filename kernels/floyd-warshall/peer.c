// No way is negative, so step k leaves row and column k as they are: its rows are independent.
void kernel_floyd_warshall(T path[restrict N][N]) {
#pragma omp parallel
  for (long k = 0; k < N; k++) {
#pragma omp for schedule(static)
    for (long i = 0; i < N; i++) {
      if (i == k)
        continue;
      const T there = path[i][k];
#pragma omp simd
      for (long j = 0; j < N; j++) {
        const T way = there + path[k][j];
        path[i][j] = path[i][j] < way ? path[i][j] : way;
      }
    }
  }
}
