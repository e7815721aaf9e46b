/* Ownership: which ranks hold the latest version of which box of which array, and what moves for it.
 *
 * Footprints of the phases of a program -> messages, combined reductions, tables of both. Linked into
 * every structured program. Every rank runs the same phases and keeps the same book, so that all agree
 * on every message without asking; rank -1 keeps the book alone (a plan: no MPI, no memory).
 *
 *     phase        avial_begin(touches)        avial_range, bodies       avial_end
 *     book         who reads what it lacks?                              writers own what they wrote
 *     messages     receive, pack, send ──────► inner range, wait, edges  combine reductions
 *
 * A book is a list of pieces that tile an array: a box, the rank that wrote it last (-1: the caller),
 * and the set of ranks that hold this version. Boxes are lo[nd], hi[nd], half-open.
 */
#define _POSIX_C_SOURCE 200809L
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int64_t i64;
typedef uint64_t u64;
typedef void (*Touches)(const i64 *params, const i64 *range);

enum { MAX_DIMS = 32, SMALL_REDUCTION = 4096 };
enum { NO_MEMORY = 0x7fffff01, TOO_MANY_DIMS = 0x7fffff02, NOT_GIVEN = 0x7fffff03 };
enum { NO_SCRATCH = 0x7fffff04 };
enum Kind { REPLICATE, TASK, EVERYWHERE };
enum Use { READ, WRITE, UPDATE, REDUCE };
enum { SKETCHED_PHASES = 64, SKETCHED_RANKS = 16, SKETCHED_ITEMS = 4096 };
/* An operation is its kind * 16 + the elements' type. A leader is the least or greatest of all, and the
 * first of those alike; its companions, say the place it was found at, are replaced whenever it is.
 * Their operation has the leader's array + 1 from bit 16 on. */
enum { ARGMIN = 11, ARGMAX, ARGMIN_UNSIGNED, ARGMAX_UNSIGNED, COMPANION };
enum EventKind { RAN, RECEIVED, SENT, REDUCED };

#define SHARED __attribute__((weak))

/* Set by the engine; weak, because the program's own module may bring them too. Handles are 64 bits
 * wide whatever the MPI at hand makes of them. */
SHARED i64 avial_comm, avial_byte, avial_status_ignore;
SHARED i64 avial_error;    /* the first failure: a code of MPI's or of ours | phase << 32 */
SHARED i64 *avial_journal; /* the phase that runs now */
SHARED i64 *avial_events;  /* rows of phase, kind, start_ns, end_ns, bytes, peer (-1: all) */
SHARED i64 avial_events_capacity, avial_events_count; /* rows; what does not fit is dropped */
SHARED i64 avial_chunk = 1 << 30;                     /* bytes one MPI call moves at most */
SHARED i64 avial_staging = 256 << 20;                 /* bytes under way before a send waits */

/* Weak: a plan, or one rank, runs where there is no MPI. */
SHARED int MPI_Isend(const void *, int, i64 type, int peer, int tag, i64 comm, i64 *request);
SHARED int MPI_Irecv(void *, int, i64 type, int peer, int tag, i64 comm, i64 *request);
SHARED int MPI_Wait(i64 *request, void *status);
SHARED int MPI_Test(i64 *request, int *flag, void *status);
SHARED int MPI_Bcast(void *, int, i64 type, int root, i64 comm);
SHARED int MPI_Allgatherv(const void *, int, i64 type, void *, const int *counts, const int *starts,
                          i64 received, i64 comm);

/* Pieces of one array that tile it, by where they start. */
typedef struct {
    i64 *rows, count, capacity;
    i64 widest; /* longest extent in dimension 0: how far left of a box to look; -1 unknown */
} List;

typedef struct {
    i64 nd, itemsize;
    i64 whole[2 * MAX_DIMS]; /* the box of all elements */
    bool scalar;             /* 0-d for the caller, one element in one dimension here */
    bool undefined;          /* no array of the caller's is behind it */
    bool touched;            /* by the phase at hand, where that is asked */
    i64 stride;              /* words of a piece: box, writer, set of ranks */
    char *memory, *scratch;
    i64 op;     /* of this phase's reduction */
    List state; /* the book */
    List given; /* what each rank got, or in a plan needs, before the run */
    List ever;  /* a plan's: what each rank has ever held */
    List cells; /* of this phase's reductions: which ranks contribute */
} Array;

typedef struct { i64 rank, array, use, op, at; } Item; /* a footprint; rank -1: every rank's */
typedef struct { i64 source, dest, array, at; bool first; } Move;
/* One for each pair of ranks. shared: it travels in a collective; placed: it arrives where it belongs. */
typedef struct {
    i64 source, dest, first, count, bytes, buffer;
    char *data;
    bool shared, placed;
} Message;
typedef struct { char *data; i64 capacity; bool busy, sending; i64 *requests, count, room; } Buffer;
typedef struct { i64 phase, source, dest, messages, bytes; } Sum;

#define ROWS(Type) struct { Type *rows; i64 count, capacity; }

/* What a phase came to, given these footprints and these books: loops repeat themselves, and to compare
 * is much quicker than to derive. Books are kept as array, count, pieces. */
typedef struct {
    ROWS(Item) items;
    ROWS(i64) boxes, before, after; /* boxes: first those of the items, `known` words */
    ROWS(Move) moves;
    ROWS(Message) messages;
    i64 known;
    bool valid;
} Memory;

typedef struct { i64 begun, bytes, whole, misses, next; Memory memories[4]; bool sketched; } Phase;

/* The run. */
static i64 ranks, me, words, narrays, widest_row;
static bool plan, incomplete, broken;
static jmp_buf way_out;
static Array *arrays;
static ROWS(Phase) phases;
static ROWS(Sum) sums;
static i64 sum_hint;
static ROWS(Buffer) pool;
static ROWS(struct { void *site; i64 times; }) loops;
static ROWS(i64) sketches; /* phase, rank, array, use, box */
static i64 nsketched;

/* The phase at hand. */
static i64 now, kind, recording, interior, pending, run_started;
static bool exhausted; /* no memory for a footprint */
static bool alone;     /* on one rank, or on every rank alike */
static bool combining; /* partial results of several ranks */
static bool open_run;
static Memory *learning, *recalled;
static ROWS(Item) items;
static ROWS(i64) boxes;
static ROWS(Move) moves;
static ROWS(Message) messages;
static ROWS(i64) ranges; /* mine: lo0, hi0, lo1, hi1 each */
static i64 *members, nmembers, block_size, columns, *weights, nweights;
static bool layout_set;
static i64 *of_rank; /* two words for each rank, for whoever needs them */
static ROWS(i64) found, other, fresh;
static ROWS(int) counts;
static ROWS(bool) better; /* which elements of a leader were replaced last: its companions' follow */

