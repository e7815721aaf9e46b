#include "partition.h"

/* Where part k of n begins, of `extent` slots; with equal work in each, by the weights of equal
 * slices, where that is asked and there is any. 128 bits: products of words. */
static i64 part_start(i64 k, i64 n, i64 extent, bool weighted)
{
    const i64 *weights = phase.weights.rows;
    __int128 total = 0, below = 0;
    for (i64 s = 0; weighted && s < phase.weights.count; s++) total += weights[s];
    if (total <= 0) return (i64)((__int128)k * extent / n);
    for (i64 s = 0; s < phase.weights.count; s++) {
        i64 start = (i64)((__int128)s * extent / phase.weights.count);
        i64 stop = (i64)((__int128)(s + 1) * extent / phase.weights.count);
        if ((below + weights[s]) * n > k * total)
            return start +
                   (i64)((k * total - below * n) * (stop - start) / (weights[s] * (__int128)n));
        below += weights[s];
    }
    return extent;
}

INTERNAL bool make_range(i64 lo, i64 hi, i64 step, i64 *range)
{
    range[0] = lo;
    range[1] = lo < hi ? lo + (hi - lo - 1) / step * step + 1 : lo;
    return lo < hi;
}

static i64 step_of(const i64 *space) { return max(space[SPACE_STEP], 1); }

/* Slots of one dimension; 0 or less where it has no iterations. */
static i64 slots_of(const i64 *space)
{
    i64 extent = space[SPACE_EXTENT];
    return extent > 0 ? extent : space[SPACE_UPPER] - space[SPACE_LOWER];
}

/* The iterations of one dimension in slots [from, to); false where there are none. The first and
 * the last part have those beyond the slots, too. */
static bool range_of_slots(const i64 *space, i64 from, i64 to, bool first, bool last, i64 *range)
{
    i64 lb = space[SPACE_LOWER], ub = space[SPACE_UPPER], step = step_of(space);
    i64 offset = space[SPACE_EXTENT] > 0 ? space[SPACE_OFFSET] : -lb;
    i64 lo = first ? lb : max(lb, from - offset);
    i64 hi = last ? ub : min(ub, to - offset);
    return make_range(lb + (lo - lb + step - 1) / step * step, hi, step, range);
}

/* Part k of n, in blocks. */
static bool range_of_part(const i64 *space, i64 k, i64 n, bool weighted, i64 *range)
{
    i64 extent = slots_of(space);
    if (extent <= 0) return false;
    i64 from = part_start(k, n, extent, weighted), to = part_start(k + 1, n, extent, weighted);
    return range_of_slots(space, from, to, k == 0, k == n - 1, range);
}

INTERNAL bool whole_space(const i64 *space, i64 *range)
{
    const i64 *second = space + SPACE_WORDS;
    return make_range(space[SPACE_LOWER], space[SPACE_UPPER], step_of(space), range) &&
           make_range(second[SPACE_LOWER], second[SPACE_UPPER], step_of(second), range + 2);
}

INTERNAL void for_each_range(i64 member, const i64 *space, RangeVisitor visit, const void *context)
{
    i64 columns = max(min(phase.grid_columns, phase.member_count), 1);
    i64 rows = phase.member_count / columns, row = member / columns, range[4];
    if (row >= rows) return; /* no room in the grid */
    if (!range_of_part(space + SPACE_WORDS, member % columns, columns, false, range + 2)) return;
    if (phase.block <= 0) {
        if (range_of_part(space, row, rows, true, range))
            visit(phase.members[member], range, context);
        return;
    }
    i64 block = phase.block, blocks = max((slots_of(space) + block - 1) / block, 1);
    for (i64 b = row; b < blocks; b += rows)
        if (range_of_slots(space, b * block, (b + 1) * block, b == 0, b == blocks - 1, range))
            visit(phase.members[member], range, context);
}
