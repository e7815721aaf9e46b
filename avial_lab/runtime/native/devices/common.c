/* What all drivers share: whether a launch fits, and the runs of a box. */
#include <inttypes.h>
#include <stdio.h>

#include "driver.h"

static const char *const DIMENSION[3] = {"x", "y", "z"};

bool launch_fits(const Limits *limits, const Launch *launch, char *why, int64_t capacity)
{
    __int128 threads = 1;
    for (int d = 0; d < 3; d++) {
        int64_t blocks = launch->grid[d], wide = launch->block[d];
        if (wide < 1 || wide > limits->block[d]) {
            snprintf(why, (size_t)capacity,
                     "a block of %" PRId64 " threads in %s; from 1 to %" PRId64 " are possible",
                     wide, DIMENSION[d], limits->block[d]);
            return false;
        }
        if (blocks < 0 || blocks > limits->grid[d]) {
            snprintf(why, (size_t)capacity,
                     "a grid of %" PRId64 " blocks in %s; up to %" PRId64 " are possible", blocks,
                     DIMENSION[d], limits->grid[d]);
            return false;
        }
        threads *= wide;
    }
    if (threads > limits->block_threads) {
        snprintf(why, (size_t)capacity,
                 "a block of %" PRId64 " threads; up to %" PRId64 " are possible",
                 (int64_t)threads, limits->block_threads);
        return false;
    }
    if (launch->shared_bytes > limits->shared_bytes) {
        snprintf(why, (size_t)capacity,
                 "%" PRId64 " bytes of shared memory in a block; up to %" PRId64 " are possible",
                 launch->shared_bytes, limits->shared_bytes);
        return false;
    }
    return true;
}

void for_each_run(const BoxCopy *copy, uint64_t here, uint64_t there,
                  void (*visit)(void *context, uint64_t here, uint64_t there, int64_t bytes),
                  void *context)
{
    int64_t at[MAX_DIMS] = {0}, d = 0;
    for (int64_t k = 0; k < copy->dims; k++)
        if (copy->count[k] < 1) return;
    if (copy->run_bytes < 1) return;
    while (d < copy->dims || copy->dims == 0) {
        visit(context, here, there, copy->run_bytes);
        for (d = 0; d < copy->dims; d++) {
            here += (uint64_t)copy->here[d], there += (uint64_t)copy->there[d];
            if (++at[d] < copy->count[d]) break;
            here -= (uint64_t)(copy->here[d] * copy->count[d]);
            there -= (uint64_t)(copy->there[d] * copy->count[d]);
            at[d] = 0;
        }
        if (copy->dims == 0) return;
    }
}
