// Explicit steps there and back; the threads stay together through all of them.
#define SEVEN(from, to)                                                                            \
  to[i][j][k] = alpha * from[i][j][k] +                                                            \
                beta * (from[i - 1][j][k] + from[i + 1][j][k] + from[i][j - 1][k] +                \
                        from[i][j + 1][k] + from[i][j][k - 1] + from[i][j][k + 1])

void kernel_stencil_3d_7pt(int64_t tsteps, T alpha, T beta, T A[restrict NX][NY][NZ],
                           T B[restrict NX][NY][NZ]) {
#pragma omp parallel
  for (int64_t t = 0; t < tsteps; t++) {
#pragma omp for schedule(static)
    for (long i = 1; i < NX - 1; i++)
      for (long j = 1; j < NY - 1; j++)
        for (long k = 1; k < NZ - 1; k++)
          SEVEN(A, B);
#pragma omp for schedule(static)
    for (long i = 1; i < NX - 1; i++)
      for (long j = 1; j < NY - 1; j++)
        for (long k = 1; k < NZ - 1; k++)
          SEVEN(B, A);
  }
}
#undef SEVEN
