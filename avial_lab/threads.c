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

typedef struct {
    size_t bytes;
    const void *words;
} cores_t;

static void stay(int32_t *global_thread, int32_t *bound_thread, ...)
{
    va_list given;
    va_start(given, bound_thread);
    const cores_t *cores = va_arg(given, const cores_t *);
    va_end(given);
    (void)global_thread;
#ifdef __linux__
    sched_setaffinity(0, cores->bytes, cores->words); /* where that is forbidden they run anywhere */
#else
    (void)cores;
#endif
}

/* Wakes `count` threads, of which this is one, and keeps them on the cores whose bits are set. */
SHOWN void avial_omp_bind(int32_t count, size_t bytes, const void *words)
{
    cores_t cores = {bytes, words};
    avial_omp_push_num_threads(&nowhere, avial_omp_global_thread_num(&nowhere), count);
    avial_omp_fork_call(&nowhere, 1, stay, &cores);
}
