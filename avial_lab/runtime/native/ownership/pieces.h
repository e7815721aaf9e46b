/* Boxes, sets of ranks, and lists of the pieces of an array.
 *
 *     box      lo[nd], hi[nd]: words; hi is one past the last
 *     set      `run.set_words` words, bit r % 64 of word r / 64 for rank r
 *     piece    box, writer, set: `stride` words of its array
 *
 * A list is ordered by the pieces' lower corners, dimension 0 first, and its pieces never overlap.
 * Finding those near a box takes a binary search and then as many steps as pieces begin between it
 * and the widest piece's extent before it.
 *
 * `scratch.pieces` is used by all functions that change a list; a caller must have no use for what
 * an earlier call left there.
 */
#ifndef AVIAL_PIECES_H
#define AVIAL_PIECES_H

#include "state.h"

/* Boxes ---------------------------------------------------------------------------------------- */

/* Whether two boxes have an element in common. */
INTERNAL bool overlap(i64 nd, const i64 *a, const i64 *b);

/* Whether all of `b` lies in `a`. */
INTERNAL bool contains(i64 nd, const i64 *a, const i64 *b);

/* Stores the common elements in `to`; false where there are none, and then `to` is undefined. */
INTERNAL bool intersect(i64 nd, i64 *to, const i64 *a, const i64 *b);

/* Elements of a box. */
INTERNAL i64 volume(i64 nd, const i64 *box);

/* Bytes of a box of the array's elements. */
INTERNAL i64 bytes_of(const Array *a, const i64 *box);

/* The box of a caller's array: its own, or, of one without dimensions, the one element. */
INTERNAL const i64 *box_given(const Array *a, const i64 *box);

/* Sets of ranks -------------------------------------------------------------------------------- */

INTERNAL bool set_has(const u64 *set, i64 rank);
INTERNAL void set_add(u64 *set, i64 rank);
INTERNAL i64 set_first(const u64 *set); /* the lowest rank; -1 of none */
INTERNAL i64 set_size(const u64 *set);

/* Pieces --------------------------------------------------------------------------------------- */

INTERNAL i64 *writer_of(const Array *a, i64 *piece);
INTERNAL u64 *holders_of(const Array *a, i64 *piece);

/* The k-th piece of the list; valid until the list changes. */
INTERNAL i64 *piece_at(const Array *a, const PieceList *l, i64 k);

/* The first piece that may have elements from `lo` on in dimension 0. */
INTERNAL i64 first_reaching(const Array *a, PieceList *l, i64 lo);

/* The list becomes one piece, the whole array: no writer (-1), no holders. Empty for no
 * elements. */
INTERNAL void reset_pieces(const Array *a, PieceList *l);

/* Makes `rank` a holder of `box`. Returns how many parts of pieces it was no holder of: they are in
 * `scratch.pieces` (or, without `in_pieces`, in `scratch.more_pieces`), the rank included. */
INTERNAL i64 add_holder(const Array *a, PieceList *l, const i64 *box, i64 rank, bool in_pieces);

/* Directories ---------------------------------------------------------------------------------- */

/* In the directory: `box` was written by `rank`, or alike by every rank where that is -1, and
 * nobody else holds this version. */
INTERNAL void set_owner(Array *a, const i64 *box, i64 rank);

/* Of a run on one rank: whether all of the array was written. Its directory is one piece then, and
 * stays so. */
INTERNAL bool is_fully_written(const Array *a);

#endif
