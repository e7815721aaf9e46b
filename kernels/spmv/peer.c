// Row by row; rows differ in length, so threads take them a few at a time.
void kernel_spmv(const int32_t rows[restrict N + 1], const int32_t columns[restrict NNZ],
                 const T values[restrict NNZ], const T x[restrict M], T y[restrict N]) {
#pragma omp parallel for schedule(guided)
  for (long i = 0; i < N; i++) {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long e = rows[i]; e < rows[i + 1]; e++)
      sum += values[e] * x[columns[e]];
    y[i] = sum;
  }
}
