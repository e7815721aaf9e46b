/* Boxes in memory: the contiguous runs of bytes they consist of, copied out, in and across. */
#ifndef AVIAL_STRIDES_H
#define AVIAL_STRIDES_H

#include "state.h"

/* The runs of a box: `run_bytes` contiguous bytes each. They lie on a grid of `dims` dimensions,
 * the innermost first: `count[d]` of them, `step[d]` bytes apart. One run has no dimensions. */
typedef struct {
    char *memory; /* of the first run */
    i64 run_bytes, dims, count[MAX_DIMS], step[MAX_DIMS];
} StridedBox;

/* memory: where the array begins, row-major, that the box lies in. */
INTERNAL StridedBox strided_box(const Array *a, char *memory, const i64 *box);

INTERNAL i64 run_count(const StridedBox *s);
INTERNAL char *run_address(const StridedBox *s, i64 number);

/* How many runs, from the `number`-th on, are the same step apart. */
INTERNAL i64 evenly_spaced(const StridedBox *s, i64 number);

/* Copies `count` runs of `run_bytes`; each begins so many bytes after the one before it. */
INTERNAL void copy_runs(char *to, i64 to_step, const char *from, i64 from_step, i64 count,
                        i64 run_bytes);

/* Copies the box of the array at `memory` to `to`, without gaps; returns past the copy. */
INTERNAL char *pack_box(char *to, const Array *a, char *memory, const i64 *box);

/* The reverse; returns past what was read. */
INTERNAL const char *unpack_box(const char *from, const Array *a, char *memory, const i64 *box);

/* Copies the box from one array of that shape to another. */
INTERNAL void copy_box(const Array *a, char *to, char *from, const i64 *box);

#endif
