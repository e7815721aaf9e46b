#include "transfers.h"

#include <stdlib.h>
#include <string.h>

#include "footprints.h"
#include "pieces.h"

/* What is lacking ------------------------------------------------------------------------------ */

INTERNAL void add_transfer(i64 source, i64 dest, i64 array, const i64 *box, bool first)
{
    i64 at = store_box(run.arrays[array].nd, box);
    *APPEND(phase.transfers) = (Transfer){source, dest, array, at, first};
}

/* `rank` reads the caller's version of that box: what it was not given comes from who was. */
static void fetch_input(i64 array, const i64 *box, i64 rank)
{
    Array *a = &run.arrays[array];
    i64 part[2 * MAX_DIMS];
    for (i64 k = first_reaching(a, &a->given, box[0]); k < a->given.count; k++) {
        i64 *piece = piece_at(a, &a->given, k);
        if (piece[0] >= box[a->nd]) break;
        if (!intersect(a->nd, part, piece, box) || set_has(holders_of(a, piece), rank)) continue;
        i64 source = set_first(holders_of(a, piece));
        if (source < 0) fail(ERROR_NOT_GIVEN);
        add_transfer(source, rank, array, part, false);
    }
}

/* `rank` is to hold the last version of that box. */
static void require(i64 array, const i64 *box, i64 rank)
{
    Array *a = &run.arrays[array];
    if (is_fully_written(a)) return;
    if (run.plan) add_holder(a, &a->ever_held, box, rank, false);
    i64 lacking = add_holder(a, &a->directory, box, rank, true);
    for (i64 k = 0; k < lacking; k++) {
        i64 *part = scratch.pieces.rows + k * a->stride, writer = *writer_of(a, part);
        if (writer >= 0) add_transfer(writer, rank, array, part, false);
        else if (a->undefined) continue;
        else if (run.plan) add_holder(a, &a->given, part, rank, false);
        else fetch_input(array, part, rank);
    }
}

/* With devices -------------------------------------------------------------------------------- */

static void add_copy(i64 source, i64 dest, i64 array, const i64 *box)
{
    i64 at = store_box(run.arrays[array].nd, box);
    *APPEND(phase.copies) = (Copy){source, dest, array, at, false};
}

/* Of the places of its rank one that holds the piece as well, the host first; -1 where there is
 * none. */
static i64 nearest_holder(const u64 *holders, i64 place)
{
    i64 host = run.driver[place];
    if (host != place && set_has(holders, host)) return host;
    for (i64 p = run.ranks; p < run.places; p++)
        if (p != place && run.driver[p] == host && set_has(holders, p)) return p;
    return -1;
}

static void require_at(i64 array, const i64 *box, i64 place);

/* What `device` lacks of the box and no other place of its rank holds is to come to its host, but for
 * what a device wrote. */
static void bring_near(i64 array, const i64 *box, i64 device)
{
    Array *a = &run.arrays[array];
    i64 words = 2 * a->nd, begin = scratch.lacking.count, part[2 * MAX_DIMS];
    for (i64 k = first_reaching(a, &a->directory, box[0]); k < a->directory.count; k++) {
        i64 *piece = piece_at(a, &a->directory, k);
        const u64 *holders = holders_of(a, piece);
        if (piece[0] >= box[a->nd]) break;
        if (!intersect(a->nd, part, piece, box) || set_has(holders, device)) continue;
        if (is_device(*writer_of(a, piece)) || nearest_holder(holders, device) >= 0) continue;
        RESERVE(scratch.lacking, scratch.lacking.count + words);
        memcpy(scratch.lacking.rows + scratch.lacking.count, part, (size_t)words * 8);
        scratch.lacking.count += words;
    }
    for (i64 end = scratch.lacking.count, k = begin; k < end; k += words) {
        memcpy(part, scratch.lacking.rows + k, (size_t)words * 8);
        require_at(array, part, run.driver[device]);
    }
    scratch.lacking.count = begin;
}

