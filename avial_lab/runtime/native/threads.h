/* Threads: where a program's calls of the OpenMP runtime go.
 *
 * A program's parallel regions -> calls of libomp (LLVM's OpenMP runtime, openmp.llvm.org). The
 * engine finds that library and stores its functions here before a program with more than one
 * thread runs, as it does with MPI's handles: a program is loaded without the library too, and
 * nobody else in the process gets to see libomp's symbols. With `avial_threads` at 1, nothing here
 * is called.
 */
#ifndef AVIAL_THREADS_H
#define AVIAL_THREADS_H

#include <stdint.h>

#include "linkage.h"

/* A place in a program, as libomp's kmp.h has it. */
typedef struct {
    int32_t reserved, flags, more, length;
    const char *text;
} ident_t;

/* A parallel region, which every thread of the team runs. */
typedef void (*body_t)(int32_t *global_thread, int32_t *bound_thread, ...);

/* Set by the engine: libomp's functions, by their names there without `__kmpc_`. */
EXPORTED extern void (*avial_omp_fork_call)(ident_t *, int32_t, body_t, ...);
EXPORTED extern int32_t (*avial_omp_global_thread_num)(ident_t *);
EXPORTED extern void (*avial_omp_push_num_threads)(ident_t *, int32_t, int32_t);
EXPORTED extern void (*avial_omp_barrier)(ident_t *, int32_t);
EXPORTED extern void (*avial_omp_for_static_init_8u)(ident_t *, int32_t, int32_t, int32_t *,
                                                     uint64_t *, uint64_t *, int64_t *, int64_t,
                                                     int64_t);
EXPORTED extern void (*avial_omp_for_static_fini)(ident_t *, int32_t);
EXPORTED extern void (*avial_omp_dispatch_init_8u)(ident_t *, int32_t, int32_t, uint64_t, uint64_t,
                                                   int64_t, int64_t);
EXPORTED extern int32_t (*avial_omp_dispatch_next_8u)(ident_t *, int32_t, int32_t *, uint64_t *,
                                                      uint64_t *, int64_t *);

/* Called by the engine: wakes `threads` threads, of which the caller is one, each on the next of
 * the `count` cores (hardware threads, by the system's numbers), over and over where there are
 * fewer.
 *
 * Two that wake on one core may stay there for some milliseconds, which is more than most phases
 * take. They are not tied to theirs afterwards but may use any of the cores: another program like
 * this one may want the same. Where the system does not allow it, threads run anywhere. */
EXPORTED void avial_omp_bind(int32_t threads, int32_t count, const int32_t *cores);

/* The same, but not before the program divides a loop: a short run may have none that is worth it.
 * With 0 threads nothing is asked for any more. -> whether that of the call before was done. */
EXPORTED int32_t avial_omp_bind_later(int32_t threads, int32_t count, const int32_t *cores);

/* Called by programs, as LLVM's OpenMP code does. A region captures at most one pointer. */
HIDDEN void __kmpc_fork_call(ident_t *place, int32_t count, body_t body, ...);
HIDDEN int32_t __kmpc_global_thread_num(ident_t *place);
HIDDEN void __kmpc_push_num_threads(ident_t *place, int32_t thread, int32_t count);
HIDDEN void __kmpc_barrier(ident_t *place, int32_t thread);
HIDDEN void __kmpc_for_static_init_8u(ident_t *place, int32_t thread, int32_t schedule,
                                      int32_t *last, uint64_t *lower, uint64_t *upper,
                                      int64_t *stride, int64_t step, int64_t chunk);
HIDDEN void __kmpc_for_static_fini(ident_t *place, int32_t thread);
HIDDEN void __kmpc_dispatch_init_8u(ident_t *place, int32_t thread, int32_t schedule,
                                    uint64_t lower, uint64_t upper, int64_t step, int64_t chunk);
HIDDEN int32_t __kmpc_dispatch_next_8u(ident_t *place, int32_t thread, int32_t *last,
                                       uint64_t *lower, uint64_t *upper, int64_t *stride);

#endif
