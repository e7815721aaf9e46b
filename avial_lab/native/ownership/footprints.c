/* What a phase touches, on every rank; whether it can be split at all. */

static const i64 *box_of(i64 at) { return boxes.rows + at; }

static i64 keep_box(i64 nd, const i64 *box)
{
    RESERVE(boxes, boxes.count + 2 * nd);
    memcpy(boxes.rows + boxes.count, box, (size_t)nd * 16);
    boxes.count += 2 * nd;
    return boxes.count - 2 * nd;
}

/* Called from the program's code, so it does not leave by a jump; `call_touches` does. */
static void record(i64 array, const i64 *box, enum Use use, i64 op)
{
    static const i64 one[2] = {0, 1};
    const Array *a = &arrays[array];
    i64 part[2 * MAX_DIMS];
    if (exhausted || !cut(a->nd, part, a->scalar ? one : box, a->whole)) return;
    for (i64 k = items.count - 1; k >= 0 && items.rows[k].rank == recording; k--) {
        const Item *old = &items.rows[k];
        if (old->array == array && old->use == use && old->op == op &&
            contains(a->nd, box_of(old->at), part))
            return;
    }
    void *more_items = tried(items.rows, &items.capacity, items.count + 1, sizeof(Item));
    void *more_boxes = tried(boxes.rows, &boxes.capacity, boxes.count + 2 * a->nd, 8);
    if (more_items) items.rows = more_items;
    if (more_boxes) boxes.rows = more_boxes;
    exhausted = !more_items || !more_boxes;
    if (exhausted) return;
    memcpy(boxes.rows + boxes.count, part, (size_t)a->nd * 16);
    items.rows[items.count++] = (Item){recording, array, use, op, boxes.count};
    boxes.count += 2 * a->nd;
}

void avial_read(i64 array, const i64 *box) { record(array, box, READ, 0); }
void avial_write(i64 array, const i64 *box, i64 exact) { record(array, box, exact ? WRITE : UPDATE, 0); }
void avial_reduce(i64 array, const i64 *box, i64 op) { record(array, box, REDUCE, op); }

typedef struct { Touches touches; const i64 *params; } Body;

static void record_range(i64 rank, const i64 *range, const void *with)
{
    const Body *body = with;
    recording = rank;
    exhausted = false;
    body->touches(body->params, range);
    if (exhausted) fail(NO_MEMORY);
}

static void keep_range(i64 rank, const i64 *range, const void *with)
{
    (void)with;
    if (rank != me) return;
    RESERVE(ranges, ranges.count + 4);
    memcpy(ranges.rows + ranges.count, range, 32);
    ranges.count += 4;
}

/* The whole space as one range; whether it has any iterations. */
static bool whole_space(const i64 *space, i64 *range)
{
    return tight(space[0], space[1], max(space[2], 1), range) &&
           tight(space[5], space[6], max(space[7], 1), range + 2);
}

/* The rank that holds most bytes of what is read; ties and nothing held go to the lowest. */
static i64 richest(void)
{
    memset(of_rank, 0, (size_t)ranks * 8);
    for (i64 k = 0; k < items.count; k++) {
        if (items.rows[k].use == WRITE) continue;
        Array *a = &arrays[items.rows[k].array];
        const i64 *box = box_of(items.rows[k].at);
        i64 part[2 * MAX_DIMS];
        for (i64 n = reach(a, &a->state, box[0]); n < a->state.count; n++) {
            i64 *piece = row(a, &a->state, n);
            if (piece[0] >= box[a->nd]) break;
            if (!cut(a->nd, part, piece, box)) continue;
            for (i64 r = 0; r < ranks; r++)
                if (has(set_of(a, piece), r)) of_rank[r] += bytes_of(a, part);
        }
    }
    i64 best = members[0];
    for (i64 k = 1; k < nmembers; k++)
        if (of_rank[members[k]] > of_rank[best]) best = members[k];
    return best;
}

/* The phase as one range, on the rank of a task or on all; reductions there are plain updates. */
static void as_one(const i64 *space, const Body *body, bool everywhere)
{
    i64 range[4];
    items.count = boxes.count = ranges.count = 0;
    alone = true;
    if (!whole_space(space, range)) return;
    record_range(-1, range, body);
    i64 rank = everywhere ? -1 : richest();
    for (i64 k = 0; k < items.count; k++) items.rows[k].rank = rank;
    keep_range(everywhere ? me : rank, range, NULL);
}