/* The host `place` is about to hold that part of a piece that no place of its rank has. */
static void bring_to_host(i64 array, const i64 *part, i64 writer, i64 place)
{
    Array *a = &run.arrays[array];
    if (writer >= 0) {
        require_at(array, part, run.driver[writer]);
        add_transfer(run.driver[writer], place, array, part, false);
    } else if (run.plan) add_holder(a, &a->given, part, place, false);
    else fetch_input(array, part, place);
}

/* `require`, where there are devices. It calls itself: what it is about lies on a stack. */
static void require_at(i64 array, const i64 *box, i64 place)
{
    Array *a = &run.arrays[array];
    if (is_device(place)) bring_near(array, box, place);
    if (run.plan) add_holder(a, &a->ever_held, box, place, false);
    i64 count = add_holder(a, &a->directory, box, place, true), begin = scratch.lacking.count;
    RESERVE(scratch.lacking, begin + count * a->stride);
    scratch.lacking.count += count * a->stride;
    if (count)
        memcpy(scratch.lacking.rows + begin, scratch.pieces.rows, (size_t)(count * a->stride) * 8);
    for (i64 k = 0; k < count; k++) {
        i64 part[2 * MAX_DIMS], *piece = scratch.lacking.rows + begin + k * a->stride;
        i64 writer = *writer_of(a, piece), near = nearest_holder(holders_of(a, piece), place);
        memcpy(part, piece, (size_t)a->nd * 16);
        if (writer < 0 && a->undefined) continue;
        if (near >= 0) add_copy(near, place, array, part);
        else if (is_device(place)) add_transfer(writer, place, array, part, false);
        else bring_to_host(array, part, writer, place);
    }
    scratch.lacking.count = begin;
}

/* Whether something of the copy is brought by a message of the phase. */
static bool is_late(const Copy *c)
{
    for (i64 k = 0; k < phase.transfers.count; k++) {
        const Transfer *t = &phase.transfers.rows[k];
        if (t->dest == c->source && t->array == c->array &&
            overlap(run.arrays[c->array].nd, box_at(t->box), box_at(c->box)))
            return true;
    }
    return false;
}

INTERNAL void derive_results(void)
{
    for (i64 array = 0; array < run.array_count; array++) {
        Array *a = &run.arrays[array];
        if (a->undefined) continue;
        for (i64 k = 0; k < a->directory.count; k++) {
            i64 *piece = piece_at(a, &a->directory, k), writer = *writer_of(a, piece);
            i64 box[2 * MAX_DIMS], back = a->home ? a->home : writer < 0 ? -1 : run.driver[writer];
            if (back < 0 || set_has(holders_of(a, piece), back)) continue;
            memcpy(box, piece, (size_t)a->nd * 16);
            require_at(array, box, back);
            k = -1; /* the list has changed */
        }
    }
}

static void count_copy(const Copy *c)
{
    i64 bytes = bytes_of(&run.arrays[c->array], box_at(c->box));
    for (i64 k = 0; k < run.copied.count; k++) {
        CopyTotal *t = &run.copied.rows[k];
        if (t->phase != phase.number || t->source != c->source || t->dest != c->dest) continue;
        t->copies++;
        t->bytes += bytes;
        return;
    }
    *APPEND(run.copied) = (CopyTotal){phase.number, c->source, c->dest, 1, bytes};
}

INTERNAL void start_copies(bool late)
{
    for (i64 k = 0; k < phase.copies.count; k++) {
        const Copy *c = &phase.copies.rows[k];
        if (c->late != late || (!run.plan && !is_own(c->dest))) continue;
        count_copy(c);
        if (run.plan) continue;
        run.started_copies++;
        if (!avial_copy_box(c->source, c->dest, c->array, box_at(c->box))) fail(ERROR_DEVICE);
    }
}

