/* OpenMP calls, handed on; threads put on cores. Linux alone lets a thread choose its cores. */
#ifdef __linux__
#define _GNU_SOURCE
#include <sched.h>
#endif
#include "threads.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

void (*avial_omp_fork_call)(ident_t *, int32_t, body_t, ...);
int32_t (*avial_omp_global_thread_num)(ident_t *);
void (*avial_omp_push_num_threads)(ident_t *, int32_t, int32_t);
void (*avial_omp_barrier)(ident_t *, int32_t);
void (*avial_omp_for_static_init_8u)(ident_t *, int32_t, int32_t, int32_t *, uint64_t *, uint64_t *,
                                     int64_t *, int64_t, int64_t);
void (*avial_omp_for_static_fini)(ident_t *, int32_t);
void (*avial_omp_dispatch_init_8u)(ident_t *, int32_t, int32_t, uint64_t, uint64_t, int64_t,
                                   int64_t);
int32_t (*avial_omp_dispatch_next_8u)(ident_t *, int32_t, int32_t *, uint64_t *, uint64_t *,
                                      int64_t *);

/* For calls from here, which is no place in a program. */
static ident_t nowhere = {0, 2, 0, 22, ";unknown;unknown;0;0;;"};

/* What avial_omp_bind_later was asked for; 0 threads: nothing, or it has been done. */
static struct {
    int32_t threads, count;
    const int32_t *cores;
} later;

/* OpenMP --------------------------------------------------------------------------------------- */
HIDDEN void __kmpc_fork_call(ident_t *place, int32_t count, body_t body, ...)
{
    if (later.threads) {
        int32_t threads = later.threads;
        later.threads = 0;
        avial_omp_bind(threads, later.count, later.cores);
        avial_omp_push_num_threads(place, avial_omp_global_thread_num(place), threads);
    }
    va_list given;
    va_start(given, body);
    void *captured = count ? va_arg(given, void *) : 0;
    va_end(given);
    avial_omp_fork_call(place, count, body, captured);
}

HIDDEN int32_t __kmpc_global_thread_num(ident_t *place)
{
    return avial_omp_global_thread_num(place);
}

HIDDEN void __kmpc_push_num_threads(ident_t *place, int32_t thread, int32_t count)
{
    avial_omp_push_num_threads(place, thread, count);
}

HIDDEN void __kmpc_barrier(ident_t *place, int32_t thread) { avial_omp_barrier(place, thread); }

HIDDEN void __kmpc_for_static_init_8u(ident_t *place, int32_t thread, int32_t schedule,
                                      int32_t *last, uint64_t *lower, uint64_t *upper,
                                      int64_t *stride, int64_t step, int64_t chunk)
{
    avial_omp_for_static_init_8u(place, thread, schedule, last, lower, upper, stride, step, chunk);
}

HIDDEN void __kmpc_for_static_fini(ident_t *place, int32_t thread)
{
    avial_omp_for_static_fini(place, thread);
}

HIDDEN void __kmpc_dispatch_init_8u(ident_t *place, int32_t thread, int32_t schedule,
                                    uint64_t lower, uint64_t upper, int64_t step, int64_t chunk)
{
    avial_omp_dispatch_init_8u(place, thread, schedule, lower, upper, step, chunk);
}

HIDDEN int32_t __kmpc_dispatch_next_8u(ident_t *place, int32_t thread, int32_t *last,
                                       uint64_t *lower, uint64_t *upper, int64_t *stride)
{
    return avial_omp_dispatch_next_8u(place, thread, last, lower, upper, stride);
}

/* Cores ---------------------------------------------------------------------------------------- */

typedef struct {
    int32_t count;
    const int32_t *cores;
} places_t;

#ifdef __linux__
#define BITS (8 * (int32_t)sizeof(unsigned long))

/* Moves this thread to those cores; where that is forbidden it runs anywhere. */
static void move_to(const int32_t *cores, int32_t count)
{
    int32_t last = 0;
    for (int32_t k = 0; k < count; k++) last = cores[k] > last ? cores[k] : last;
    unsigned long mask[last / BITS + 1];
    memset(mask, 0, sizeof mask);
    for (int32_t k = 0; k < count; k++) mask[cores[k] / BITS] |= 1ul << cores[k] % BITS;
    sched_setaffinity(0, sizeof mask, (const cpu_set_t *)mask);
}
#endif

/* A region: each thread to a core of its own, and then it is free to use all of them. */
static void spread(int32_t *global_thread, int32_t *number, ...)
{
    va_list given;
    va_start(given, number);
    const places_t *places = va_arg(given, const places_t *);
    va_end(given);
    (void)global_thread;
#ifdef __linux__
    move_to(&places->cores[*number % places->count], 1);
    move_to(places->cores, places->count);
#else
    (void)places;
#endif
}

EXPORTED void avial_omp_bind(int32_t threads, int32_t count, const int32_t *cores)
{
    places_t places = {count, cores};
    avial_omp_push_num_threads(&nowhere, avial_omp_global_thread_num(&nowhere), threads);
    avial_omp_fork_call(&nowhere, 1, spread, &places);
}

EXPORTED int32_t avial_omp_bind_later(int32_t threads, int32_t count, const int32_t *cores)
{
    int32_t done = later.threads == 0;
    later.threads = threads;
    later.count = count;
    later.cores = cores;
    return done;
}
