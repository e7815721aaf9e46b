/* When devices need memory of arrays: from the first moment that uses an array there to the last. A
 * moment is how many phases were begun so far; the one after all of them is when results go back.
 */
#ifndef AVIAL_STAYS_H
#define AVIAL_STAYS_H

#include "state.h"

/* What the phase at hand uses on devices; of a plan. */
INTERNAL void note_stays(void);

/* Sets a bit for each `unit` bytes of the array that have something of the box. */
INTERNAL void mark_units(u64 *bits, i64 unit, const Array *a, const i64 *box);

/* At the end of a plan: what is saved of the caller's arrays on devices (`avial_settle`) stays. */
INTERNAL void keep_copies(void);

#endif
