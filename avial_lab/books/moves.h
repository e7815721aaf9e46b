/* What has to move for a phase: who lacks what, as one message for each pair of ranks. */

static void move(i64 source, i64 dest, i64 array, const i64 *box, bool first)
{
    i64 at = keep_box(arrays[array].nd, box);
    *APPEND(moves) = (Move){source, dest, array, at, first};
}

/* `rank` reads what the caller had there: from a rank that was given it, unless it was itself. */
static void fetch(i64 array, const i64 *box, i64 rank)
{
    Array *a = &arrays[array];
    i64 part[2 * MAX_DIMS];
    for (i64 k = reach(a, &a->given, box[0]); k < a->given.count; k++) {
        i64 *piece = row(a, &a->given, k);
        if (piece[0] >= box[a->nd]) break;
        if (!cut(a->nd, part, piece, box) || has(set_of(a, piece), rank)) continue;
        i64 source = lowest(set_of(a, piece));
        if (source < 0) fail(NOT_GIVEN);
        move(source, rank, array, part, false);
    }
}

/* See to it that `rank` holds the last version of `box`. */
static void need(i64 array, const i64 *box, i64 rank)
{
    Array *a = &arrays[array];
    if (is_written_out(a)) return;
    if (plan) mark(a, &a->ever, box, rank, false);
    i64 lacking = mark(a, &a->state, box, rank, true);
    for (i64 k = 0; k < lacking; k++) {
        i64 *part = found.rows + k * a->stride;
        if (*writer_of(a, part) >= 0) move(*writer_of(a, part), rank, array, part, false);
        else if (a->undefined) continue;
        else if (plan) mark(a, &a->given, part, rank, false);
        else fetch(array, part, rank);
    }
}

static void needs(void)
{
    for (i64 k = 0; k < items.count; k++) {
        const Item *item = &items.rows[k];
        if (item->use == WRITE || (item->use == REDUCE && combining)) continue;
        i64 box[2 * MAX_DIMS], nd = arrays[item->array].nd;
        memcpy(box, box_of(item->at), (size_t)nd * 16); /* `boxes` may move */
        i64 stop = item->rank < 0 ? ranks : item->rank + 1, array = item->array;
        for (i64 r = max(item->rank, 0); r < stop; r++) need(array, box, r);
    }
    if (!combining) return;
    /* The first to contribute starts from the old value. */
    for (i64 k = 0; k < narrays; k++)
        for (i64 n = 0; n < arrays[k].cells.count; n++) {
            i64 *cell = row(&arrays[k], &arrays[k].cells, n), rank = lowest(set_of(&arrays[k], cell));
            if (rank >= 0) need(k, cell, rank);
        }
}

static int by_pair(const void *x, const void *y)
{
    const Move *a = x, *b = y;
    if (a->dest != b->dest) return a->dest < b->dest ? -1 : 1;
    if (a->source != b->source) return a->source < b->source ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at; /* as they came */
}

static u64 arrays_in(const Message *m)
{
    u64 set = 0;
    for (i64 k = m->first; plan && k < m->first + m->count; k++)
        set |= (u64)1 << min(moves.rows[k].array, 63);
    return set;
}

static void count_sum(const Message *m)
{
    i64 k = sum_hint;
    for (i64 tried = 0; tried < sums.count; tried++, k++) {
        if (k >= sums.count) k = 0;
        Sum *s = &sums.rows[k];
        if (s->phase != now || s->source != m->source || s->dest != m->dest) continue;
        s->messages++;
        s->bytes += m->bytes;
        s->arrays |= arrays_in(m);
        sum_hint = k + 1; /* phases repeat: the next one is the likely next */
        return;
    }
    *APPEND(sums) = (Sum){now, m->source, m->dest, 1, m->bytes, arrays_in(m)};
    sum_hint = 0;
}

static bool alike(const Message *x, const Message *y)
{
    if (x->count != y->count || x->bytes != y->bytes) return false;
    for (i64 k = 0; k < x->count; k++) {
        const Move *a = &moves.rows[x->first + k], *b = &moves.rows[y->first + k];
        size_t box_bytes = (size_t)arrays[a->array].nd * 16;
        if (a->array != b->array || memcmp(box_of(a->at), box_of(b->at), box_bytes)) return false;
    }
    return true;
}

/* What a rank sends alike to every other one travels in a collective. */
static void find_collectives(void)
{
    if (ranks < 3 || messages.count < ranks - 1) return;
    i64 *first = of_rank, *same = of_rank + ranks;
    memset(of_rank, 0, (size_t)ranks * 16);
    for (i64 k = 0; k < messages.count; k++) {
        const Message *m = &messages.rows[k];
        if (m->source == m->dest) continue;
        if (!same[m->source]++) first[m->source] = k;
        else if (same[m->source] > 1 && !alike(m, &messages.rows[first[m->source]]))
            same[m->source] = -ranks;
    }
    for (i64 k = 0; k < messages.count; k++) {
        Message *m = &messages.rows[k];
        m->shared = m->source != m->dest && same[m->source] == ranks - 1;
    }
}

/* The moves as one message for each pair of ranks, ordered by destination and source. */
static void group(void)
{
    bool sorted = true;
    for (i64 k = 1; k < moves.count && sorted; k++)
        sorted = by_pair(&moves.rows[k - 1], &moves.rows[k]) < 0;
    if (!sorted) qsort(moves.rows, (size_t)moves.count, sizeof(Move), by_pair);
    messages.count = 0;
    for (i64 k = 0; k < moves.count; k++) {
        const Move *m = &moves.rows[k];
        Message *last = messages.count ? &messages.rows[messages.count - 1] : NULL;
        if (!last || last->source != m->source || last->dest != m->dest) {
            last = APPEND(messages);
            *last = (Message){.source = m->source, .dest = m->dest, .first = k, .buffer = -1};
        }
        last->count++;
        last->bytes += bytes_of(&arrays[m->array], box_of(m->at));
    }
    find_collectives();
}

/* The messages are those of this phase: into the sums. */
static void count_messages(void)
{
    for (i64 k = 0; k < messages.count; k++) {
        const Message *m = &messages.rows[k];
        if (m->source == m->dest) continue;
        phases.rows[now].bytes += m->bytes;
        if (plan || m->source == me) count_sum(m);
        if (avial_counts && m->source == me) ((volatile i64 *)avial_counts)[0] += m->bytes;
    }
}
