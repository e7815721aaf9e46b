/* What the engine and the planner may ask, as rows of words: `avial_table` in ownership.h. */
#include <stdlib.h>

#include "footprints.h"
#include "pieces.h"
#include "state.h"
#include "stays.h"

static struct {
    i64 *out, capacity, needed;
} table;

static void emit(i64 word)
{
    if (table.needed < table.capacity) table.out[table.needed] = word;
    table.needed++;
}

static void emit_box(const Array *a, const i64 *box)
{
    for (i64 d = 0; d < 2 * a->nd && !a->scalar; d++) emit(box[d]);
}

/* For each place what it holds, or wrote, in as few boxes as fit; told as its rank's. */
static void emit_pieces(i64 array, const PieceList *list, bool writers)
{
    Array *a = &run.arrays[array];
    for (i64 r = 0; r < run.places; r++) {
        reset_pieces(a, &a->cells);
        for (i64 k = 0; k < list->count; k++) {
            i64 *piece = piece_at(a, list, k);
            if (writers ? *writer_of(a, piece) == r : set_has(holders_of(a, piece), r))
                add_holder(a, &a->cells, piece, r, true);
        }
        for (i64 k = 0; k < a->cells.count; k++) {
            i64 *piece = piece_at(a, &a->cells, k);
            if (!set_has(holders_of(a, piece), r)) continue;
            emit(run.driver[r]), emit(array), emit_box(a, piece);
        }
    }
    a->cells.count = 0;
}

static void emit_inputs(void)
{
    for (i64 k = 0; k < run.array_count; k++) emit_pieces(k, &run.arrays[k].given, false);
}

static void emit_results(void)
{
    for (i64 k = 0; k < run.array_count; k++)
        if (!run.arrays[k].home) emit_pieces(k, &run.arrays[k].directory, true);
}

static void emit_moves(void)
{
    for (i64 k = 0; k < run.totals.count; k++) {
        const MessageTotal *t = &run.totals.rows[k];
        emit(t->phase), emit(t->source), emit(t->dest), emit(t->messages), emit(t->bytes);
    }
}

static void emit_copies(void)
{
    for (i64 k = 0; k < run.copied.count; k++) {
        const CopyTotal *t = &run.copied.rows[k];
        emit(t->phase), emit(t->source), emit(t->dest), emit(t->copies), emit(t->bytes);
    }
}

static void emit_carried(void)
{
    for (i64 k = 0; k < run.totals.count; k++) emit((i64)run.totals.rows[k].arrays);
}

/* Bytes of the pages that have something of what place r ever had of the array. */
static i64 paged_bytes(const Array *a, i64 r)
{
    i64 bytes = bytes_of(a, a->whole), pages = (bytes + PAGE - 1) / PAGE, found = 0;
    u64 *bits = zeroed(pages / 64 + 1, sizeof *bits);
    for (i64 n = 0; n < a->ever_held.count; n++) {
        i64 *piece = piece_at(a, &a->ever_held, n);
        if (set_has(holders_of(a, piece), r)) mark_units(bits, PAGE, a, piece);
    }
    for (i64 p = 0; p < pages; p++)
        if (bits[p / 64] >> p % 64 & 1) found += p + 1 < pages ? PAGE : bytes - p * PAGE;
    free(bits);
    return found;
}

static void emit_held(void)
{
    for (i64 r = 0; r < run.places; r++) {
        i64 bytes = 0, paged = 0;
        for (i64 k = 0; k < run.array_count; k++) {
            const Array *a = &run.arrays[k];
            for (i64 n = 0; n < a->ever_held.count; n++) {
                i64 *piece = piece_at(a, &a->ever_held, n);
                if (set_has(holders_of(a, piece), r)) bytes += bytes_of(a, piece);
            }
            if (run.places <= PAGED_PLACES) paged += paged_bytes(a, r);
        }
        emit(r), emit(bytes), emit(paged);
    }
}

