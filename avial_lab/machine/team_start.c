// How long the threads of a team take to begin together and to be done: empty parallel regions of
// the OpenMP runtime that programs call, one after the other. Its functions are handed in.
#include <stdint.h>
#include <time.h>

typedef struct {
  int32_t reserved, flags, more, length;
  const char *text;
} ident_t;
typedef void (*body_t)(int32_t *global_thread, int32_t *bound_thread, ...);

static void nothing(int32_t *global_thread, int32_t *bound_thread, ...) {
  (void)global_thread, (void)bound_thread;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

// Seconds of each of `regions` regions of so many threads.
void team_starts(void (*fork_call)(ident_t *, int32_t, body_t, ...),
                 void (*push_num_threads)(ident_t *, int32_t, int32_t),
                 int32_t (*global_thread_num)(ident_t *), int32_t threads, long regions,
                 double *taken) {
  ident_t place = {0, 2, 0, 0, ";avial;team;0;0;;"};
  for (long k = 0; k < regions; k++) {
    const double start = now();
    push_num_threads(&place, global_thread_num(&place), threads);
    fork_call(&place, 0, nothing);
    taken[k] = now() - start;
  }
}
