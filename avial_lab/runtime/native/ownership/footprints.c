#include "footprints.h"

#include <string.h>

#include "partition.h"
#include "pieces.h"
#include "reductions.h"
#include "turns.h"

INTERNAL const i64 *box_at(i64 at) { return phase.boxes.rows + at; }

INTERNAL i64 store_box(i64 nd, const i64 *box)
{
    i64 at = phase.boxes.count;
    RESERVE(phase.boxes, at + 2 * nd);
    memcpy(phase.boxes.rows + at, box, (size_t)nd * 16);
    phase.boxes.count += 2 * nd;
    return at;
}

/* Reports -------------------------------------------------------------------------------------- */

/* Whether the rank has reported that already, as a whole. */
static bool is_reported(const Array *a, const Footprint *f, const i64 *box)
{
    for (i64 k = phase.footprints.count - 1; k >= 0; k--) {
        const Footprint *old = &phase.footprints.rows[k];
        if (old->rank != f->rank) return false;
        if (old->array == f->array && old->use == f->use && old->operation == f->operation &&
            contains(a->nd, box_at(old->box), box))
            return true;
    }
    return false;
}

/* Called from the program's code, so it does not `fail`: `report_footprints` does. */
static void add_footprint(i64 array, const i64 *box, enum Use use, i64 operation)
{
    const Array *a = &run.arrays[array];
    Footprint f = {phase.reporting_rank, array, use, operation, phase.boxes.count};
    Footprints *list = &phase.footprints;
    Words *boxes = &phase.boxes;
    i64 part[2 * MAX_DIMS];
    if (phase.out_of_memory || !intersect(a->nd, part, box_given(a, box), a->whole)) return;
    if (is_reported(a, &f, part)) return;
    void *rows = try_grow(list->rows, &list->capacity, list->count + 1, sizeof f);
    void *words = try_grow(boxes->rows, &boxes->capacity, boxes->count + 2 * a->nd, 8);
    if (rows) list->rows = rows;
    if (words) boxes->rows = words;
    phase.out_of_memory = !rows || !words;
    if (phase.out_of_memory) return;
    memcpy(boxes->rows + boxes->count, part, (size_t)a->nd * 16);
    boxes->count += 2 * a->nd;
    list->rows[list->count++] = f;
}

void avial_read(int64_t array, const int64_t *box) { add_footprint(array, box, USE_READ, 0); }

void avial_write(int64_t array, const int64_t *box, int64_t exact)
{
    add_footprint(array, box, exact ? USE_WRITE : USE_UPDATE, 0);
}

void avial_reduce(int64_t array, const int64_t *box, int64_t operation)
{
    add_footprint(array, box, USE_REDUCE, operation);
}

INTERNAL void report_footprints(i64 rank, const i64 *range, const Body *body)
{
    phase.reporting_rank = rank;
    phase.out_of_memory = false;
    body->touches(body->params, range);
    if (phase.out_of_memory) fail(ERROR_NO_MEMORY);
}

/* Division ------------------------------------------------------------------------------------- */

static void visit_footprints(i64 rank, const i64 *range, const void *body)
{
    report_footprints(rank, range, body);
}

static void keep_own_range(i64 rank, const i64 *range, const void *body)
{
    if (keeps_turns()) keep_shares(rank, range, ((const Body *)body)->space);
    if (run.plan || run.driver[rank] != run.rank) return;
    *APPEND(phase.places) = rank;
    RESERVE(phase.ranges, phase.ranges.count + 4);
    memcpy(phase.ranges.rows + phase.ranges.count, range, 32);
    phase.ranges.count += 4;
}

/* Adds to each rank the bytes that it holds of that box, by the list; whether any does. */
static bool add_bytes_held(i64 *bytes, Array *a, PieceList *list, const i64 *box)
{
    i64 part[2 * MAX_DIMS];
    bool any = false;
    for (i64 n = first_reaching(a, list, box[0]); n < list->count; n++) {
        i64 *piece = piece_at(a, list, n);
        if (piece[0] >= box[a->nd]) break;
        if (!intersect(a->nd, part, piece, box)) continue;
        for (i64 r = 0; r < run.places; r++)
            if (set_has(holders_of(a, piece), r)) bytes[r] += bytes_of(a, part), any = true;
    }
    return any;
}

/* Of those that take part, the place that holds most bytes of what is read; the first of them. What
 * no phase has touched lies where it was given: in a plan that is where it is needed. */
static i64 rank_holding_most(void)
{
    i64 *bytes = scratch.per_rank, best = phase.members[0];
    memset(bytes, 0, (size_t)run.places * 8);
    for (i64 k = 0; k < phase.footprints.count; k++) {
        const Footprint *f = &phase.footprints.rows[k];
        Array *a = &run.arrays[f->array];
        if (f->use == USE_WRITE || add_bytes_held(bytes, a, &a->directory, box_at(f->box))) continue;
        if (!run.plan) add_bytes_held(bytes, a, &a->given, box_at(f->box));
    }
    for (i64 k = 1; k < phase.member_count; k++)
        if (bytes[phase.members[k]] > bytes[best]) best = phase.members[k];
    return best;
}

/* The phase as one range, on one rank or on every rank; reductions there are plain updates. */
static void keep_unsplit(const Body *body, bool everywhere)
{
    i64 range[4];
    phase.footprints.count = phase.boxes.count = phase.ranges.count = phase.places.count = 0;
    phase.shares.count = 0;
    phase.unsplit = true;
    if (!whole_space(body->space, range)) return;
    report_footprints(-1, range, body);
    i64 rank = everywhere ? -1 : rank_holding_most();
    for (i64 k = 0; k < phase.footprints.count; k++) phase.footprints.rows[k].rank = rank;
    keep_own_range(everywhere ? run.rank : rank, range, body);
}