static void emit_stays(void)
{
    for (i64 k = 0; run.stays && k < (run.places - run.ranks) * run.array_count; k++) {
        const Stay *s = &run.stays[k];
        if (!s->first) continue;
        emit(run.ranks + k / run.array_count), emit(k % run.array_count), emit(s->first), emit(s->last);
    }
}

/* Of each array that is mapped by granules on a device, those that follow each other. */
static void emit_granules(void)
{
    for (i64 k = 0; run.stays && k < (run.places - run.ranks) * run.array_count; k++) {
        const u64 *bits = run.stays[k].granules;
        i64 count = bits ? bytes_of(&run.arrays[k % run.array_count],
                                    run.arrays[k % run.array_count].whole) / GRANULE + 1 : 0;
        for (i64 g = 0; g < count; g++) {
            if (!(bits[g / 64] >> g % 64 & 1)) continue;
            i64 start = g;
            while (g < count && bits[g / 64] >> g % 64 & 1) g++;
            emit(run.ranks + k / run.array_count), emit(k % run.array_count), emit(start), emit(g);
        }
    }
}

static void emit_phases(void)
{
    for (i64 k = 0; k < run.phases.count; k++) {
        const PhaseRecord *p = &run.phases.rows[k];
        emit(k), emit(p->begun), emit(p->bytes), emit(p->unsplit), emit(p->barriers);
    }
}

static void emit_directories(void)
{
    for (i64 k = 0; k < run.array_count; k++) {
        const Array *a = &run.arrays[k];
        for (i64 n = 0; n < a->directory.count; n++) {
            i64 *piece = piece_at(a, &a->directory, n);
            emit(k), emit_box(a, piece), emit(*writer_of(a, piece));
            for (i64 w = 0; w < run.set_words; w++) emit((i64)holders_of(a, piece)[w]);
        }
    }
}

static void emit_footprints(void)
{
    for (i64 k = 0; k < run.kept_footprints.count; k++) emit(run.kept_footprints.rows[k]);
}

static void emit_totals(void)
{
    for (i64 k = 0; k < run.phases.count; k++)
        for (i64 kind = 0; kind < EVENT_KINDS; kind++) {
            const EventTotal *t = &run.phases.rows[k].totals[kind];
            if (!t->events) continue;
            emit(k), emit(kind), emit(t->events), emit(t->ns), emit(t->bytes);
            emit(t->copies), emit(t->copies_ns), emit(t->copies_bytes);
        }
}

static void emit_turns(void)
{
    for (i64 k = 0; k < run.turns.count; k++) {
        const Turn *t = &run.turns.rows[k];
        emit(t->phase), emit(t->pattern), emit(t->partials), emit(t->barriers);
    }
}

static void emit_patterns(void)
{
    for (i64 k = 0; k < run.patterns.count; k++) emit(run.patterns.rows[k]);
}

int64_t avial_table(int64_t which, int64_t *out, int64_t capacity)
{
    table.out = out;
    table.capacity = capacity;
    table.needed = 0;
    if (run.broken) return 0;
    if (setjmp(run.failed)) return 0;
    switch (which) {
    case TABLE_INPUTS: emit_inputs(); break;
    case TABLE_RESULTS: emit_results(); break;
    case TABLE_MOVES: emit_moves(); break;
    case TABLE_HELD: emit_held(); break;
    case TABLE_PHASES: emit_phases(); break;
    case TABLE_INCOMPLETE: emit(run.incomplete); break;
    case TABLE_DIRECTORY: emit_directories(); break;
    case TABLE_FOOTPRINTS: emit_footprints(); break;
    case TABLE_TOTALS: emit_totals(); break;
    case TABLE_CARRIED: emit_carried(); break;
    case TABLE_COPIES: emit_copies(); break;
    case TABLE_TURNS: emit_turns(); break;
    case TABLE_PATTERNS: emit_patterns(); break;
    case TABLE_STAYS: emit_stays(); break;
    case TABLE_GRANULES: emit_granules(); break;
    }
    return table.needed;
}
