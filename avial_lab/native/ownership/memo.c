/* Phases that come again: what one came to is kept, and used where everything is as it was. */

#define COPY(to, from, n)                                                              \
    (RESERVE(to, n), (n) ? memcpy((to).rows, (from), (size_t)(n) * sizeof *(to).rows) : NULL, \
     (to).count = (n))

static void save_books(i64 **rows, i64 *count, i64 *capacity)
{
    *count = 0;
    for (i64 k = 0; k < narrays; k++) {
        if (!arrays[k].touched) continue;
        const List *l = &arrays[k].state;
        i64 size = l->count * arrays[k].stride;
        *rows = grown(*rows, capacity, *count + size + 2, 8);
        (*rows)[(*count)++] = k;
        (*rows)[(*count)++] = l->count;
        if (size) memcpy(*rows + *count, l->rows, (size_t)size * 8);
        *count += size;
    }
}

static bool same_books(const i64 *rows, i64 count)
{
    for (const i64 *at = rows; at < rows + count;) {
        const Array *a = &arrays[at[0]];
        i64 size = at[1] * a->stride;
        if (at[1] != a->state.count || memcmp(at + 2, a->state.rows, (size_t)size * 8)) return false;
        at += 2 + size;
    }
    return true;
}

static void restore_books(const i64 *rows, i64 count)
{
    for (const i64 *at = rows; at < rows + count;) {
        Array *a = &arrays[at[0]];
        i64 size = at[1] * a->stride;
        a->state.rows = grown(a->state.rows, &a->state.capacity, at[1], a->stride * 8);
        memcpy(a->state.rows, at + 2, (size_t)size * 8);
        a->state.count = at[1];
        a->state.widest = -1;
        at += 2 + size;
    }
}

/* Whether the footprints are those of `m`; then, whether the books are. */
static bool matches(const Memory *m)
{
    return m->valid && m->items.count == items.count && m->known == boxes.count &&
           !memcmp(m->items.rows, items.rows, (size_t)items.count * sizeof(Item)) &&
           !memcmp(m->boxes.rows, boxes.rows, (size_t)boxes.count * 8) &&
           same_books(m->before.rows, m->before.count);
}

/* Whether this phase is one of those remembered; its messages are then at hand. Else it may become
 * one: phases that never repeat are tried ever more rarely. On one rank nothing moves, and to compare
 * books would take longer than to keep them. */
static bool recall(void)
{
    Phase *p = &phases.rows[now];
    if (alone || ranks == 1 || !items.count) return false;
    for (i64 k = 0; k < 4; k++) {
        Memory *m = &p->memories[k];
        if (!matches(m)) continue;
        COPY(boxes, m->boxes.rows, m->boxes.count);
        COPY(moves, m->moves.rows, m->moves.count);
        COPY(messages, m->messages.rows, m->messages.count);
        recalled = m;
        p->misses = 0;
        return true;
    }
    p->misses++;
    if (p->misses > 8 && (p->misses & (p->misses - 1))) return false;
    learning = &p->memories[p->next];
    p->next = (p->next + 1) % 4;
    learning->valid = false;
    learning->known = boxes.count;
    for (i64 k = 0; k < narrays; k++) arrays[k].touched = false;
    for (i64 k = 0; k < items.count; k++) arrays[items.rows[k].array].touched = true;
    COPY(learning->items, items.rows, items.count);
    save_books(&learning->before.rows, &learning->before.count, &learning->before.capacity);
    return false;
}

static void remember_messages(void)
{
    if (alone || combining) learning = NULL; /* the footprints are others, or not all there is */
    if (!learning) return;
    COPY(learning->boxes, boxes.rows, boxes.count);
    COPY(learning->moves, moves.rows, moves.count);
    COPY(learning->messages, messages.rows, messages.count);
}

static void remember_result(void)
{
    if (!learning) return;
    save_books(&learning->after.rows, &learning->after.count, &learning->after.capacity);
    learning->valid = true;
}
