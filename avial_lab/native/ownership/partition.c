/* Which part of the iterations is whose: blocks, in turn, over a grid, by equal work. */

/* Where part k of n begins, of `extent` slots; by the weights of equal slices where there are any. */
static i64 boundary(i64 k, i64 n, i64 extent, bool weighted)
{
    __int128 total = 0, below = 0;
    for (i64 s = 0; weighted && s < nweights; s++) total += weights[s];
    if (total <= 0) return (i64)((__int128)k * extent / n);
    for (i64 s = 0; s < nweights; s++) {
        i64 start = (i64)((__int128)s * extent / nweights);
        i64 stop = (i64)((__int128)(s + 1) * extent / nweights);
        if ((below + weights[s]) * n > k * total)
            return start + (i64)((k * total - below * n) * (stop - start) / (weights[s] * (__int128)n));
        below += weights[s];
    }
    return extent;
}

/* lo and one past the last iteration of [lo, hi); whether there is any. */
static bool tight(i64 lo, i64 hi, i64 step, i64 *range)
{
    range[0] = lo;
    range[1] = lo < hi ? lo + (hi - lo - 1) / step * step + 1 : lo;
    return lo < hi;
}

/* The iteration values of `space` (lb, ub, step, offset, extent) in slots [from, to), and whether there
 * are any; the ends of the extent take what lies beyond them. */
static bool slots(const i64 *space, i64 from, i64 to, bool lowest_part, bool highest_part, i64 *range)
{
    i64 lb = space[0], ub = space[1], step = max(space[2], 1);
    i64 offset = space[4] > 0 ? space[3] : -lb;
    i64 lo = lowest_part ? lb : max(lb, from - offset);
    i64 hi = highest_part ? ub : min(ub, to - offset);
    return tight(lb + (lo - lb + step - 1) / step * step, hi, step, range);
}

static bool block_part(const i64 *space, i64 k, i64 n, bool weighted, i64 *range)
{
    i64 extent = space[4] > 0 ? space[4] : space[1] - space[0];
    if (extent <= 0) return false;
    i64 from = boundary(k, n, extent, weighted), to = boundary(k + 1, n, extent, weighted);
    return slots(space, from, to, k == 0, k == n - 1, range);
}

typedef void (*Visit)(i64 rank, const i64 *range, const void *with);

/* Calls `visit` for every range of the member `k`: of its row and column of the grid. */
static void each_range(i64 k, const i64 *space, Visit visit, const void *with)
{
    i64 across = max(min(columns, nmembers), 1), down = nmembers / across, range[4];
    if (k >= down * across || !block_part(space + 5, k % across, across, false, range + 2)) return;
    i64 part = k / across, extent = space[4] > 0 ? space[4] : space[1] - space[0];
    if (block_size <= 0) {
        if (block_part(space, part, down, true, range)) visit(members[k], range, with);
        return;
    }
    i64 blocks = max((extent + block_size - 1) / block_size, 1);
    for (i64 b = part; b < blocks; b += down)
        if (slots(space, b * block_size, (b + 1) * block_size, b == 0, b == blocks - 1, range))
            visit(members[k], range, with);
}
