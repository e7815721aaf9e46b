/* A device seen from C: a table of calls, and the drivers behind it.
 *
 *     cuda    an NVIDIA GPU, by libcuda.so.1; no toolkit (cuda.c)
 *     apart   an emulated GPU: memory of its own, queues that run late (apart.c)
 *     null    does nothing but count (null.c)
 *
 * Work is put into one of a device's queues and runs later, in the order of its queue. Between
 * queues there is no order but what events say:
 *
 *     queue 0   launch ──● event         ● = record
 *     queue 1        wait ○── copy       ○ = wait: what follows is not begun before
 *
 * One thread calls. A call that returns a bool returns false where it failed; then, and where
 * something is NULL or 0 that should not be, `why` says it in words until the next failure.
 */
#ifndef AVIAL_DRIVER_H
#define AVIAL_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "../ownership/constants.h"

enum { QUEUES = 3 };
enum Queue { QUEUE_KERNELS, QUEUE_IN, QUEUE_OUT };

/* What has been put into a queue up to some point, by queue and number; 0 is over at once. */
typedef int64_t Event_; /* `Event` is the trace's */

typedef enum { COPY_IN, COPY_OUT, COPY_WITHIN } CopyKind;

/* A box of one array: `count[d]` times along dimension d, the innermost first, `run_bytes`. The
 * strides are bytes. in: from `host` to `device`; out: the reverse; within: from the address
 * `source` of this device or of another one of the same driver to `device`. */
typedef struct {
    CopyKind kind;
    char *host;
    uint64_t device, source;
    int64_t run_bytes, dims, count[MAX_DIMS], here[MAX_DIMS], there[MAX_DIMS]; /* device, other */
} BoxCopy;

/* A kernel over a grid of blocks of threads. arguments: `words[k]` bytes into `data` begins the
 * k-th; all `bytes` of it are copied when the launch is put into the queue. */
typedef struct {
    void *kernel; /* of `kernel`; of the emulated device a function of `data` */
    int64_t grid[3], block[3], shared_bytes;
    const void *data;
    int64_t bytes;
    const int64_t *offsets;
    int64_t arguments;
    int64_t tag;  /* told to `avial_launched` */
    int64_t step; /* or phase: that of the program */
} Launch;

typedef struct {
    int64_t block_threads, block[3], grid[3], shared_bytes, memory_bytes, free_bytes;
    int64_t capability; /* 90 for sm_90; 0 for what runs everything */
    char name[128];
} Limits;

/* `native/driver_table.py` has the same. */
typedef struct {
    const char *name;
    int64_t (*count)(void);        /* how many devices there are; -1 where that is not known */
    void *(*open)(int64_t number); /* from 0 */
    void (*close)(void *device);   /* frees all that it has */
    bool (*limits)(void *device, Limits *to);
    uint64_t (*allocate)(void *device, int64_t bytes); /* an address; what is there is undefined */
    bool (*release)(void *device, uint64_t address);   /* after `finish`; of `reserve`, too */
    bool (*copy)(void *device, enum Queue queue, const BoxCopy *copy);
    void *(*load)(void *device, const char *image); /* PTX, or a cubin */
    void *(*kernel)(void *device, void *module, const char *name);
    bool (*launch)(void *device, enum Queue queue, const Launch *launch);
    Event_ (*record)(void *device, enum Queue queue);
    bool (*wait)(void *device, enum Queue queue, void *other, Event_ event); /* of device `other` */
    bool (*synchronise)(void *device, Event_ event); /* the host waits for it */
    bool (*finish)(void *device);                    /* … for all that was put into any queue */
    const char *(*why)(void);
    /* Memory of the host that is copied from and to: faster where it stays in its pages. NULL, or
     * false, where a driver does without. */
    bool (*pin)(void *device, void *memory, int64_t bytes);
    void (*unpin)(void *device, void *memory);
    /* Whether the device has so many bytes at an address that somebody else took there; and what is
     * put into its queues from now on waits for what is in that stream of somebody else's. */
    bool (*holds)(void *device, uint64_t address, int64_t bytes);
    bool (*after)(void *device, uint64_t stream);
    /* What lies there is undefined from now on, in the order of the queue; and another run begins.
     * NULL where a driver does nothing then. */
    bool (*forget)(void *device, enum Queue queue, uint64_t address, int64_t bytes);
    void (*again)(void *device);
    /* Addresses for `bytes`, where there is memory for some granules alone: `count` times from one to
     * before another one, ascending and apart. What is touched elsewhere is a fault of the device's.
     * Only where the device `maps` memory so; NULL where a driver never does. */
    bool (*maps)(void *device);
    uint64_t (*reserve)(void *device, int64_t bytes, const int64_t *runs, int64_t count);
} Driver;

extern const Driver apart_driver, null_driver, cuda_driver;

/* Whether a device of those limits takes that launch; else `why` has the reason. */
bool launch_fits(const Limits *limits, const Launch *launch, char *why, int64_t capacity);

/* Calls `visit` with the addresses of both ends of each run of the copy. */
void for_each_run(const BoxCopy *copy, uint64_t here, uint64_t there,
                  void (*visit)(void *context, uint64_t here, uint64_t there, int64_t bytes),
                  void *context);

/* apart: in which order queues go on where events leave it open. 0: as late as they allow; else the
 * seed of a random order. For devices that are opened from now on. */
extern uint64_t avial_apart_seed;

/* apart: the size of a device's memory; 0 for what the host has. Of runs that begin from now on. */
extern int64_t avial_apart_memory;

/* Of the program: where the step at hand is. apart: of a launch its own while it runs, which is later
 * than it was put into the queue. */
extern int64_t *avial_journal __attribute__((weak));

/* apart: called with a launch's tag and when it began and ended (CLOCK_MONOTONIC), once it ran;
 * NULL for nobody. */
extern void (*avial_launched)(int64_t tag, int64_t began_ns, int64_t ended_ns);

/* null: what it has counted since it was opened, of all devices. */
typedef struct {
    int64_t allocated_bytes, copies, copied_bytes, launches; /* all that was ever allocated */
} NullCounts;
extern NullCounts avial_null_counts;

/* cuda: the file that is loaded; NULL for libcuda.so.1. */
extern const char *avial_libcuda;

#endif
