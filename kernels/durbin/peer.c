// The recursion over k is sequential and its loops are short: vectors, no threads.
void kernel_durbin(const T r[restrict N], T y[restrict N], T z[restrict N]) {
  T alpha = -r[0], beta = 1;
  y[0] = -r[0];
  for (long k = 1; k < N; k++) {
    T sum = 0;
    beta *= 1 - alpha * alpha;
#pragma omp simd reduction(+ : sum)
    for (long i = 0; i < k; i++)
      sum += r[k - i - 1] * y[i];
    alpha = -(r[k] + sum) / beta;
    for (long i = 0; i < k; i++)
      z[i] = y[i] + alpha * y[k - i - 1];
    for (long i = 0; i < k; i++)
      y[i] = z[i];
    y[k] = alpha;
  }
}
