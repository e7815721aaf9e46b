/* What the engine and the planner may ask, as rows of words. */

static struct { i64 *out, capacity, needed; } table;

static void emit(i64 word)
{
    if (table.needed < table.capacity) table.out[table.needed] = word;
    table.needed++;
}

static void emit_box(const Array *a, const i64 *box)
{
    for (i64 d = 0; d < 2 * a->nd && !a->scalar; d++) emit(box[d]);
}

/* Rows rank, array, box of what `list` says of each rank (or of its writer), in as few boxes as fit. */
static void emit_pieces(i64 array, List *list, bool writers)
{
    Array *a = &arrays[array];
    for (i64 r = 0; r < ranks; r++) {
        reset(a, &a->cells);
        for (i64 k = 0; k < list->count; k++) {
            i64 *piece = row(a, list, k);
            if (writers ? *writer_of(a, piece) == r : has(set_of(a, piece), r))
                mark(a, &a->cells, piece, r, true);
        }
        for (i64 k = 0; k < a->cells.count; k++) {
            i64 *piece = row(a, &a->cells, k);
            if (!has(set_of(a, piece), r)) continue;
            emit(r), emit(array), emit_box(a, piece);
        }
    }
    a->cells.count = 0;
}

static void emit_held(void)
{
    for (i64 r = 0; r < ranks; r++) {
        i64 bytes = 0;
        for (i64 k = 0; k < narrays; k++)
            for (i64 n = 0; n < arrays[k].ever.count; n++) {
                i64 *piece = row(&arrays[k], &arrays[k].ever, n);
                if (has(set_of(&arrays[k], piece), r)) bytes += bytes_of(&arrays[k], piece);
            }
        emit(r), emit(bytes);
    }
}

static void emit_state(i64 array)
{
    const Array *a = &arrays[array];
    for (i64 k = 0; k < a->state.count; k++) {
        i64 *piece = row(a, &a->state, k);
        emit(array), emit_box(a, piece);
        for (i64 w = 0; w <= words; w++) emit(piece[2 * a->nd + w]);
    }
}

/* Words of the table; at most `capacity` of them are in `out`. what: 0 given: rank, array, box; 1 results:
 * rank, array, box; 2 moves: phase, source, dest, messages, bytes; 3 held: rank, bytes; 4 phases: phase,
 * times begun, bytes moved, times it ran whole on one rank for a conflict, barriers after it; 5 whether
 * the plan is incomplete; 6 the book: array, box, writer, set of ranks; 7 what each phase of a plan
 * touches the first time: phase, rank (-1: each), array, use, box; 8 the traced events' sums: phase, kind, and a
 * Total; 9 for each row of 2 the set of arrays in its messages. */
i64 avial_table(i64 what, i64 *out, i64 capacity)
{
    table.out = out;
    table.capacity = capacity;
    table.needed = 0;
    if (broken) return 0;
    if (setjmp(way_out)) return 0;
    for (i64 k = 0; k < narrays; k++) {
        if (what == 0) emit_pieces(k, &arrays[k].given, false);
        if (what == 1) emit_pieces(k, &arrays[k].state, true);
        if (what == 6) emit_state(k);
    }
    for (i64 k = 0; what == 2 && k < sums.count; k++) {
        const Sum *s = &sums.rows[k];
        emit(s->phase), emit(s->source), emit(s->dest), emit(s->messages), emit(s->bytes);
    }
    if (what == 3) emit_held();
    for (i64 k = 0; what == 4 && k < phases.count; k++) {
        const Phase *p = &phases.rows[k];
        emit(k), emit(p->begun), emit(p->bytes), emit(p->whole), emit(p->barriers);
    }
    if (what == 5) emit(incomplete);
    for (i64 k = 0; what == 8 && k < phases.count; k++)
        for (i64 n = 0; n < EVENT_KINDS; n++) {
            const Total *t = &phases.rows[k].totals[n];
            if (!t->events) continue;
            emit(k), emit(n), emit(t->events), emit(t->ns), emit(t->bytes);
            emit(t->copies), emit(t->copies_ns), emit(t->copies_bytes);
        }
    for (i64 k = 0; what == 9 && k < sums.count; k++) emit((i64)sums.rows[k].arrays);
    for (i64 k = 0; what == 7 && k < sketches.count; k++) emit(sketches.rows[k]);
    return table.needed;
}
