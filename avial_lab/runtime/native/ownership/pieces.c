#include "pieces.h"

#include <string.h>

/* Boxes ---------------------------------------------------------------------------------------- */

INTERNAL bool overlap(i64 nd, const i64 *a, const i64 *b)
{
    for (i64 d = 0; d < nd; d++)
        if (max(a[d], b[d]) >= min(a[nd + d], b[nd + d])) return false;
    return true;
}

INTERNAL bool contains(i64 nd, const i64 *a, const i64 *b)
{
    for (i64 d = 0; d < nd; d++)
        if (b[d] < a[d] || b[nd + d] > a[nd + d]) return false;
    return true;
}

INTERNAL bool intersect(i64 nd, i64 *to, const i64 *a, const i64 *b)
{
    for (i64 d = 0; d < nd; d++) {
        to[d] = max(a[d], b[d]);
        to[nd + d] = min(a[nd + d], b[nd + d]);
        if (to[d] >= to[nd + d]) return false;
    }
    return true;
}

INTERNAL i64 volume(i64 nd, const i64 *box)
{
    i64 size = 1;
    for (i64 d = 0; d < nd; d++) size *= box[nd + d] - box[d];
    return size;
}

INTERNAL i64 bytes_of(const Array *a, const i64 *box) { return volume(a->nd, box) * a->itemsize; }

INTERNAL const i64 *box_given(const Array *a, const i64 *box)
{
    static const i64 one[2] = {0, 1};
    return a->scalar ? one : box;
}

/* Sets of ranks -------------------------------------------------------------------------------- */

INTERNAL bool set_has(const u64 *set, i64 rank) { return set[rank / 64] >> (rank % 64) & 1; }
INTERNAL void set_add(u64 *set, i64 rank) { set[rank / 64] |= (u64)1 << (rank % 64); }

INTERNAL i64 set_first(const u64 *set)
{
    for (i64 w = 0; w < run.set_words; w++)
        if (set[w]) return w * 64 + __builtin_ctzll(set[w]);
    return -1;
}

INTERNAL i64 set_size(const u64 *set)
{
    i64 size = 0;
    for (i64 w = 0; w < run.set_words; w++) size += __builtin_popcountll(set[w]);
    return size;
}

/* Pieces --------------------------------------------------------------------------------------- */

INTERNAL i64 *writer_of(const Array *a, i64 *piece) { return piece + 2 * a->nd; }
INTERNAL u64 *holders_of(const Array *a, i64 *piece) { return (u64 *)piece + 2 * a->nd + 1; }
INTERNAL i64 *piece_at(const Array *a, const PieceList *l, i64 k)
{
    return l->rows + k * a->stride;
}

INTERNAL i64 first_reaching(const Array *a, PieceList *l, i64 lo)
{
    if (l->widest < 0)
        for (i64 k = 0; k < l->count; k++)
            l->widest = max(l->widest, piece_at(a, l, k)[a->nd] - piece_at(a, l, k)[0]);
    i64 low = 0, high = l->count;
    while (low < high) {
        i64 middle = (low + high) / 2;
        if (piece_at(a, l, middle)[0] < lo - l->widest) low = middle + 1;
        else high = middle;
    }
    return low;
}

static int compare_starts(i64 nd, const i64 *a, const i64 *b)
{
    for (i64 d = 0; d < nd; d++)
        if (a[d] != b[d]) return a[d] < b[d] ? -1 : 1;
    return 0;
}

/* Adds a piece as it is, where the order has it. */
static void insert_sorted(const Array *a, PieceList *l, const i64 *piece)
{
    i64 low = 0, high = l->count;
    while (low < high) {
        i64 middle = (low + high) / 2;
        if (compare_starts(a->nd, piece_at(a, l, middle), piece) < 0) low = middle + 1;
        else high = middle;
    }
    l->rows = grow(l->rows, &l->capacity, l->count + 1, a->stride * 8);
    memmove(piece_at(a, l, low + 1), piece_at(a, l, low),
            (size_t)((l->count - low) * a->stride * 8));
    memcpy(piece_at(a, l, low), piece, (size_t)a->stride * 8);
    l->count++;
    if (l->widest >= 0) l->widest = max(l->widest, piece[a->nd] - piece[0]);
}

/* Whether two pieces have the same writer and holders, and are one box together. */
static bool mergeable(const Array *a, const i64 *x, const i64 *y)
{
    i64 nd = a->nd, face = -1;
    for (i64 d = 0; d < nd; d++) {
        if (x[d] == y[d] && x[nd + d] == y[nd + d]) continue;
        if (face >= 0) return false;
        face = d;
    }
    return face >= 0 && (x[nd + face] == y[face] || y[nd + face] == x[face]) &&
           !memcmp(x + 2 * nd, y + 2 * nd, (size_t)(1 + run.set_words) * 8);
}

/* Adds a piece, merged with its neighbours as long as there is one to merge with: lists stay
 * short. */
static void insert_merged(const Array *a, PieceList *l, const i64 *piece)
{
    i64 nd = a->nd, *joined = scratch.merged.rows;
    memcpy(joined, piece, (size_t)a->stride * 8);
    for (i64 k = first_reaching(a, l, joined[0]);
         k < l->count && piece_at(a, l, k)[0] <= joined[nd];) {
        i64 *old = piece_at(a, l, k);
        if (!mergeable(a, old, joined)) {
            k++;
            continue;
        }
        for (i64 d = 0; d < nd; d++) {
            joined[d] = min(joined[d], old[d]);
            joined[nd + d] = max(joined[nd + d], old[nd + d]);
        }
        memmove(old, old + a->stride, (size_t)((l->count - k - 1) * a->stride * 8));
        l->count--;
        k = first_reaching(a, l, joined[0]);
    }
    insert_sorted(a, l, joined);
}

