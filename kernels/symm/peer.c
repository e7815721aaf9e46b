// C = alpha · A · B + beta · C; row i of the symmetric A is row i up to the diagonal, then column i.
void kernel_symm(T alpha, T beta, T C[restrict M][N], const T A[restrict M][M],
                 const T B[restrict M][N]) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < M; i++) {
    for (long j = 0; j < N; j++)
      C[i][j] *= beta;
    for (long k = 0; k < M; k++) {
      const T a = k <= i ? A[i][k] : A[k][i];
      for (long j = 0; j < N; j++)
        C[i][j] += alpha * a * B[k][j];
    }
  }
}