/* Of what is reduced, the first rank that contributes starts from the old value. */
static void require_old_values(i64 array, void (*bring)(i64, const i64 *, i64))
{
    Array *a = &run.arrays[array];
    for (i64 n = 0; n < a->cells.count; n++) {
        i64 *cell = piece_at(a, &a->cells, n), rank = set_first(holders_of(a, cell));
        if (rank >= 0) bring(array, cell, rank);
    }
}

INTERNAL void derive_transfers(void)
{
    void (*bring)(i64, const i64 *, i64) = run.places > run.ranks ? require_at : require;
    for (i64 k = 0; k < phase.footprints.count; k++) {
        const Footprint *f = &phase.footprints.rows[k];
        if (f->use == USE_WRITE || (f->use == USE_REDUCE && phase.combining)) continue;
        i64 box[2 * MAX_DIMS];
        memcpy(box, box_at(f->box), (size_t)run.arrays[f->array].nd * 16); /* transfers add boxes */
        i64 stop = f->rank < 0 ? run.ranks : f->rank + 1;
        for (i64 r = max(f->rank, 0); r < stop; r++) bring(f->array, box, r);
    }
    for (i64 k = 0; phase.combining && k < run.array_count; k++) require_old_values(k, bring);
    for (i64 k = 0; k < phase.copies.count; k++)
        phase.copies.rows[k].late = is_late(&phase.copies.rows[k]);
}

/* Messages ------------------------------------------------------------------------------------- */

static int compare_words(i64 a, i64 b) { return a < b ? -1 : a > b; }

/* By destination, source, and then in the order they were added, which no sort need keep. */
static int compare_transfers(const void *x, const void *y)
{
    const Transfer *a = x, *b = y;
    int by = compare_words(run.driver[a->dest], run.driver[b->dest]);
    if (!by) by = compare_words(run.driver[a->source], run.driver[b->source]);
    if (!by) by = compare_words(a->dest, b->dest);
    if (!by) by = compare_words(a->source, b->source);
    return by ? by : compare_words(a->box, b->box);
}

static void sort_transfers(void)
{
    Transfer *all = phase.transfers.rows;
    i64 k = 1;
    while (k < phase.transfers.count && compare_transfers(&all[k - 1], &all[k]) < 0) k++;
    if (k < phase.transfers.count)
        qsort(all, (size_t)phase.transfers.count, sizeof *all, compare_transfers);
}

static bool same_contents(const Message *x, const Message *y)
{
    if (x->count != y->count || x->bytes != y->bytes) return false;
    for (i64 k = 0; k < x->count; k++) {
        const Transfer *a = &phase.transfers.rows[x->first + k];
        const Transfer *b = &phase.transfers.rows[y->first + k];
        if (a->array != b->array) return false;
        if (memcmp(box_at(a->box), box_at(b->box), (size_t)run.arrays[a->array].nd * 16))
            return false;
    }
    return true;
}

/* A message is part of a collective where its host sends the same to every other one. */
static void find_collectives(void)
{
    if (run.ranks < 3 || phase.messages.count < run.ranks - 1) return;
    i64 *first = scratch.per_rank, *same = scratch.per_rank + run.ranks; /* of each source */
    memset(scratch.per_rank, 0, (size_t)run.ranks * 16);
    for (i64 k = 0; k < phase.messages.count; k++) {
        const Message *m = &phase.messages.rows[k];
        if (m->source == m->dest || is_device(m->source)) continue;
        if (!same[m->source]++) first[m->source] = k;
        else if (same[m->source] > 1 && !same_contents(m, &phase.messages.rows[first[m->source]]))
            same[m->source] = -run.ranks; /* and below 0 whatever follows */
    }
    for (i64 k = 0; k < phase.messages.count; k++) {
        Message *m = &phase.messages.rows[k];
        m->collective = m->source != m->dest && !is_device(m->source) &&
                        same[m->source] == run.ranks - 1;
    }
}