INTERNAL void collect_footprints(const Body *body)
{
    phase.footprints.count = phase.boxes.count = phase.ranges.count = phase.places.count = 0;
    phase.shares.count = 0;
    if (phase.kind == PHASE_TASK || phase.kind == PHASE_EVERYWHERE) {
        keep_unsplit(body, phase.kind == PHASE_EVERYWHERE);
        return;
    }
    for (i64 k = 0; k < phase.member_count; k++) {
        for_each_range(k, body->space, visit_footprints, body);
        for_each_range(k, body->space, keep_own_range, body);
    }
}

/* Conflicts ------------------------------------------------------------------------------------ */

/* Whether the phase cannot be divided, for two of its footprints: what one rank writes another
 * touches, or a reduction meets another use of the array. */
static bool is_conflict(const Footprint *x, const Footprint *y)
{
    if (x->array != y->array) return false;
    if (x->use == USE_REDUCE && y->use == USE_REDUCE) return x->operation != y->operation;
    bool reduces = x->use == USE_REDUCE || y->use == USE_REDUCE;
    if (!reduces && (x->rank == y->rank || x->use == USE_READ || y->use == USE_READ)) return false;
    return overlap(run.arrays[x->array].nd, box_at(x->box), box_at(y->box));
}

static bool has_conflicts(void)
{
    const Footprint *all = phase.footprints.rows;
    for (i64 i = 0; i < phase.footprints.count; i++) {
        bool reduces = all[i].use == USE_REDUCE;
        if (all[i].use == USE_READ) continue;
        if (reduces && !can_combine(all[i].operation)) return true;
        for (i64 k = reduces ? 0 : i + 1; k < phase.footprints.count; k++)
            if (k != i && is_conflict(&all[i], &all[k])) return true;
    }
    return false;
}

INTERNAL i64 next_cell(Array *a, i64 k)
{
    while (k < a->cells.count && set_first(holders_of(a, piece_at(a, &a->cells, k))) < 0) k++;
    return k < a->cells.count ? k : -1;
}

/* Whether each element of the payload has its element of the key: the one at its place, or all of
 * them the only one; the same ranks contribute to both, and both are combined on the same ranks. */
static bool payload_matches_key(Array *payload, Array *key)
{
    if (!is_key(key->operation)) return false;
    i64 k = next_cell(payload, 0), n = next_cell(key, 0), nd = key->nd;
    for (; k >= 0 && n >= 0; k = next_cell(payload, k + 1), n = next_cell(key, n + 1)) {
        i64 *x = piece_at(payload, &payload->cells, k), *y = piece_at(key, &key->cells, n);
        i64 elements = volume(nd, y);
        bool small = max(elements, volume(payload->nd, x)) <= SMALL_REDUCTION;
        bool same_place = payload->nd == nd && !memcmp(x, y, (size_t)nd * 16) &&
                          (small || !memcmp(payload->whole, key->whole, (size_t)nd * 16));
        if (memcmp(holders_of(payload, x), holders_of(key, y), (size_t)run.set_words * 8))
            return false;
        if (!same_place && !(small && elements == 1)) return false;
    }
    return k < 0 && n < 0;
}

/* Finds who contributes to what is reduced; false where a payload does not fit its key. */
static bool find_contributors(void)
{
    for (i64 k = 0; k < run.array_count; k++) run.arrays[k].operation = 0;
    for (i64 k = 0; k < phase.footprints.count; k++) {
        const Footprint *f = &phase.footprints.rows[k];
        if (f->use != USE_REDUCE) continue;
        Array *a = &run.arrays[f->array];
        if (!a->cells.count) reset_pieces(a, &a->cells);
        a->operation = f->operation;
        add_holder(a, &a->cells, box_at(f->box), f->rank, true);
        phase.combining = true;
    }
    for (i64 k = 0; phase.combining && k < run.array_count; k++) {
        Array *a = &run.arrays[k];
        if (a->cells.count && is_payload(a->operation) &&
            !payload_matches_key(a, &run.arrays[key_array_of(a->operation)]))
            return false;
    }
    return true;
}

static bool reduces_a_key(void)
{
    for (i64 k = 0; k < phase.footprints.count; k++)
        if (phase.footprints.rows[k].use == USE_REDUCE &&
            is_key(phase.footprints.rows[k].operation))
            return true;
    return false;
}

/* Partial results are combined by ascending rank, and the first of equal keys wins: that is the
 * first iteration only where the parts are one after the other as the ranks are, without blocks in
 * turn. Makes it so; whether it was not. */
static bool sort_members(void)
{
    i64 *members = phase.members;
    bool sorted = phase.block <= 0;
    for (i64 k = 1; k < phase.member_count; k++) sorted &= members[k - 1] < members[k];
    if (sorted || !reduces_a_key()) return false;
    phase.block = 0;
    for (i64 k = 1; k < phase.member_count; k++) /* few, and as a rule in order */
        for (i64 j = k; j > 0 && members[j - 1] > members[j]; j--) {
            i64 rank = members[j];
            members[j] = members[j - 1];
            members[j - 1] = rank;
        }
    return true;
}

INTERNAL void resolve_conflicts(const Body *body)
{
    if (phase.unsplit) return;
    if (sort_members()) collect_footprints(body);
    if (has_conflicts() || !find_contributors()) {
        run.phases.rows[phase.number].unsplit++;
        phase.combining = false;
        keep_unsplit(body, false);
    }
}
