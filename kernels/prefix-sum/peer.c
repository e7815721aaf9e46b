// The running sum as it is written: a chain of additions, one after the other.
void kernel_prefix_sum(const T x[restrict N], T sums[restrict N]) {
  T total = 0;
  for (long i = 0; i < N; i++) {
    total += x[i];
    sums[i] = total;
  }
}