/* Failure and memory ---------------------------------------------------------------------------- */

static void note_error(i64 code)
{
    if (!avial_error) avial_error = (code & 0xffffffff) | now << 32;
}

/* Leaves the entry point: what is known of the arrays no longer agrees with the other ranks. */
static _Noreturn void fail(i64 code)
{
    note_error(code);
    broken = true;
    longjmp(way_out, 1);
}

/* `data` with room for `needed` elements; NULL, and nothing lost, where there is none. */
static void *tried(void *data, i64 *capacity, i64 needed, i64 size)
{
    if (needed <= *capacity) return data;
    i64 wanted = needed < 2 * *capacity ? 2 * *capacity : needed < 16 ? 16 : needed;
    void *more = wanted > PTRDIFF_MAX / size ? NULL : realloc(data, (size_t)(wanted * size));
    if (more) *capacity = wanted;
    return more;
}

static void *grown(void *data, i64 *capacity, i64 needed, i64 size)
{
    void *more = tried(data, capacity, needed, size);
    if (!more && needed) fail(NO_MEMORY);
    return more;
}

#define RESERVE(list, n) ((list).rows = grown((list).rows, &(list).capacity, (n), sizeof *(list).rows))
#define APPEND(list) (RESERVE(list, (list).count + 1), &(list).rows[(list).count++])
#define FORGET(list) (free((list).rows), (list).rows = NULL, (list).count = (list).capacity = 0)

static void check(int code)
{
    if (code) note_error(code);
}

static i64 now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (i64)time.tv_sec * 1000000000 + time.tv_nsec;
}

static i64 clock_if_traced(void)
{
    return avial_events ? now_ns() : 0;
}

static void log_event(enum EventKind what, i64 start, i64 bytes, i64 peer)
{
    if (!avial_events || avial_events_count >= avial_events_capacity) return;
    i64 row[6] = {now, what, start, now_ns(), bytes, peer};
    memcpy(avial_events + 6 * avial_events_count++, row, sizeof row);
}

/* Boxes and sets --------------------------------------------------------------------------------- */

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

/* Takes out the parts of pieces inside `box`, or with rank >= 0 of those that lack the rank; they are
 * then in `found` (or `other`). Returns how many. */
