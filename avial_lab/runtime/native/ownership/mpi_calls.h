/* The calls of MPI that the runtime makes, without any MPI's header: handles are 64 bits wide and
 * come from the engine, which has loaded the library. Weak: a plan, or one rank, runs where there
 * is no MPI. What they return goes to `check`. */
#ifndef AVIAL_MPI_CALLS_H
#define AVIAL_MPI_CALLS_H

#include <stdint.h>

#define MPI_CALL __attribute__((weak)) int

MPI_CALL MPI_Isend(const void *, int, int64_t type, int peer, int tag, int64_t comm,
                   int64_t *request);
MPI_CALL MPI_Irecv(void *, int, int64_t type, int peer, int tag, int64_t comm, int64_t *request);
MPI_CALL MPI_Wait(int64_t *request, void *status);
MPI_CALL MPI_Test(int64_t *request, int *flag, void *status);
MPI_CALL MPI_Barrier(int64_t comm);
MPI_CALL MPI_Bcast(void *, int, int64_t type, int root, int64_t comm);
MPI_CALL MPI_Allgatherv(const void *, int, int64_t type, void *, const int *counts,
                        const int *starts, int64_t received, int64_t comm);

#endif
