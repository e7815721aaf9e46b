// B = alpha · Aᵀ · B in place: the columns of B are independent, threads take blocks of them.
void kernel_trmm(T alpha, const T A[restrict M][M], T B[restrict M][N]) {
#pragma omp parallel for schedule(static)
  for (long first = 0; first < N; first += 128) {
    const long last = first + 128 < N ? first + 128 : N;
    for (long i = 0; i < M; i++) {
      for (long k = i + 1; k < M; k++)
        for (long j = first; j < last; j++)
          B[i][j] += A[k][i] * B[k][j];
      for (long j = first; j < last; j++)
        B[i][j] *= alpha;
    }
  }
}
