/* Threads: where a program's calls of the OpenMP runtime go.
 *
 * A program's parallel regions -> calls of libomp (LLVM's OpenMP runtime, openmp.llvm.org). The engine
 * finds that library and stores its functions here before a program with more than one thread runs,
 * as it does with MPI's handles: a program is loaded without the library too, and nobody else in the
 * process gets to see libomp's symbols. With `avial_threads` at 1, nothing here is called.
 */
#ifdef __linux__
#define _GNU_SOURCE
#include <sched.h>
#endif
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    int32_t reserved, flags, more, length;
    const char *text;
} ident_t; /* a place in a program, as libomp's kmp.h has it */
typedef void (*body_t)(int32_t *global_thread, int32_t *bound_thread, ...);

#define SHOWN __attribute__((visibility("default")))
#define OWN __attribute__((visibility("hidden")))

SHOWN void (*avial_omp_fork_call)(ident_t *, int32_t, body_t, ...);
SHOWN int32_t (*avial_omp_global_thread_num)(ident_t *);
SHOWN void (*avial_omp_push_num_threads)(ident_t *, int32_t, int32_t);
SHOWN void (*avial_omp_barrier)(ident_t *, int32_t);
SHOWN void (*avial_omp_for_static_init_8u)(ident_t *, int32_t, int32_t, int32_t *, uint64_t *, uint64_t *,
                                           int64_t *, int64_t, int64_t);
SHOWN void (*avial_omp_for_static_fini)(ident_t *, int32_t);
SHOWN void (*avial_omp_dispatch_init_8u)(ident_t *, int32_t, int32_t, uint64_t, uint64_t, int64_t, int64_t);
SHOWN int32_t (*avial_omp_dispatch_next_8u)(ident_t *, int32_t, int32_t *, uint64_t *, uint64_t *, int64_t *);

static ident_t nowhere = {0, 2, 0, 22, ";unknown;unknown;0;0;;"};

/* Regions capture at most one pointer, to all they use. */
OWN void __kmpc_fork_call(ident_t *place, int32_t count, body_t body, ...)
{
    va_list given;
    va_start(given, body);
    void *captured = count ? va_arg(given, void *) : 0;
    va_end(given);
    avial_omp_fork_call(place, count, body, captured);
}

OWN int32_t __kmpc_global_thread_num(ident_t *place)
{
    return avial_omp_global_thread_num(place);
}

OWN void __kmpc_push_num_threads(ident_t *place, int32_t thread, int32_t count)
{
    avial_omp_push_num_threads(place, thread, count);
}

OWN void __kmpc_barrier(ident_t *place, int32_t thread)
{
    avial_omp_barrier(place, thread);
}

OWN void __kmpc_for_static_init_8u(ident_t *place, int32_t thread, int32_t schedule, int32_t *last, uint64_t *lower,
                                   uint64_t *upper, int64_t *stride, int64_t step, int64_t chunk)
{
    avial_omp_for_static_init_8u(place, thread, schedule, last, lower, upper, stride, step, chunk);
}

OWN void __kmpc_for_static_fini(ident_t *place, int32_t thread)
{
    avial_omp_for_static_fini(place, thread);
}

OWN void __kmpc_dispatch_init_8u(ident_t *place, int32_t thread, int32_t schedule, uint64_t lower, uint64_t upper,
                                 int64_t step, int64_t chunk)
{
    avial_omp_dispatch_init_8u(place, thread, schedule, lower, upper, step, chunk);
}

OWN int32_t __kmpc_dispatch_next_8u(ident_t *place, int32_t thread, int32_t *last, uint64_t *lower, uint64_t *upper,
                                    int64_t *stride)
{
    return avial_omp_dispatch_next_8u(place, thread, last, lower, upper, stride);
}

/* Cores ------------------------------------------------------------------------------------------ */

#define BITS (8 * sizeof(unsigned long))

typedef struct {
    size_t words;
    const unsigned long *mask;
} cores_t;

#ifdef __linux__
/* The core whose bit is set as number `place`, counting around where there are fewer. */
static size_t core_at(const cores_t *cores, size_t place)
{
    size_t bits = cores->words * BITS, set = 0;
    for (size_t core = 0; core < bits; core++)
        set += cores->mask[core / BITS] >> core % BITS & 1;
    place %= set;
    for (size_t core = 0;; core++)
        if (cores->mask[core / BITS] >> core % BITS & 1 && place-- == 0)
            return core;
}
#endif

static void spread(int32_t *global_thread, int32_t *place, ...)
{
    va_list given;
    va_start(given, place);
    const cores_t *cores = va_arg(given, const cores_t *);
    va_end(given);
    (void)global_thread;
#ifdef __linux__
    size_t bytes = cores->words * sizeof(unsigned long), core = core_at(cores, (size_t)*place);
    unsigned long own[cores->words];
    memset(own, 0, bytes);
    own[core / BITS] = 1ul << core % BITS;
    /* Where that is forbidden they run anywhere. */
    sched_setaffinity(0, bytes, (const cpu_set_t *)own);
    sched_setaffinity(0, bytes, (const cpu_set_t *)cores->mask);
#else
    (void)place, (void)cores;
#endif
}

/* Wakes `count` threads, of which this is one, each on another of the cores whose bits are set.
 *
 * Two that wake on one core may stay there for some milliseconds, which is more than most phases
 * take. They are not tied to theirs: somebody else, with a program like this one, may want it too.
 */
SHOWN void avial_omp_bind(int32_t count, size_t words, const unsigned long *mask)
{
    cores_t cores = {words, mask};
    avial_omp_push_num_threads(&nowhere, avial_omp_global_thread_num(&nowhere), count);
    avial_omp_fork_call(&nowhere, 1, spread, &cores);
}