/* Adds what of `piece` lies outside `box`; `piece` is then the part inside. */
static void insert_remainders(const Array *a, PieceList *l, i64 *piece, const i64 *box)
{
    i64 nd = a->nd;
    for (i64 d = 0; d < nd; d++) {
        i64 low = piece[d], high = piece[nd + d];
        if (low < box[d]) {
            piece[nd + d] = box[d];
            insert_sorted(a, l, piece);
            piece[d] = box[d];
            piece[nd + d] = high;
        }
        if (box[nd + d] < high) {
            piece[d] = box[nd + d];
            insert_sorted(a, l, piece);
            piece[d] = max(low, box[d]);
            piece[nd + d] = box[nd + d];
        }
    }
}

enum { ALL_PIECES = -1, UNWRITTEN = -2 }; /* else a place */

static bool is_selected(const Array *a, i64 *piece, i64 which)
{
    if (which == UNWRITTEN) return *writer_of(a, piece) < 0;
    return which == ALL_PIECES || !set_has(holders_of(a, piece), which);
}

/* Takes out of the list the parts inside `box` of the pieces that are selected: ALL_PIECES,
 * UNWRITTEN, or those that the rank `which` does not hold. Returns how many; they are in
 * `scratch.pieces`, or in `scratch.more_pieces`. */
static i64 extract_pieces(const Array *a, PieceList *l, const i64 *box, i64 which, bool in_pieces)
{
    i64 nd = a->nd, taken = 0, k = first_reaching(a, l, box[0]), kept = k;
    Words *to = in_pieces ? &scratch.pieces : &scratch.more_pieces;
    for (; k < l->count && piece_at(a, l, k)[0] < box[nd]; k++) {
        i64 *old = piece_at(a, l, k);
        if (!overlap(nd, old, box) || !is_selected(a, old, which)) {
            if (kept != k) memcpy(piece_at(a, l, kept), old, (size_t)a->stride * 8);
            kept++;
            continue;
        }
        RESERVE(*to, (taken + 1) * a->stride);
        memcpy(to->rows + taken++ * a->stride, old, (size_t)a->stride * 8);
    }
    if (!taken) return 0;
    memmove(piece_at(a, l, kept), piece_at(a, l, k), (size_t)((l->count - k) * a->stride * 8));
    l->count -= taken;
    l->widest = -1;
    for (i64 n = 0; n < taken; n++) insert_remainders(a, l, to->rows + n * a->stride, box);
    return taken;
}

INTERNAL i64 add_holder(const Array *a, PieceList *l, const i64 *box, i64 rank, bool in_pieces)
{
    i64 taken = extract_pieces(a, l, box, rank, in_pieces);
    for (i64 n = 0; n < taken; n++) {
        i64 *part = (in_pieces ? scratch.pieces : scratch.more_pieces).rows + n * a->stride;
        set_add(holders_of(a, part), rank);
        insert_merged(a, l, part);
    }
    return taken;
}

INTERNAL void reset_pieces(const Array *a, PieceList *l)
{
    l->count = 0;
    l->widest = -1;
    if (volume(a->nd, a->whole) == 0) return;
    RESERVE(scratch.pieces, a->stride);
    memset(scratch.pieces.rows, 0, (size_t)a->stride * 8);
    memcpy(scratch.pieces.rows, a->whole, (size_t)a->nd * 16);
    *writer_of(a, scratch.pieces.rows) = -1;
    insert_sorted(a, l, scratch.pieces.rows);
}

/* Directories ---------------------------------------------------------------------------------- */

INTERNAL bool is_fully_written(const Array *a) { return run.places == 1 && !a->unwritten; }

/* `box` was written by the only rank. Pieces it wrote before stay as they are, so that a repeated
 * write changes nothing; when the whole array is written they become one. */
static void set_owner_on_one_rank(Array *a, const i64 *box)
{
    if (is_fully_written(a)) return;
    if (run.plan) add_holder(a, &a->ever_held, box, 0, false);
    i64 taken = extract_pieces(a, &a->directory, box, UNWRITTEN, true);
    for (i64 n = 0; n < taken; n++) {
        i64 *part = scratch.pieces.rows + n * a->stride;
        *writer_of(a, part) = 0;
        set_add(holders_of(a, part), 0);
        a->unwritten -= volume(a->nd, part);
        insert_merged(a, &a->directory, part);
    }
    if (!is_fully_written(a)) return;
    reset_pieces(a, &a->directory);
    if (!a->directory.count) return;
    *writer_of(a, a->directory.rows) = 0;
    set_add(holders_of(a, a->directory.rows), 0);
}

INTERNAL void set_owner(Array *a, const i64 *box, i64 rank)
{
    if (run.places == 1) {
        set_owner_on_one_rank(a, box);
        return;
    }
    extract_pieces(a, &a->directory, box, ALL_PIECES, true);
    RESERVE(scratch.pieces, a->stride);
    i64 *piece = scratch.pieces.rows;
    memcpy(piece, box, (size_t)a->nd * 16);
    memset(holders_of(a, piece), 0, (size_t)run.set_words * 8);
    *writer_of(a, piece) = max(rank, 0);
    for (i64 r = max(rank, 0); r < (rank < 0 ? run.ranks : rank + 1); r++) {
        set_add(holders_of(a, piece), r);
        if (run.plan) add_holder(a, &a->ever_held, box, r, false);
    }
    insert_merged(a, &a->directory, piece);
}
