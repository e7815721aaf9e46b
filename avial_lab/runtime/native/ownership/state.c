/* Failure, memory, and a run's beginning and end. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "pieces.h"
#include "pipelined.h"

INTERNAL Run run;
INTERNAL CurrentPhase phase;
INTERNAL Scratch scratch;

INTERNAL void note_error(i64 code)
{
    if (!avial_error) avial_error = (code & 0xffffffff) | (i64)((u64)phase.number << 32);
}

INTERNAL void check(int mpi_code)
{
    if (mpi_code) note_error(mpi_code);
}

INTERNAL _Noreturn void fail(i64 code)
{
    note_error(code);
    run.broken = true;
    longjmp(run.failed, 1);
}

INTERNAL void *try_grow(void *data, i64 *capacity, i64 needed, i64 size)
{
    if (needed <= *capacity) return data;
    i64 wanted = needed < 2 * *capacity ? 2 * *capacity : needed < 16 ? 16 : needed;
    void *more = wanted > PTRDIFF_MAX / size ? NULL : realloc(data, (size_t)(wanted * size));
    if (more) *capacity = wanted;
    return more;
}

INTERNAL void *grow(void *data, i64 *capacity, i64 needed, i64 size)
{
    void *more = try_grow(data, capacity, needed, size);
    if (!more && needed) fail(ERROR_NO_MEMORY);
    return more;
}

INTERNAL void *zeroed(i64 count, i64 size)
{
    void *made = calloc((size_t)max(count, 1), (size_t)size);
    if (!made) fail(ERROR_NO_MEMORY);
    return made;
}

static void release_arrays(void)
{
    for (i64 k = 0; k < run.array_count; k++) {
        Array *a = &run.arrays[k];
        free(a->directory.rows), free(a->given.rows), free(a->ever_held.rows), free(a->cells.rows);
    }
    free(run.arrays);
}

static void release_buffers(void)
{
    for (i64 k = 0; k < run.buffers.count; k++) {
        free(run.buffers.rows[k].data);
        free(run.buffers.rows[k].requests);
    }
    free(run.buffers.rows);
}

static void release_phases(void)
{
    for (i64 k = 0; k < run.phases.count; k++)
        for (i64 n = 0; n < MEMO_ENTRIES; n++) {
            MemoEntry *m = &run.phases.rows[k].memo[n];
            free(m->footprints.rows), free(m->boxes.rows), free(m->before.rows);
            free(m->after.rows), free(m->transfers.rows), free(m->messages.rows);
            free(m->copies.rows);
        }
    free(run.phases.rows);
}

INTERNAL void reset_run(void)
{
    release_arrays();
    release_buffers();
    release_phases();
    free(run.totals.rows), free(run.loops.rows), free(run.kept_footprints.rows);
    free(run.turns.rows), free(run.patterns.rows), free(run.pattern_begins.rows);
    free(run.pattern_hashes.rows), free(run.pattern_slots.rows), free(run.total_slots.rows);
    for (i64 k = 0; run.stays && k < (run.places - run.ranks) * run.array_count; k++)
        free(run.stays[k].granules);
    free(run.driver), free(run.copied.rows), free(run.stays);
    free(phase.members), free(phase.weights.rows), free(phase.footprints.rows);
    free(phase.boxes.rows), free(phase.transfers.rows), free(phase.messages.rows);
    free(phase.ranges.rows), free(phase.places.rows), free(phase.copies.rows);
    free(phase.shares.rows), free(scratch.pattern.rows);
    free(scratch.per_rank), free(scratch.pieces.rows), free(scratch.more_pieces.rows);
    free(scratch.merged.rows), free(scratch.counts.rows), free(scratch.replaced.rows);
    free(scratch.lacking.rows);
    release_pipelines();
    memset(&run, 0, sizeof run);
    memset(&phase, 0, sizeof phase);
    memset(&scratch, 0, sizeof scratch);
}

INTERNAL void init_array(Array *a, i64 nd, const i64 *dims, i64 itemsize, char *memory)
{
    a->nd = max(nd, 1);
    a->scalar = nd == 0;
    a->itemsize = itemsize;
    a->memory = memory;
    a->stride = 2 * a->nd + 1 + run.set_words;
    for (i64 d = 0; d < a->nd; d++) a->whole[a->nd + d] = a->scalar ? 1 : dims[d];
    a->unwritten = volume(a->nd, a->whole);
    reset_pieces(a, &a->directory);
    reset_pieces(a, &a->given);
    if (run.plan) reset_pieces(a, &a->ever_held);
}