static i64 extract(const Array *a, List *l, const i64 *box, i64 rank, i64 in_found)
{
    i64 nd = a->nd, taken = 0, k = reach(a, l, box[0]), kept = k;
    i64 **to = in_found ? &found.rows : &other.rows;
    i64 *capacity = in_found ? &found.capacity : &other.capacity;
    for (; k < l->count && row(a, l, k)[0] < box[nd]; k++) {
        i64 *old = row(a, l, k);
        if (!overlap(nd, old, box) || (rank >= 0 && has(set_of(a, old), rank))) {
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

/* `box` was written by `rank`, or alike by every rank where that is -1. */
static void own(Array *a, const i64 *box, i64 rank)
{
    extract(a, &a->state, box, -1, true);
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

/* What a phase touches --------------------------------------------------------------------------- */

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

/* Which part of the iterations is whose ---------------------------------------------------------- */

/* Where part k of n begins, of `extent` slots; by the weights of equal slices where there are any. */
static i64 boundary(i64 k, i64 n, i64 extent, bool weighted)
{
    __int128 total = 0, below = 0;
    for (i64 s = 0; weighted && s < nweights; s++) total += weights[s];
    if (total <= 0) return (i64)((__int128)k * extent / n);
    for (i64 s = 0; s < nweights; s++) {
        i64 start = (i64)((__int128)s * extent / nweights);
        i64 stop = (i64)((__int128)(s + 1) * extent / nweights);
        if ((below + weights[s]) * n > k * total)
            return start + (i64)((k * total - below * n) * (stop - start) / (weights[s] * (__int128)n));
        below += weights[s];
    }
    return extent;
}

/* lo and one past the last iteration of [lo, hi); whether there is any. */
static bool tight(i64 lo, i64 hi, i64 step, i64 *range)
{
    range[0] = lo;
    range[1] = lo < hi ? lo + (hi - lo - 1) / step * step + 1 : lo;
    return lo < hi;
}

/* The iteration values of `space` (lb, ub, step, offset, extent) in slots [from, to), and whether there
 * are any; the ends of the extent take what lies beyond them. */
static bool slots(const i64 *space, i64 from, i64 to, bool lowest_part, bool highest_part, i64 *range)
{
    i64 lb = space[0], ub = space[1], step = max(space[2], 1);
    i64 offset = space[4] > 0 ? space[3] : -lb;
    i64 lo = lowest_part ? lb : max(lb, from - offset);
    i64 hi = highest_part ? ub : min(ub, to - offset);
    return tight(lb + (lo - lb + step - 1) / step * step, hi, step, range);
}

static bool block_part(const i64 *space, i64 k, i64 n, bool weighted, i64 *range)
{
    i64 extent = space[4] > 0 ? space[4] : space[1] - space[0];
    if (extent <= 0) return false;
    i64 from = boundary(k, n, extent, weighted), to = boundary(k + 1, n, extent, weighted);
    return slots(space, from, to, k == 0, k == n - 1, range);
}

typedef void (*Visit)(i64 rank, const i64 *range, const void *with);

/* Calls `visit` for every range of the member `k`: of its row and column of the grid. */
static void each_range(i64 k, const i64 *space, Visit visit, const void *with)
{
    i64 across = max(min(columns, nmembers), 1), down = nmembers / across, range[4];
    if (k >= down * across || !block_part(space + 5, k % across, across, false, range + 2)) return;
    i64 part = k / across, extent = space[4] > 0 ? space[4] : space[1] - space[0];
    if (block_size <= 0) {
        if (block_part(space, part, down, true, range)) visit(members[k], range, with);
        return;
    }
    i64 blocks = max((extent + block_size - 1) / block_size, 1);
    for (i64 b = part; b < blocks; b += down)
        if (slots(space, b * block_size, (b + 1) * block_size, b == 0, b == blocks - 1, range))
            visit(members[k], range, with);
}

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

static i64 kind_of(i64 op) { return op >> 4 & 0xfff; }
static i64 leader_of(i64 op) { return (op >> 16) - 1; }
static bool leads(i64 op) { return kind_of(op) >= ARGMIN && kind_of(op) < COMPANION; }
static bool follows(i64 op) { return kind_of(op) == COMPANION; }

static bool can_combine(i64 op)
{
    static const bool of_type[16] = {[0] = 1, [1] = 1, [2] = 1, [3] = 1, [4] = 1, [7] = 1, [8] = 1};
    bool real = (op & 15) > 4;
    i64 what = kind_of(op);
    if (follows(op)) return leader_of(op) >= 0 && leader_of(op) < narrays;
    if (op < 0 || op >> 16 || !of_type[op & 15]) return false;
    if (leads(op)) return op & 15 && !(real && what >= ARGMIN_UNSIGNED);
    return what <= 10 && !(real && what >= 4 && what <= 8) && (real || what < 9);
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
    if (kind != REPLICATE) {
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

/* What has to move ------------------------------------------------------------------------------- */

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

static void count_sum(const Message *m)
{
    i64 k = sum_hint;
    for (i64 tried = 0; tried < sums.count; tried++, k++) {
        if (k >= sums.count) k = 0;
        Sum *s = &sums.rows[k];
        if (s->phase != now || s->source != m->source || s->dest != m->dest) continue;
        s->messages++;
        s->bytes += m->bytes;
        sum_hint = k + 1; /* phases repeat: the next one is the likely next */
        return;
    }
    *APPEND(sums) = (Sum){now, m->source, m->dest, 1, m->bytes};
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
    }
}

/* Phases that come again -------------------------------------------------------------------------- */

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
 * one: phases that never repeat are tried ever more rarely. */
static bool recall(void)
{
    Phase *p = &phases.rows[now];
    if (alone || !items.count) return false;
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

/* Bytes ------------------------------------------------------------------------------------------ */

/* The stretches of a box that are contiguous in memory: `run` bytes each. */
typedef struct { char *memory; i64 run, count[MAX_DIMS], step[MAX_DIMS], dims; } Stretches;

static Stretches stretches(const Array *a, char *memory, const i64 *box)
{
    Stretches s = {.run = a->itemsize};
    i64 nd = a->nd, step = a->itemsize, at = 0;
    bool whole = true;
    for (i64 d = nd - 1; d >= 0; d--) {
        i64 length = box[nd + d] - box[d], extent = a->whole[nd + d];
        at += box[d] * step;
        if (whole) s.run *= length;
        else {
            s.count[s.dims] = length;
            s.step[s.dims++] = step;
        }
        whole = whole && length == extent;
        step *= extent;
    }
    s.memory = memory + at;
    return s;
}

/* The address of the `number`-th stretch. */
static char *stretch(const Stretches *s, i64 number)
{
    char *at = s->memory;
    for (i64 d = 0; d < s->dims; d++) {
        at += number % s->count[d] * s->step[d];
        number /= s->count[d];
    }
    return at;
}

static i64 stretch_count(const Stretches *s)
{
    i64 count = 1;
    for (i64 d = 0; d < s->dims; d++) count *= s->count[d];
    return count;
}

static char *copy_out(char *to, const Array *a, char *memory, const i64 *box)
{
    Stretches s = stretches(a, memory, box);
    for (i64 k = 0, n = stretch_count(&s); k < n; k++, to += s.run)
        memcpy(to, stretch(&s, k), (size_t)s.run);
    return to;
}

static const char *copy_in(const char *from, const Array *a, char *memory, const i64 *box)
{
    Stretches s = stretches(a, memory, box);
    for (i64 k = 0, n = stretch_count(&s); k < n; k++, from += s.run)
        memcpy(stretch(&s, k), from, (size_t)s.run);
    return from;
}

static void copy_between(const Array *a, char *to, char *from, const i64 *box)
{
    Stretches source = stretches(a, from, box), dest = stretches(a, to, box);
    for (i64 k = 0, n = stretch_count(&source); k < n; k++)
        memcpy(stretch(&dest, k), stretch(&source, k), (size_t)source.run);
}

/* Reductions ------------------------------------------------------------------------------------- */

/* MLIR's minimumf and maximumf: NaN wins, and -0 lies below +0. */
#define MINIMUM(T, x, y) (isnan(x) ? x : isnan(y) ? y : x < y || (x == y && signbit(x)) ? x : y)
#define MAXIMUM(T, x, y) (isnan(x) ? x : isnan(y) ? y : x > y || (x == y && !signbit(x)) ? x : y)

/* What came in a message need not be aligned. */
#define EACH(expression)                                \
    for (i64 k = 0; k < n; k++) {                       \
        x = a[k];                                       \
        memcpy(&y, b + k * (i64)sizeof y, sizeof y);    \
        a[k] = (expression);                            \
    }                                                   \
    break

#define INTEGERS(name, T, U)                                                    \
    static void name(i64 op, void *into, const void *from, i64 n)               \
    {                                                                           \
        T *a = into, x, y;                                                      \
        const char *b = from;                                                   \
        switch (op) {                                                           \
        case 0: EACH((T)((U)x + (U)y));                                         \
        case 1: EACH((T)((u64)(U)x * (u64)(U)y));                               \
        case 2: EACH(x < y ? x : y);                                            \
        case 3: EACH(x > y ? x : y);                                            \
        case 4: EACH(x & y);                                                    \
        case 5: EACH(x | y);                                                    \
        case 6: EACH(x ^ y);                                                    \
        case 7: EACH((U)x < (U)y ? x : y);                                      \
        case 8: EACH((U)x > (U)y ? x : y);                                      \
        }                                                                       \
    }

#define REALS(name, T)                                                          \
    static void name(i64 op, void *into, const void *from, i64 n)               \
    {                                                                           \
        T *a = into, x, y;                                                      \
        const char *b = from;                                                   \
        switch (op) {                                                           \
        case 0: EACH(x + y);                                                    \
        case 1: EACH(x * y);                                                    \
        case 2: EACH(MINIMUM(T, x, y));                                         \
        case 3: EACH(MAXIMUM(T, x, y));                                         \
        case 9: EACH(isnan(x) ? y : isnan(y) ? x : MINIMUM(T, x, y));           \
        case 10: EACH(isnan(x) ? y : isnan(y) ? x : MAXIMUM(T, x, y));          \
        }                                                                       \
    }

INTEGERS(combine_i8, int8_t, uint8_t)
INTEGERS(combine_i16, int16_t, uint16_t)
INTEGERS(combine_i32, int32_t, uint32_t)
INTEGERS(combine_i64, int64_t, uint64_t)
REALS(combine_f32, float)
REALS(combine_f64, double)

/* Of one bit, sum is xor and product and; a set bit is -1 for signed comparisons. */
static const i64 OF_BITS[9] = {6, 4, 5, 4, 4, 5, 6, 4, 5};

/* `into` = `into` op `from`, n elements. */
static void combine_run(i64 op, char *into, const char *from, i64 n)
{
    i64 what = kind_of(op);
    switch (op & 15) {
    case 0: combine_i8(OF_BITS[what], into, from, n); return;
    case 1: combine_i8(what, into, from, n); return;
    case 2: combine_i16(what, into, from, n); return;
    case 3: combine_i32(what, into, from, n); return;
    case 4: combine_i64(what, into, from, n); return;
    case 7: combine_f32(what, into, from, n); return;
    case 8: combine_f64(what, into, from, n); return;
    }
}

/* Which of n partial results of a leader are strictly better than those there are: no NaN, nor what
 * is only as good. */
#define STRICTLY(T)                                                                  \
    for (i64 k = 0; k < n; k++) {                                                    \
        T x, y;                                                                      \
        memcpy(&x, old + k * (i64)sizeof(T), sizeof(T)); /* messages are unaligned */ \
        memcpy(&y, from + k * (i64)sizeof(T), sizeof(T));                            \
        wins[k] = least ? y < x : y > x;                                             \
    }                                                                                \
    return

static void strictly(i64 op, const char *old, const char *from, i64 n, bool *wins)
{
    i64 what = kind_of(op);
    bool least = what == ARGMIN || what == ARGMIN_UNSIGNED;
    switch ((op & 15) + (what >= ARGMIN_UNSIGNED ? 16 : 0)) {
    case 1: STRICTLY(int8_t);
    case 2: STRICTLY(int16_t);
    case 3: STRICTLY(int32_t);
    case 4: STRICTLY(int64_t);
    case 7: STRICTLY(float);
    case 8: STRICTLY(double);
    case 17: STRICTLY(uint8_t);
    case 18: STRICTLY(uint16_t);
    case 19: STRICTLY(uint32_t);
    case 20: STRICTLY(uint64_t);
    }
}

/* The element that leaves every other as it is: -0 for sums, since 0 + -0 is 0. */
static void identity(i64 op, char *element)
{
    static const double real[11] = {-0.0, 1, INFINITY, -INFINITY, 0, 0, 0, 0, 0, NAN, NAN};
    static const i64 order[4] = {2, 3, 7, 8}; /* a leader starts like the plain minimum or maximum */
    i64 what = leads(op) ? order[kind_of(op) - ARGMIN] : kind_of(op);
    i64 type = op & 15, bits = type ? 8 << (type - 1) : 1;
    if (type == 7) memcpy(element, &(float){(float)real[what]}, 4);
    if (type == 8) memcpy(element, &real[what], 8);
    if (type > 4) return;
    u64 ones = bits == 64 ? ~(u64)0 : ((u64)1 << bits) - 1, top = (u64)1 << (bits - 1);
    u64 value[9] = {0, 1, ones ^ top, top, ones, 0, 0, ones, 0};
    memcpy(element, &value[what], (size_t)max(bits / 8, 1)); /* little-endian, as every host of ours */
}

static void fill(const Array *a, char *memory, const i64 *box)
{
    char element[8];
    Stretches s = stretches(a, memory, box);
    if (follows(a->op)) { /* nobody looks at it before the leader is found */
        for (i64 k = 0, n = stretch_count(&s); k < n; k++) memset(stretch(&s, k), 0, (size_t)s.run);
        return;
    }
    identity(a->op, element);
    for (i64 k = 0, n = stretch_count(&s); k < n; k++)
        for (i64 at = 0; at < s.run; at += a->itemsize)
            memcpy(stretch(&s, k) + at, element, (size_t)a->itemsize);
}

/* Takes of a leader's partial result what is better, and of its companions' what belongs to that:
 * they come next. */
static const char *accumulate_better(const Array *a, const i64 *box, const char *from)
{
    Stretches s = stretches(a, a->memory, box);
    i64 run = s.run / a->itemsize;
    if (leads(a->op)) {
        RESERVE(better, volume(a->nd, box));
        better.count = volume(a->nd, box);
        for (i64 k = 0, n = stretch_count(&s); k < n; k++)
            strictly(a->op, stretch(&s, k), from + k * s.run, run, better.rows + k * run);
    }
    for (i64 k = 0, at = 0, n = stretch_count(&s); k < n; k++)
        for (i64 j = 0; j < run; j++, at++, from += a->itemsize)
            if (better.rows[better.count == 1 ? 0 : at])
                memcpy(stretch(&s, k) + j * a->itemsize, from, (size_t)a->itemsize);
    return from;
}

/* Combines a partial result with what is there, or takes it as it is. Returns past the partial. */
static const char *accumulate(const Array *a, const i64 *box, const char *from, bool first)
{
    if (first) return copy_in(from, a, a->memory, box);
    if (leads(a->op) || follows(a->op)) return accumulate_better(a, box, from);
    Stretches s = stretches(a, a->memory, box);
    for (i64 k = 0, n = stretch_count(&s); k < n; k++, from += s.run)
        combine_run(a->op, stretch(&s, k), from, s.run / a->itemsize);
    return from;
}

/* Messages --------------------------------------------------------------------------------------- */

static void *status(void) { return (void *)(intptr_t)avial_status_ignore; }

/* Whether the buffer's messages are over; `wait` until they are. */
static bool settled(Buffer *b, bool wait)
{
    for (; b->count > 0 && !avial_error; b->count--) {
        int over = 1;
        if (wait) check(MPI_Wait(&b->requests[b->count - 1], status()));
        else check(MPI_Test(&b->requests[b->count - 1], &over, status()));
        if (!over) return false;
    }
    return b->count == 0;
}

/* A free buffer of at least that many bytes, whose index stays as long as it is busy. */
static i64 take(i64 bytes)
{
    i64 best = -1, spare = -1, under_way = 0;
    for (i64 k = 0; k < pool.count; k++) {
        Buffer *b = &pool.rows[k];
        if (b->busy && b->sending && settled(b, false)) b->busy = false;
        if (b->busy) {
            under_way += b->capacity;
            continue;
        }
        spare = k;
        if (b->capacity >= bytes && (best < 0 || b->capacity < pool.rows[best].capacity)) best = k;
    }
    for (i64 k = 0; best < 0 && k < pool.count && under_way > avial_staging; k++) {
        Buffer *b = &pool.rows[k];
        if (!b->busy || !b->sending) continue;
        if (!settled(b, true)) break;
        b->busy = false;
        under_way -= b->capacity;
        spare = k;
        if (b->capacity >= bytes) best = k;
    }
    if (best < 0) best = spare;
    if (best < 0) {
        *APPEND(pool) = (Buffer){0};
        best = pool.count - 1;
    }
    Buffer *b = &pool.rows[best];
    if (b->capacity < bytes) { /* not realloc: what is in it is of no use */
        free(b->data);
        b->capacity = 0;
        b->data = malloc((size_t)bytes);
        if (!b->data) fail(NO_MEMORY);
        b->capacity = bytes;
    }
    b->busy = true;
    b->sending = false;
    b->count = 0;
    return best;
}

static i64 *next_request(Buffer *b)
{
    b->requests = grown(b->requests, &b->room, b->count + 1, 8);
    return &b->requests[b->count++];
}

/* One message, in pieces that MPI's counts can hold; its requests are the buffer's. */
static void post(Buffer *b, bool send, char *data, i64 bytes, i64 peer)
{
    for (i64 at = 0; at < bytes && !avial_error; at += avial_chunk) {
        int count = (int)min(avial_chunk, bytes - at);
        i64 *request = next_request(b);
        check(send ? MPI_Isend(data + at, count, avial_byte, (int)peer, 0, avial_comm, request)
                   : MPI_Irecv(data + at, count, avial_byte, (int)peer, 0, avial_comm, request));
    }
}

/* Where the message may lie as it travels: one box that is contiguous in the array. */
static char *in_place(const Message *m)
{
    const Move *only = &moves.rows[m->first];
    Stretches s = stretches(&arrays[only->array], arrays[only->array].memory, box_of(only->at));
    return m->count == 1 && stretch_count(&s) == 1 ? s.memory : NULL;
}

static char *partial_or_array(const Array *a, bool partial) { return partial ? a->scratch : a->memory; }

static void pack(const Message *m, char *to, bool partial)
{
    for (i64 k = m->first; k < m->first + m->count; k++) {
        const Array *a = &arrays[moves.rows[k].array];
        to = copy_out(to, a, partial_or_array(a, partial), box_of(moves.rows[k].at));
    }
}

static void unpack(const Message *m)
{
    const char *from = m->data;
    for (i64 k = m->first; k < m->first + m->count; k++) {
        const Array *a = &arrays[moves.rows[k].array];
        from = copy_in(from, a, a->memory, box_of(moves.rows[k].at));
    }
}

static void combine(const Message *m)
{
    const char *from = m->data;
    for (i64 k = m->first; k < m->first + m->count; k++) {
        const Move *part = &moves.rows[k];
        from = accumulate(&arrays[part->array], box_of(part->at), from, part->first);
    }
}

/* Where an incoming message goes: to its place, or to a buffer to be taken from there. */
static void make_room(Message *m, bool partial)
{
    m->data = partial || m->source == me ? NULL : in_place(m);
    m->placed = m->data;
    m->buffer = take(m->data ? 0 : m->bytes);
    if (!m->data) m->data = pool.rows[m->buffer].data;
}

static void post_receives(bool partial)
{
    for (i64 k = 0; k < messages.count; k++) {
        Message *m = &messages.rows[k];
        if (m->dest != me || m->shared) continue;
        make_room(m, partial);
        if (m->source == me) {
            pack(m, m->data, partial);
            continue;
        }
        post(&pool.rows[m->buffer], false, m->data, m->bytes, m->source);
        pending++;
    }
}

static void post_sends(bool partial)
{
    for (i64 k = 0; k < messages.count; k++) {
        const Message *m = &messages.rows[k];
        if (m->source != me || m->dest == me || m->shared) continue;
        i64 started = clock_if_traced(), buffer = take(m->bytes);
        Buffer *b = &pool.rows[buffer];
        b->sending = true;
        pack(m, b->data, partial);
        post(b, true, b->data, m->bytes, m->dest);
        log_event(SENT, started, m->bytes, m->dest);
    }
}

/* The message of a collective that concerns this rank: what it gets from `source`, or what it sends. */
static Message *shared_from(i64 source)
{
    return of_rank[source] ? &messages.rows[of_rank[source] - 1] : NULL;
}

static void broadcast(i64 source, bool partial)
{
    i64 started = clock_if_traced();
    Message *m = shared_from(source);
    make_room(m, partial);
    if (source == me && !m->placed) pack(m, m->data, partial);
    for (i64 at = 0; at < m->bytes && !avial_error; at += avial_chunk) {
        int count = (int)min(avial_chunk, m->bytes - at);
        check(MPI_Bcast(m->data + at, count, avial_byte, (int)source, avial_comm));
    }
    log_event(source == me ? SENT : RECEIVED, started,
              source == me ? (ranks - 1) * m->bytes : m->bytes, source == me ? -1 : source);
    if (source != me) return;
    pool.rows[m->buffer].busy = false;
    m->buffer = -1;
}

/* Every rank's contribution, one after the other; false where MPI cannot count so far. */
static bool gather_all(bool partial)
{
    i64 started = clock_if_traced(), total = 0, mine = 0;
    RESERVE(counts, 2 * ranks);
    int *count = counts.rows, *at = counts.rows + ranks;
    for (i64 r = 0; r < ranks; r++) {
        const Message *m = shared_from(r);
        i64 bytes = m ? m->bytes : 0;
        if (total + bytes > min(avial_chunk, INT_MAX)) return false;
        count[r] = (int)bytes;
        at[r] = (int)total;
        total += bytes;
    }
    i64 into = take(total), from = take(count[me]);
    Message *own = shared_from(me);
    if (own) {
        pack(own, pool.rows[from].data, partial);
        mine = (ranks - 1) * own->bytes;
    }
    check(MPI_Allgatherv(pool.rows[from].data, count[me], avial_byte, pool.rows[into].data, count, at,
                         avial_byte, avial_comm));
    pool.rows[from].busy = false;
    for (i64 k = 0; k < messages.count; k++) {
        Message *m = &messages.rows[k];
        if (!m->shared || m->dest != me) continue;
        m->buffer = into;
        m->data = pool.rows[into].data + at[m->source];
    }
    if (own) log_event(SENT, started, mine, -1);
    log_event(RECEIVED, own ? now_ns() : started, total - count[me], -1);
    return true;
}

static void collectives(bool partial)
{
    i64 sources = 0;
    memset(of_rank, 0, (size_t)ranks * 8);
    for (i64 k = 0; k < messages.count; k++) {
        const Message *m = &messages.rows[k];
        if (!m->shared || (m->dest != me && m->source != me)) continue;
        sources += !of_rank[m->source];
        of_rank[m->source] = k + 1;
    }
    if (avial_error || !sources || (sources > 1 && gather_all(partial))) return;
    for (i64 r = 0; r < ranks; r++)
        if (of_rank[r]) broadcast(r, partial);
}

/* Waits for what this rank receives, and hands each message, by ascending source, to `deliver`. */
static void receive(void (*deliver)(const Message *))
{
    for (i64 k = 0; k < messages.count; k++) {
        Message *m = &messages.rows[k];
        if (m->dest != me || m->buffer < 0) continue;
        i64 started = clock_if_traced();
        Buffer *b = &pool.rows[m->buffer];
        settled(b, true);
        if (!m->placed && !avial_error) deliver(m);
        if (m->source != me && !m->shared) log_event(RECEIVED, started, m->bytes, m->source);
        b->busy = false;
        m->buffer = -1;
    }
    pending = 0;
}

/* Receives first, then sends: one that waits for room waits for receives that are there. What comes by
 * a collective has come when this returns; unless it is partial, it is in its place. */
static void start(bool partial)
{
    pending = 0;
    post_receives(partial);
    post_sends(partial);
    collectives(partial);
    for (i64 k = 0; k < messages.count && !partial; k++) {
        Message *m = &messages.rows[k];
        if (!m->shared || m->dest != me || m->buffer < 0) continue;
        if (!m->placed && !avial_error) unpack(m);
        pool.rows[m->buffer].busy = false;
        m->buffer = -1;
    }
}

/* A phase ---------------------------------------------------------------------------------------- */

/* Whether a range touches nothing that is under way to this rank. */
static bool clean(const Body *body, const i64 *range)
{
    i64 known = items.count, words_known = boxes.count;
    bool fine = true;
    record_range(-2, range, body); /* of no rank, so that nothing is left out for being known */
    for (i64 k = known; k < items.count && fine; k++)
        for (i64 n = 0; n < messages.count && fine; n++) {
            const Message *m = &messages.rows[n];
            if (m->dest != me || m->buffer < 0) continue;
            for (i64 j = m->first; j < m->first + m->count && fine; j++)
                fine = moves.rows[j].array != items.rows[k].array ||
                       !overlap(arrays[items.rows[k].array].nd, box_of(moves.rows[j].at),
                                box_of(items.rows[k].at));
        }
    items.count = known;
    boxes.count = words_known;
    return fine;
}

/* A part of `iterations` from `lo`, `step` apart, cut to those numbered [from, to). */
typedef struct { i64 range[4], step, count; } Part;

static void piece_of(const Part *part, i64 from, i64 to, i64 *range)
{
    memcpy(range, part->range, sizeof part->range);
    tight(part->range[0] + from * part->step, part->range[0] + to * part->step, part->step, range);
}

static bool clean_between(const Body *body, const Part *part, i64 from, i64 to)
{
    i64 range[4];
    piece_of(part, from, to, range);
    return clean(body, range);
}

/* How many iterations to leave out at the lower (or upper) end until nothing up to the middle one is
 * under way; few as a rule, so 0, 1, 2, 4, … are tried, and then what lies between the last two. */
static i64 edge(const Body *body, const Part *part, i64 middle, bool upper)
{
    i64 most = upper ? part->count - middle - 1 : middle, dirty = -1, fine = 0;
    for (i64 jump = 1; fine < most; jump *= 2) {
        if (clean_between(body, part, upper ? middle : fine, upper ? part->count - fine : middle + 1))
            break;
        dirty = fine;
        fine = min(jump, most);
    }
    while (fine - dirty > 1) {
        i64 half = dirty + (fine - dirty) / 2;
        if (clean_between(body, part, upper ? middle : half, upper ? part->count - half : middle + 1))
            fine = half;
        else dirty = half;
    }
    return fine;
}

/* The inner range first, which needs nothing under way; then what is left at either end. */
static void split(const Body *body, i64 step)
{
    if (!pending || ranges.count != 4 || combining) return;
    Part part = {.step = step};
    memcpy(part.range, ranges.rows, sizeof part.range);
    part.count = (part.range[1] - part.range[0] + step - 1) / step;
    i64 middle = part.count / 2;
    if (part.count < 3 || !clean_between(body, &part, middle, middle + 1)) return;
    i64 low = edge(body, &part, middle, false), high = part.count - edge(body, &part, middle, true);
    RESERVE(ranges, 12);
    piece_of(&part, low, high, ranges.rows);
    interior = 1;
    i64 ends[2][2] = {{0, low}, {high, part.count}};
    for (i64 k = 0; k < 2; k++) {
        if (ends[k][0] == ends[k][1]) continue;
        piece_of(&part, ends[k][0], ends[k][1], ranges.rows + ranges.count);
        ranges.count += 4;
    }
}

/* A plan keeps, for people to look at, what each rank touches the first time it touches anything. */
static void sketch(void)
{
    Phase *phase = &phases.rows[now];
    if (!plan || phase->sketched || !items.count || ranks > SKETCHED_RANKS) return;
    phase->sketched = true;
    if (++nsketched > SKETCHED_PHASES || items.count > SKETCHED_ITEMS) return;
    for (i64 k = 0; k < items.count; k++) {
        const Item *item = &items.rows[k];
        const Array *a = &arrays[item->array];
        i64 head[4] = {now, item->rank, item->array, item->use}, box = a->scalar ? 0 : 2 * a->nd;
        RESERVE(sketches, sketches.count + 4 + box);
        memcpy(sketches.rows + sketches.count, head, sizeof head);
        memcpy(sketches.rows + sketches.count + 4, box_of(item->at), (size_t)box * 8);
        sketches.count += 4 + box;
    }
}

static void open_phase(i64 id, i64 of_kind)
{
    now = id;
    kind = of_kind;
    if (avial_journal) *(volatile i64 *)avial_journal = id;
    while (phases.count <= id) *APPEND(phases) = (Phase){0};
    phases.rows[id].begun++;
    moves.count = messages.count = interior = pending = 0;
    open_run = alone = combining = false;
    learning = recalled = NULL;
    for (i64 k = 0; k < narrays; k++) arrays[k].cells.count = 0;
    if (layout_set) return;
    block_size = columns = 0;
    nmembers = ranks;
    for (i64 r = 0; r < ranks; r++) members[r] = r;
}

/* For the next phase only: block-cyclic by `block` where that is positive; over a grid of `grid`
 * columns; on `count` of the ranks (0: all). */
void avial_layout(i64 block, i64 grid, i64 count, const i64 *chosen)
{
    if (broken) return;
    block_size = block;
    columns = grid;
    nmembers = 0;
    for (i64 k = 0; k < (count > 0 ? count : ranks); k++) {
        i64 rank = count > 0 ? chosen[k] : k;
        if (rank >= 0 && rank < ranks && nmembers < ranks) members[nmembers++] = rank;
    }
    layout_set = true;
}

/* For the next phase only: the relative work of n equal slices of its first dimension. */
void avial_cost(i64 n, const i64 *of_slice)
{
    static i64 capacity;
    if (broken) return;
    if (setjmp(way_out)) return;
    if (!weights) capacity = 0;
    weights = grown(weights, &capacity, n, 8);
    for (i64 k = 0; k < n; k++) weights[k] = max(of_slice[k], 0);
    nweights = n;
}

i64 avial_begin(i64 id, i64 of_kind, Touches touches, const i64 *params, const i64 *space)
{
    if (broken || avial_error) return 0;
    if (setjmp(way_out)) return 0;
    Body body = {touches, params};
    open_phase(id, of_kind);
    footprints(space, &body);
    layout_set = false;
    nweights = 0;
    if (!recall()) {
        resolve(space, &body);
        sketch();
        needs();
        group();
        remember_messages();
    }
    count_messages();
    if (plan) return 0;
    start(false);
    split(&body, max(space[2], 1));
    return avial_error ? 0 : ranges.count / 4;
}

static void end_run(void)
{
    if (open_run) log_event(RAN, run_started, 0, -1);
    open_run = false;
}

void avial_range(i64 k, i64 *range)
{
    memset(range, 0, 32);
    if (broken || k < 0 || k >= ranges.count / 4) return;
    if (setjmp(way_out)) return;
    end_run();
    if (k >= interior && pending) receive(unpack);
    memcpy(range, ranges.rows + 4 * k, 32);
    run_started = clock_if_traced();
    open_run = true;
}

/* What this rank accumulates into, as the runtime wants it at the start. */
static void prepare(const Array *a, i64 array)
{
    if (combining) {
        for (i64 n = 0; n < a->cells.count; n++) {
            i64 *cell = row(a, &a->cells, n);
            if (!has(set_of(a, cell), me)) continue;
            if (lowest(set_of(a, cell)) == me) copy_between(a, a->scratch, a->memory, cell);
            else fill(a, a->scratch, cell);
        }
        return;
    }
    for (i64 k = 0; k < items.count; k++)
        if (items.rows[k].array == array && items.rows[k].use == REDUCE)
            copy_between(a, a->scratch, a->memory, box_of(items.rows[k].at));
}

void avial_scratch(i64 array, void *memory)
{
    if (broken || plan) return;
    if (setjmp(way_out)) return;
    arrays[array].scratch = memory;
    if (!ranges.count || !memory) return;
    if (pending) receive(unpack);
    prepare(&arrays[array], array);
}

/* The moves that bring the partial results of one cell together: to every rank where they are few,
 * else to each rank for the rows that are its own by default. Commits who owns the result. */
static void gather_cell(i64 array, const i64 *cell)
{
    Array *a = &arrays[array];
    i64 nd = a->nd, part[2 * MAX_DIMS], box[2 * MAX_DIMS];
    memcpy(of_rank, set_of(a, (i64 *)cell), (size_t)words * 8);
    memcpy(box, cell, (size_t)nd * 16);
    const u64 *set = (u64 *)of_rank;
    bool few = volume(nd, box) <= SMALL_REDUCTION;
    i64 along = 0;
    for (i64 d = 1; d < nd && a->whole[nd] < ranks; d++)
        if (a->whole[nd + d] > a->whole[nd + along]) along = d;
    i64 extent = a->whole[nd + along];
    for (i64 owner = 0; owner < ranks; owner++) {
        memcpy(part, box, (size_t)nd * 16);
        if (!few) {
            part[along] = max(box[along], (i64)((__int128)owner * extent / ranks));
            part[nd + along] = min(box[nd + along], (i64)((__int128)(owner + 1) * extent / ranks));
            if (part[along] >= part[nd + along]) continue;
        }
        for (i64 s = 0; s < ranks; s++)
            if (has(set, s)) move(s, owner, array, part, s == lowest(set));
        if (!few) own(a, part, owner);
    }
    if (few) own(a, box, -1);
}

/* The same where only one rank has a partial result: that is it. */
static void settle_cell(i64 array, i64 n)
{
    Array *a = &arrays[array];
    i64 *cell = row(a, &a->cells, n), rank = lowest(set_of(a, cell));
    if (size_of_set(set_of(a, cell)) > 1) {
        gather_cell(array, cell);
        return;
    }
    if (rank == me && a->scratch) copy_between(a, a->memory, a->scratch, cell);
    own(a, cell, rank);
}

/* A leader's cell and then its companions', so that they arrive one after the other. */
static void settle_led(i64 leader, i64 n, i64 place)
{
    settle_cell(leader, n);
    for (i64 k = 0; k < narrays; k++) {
        Array *a = &arrays[k];
        if (!a->cells.count || !follows(a->op) || leader_of(a->op) != leader) continue;
        i64 own = next_cell(a, 0);
        for (i64 before = 0; before < place; before++) own = next_cell(a, own + 1);
        settle_cell(k, own);
    }
}

static void reduce(void)
{
    i64 started = clock_if_traced();
    moves.count = 0;
    for (i64 k = 0; k < narrays; k++) {
        Array *a = &arrays[k];
        if (!a->cells.count || follows(a->op)) continue;
        for (i64 n = next_cell(a, 0), place = 0; n >= 0; n = next_cell(a, n + 1), place++)
            settle_led(k, n, place);
    }
    group();
    count_messages();
    if (plan) return;
    for (i64 k = 0; k < moves.count; k++)
        if (moves.rows[k].source == me && !arrays[moves.rows[k].array].scratch) fail(NO_SCRATCH);
    start(true);
    receive(combine);
    log_event(REDUCED, started, 0, -1);
}

static void commit(void)
{
    if (recalled) {
        restore_books(recalled->after.rows, recalled->after.count);
        return;
    }
    for (i64 k = 0; k < items.count; k++) {
        const Item *item = &items.rows[k];
        Array *a = &arrays[item->array];
        if (item->use == READ || (item->use == REDUCE && combining)) continue;
        if (item->use == REDUCE && ranges.count && a->scratch && !plan)
            copy_between(a, a->memory, a->scratch, box_of(item->at));
        own(a, box_of(item->at), item->rank);
    }
    if (combining) reduce();
    remember_result();
}

void avial_end(void)
{
    if (broken || avial_error) return;
    if (setjmp(way_out)) return;
    end_run();
    if (pending) receive(unpack);
    commit();
    for (i64 k = 0; k < narrays; k++) arrays[k].scratch = NULL;
}

/* Control ---------------------------------------------------------------------------------------- */

i64 avial_live(void) { return !plan; }

void avial_unknown(void)
{
    if (plan) incomplete = true;
}

/* In a plan a loop whose end depends on data takes two turns, wherever it is entered. */
i64 avial_again(i64 condition)
{
    if (broken || avial_error) return 0; /* bodies no longer run: no loop may wait for them */
    if (!plan) return condition;
    if (setjmp(way_out)) return 0;
    incomplete = true;
    void *site = __builtin_return_address(0);
    i64 k = 0;
    while (k < loops.count && loops.rows[k].site != site) k++;
    if (k == loops.count) {
        APPEND(loops);
        loops.rows[k].site = site;
        loops.rows[k].times = 0;
    }
    i64 *times = &loops.rows[k].times;
    *times = *times < 2 ? *times + 1 : 0;
    return *times > 0;
}

/* The engine's and the planner's side ------------------------------------------------------------ */

static void close_run(void)
{
    for (i64 k = 0; k < narrays; k++) {
        List *lists[] = {&arrays[k].state, &arrays[k].given, &arrays[k].ever, &arrays[k].cells};
        for (i64 n = 0; n < 4; n++) free(lists[n]->rows);
    }
    for (i64 k = 0; k < pool.count; k++) {
        free(pool.rows[k].data);
        free(pool.rows[k].requests);
    }
    for (i64 k = 0; k < phases.count; k++)
        for (i64 n = 0; n < 4; n++) {
            Memory *m = &phases.rows[k].memories[n];
            FORGET(m->items), FORGET(m->boxes), FORGET(m->before), FORGET(m->after);
            FORGET(m->moves), FORGET(m->messages);
        }
    free(arrays), free(members), free(of_rank), free(weights);
    arrays = NULL, members = NULL, of_rank = NULL, weights = NULL;
    narrays = nweights = sum_hint = avial_events_count = 0;
    FORGET(phases), FORGET(sums), FORGET(pool), FORGET(loops), FORGET(items), FORGET(boxes);
    FORGET(moves), FORGET(messages), FORGET(ranges), FORGET(found), FORGET(other), FORGET(fresh);
    FORGET(counts), FORGET(sketches), FORGET(better);
    incomplete = broken = layout_set = combining = open_run = false;
    now = pending = nsketched = 0;
}

static void *zeros(i64 count, i64 size)
{
    void *made = calloc((size_t)max(count, 1), (size_t)size);
    if (!made) fail(NO_MEMORY);
    return made;
}

static void describe(Array *a, i64 nd, const i64 *dims, i64 itemsize, char *memory)
{
    a->nd = max(nd, 1);
    a->scalar = nd == 0;
    a->itemsize = itemsize;
    a->memory = memory;
    a->stride = 2 * a->nd + 1 + words;
    for (i64 d = 0; d < a->nd; d++) a->whole[a->nd + d] = a->scalar ? 1 : dims[d];
    reset(a, &a->state);
    reset(a, &a->given);
    if (plan) reset(a, &a->ever);
}

/* A new run on `count` ranks as `rank`; -1 makes a plan. dims: those of all arrays, one after another.
 * memory: an address for each array; ignored in a plan. */
void avial_setup(i64 count, i64 rank, i64 number, const i64 *ndims, const i64 *dims,
                 const i64 *itemsizes, void **memory)
{
    close_run();
    avial_error = 0;
    if (setjmp(way_out)) return;
    const i64 *sizes = dims;
    if (count < 1 || count > INT_MAX) fail(NO_MEMORY);
    ranks = count;
    me = rank;
    plan = rank < 0;
    words = (count + 63) / 64;
    members = zeros(count, 8);
    of_rank = zeros(2 * count, 8);
    arrays = zeros(number, sizeof(Array));
    narrays = number;
    widest_row = 2 * MAX_DIMS + 1 + words;
    RESERVE(fresh, widest_row);
    for (i64 k = 0; k < number; sizes += ndims[k++]) {
        if (ndims[k] > MAX_DIMS) fail(TOO_MANY_DIMS);
        describe(&arrays[k], ndims[k], sizes, itemsizes[k], plan || !memory ? NULL : memory[k]);
    }
}

/* That rank holds that box of the caller's array. rank -1: there is no array of the caller's, and what
 * nobody wrote is undefined. */
void avial_input(i64 rank, i64 array, const i64 *box)
{
    static const i64 one[2] = {0, 1};
    if (broken) return;
    if (setjmp(way_out)) return;
    Array *a = &arrays[array];
    i64 part[2 * MAX_DIMS];
    if (rank < 0) a->undefined = true;
    else if (cut(a->nd, part, a->scalar ? one : box, a->whole)) mark(a, &a->given, part, rank, false);
}

void avial_finish(void)
{
    if (broken || plan) return;
    if (setjmp(way_out)) return;
    for (i64 k = 0; k < pool.count; k++) {
        Buffer *b = &pool.rows[k];
        settled(b, true);
        if (avial_error) continue; /* MPI may still write there */
        free(b->data);
        *b = (Buffer){.requests = b->requests, .room = b->room};
    }
}

/* Tables ----------------------------------------------------------------------------------------- */

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
 * times begun, bytes moved, times it ran whole on one rank for a conflict; 5 whether the plan is
 * incomplete; 6 the book: array, box, writer, set of ranks; 7 what each phase of a plan touches the first
 * time: phase, rank (-1: each), array, use, box. */
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
        emit(k), emit(p->begun), emit(p->bytes), emit(p->whole);
    }
    if (what == 5) emit(incomplete);
    for (i64 k = 0; what == 7 && k < sketches.count; k++) emit(sketches.rows[k]);
    return table.needed;
}