/* Whether one of two footprints in one array rules a split out. */
static bool clash(const Item *x, const Item *y)
{
    if (x->array != y->array) return false;
    if (x->use == REDUCE && y->use == REDUCE) return x->op != y->op;
    bool reduces = x->use == REDUCE || y->use == REDUCE;
    if (!reduces && (x->rank == y->rank || x->use == READ || y->use == READ)) return false;
    return overlap(arrays[x->array].nd, box_of(x->at), box_of(y->at));
}

static bool conflicts(void)
{
    for (i64 i = 0; i < items.count; i++) {
        const Item *x = &items.rows[i];
        if (x->use == READ) continue;
        if (x->use == REDUCE && !can_combine(x->op)) return true;
        for (i64 k = x->use == REDUCE ? 0 : i + 1; k < items.count; k++)
            if (k != i && clash(x, &items.rows[k])) return true;
    }
    return false;
}

/* The footprints of all ranks, and the ranges of this one. */
static void footprints(const i64 *space, const Body *body)
{
    items.count = boxes.count = ranges.count = 0;
    if (kind == TASK || kind == EVERYWHERE) {
        as_one(space, body, kind == EVERYWHERE);
        return;
    }
    for (i64 k = 0; k < nmembers; k++) {
        each_range(k, space, record_range, body);
        each_range(k, space, keep_range, NULL);
    }
}

/* The n-th of the cells that anyone contributes to, from `k` on; -1 where there are no more. */
static i64 next_cell(Array *a, i64 k)
{
    while (k < a->cells.count && lowest(set_of(a, row(a, &a->cells, k))) < 0) k++;
    return k < a->cells.count ? k : -1;
}

/* Whether the companion's elements are found from its leader's: each follows the one in its place, or
 * all the only one; the same ranks contribute, and what is combined by rows is so by the same. */
static bool corresponds(Array *a, Array *leader)
{
    if (!leads(leader->op)) return false;
    i64 k = next_cell(a, 0), n = next_cell(leader, 0);
    for (; k >= 0 && n >= 0; k = next_cell(a, k + 1), n = next_cell(leader, n + 1)) {
        i64 *own = row(a, &a->cells, k), *lead = row(leader, &leader->cells, n);
        i64 size = volume(leader->nd, lead), follow = volume(a->nd, own);
        bool small = max(size, follow) <= SMALL_REDUCTION;
        bool alike = a->nd == leader->nd && !memcmp(own, lead, (size_t)a->nd * 16) &&
                     (small || !memcmp(a->whole, leader->whole, (size_t)a->nd * 16));
        if (memcmp(set_of(a, own), set_of(leader, lead), (size_t)words * 8)) return false;
        if (!alike && !(small && size == 1)) return false;
    }
    return k < 0 && n < 0;
}

/* Who contributes to what is reduced; whether it can be combined. */
static bool contributions(void)
{
    for (i64 k = 0; k < narrays; k++) arrays[k].op = 0;
    for (i64 k = 0; k < items.count; k++) {
        const Item *item = &items.rows[k];
        if (item->use != REDUCE) continue;
        Array *a = &arrays[item->array];
        if (!a->cells.count) reset(a, &a->cells);
        a->op = item->op;
        mark(a, &a->cells, box_of(item->at), item->rank, true);
        combining = true;
    }
    for (i64 k = 0; combining && k < narrays; k++)
        if (arrays[k].cells.count && follows(arrays[k].op) &&
            !corresponds(&arrays[k], &arrays[leader_of(arrays[k].op)]))
            return false;
    return true;
}

/* The first of those alike is found only where the ranks' parts are one after the other, as the ranks
 * are: no blocks in turn, no ranks in another order. Whether that had to be seen to. */
static bool put_in_order(void)
{
    bool led = false, ordered = block_size <= 0;
    for (i64 k = 0; k < items.count; k++) led |= items.rows[k].use == REDUCE && leads(items.rows[k].op);
    for (i64 k = 1; k < nmembers; k++) ordered &= members[k - 1] < members[k];
    if (!led || ordered) return false;
    block_size = 0;
    for (i64 k = 1; k < nmembers; k++) /* few, and as a rule in order */
        for (i64 j = k; j > 0 && members[j - 1] > members[j]; j--) {
            i64 rank = members[j];
            members[j] = members[j - 1];
            members[j - 1] = rank;
        }
    return true;
}

/* Brings a phase that cannot be split onto one rank; and finds who contributes to what is reduced. */
static void resolve(const i64 *space, const Body *body)
{
    if (alone) return;
    if (put_in_order()) footprints(space, body);
    if (conflicts() || !contributions()) {
        phases.rows[now].whole++;
        combining = false;
        as_one(space, body, false);
    }
}
