// The machine's own ceilings: fused multiply-adds that never leave the registers, and the STREAM
// triad over arrays that no cache holds. Each returns work per second, by all OpenMP threads.
#include <omp.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif
// Independent sums for each thread: more than latency times units, fewer than registers.
#if defined(__aarch64__)
#define CHAINS 24
#else
#define CHAINS 12
#endif
#define LANES (BYTES / sizeof(T))

typedef T vector __attribute__((vector_size(BYTES)));

static volatile long limit; // read between the barriers, so that the loop stays between them

// Floating-point operations per second; `rounds` is how often every chain is taken further.
double NAMED(peak_flops)(long rounds) {
  double start = 0, end = 0;
  int threads = 1;
  limit = rounds;
#pragma omp parallel
  {
    vector sums[CHAINS], factor, term;
    for (int c = 0; c < CHAINS; c++)
      for (unsigned k = 0; k < LANES; k++)
        sums[c][k] = (T)(c + k);
    for (unsigned k = 0; k < LANES; k++) {
      factor[k] = (T)0.5;
      term[k] = (T)1;
    }
#pragma omp barrier
#pragma omp master
    {
      threads = omp_get_num_threads();
      start = omp_get_wtime();
    }
#pragma omp barrier
    const long last = limit;
    for (long r = 0; r < last; r++)
#pragma GCC unroll 24
      for (int c = 0; c < CHAINS; c++)
        sums[c] = sums[c] * factor + term;
    vector total = sums[0];
    for (int c = 1; c < CHAINS; c++)
      total += sums[c];
    __asm__ volatile("" : : "m"(total)); // somebody wants it
#pragma omp barrier
#pragma omp master
    end = omp_get_wtime();
  }
  return 2.0 * rounds * CHAINS * LANES * threads / (end - start);
}

// Bytes per second of a = b + s · c by all threads, each over three arrays of `n` elements of its
// own, `rounds` times, the best of `times`; the line that a write fetches first is not counted, as
// in STREAM. Small arrays stay in a cache.
double NAMED(triad_bytes)(long n, long rounds, long times) {
  double best = 0, start = 0;
  int threads = 1, failed = 0;
#pragma omp parallel
  {
    // Each thread touches what is its own first, so that it lies in its own memory.
    const size_t nbytes = (n * sizeof(T) / 64 + 1) * 64;
    T *restrict a = aligned_alloc(64, nbytes), *restrict b = aligned_alloc(64, nbytes),
      *restrict c = aligned_alloc(64, nbytes);
    if (!a || !b || !c)
#pragma omp atomic
      failed++;
    else
      for (long i = 0; i < n; i++) {
        a[i] = 0;
        b[i] = (T)i;
        c[i] = 1;
      }
#pragma omp barrier
    for (long t = 0; t < times && !failed; t++) {
#pragma omp barrier
#pragma omp master
      {
        threads = omp_get_num_threads();
        start = omp_get_wtime();
      }
#pragma omp barrier
      for (long r = 0; r < rounds; r++) {
        for (long i = 0; i < n; i++)
          a[i] = b[i] + (T)3 * c[i];
        __asm__ volatile("" : : "r"(a) : "memory"); // every round is made
      }
#pragma omp barrier
#pragma omp master
      {
        const double rate = 3.0 * n * sizeof(T) * rounds * threads / (omp_get_wtime() - start);
        best = rate > best ? rate : best;
      }
    }
    free(a);
    free(b);
    free(c);
  }
  return best;
}

// Width of the vectors that `peak_flops` computes with, in bits.
long NAMED(vector_bits)(void) { return 8 * BYTES; }
