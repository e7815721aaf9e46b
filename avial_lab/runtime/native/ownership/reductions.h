/* Reductions: which there are, their identities, and their arithmetic on partial results.
 *
 * An operation is a `Reduction` and an `ElementCode` (constants.py). A key is the least or greatest
 * of all, as of argmin; its payloads, such as the index, are taken from where the key came from.
 */
#ifndef AVIAL_REDUCTIONS_H
#define AVIAL_REDUCTIONS_H

#include "state.h"

INTERNAL enum Reduction reduction_of(i64 operation);
INTERNAL bool is_key(i64 operation);
INTERNAL bool is_payload(i64 operation);

/* The number of the array that a payload's key is in. */
INTERNAL i64 key_array_of(i64 operation);

/* Whether there is arithmetic for it: not of f16 and bf16, nor for what no type has. */
INTERNAL bool can_combine(i64 operation);

/* Makes the elements of the box, in memory of the array's shape, such that combining them with
 * others leaves the others as they are, by the array's operation. A payload's are cleared. */
INTERNAL void fill_identity(const Array *a, char *memory, const i64 *box);

/* into[k] = into[k] op from[k] for n elements; `into` is aligned, `from` need not be. */
INTERNAL void combine_elements(i64 operation, char *into, const char *from, i64 n);

/* Combines the box of the array's own memory with partial results packed at `from`, or, if they are
 * the first, takes them as they are. Returns past them. A payload must come after its key, with no
 * other key between. */
INTERNAL const char *accumulate(const Array *a, const i64 *box, const char *from, bool first);

#endif
