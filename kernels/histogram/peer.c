// Two values may meet in one bin: every thread counts for itself.
void kernel_histogram(const int32_t data[restrict N], T counts[restrict BINS]) {
  for (long b = 0; b < BINS; b++)
    counts[b] = 0;
#pragma omp parallel for schedule(static) reduction(+ : counts[:BINS])
  for (long i = 0; i < N; i++)
    counts[data[i]] += 1;
}
