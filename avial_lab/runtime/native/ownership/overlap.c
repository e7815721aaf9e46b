#include "overlap.h"

#include <string.h>

#include "partition.h"
#include "pieces.h"
#include "pipelined.h"

/* The first message to that rank or a later one: they are in order of their destinations' ranks. */
static i64 first_to(i64 rank)
{
    i64 low = 0, high = phase.messages.count;
    while (low < high) {
        i64 middle = low + (high - low) / 2;
        if (run.driver[phase.messages.rows[middle].dest] < rank) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The k-th message where it is to that rank, else NULL. */
static const Message *to_rank(i64 k, i64 rank)
{
    const Message *m = &phase.messages.rows[k];
    return k < phase.messages.count && run.driver[m->dest] == rank ? m : NULL;
}

/* Whether the message is under way while its receiver may compute: in a run, this rank. */
static bool travels(const Message *m)
{
    if (!run.plan) return m->buffer >= 0;
    return m->source != m->dest && !m->collective && !is_pipelined(m, false);
}

/* Whether a device of that rank waits for something of that footprint: a copy is of a whole piece,
 * of which a message may bring no more than an edge. */
static bool is_copied_late(const Footprint *f, i64 rank)
{
    for (i64 k = 0; k < phase.copies.count; k++) {
        const Copy *c = &phase.copies.rows[k];
        if (c->late && c->array == f->array && run.driver[c->dest] == rank &&
            overlap(run.arrays[f->array].nd, box_at(c->box), box_at(f->box)))
            return true;
    }
    return false;
}

/* Whether a message under way to that rank brings something of that footprint. */
static bool is_under_way(const Footprint *f, i64 rank)
{
    i64 nd = run.arrays[f->array].nd;
    if (run.places > run.ranks && is_copied_late(f, rank)) return true;
    const Message *m;
    for (i64 n = first_to(rank); (m = to_rank(n, rank)); n++) {
        if (!travels(m)) continue;
        for (i64 k = m->first; k < m->first + m->count; k++) {
            const Transfer *t = &phase.transfers.rows[k];
            if (t->array == f->array && overlap(nd, box_at(t->box), box_at(f->box))) return true;
        }
    }
    return false;
}

/* Whether a range touches nothing that is under way. Its footprints are dropped again; they are
 * reported as those of a rank that there is not, so that none is left out for being known. */
static bool touches_nothing_under_way(const Body *body, i64 rank, const i64 *range)
{
    i64 footprints = phase.footprints.count, words = phase.boxes.count, k = footprints;
    report_footprints(-2, range, body);
    while (k < phase.footprints.count && !is_under_way(&phase.footprints.rows[k], rank)) k++;
    bool nothing = k == phase.footprints.count;
    phase.footprints.count = footprints;
    phase.boxes.count = words;
    return nothing;
}

/* A rank's range, whose iterations of the first dimension are numbered from 0. */
typedef struct {
    i64 rank, range[4], step, count;
} Iterations;

/* Stores the range of the iterations numbered [from, to). */
static void numbered_range(const Iterations *all, i64 from, i64 to, i64 *range)
{
    memcpy(range, all->range, sizeof all->range);
    i64 lo = all->range[0];
    make_range(lo + from * all->step, lo + to * all->step, all->step, range);
}

static bool is_interior(const Body *body, const Iterations *all, i64 from, i64 to)
{
    i64 range[4];
    numbered_range(all, from, to, range);
    return touches_nothing_under_way(body, all->rank, range);
}

/* How many iterations to leave out at the lower (or upper) end so that those from there to the
 * middle are interior; few as a rule, so 0, 1, 2, 4, … are tried, then what lies between the last
 * two. */
static i64 boundary_width(const Body *body, const Iterations *all, i64 middle, bool upper)
{
    i64 most = upper ? all->count - middle - 1 : middle, too_few = -1, enough = 0;
    for (i64 jump = 1; enough < most; jump *= 2) {
        if (is_interior(body, all, upper ? middle : enough,
                        upper ? all->count - enough : middle + 1))
            break;
        too_few = enough;
        enough = min(jump, most);
    }
    while (enough - too_few > 1) {
        i64 half = too_few + (enough - too_few) / 2;
        if (is_interior(body, all, upper ? middle : half, upper ? all->count - half : middle + 1))
            enough = half;
        else too_few = half;
    }
    return enough;
}

static bool awaits(i64 rank)
{
    const Message *m;
    for (i64 n = first_to(rank); (m = to_rank(n, rank)); n++)
        if (travels(m)) return true;
    return false;
}

static Iterations numbered(i64 rank, const i64 *range, i64 step)
{
    Iterations all = {.rank = rank, .step = step};
    memcpy(all.range, range, sizeof all.range);
    all.count = (range[1] - range[0] + step - 1) / step;
    return all;
}

INTERNAL bool find_interior(const Body *body, i64 rank, const i64 *range, i64 step, i64 *low,
                            i64 *high)
{
    Iterations all = numbered(rank, range, step);
    i64 middle = all.count / 2;
    if (run.plan && !awaits(rank)) return false;
    if (all.count < 3 || !is_interior(body, &all, middle, middle + 1)) return false;
    *low = boundary_width(body, &all, middle, false);
    *high = all.count - boundary_width(body, &all, middle, true);
    return true;
}

INTERNAL void split_interior(const Body *body, i64 step)
{
    if (!phase.pending || phase.ranges.count != 4 || phase.combining || phase.kind == PHASE_WIDE)
        return;
    Iterations all = numbered(run.rank, phase.ranges.rows, step);
    i64 low, high;
    if (!find_interior(body, run.rank, all.range, step, &low, &high)) return;
    RESERVE(phase.ranges, 12);
    numbered_range(&all, low, high, phase.ranges.rows);
    phase.interior_ranges = 1;
    i64 ends[2][2] = {{0, low}, {high, all.count}}, place = phase.places.rows[0];
    for (i64 k = 0; k < 2; k++) {
        if (ends[k][0] == ends[k][1]) continue;
        numbered_range(&all, ends[k][0], ends[k][1], phase.ranges.rows + phase.ranges.count);
        phase.ranges.count += 4;
        *APPEND(phase.places) = place;
    }
}
