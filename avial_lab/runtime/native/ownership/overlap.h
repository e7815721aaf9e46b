/* The inner part of a range, which can run while messages are under way. */
#ifndef AVIAL_OVERLAP_H
#define AVIAL_OVERLAP_H

#include "footprints.h"

/* Of a range of `rank`, whose iterations of the first dimension are numbered from 0 on: those from
 * `low` to `high` need nothing that is under way to it. false, and nothing stored, where there are
 * none. In a run of this rank; in a plan of any that a message comes to. */
INTERNAL bool find_interior(const Body *body, i64 rank, const i64 *range, i64 step, i64 *low,
                            i64 *high);

/* Splits this rank's only range along the first dimension: first what needs nothing that is under
 * way to it, then what is left at the lower and the upper end. Leaves `phase.ranges` alone where
 * there is no such part. step: of the first dimension's loop. */
INTERNAL void split_interior(const Body *body, i64 step);

#endif
