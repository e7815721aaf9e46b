/* Boxes, sets of ranks, and lists of the pieces of an array. */

static i64 min(i64 a, i64 b) { return a < b ? a : b; }
static i64 max(i64 a, i64 b) { return a > b ? a : b; }

static bool overlap(i64 nd, const i64 *a, const i64 *b)
{
    for (i64 d = 0; d < nd; d++)
        if (max(a[d], b[d]) >= min(a[nd + d], b[nd + d])) return false;
    return true;
}

static bool contains(i64 nd, const i64 *a, const i64 *b)
{
    for (i64 d = 0; d < nd; d++)
        if (b[d] < a[d] || b[nd + d] > a[nd + d]) return false;
    return true;
}

/* `to` = the common elements; whether there are any. */
static bool cut(i64 nd, i64 *to, const i64 *a, const i64 *b)
{
    for (i64 d = 0; d < nd; d++) {
        to[d] = max(a[d], b[d]);
        to[nd + d] = min(a[nd + d], b[nd + d]);
        if (to[d] >= to[nd + d]) return false;
    }
    return true;
}

static i64 volume(i64 nd, const i64 *box)
{
    i64 size = 1;
    for (i64 d = 0; d < nd; d++) size *= box[nd + d] - box[d];
    return size;
}

static i64 bytes_of(const Array *a, const i64 *box) { return volume(a->nd, box) * a->itemsize; }

static i64 *writer_of(const Array *a, i64 *row) { return row + 2 * a->nd; }
static u64 *set_of(const Array *a, i64 *row) { return (u64 *)row + 2 * a->nd + 1; }
static bool has(const u64 *set, i64 rank) { return set[rank / 64] >> (rank % 64) & 1; }
static void include(u64 *set, i64 rank) { set[rank / 64] |= (u64)1 << (rank % 64); }

static i64 lowest(const u64 *set)
{
    for (i64 w = 0; w < words; w++)
        if (set[w]) return w * 64 + __builtin_ctzll(set[w]);
    return -1;
}

static i64 size_of_set(const u64 *set)
{
    i64 size = 0;
    for (i64 w = 0; w < words; w++) size += __builtin_popcountll(set[w]);
    return size;
}

/* Lists of pieces -------------------------------------------------------------------------------- */

static i64 *row(const Array *a, const List *l, i64 k) { return l->rows + k * a->stride; }

/* The first piece that may reach as far right as `lo`. */
static i64 reach(const Array *a, List *l, i64 lo)
{
    if (l->widest < 0)
        for (i64 k = 0; k < l->count; k++)
            l->widest = max(l->widest, row(a, l, k)[a->nd] - row(a, l, k)[0]);
    i64 low = 0, high = l->count;
    while (low < high) {
        i64 middle = (low + high) / 2;
        if (row(a, l, middle)[0] < lo - l->widest) low = middle + 1;
        else high = middle;
    }
    return low;
}

static int order(i64 nd, const i64 *a, const i64 *b)
{
    for (i64 d = 0; d < nd; d++)
        if (a[d] != b[d]) return a[d] < b[d] ? -1 : 1;
    return 0;
}

/* Adds a piece as it is, in its place. */
static void place(const Array *a, List *l, const i64 *piece)
{
    i64 low = 0, high = l->count;
    while (low < high) {
        i64 middle = (low + high) / 2;
        if (order(a->nd, row(a, l, middle), piece) < 0) low = middle + 1;
        else high = middle;
    }
    l->rows = grown(l->rows, &l->capacity, l->count + 1, a->stride * 8);
    memmove(row(a, l, low + 1), row(a, l, low), (size_t)((l->count - low) * a->stride * 8));
    memcpy(row(a, l, low), piece, (size_t)a->stride * 8);
    l->count++;
    if (l->widest >= 0) l->widest = max(l->widest, piece[a->nd] - piece[0]);
}

/* Whether two pieces say the same and share a whole face. */
static bool joins(const Array *a, const i64 *x, const i64 *y)
{
    i64 nd = a->nd, face = -1;
    for (i64 d = 0; d < nd; d++) {
        if (x[d] == y[d] && x[nd + d] == y[nd + d]) continue;
        if (face >= 0) return false;
        face = d;
    }
    return face >= 0 && (x[nd + face] == y[face] || y[nd + face] == x[face]) &&
           !memcmp(x + 2 * nd, y + 2 * nd, (size_t)(1 + words) * 8);
}

/* Adds a piece, joined with its neighbours as long as one fits: lists stay short. */
static void insert(const Array *a, List *l, const i64 *piece)
{
    i64 nd = a->nd, *joined = fresh.rows;
    memcpy(joined, piece, (size_t)a->stride * 8);
    for (i64 k = reach(a, l, joined[0]); k < l->count && row(a, l, k)[0] <= joined[nd];) {
        i64 *old = row(a, l, k);
        if (!joins(a, old, joined)) {
            k++;
            continue;
        }
        for (i64 d = 0; d < nd; d++) {
            joined[d] = min(joined[d], old[d]);
            joined[nd + d] = max(joined[nd + d], old[nd + d]);
        }
        memmove(old, old + a->stride, (size_t)((l->count - k - 1) * a->stride * 8));
        l->count--;
        k = reach(a, l, joined[0]);
    }
    place(a, l, joined);
}

