// Every point by itself, the 27 products in a row: the compiler unrolls them.
void kernel_stencil_3d_27pt(const T W[restrict 3][3][3], const T A[restrict NX][NY][NZ],
                            T B[restrict NX][NY][NZ]) {
#pragma omp parallel for collapse(2) schedule(static)
  for (long i = 1; i < NX - 1; i++)
    for (long j = 1; j < NY - 1; j++)
      for (long k = 1; k < NZ - 1; k++) {
        T sum = 0;
        for (long p = 0; p < 3; p++)
          for (long q = 0; q < 3; q++)
            for (long r = 0; r < 3; r++)
              sum += W[p][q][r] * A[i + p - 1][j + q - 1][k + r - 1];
        B[i][j][k] = sum;
      }
}