static bool between_same_ranks(const Message *m, const Transfer *t)
{
    return run.driver[m->source] == run.driver[t->source] &&
           run.driver[m->dest] == run.driver[t->dest];
}

INTERNAL void group_into_messages(void)
{
    sort_transfers();
    phase.messages.count = 0;
    Message *last = NULL;
    for (i64 k = 0; k < phase.transfers.count; k++) {
        const Transfer *t = &phase.transfers.rows[k];
        if (!last || last->source != t->source || last->dest != t->dest) {
            i64 tag = last && between_same_ranks(last, t) ? last->tag + 1 : 0;
            last = APPEND(phase.messages);
            *last = (Message){t->source, t->dest, tag, .first = k, .buffer = -1};
        }
        last->count++;
        last->bytes += bytes_of(&run.arrays[t->array], box_at(t->box));
    }
    find_collectives();
}

/* Counts --------------------------------------------------------------------------------------- */

/* The set of arrays in a message of a plan. */
static u64 arrays_in(const Message *m)
{
    u64 set = 0;
    for (i64 k = m->first; run.plan && k < m->first + m->count; k++) {
        i64 array = phase.transfers.rows[k].array;
        set |= (u64)1 << (array < 63 ? array : 63);
    }
    return set;
}

static bool is_total(const MessageTotal *t, i64 number, i64 source, i64 dest)
{
    return t->phase == number && t->source == source && t->dest == dest;
}

/* Where `run.total_slots` has that total, or would have it. */
static i64 *total_slot(i64 number, i64 source, i64 dest)
{
    u64 mask = (u64)run.total_slots.count - 1, at = (u64)number;
    at = (at * 0x9e3779b97f4a7c15u + (u64)source) * 0x9e3779b97f4a7c15u + (u64)dest;
    at = (at ^ at >> 32) * 0x9e3779b97f4a7c15u >> 16;
    for (;; at++) {
        i64 *slot = &run.total_slots.rows[at & mask];
        if (!*slot || is_total(&run.totals.rows[*slot - 1], number, source, dest)) return slot;
    }
}

/* Room for one more, at most half of them full: all ranks may send to all. */
static void grow_total_slots(void)
{
    i64 wanted = max(2 * run.total_slots.count, 64);
    if (2 * (run.totals.count + 1) <= run.total_slots.count) return;
    RESERVE(run.total_slots, wanted);
    run.total_slots.count = wanted;
    memset(run.total_slots.rows, 0, (size_t)wanted * 8);
    for (i64 k = 0; k < run.totals.count; k++) {
        const MessageTotal *t = &run.totals.rows[k];
        *total_slot(t->phase, t->source, t->dest) = k + 1;
    }
}

static MessageTotal *total_of(const Message *m)
{
    if (run.total_hint < run.totals.count) { /* phases repeat: the next one is the likely next */
        MessageTotal *t = &run.totals.rows[run.total_hint];
        if (is_total(t, phase.number, m->source, m->dest)) return t;
    }
    grow_total_slots();
    i64 *slot = total_slot(phase.number, m->source, m->dest);
    if (!*slot) {
        *APPEND(run.totals) = (MessageTotal){phase.number, m->source, m->dest, 0, 0, 0};
        *slot = run.totals.count;
    }
    return &run.totals.rows[*slot - 1];
}

static void count_message(const Message *m)
{
    MessageTotal *t = total_of(m);
    t->messages++;
    t->bytes += m->bytes;
    t->arrays |= arrays_in(m);
    run.total_hint = t - run.totals.rows + 1;
}

INTERNAL void count_messages(void)
{
    for (i64 k = 0; k < phase.messages.count; k++) {
        const Message *m = &phase.messages.rows[k];
        if (m->source == m->dest) continue;
        run.phases.rows[phase.number].bytes += m->bytes;
        if (run.plan || is_own(m->source)) count_message(m);
        if (avial_counts && is_own(m->source)) ((volatile i64 *)avial_counts)[0] += m->bytes;
    }
}