/* Puts what lies outside `box` back; `piece` is then the part inside. */
static void put_back(const Array *a, List *l, i64 *piece, const i64 *box)
{
    i64 nd = a->nd;
    for (i64 d = 0; d < nd; d++) {
        i64 low = piece[d], high = piece[nd + d];
        if (low < box[d]) {
            piece[nd + d] = box[d];
            place(a, l, piece);
            piece[d] = box[d];
            piece[nd + d] = high;
        }
        if (box[nd + d] < high) {
            piece[d] = box[nd + d];
            place(a, l, piece);
            piece[d] = max(low, box[d]);
            piece[nd + d] = box[nd + d];
        }
    }
}

enum { ALL_PIECES = -1, UNWRITTEN = -2 };

static bool is_wanted(const Array *a, i64 *piece, i64 which)
{
    if (which == UNWRITTEN) return *writer_of(a, piece) < 0;
    return which == ALL_PIECES || !has(set_of(a, piece), which);
}

/* Takes out the parts of pieces inside `box`: of all, of those that nobody wrote, or of those that lack
 * the rank `which`; they are then in `found` (or `other`). Returns how many. */
static i64 extract(const Array *a, List *l, const i64 *box, i64 which, i64 in_found)
{
    i64 nd = a->nd, taken = 0, k = reach(a, l, box[0]), kept = k;
    i64 **to = in_found ? &found.rows : &other.rows;
    i64 *capacity = in_found ? &found.capacity : &other.capacity;
    for (; k < l->count && row(a, l, k)[0] < box[nd]; k++) {
        i64 *old = row(a, l, k);
        if (!overlap(nd, old, box) || !is_wanted(a, old, which)) {
            if (kept != k) memcpy(row(a, l, kept), old, (size_t)a->stride * 8);
            kept++;
            continue;
        }
        *to = grown(*to, capacity, (taken + 1) * a->stride, 8);
        memcpy(*to + taken++ * a->stride, old, (size_t)a->stride * 8);
    }
    if (!taken) return 0;
    memmove(row(a, l, kept), row(a, l, k), (size_t)((l->count - k) * a->stride * 8));
    l->count -= taken;
    l->widest = -1;
    for (i64 n = 0; n < taken; n++) put_back(a, l, *to + n * a->stride, box);
    return taken;
}

/* `rank` holds `box` too; the parts it lacked are then in `found` (or `other`), with the rank in. */
static i64 mark(const Array *a, List *l, const i64 *box, i64 rank, bool in_found)
{
    i64 taken = extract(a, l, box, rank, in_found);
    for (i64 n = 0; n < taken; n++) {
        i64 *part = (in_found ? found.rows : other.rows) + n * a->stride;
        include(set_of(a, part), rank);
        insert(a, l, part);
    }
    return taken;
}

/* One piece that says nothing of anybody. */
static void reset(const Array *a, List *l)
{
    l->count = 0;
    l->widest = -1;
    if (volume(a->nd, a->whole) == 0) return;
    RESERVE(found, a->stride);
    memset(found.rows, 0, (size_t)a->stride * 8);
    memcpy(found.rows, a->whole, (size_t)a->nd * 16);
    *writer_of(a, found.rows) = -1;
    place(a, l, found.rows);
}

/* On one rank: whether all of the array was written, so that its book has nothing more to learn. */
static bool is_written_out(const Array *a) { return ranks == 1 && !a->unwritten; }

/* `box` was written by the only rank. Pieces that were written stay as they are, and are one piece in
 * the end. */
static void own_alone(Array *a, const i64 *box)
{
    if (is_written_out(a)) return;
    if (plan) mark(a, &a->ever, box, 0, false);
    i64 taken = extract(a, &a->state, box, UNWRITTEN, true);
    for (i64 n = 0; n < taken; n++) {
        i64 *part = found.rows + n * a->stride;
        *writer_of(a, part) = 0;
        include(set_of(a, part), 0);
        a->unwritten -= volume(a->nd, part);
        insert(a, &a->state, part);
    }
    if (!is_written_out(a)) return;
    reset(a, &a->state);
    if (!a->state.count) return;
    *writer_of(a, a->state.rows) = 0;
    include(set_of(a, a->state.rows), 0);
}

/* `box` was written by `rank`, or alike by every rank where that is -1. */
static void own(Array *a, const i64 *box, i64 rank)
{
    if (ranks == 1) {
        own_alone(a, box);
        return;
    }
    extract(a, &a->state, box, ALL_PIECES, true);
    RESERVE(found, a->stride);
    i64 *piece = found.rows;
    memcpy(piece, box, (size_t)a->nd * 16);
    memset(set_of(a, piece), 0, (size_t)words * 8);
    *writer_of(a, piece) = max(rank, 0);
    for (i64 r = max(rank, 0); r < (rank < 0 ? ranks : rank + 1); r++) {
        include(set_of(a, piece), r);
        if (plan) mark(a, &a->ever, box, r, false);
    }
    insert(a, &a->state, piece);
}
