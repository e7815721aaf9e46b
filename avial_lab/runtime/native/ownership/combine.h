/* Partial results: where they begin, how they come together, and who owns what comes of them. */
#ifndef AVIAL_COMBINE_H
#define AVIAL_COMBINE_H

#include "state.h"

/* Gives `scratch` of the array its first values: the old ones on the first rank that contributes,
 * the identity on the others; where the phase is not divided the old ones. */
INTERNAL void initialise_scratch(const Array *a, i64 array);

/* Brings the partial results of the phase together, and makes those owners who have the result. */
INTERNAL void combine_partials(void);

#endif
