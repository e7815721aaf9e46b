#include "overlap.h"

#include <string.h>

#include "partition.h"
#include "pieces.h"

/* Whether a message under way to this rank brings something of that footprint. */
static bool is_under_way(const Footprint *f)
{
    i64 nd = run.arrays[f->array].nd;
    for (i64 n = 0; n < phase.messages.count; n++) {
        const Message *m = &phase.messages.rows[n];
        if (m->dest != run.rank || m->buffer < 0) continue;
        for (i64 k = m->first; k < m->first + m->count; k++) {
            const Transfer *t = &phase.transfers.rows[k];
            if (t->array == f->array && overlap(nd, box_at(t->box), box_at(f->box))) return true;
        }
    }
    return false;
}

/* Whether a range touches nothing that is under way. Its footprints are dropped again; they are
 * reported as those of a rank that there is not, so that none is left out for being known. */
static bool touches_nothing_under_way(const Body *body, const i64 *range)
{
    i64 footprints = phase.footprints.count, words = phase.boxes.count, k = footprints;
    report_footprints(-2, range, body);
    while (k < phase.footprints.count && !is_under_way(&phase.footprints.rows[k])) k++;
    bool nothing = k == phase.footprints.count;
    phase.footprints.count = footprints;
    phase.boxes.count = words;
    return nothing;
}

/* This rank's range, whose iterations of the first dimension are numbered from 0. */
typedef struct {
    i64 range[4], step, count;
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
    return touches_nothing_under_way(body, range);
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

INTERNAL void split_interior(const Body *body, i64 step)
{
    if (!phase.pending || phase.ranges.count != 4 || phase.combining || phase.kind == PHASE_WIDE)
        return;
    Iterations all = {.step = step};
    memcpy(all.range, phase.ranges.rows, sizeof all.range);
    all.count = (all.range[1] - all.range[0] + step - 1) / step;
    i64 middle = all.count / 2;
    if (all.count < 3 || !is_interior(body, &all, middle, middle + 1)) return;
    i64 low = boundary_width(body, &all, middle, false);
    i64 high = all.count - boundary_width(body, &all, middle, true);
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
