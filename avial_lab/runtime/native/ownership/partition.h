/* Which iterations of a phase are whose: blocks, blocks in turn, over a grid, by equal work. */
#ifndef AVIAL_PARTITION_H
#define AVIAL_PARTITION_H

#include "state.h"

/* Stores the range from `lo` to one past the last iteration lo, lo + step, … below `hi`; false
 * where there is none, and then it is empty. step is positive. */
INTERNAL bool make_range(i64 lo, i64 hi, i64 step, i64 *range);

/* Stores all iterations of a phase as one range (lo0, hi0, lo1, hi1); false where there are none.
 * space: SPACE_WORDS of each of two dimensions. */
INTERNAL bool whole_space(const i64 *space, i64 *range);

typedef void (*RangeVisitor)(i64 rank, const i64 *range, const void *context);

/* Calls `visit` for each range of the `member`-th rank that takes part, by the phase's layout and
 * weights: parts of the first dimension for the rows of the grid, of the second for its columns.
 * Iterations outside the slots go to the ranks at the ends, so that each has exactly one owner. */
INTERNAL void for_each_range(i64 member, const i64 *space, RangeVisitor visit, const void *context);

#endif
