/* What a phase touches on every rank; how it is divided, or why it cannot be. */
#ifndef AVIAL_FOOTPRINTS_H
#define AVIAL_FOOTPRINTS_H

#include "state.h"

/* A phase's own description, as `avial_begin` got it. */
typedef struct {
    Touches touches;
    const i64 *params, *space;
} Body;

/* The box that begins there in `phase.boxes`; valid until another is added. */
INTERNAL const i64 *box_at(i64 at);

/* Adds a box to `phase.boxes`; returns where it begins. */
INTERNAL i64 store_box(i64 nd, const i64 *box);

/* Adds to `phase.footprints` what `rank` touches in that range. */
INTERNAL void report_footprints(i64 rank, const i64 *range, const Body *body);

/* Footprints of all ranks, and the ranges of this one. */
INTERNAL void collect_footprints(const Body *body);

/* Brings a phase that cannot be divided, for a conflict or a reduction without arithmetic, to one
 * rank; finds who contributes to what is reduced in the others. */
INTERNAL void resolve_conflicts(const Body *body);

/* From the k-th cell of the array on, the first that any rank contributes to; -1 where there is
 * none. */
INTERNAL i64 next_cell(Array *a, i64 k);

#endif
