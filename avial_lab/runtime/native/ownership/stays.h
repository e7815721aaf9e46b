/* When devices need memory of arrays: from the first moment that uses an array there to the last. A
 * moment is how many phases were begun so far; the one after all of them is when results go back.
 */
#ifndef AVIAL_STAYS_H
#define AVIAL_STAYS_H

#include "state.h"

/* What the phase at hand uses on devices; of a plan. */
INTERNAL void note_stays(void);

/* At the end of a plan: what is saved of the caller's arrays on devices (`avial_settle`) stays. */
INTERNAL void keep_copies(void);

#endif
