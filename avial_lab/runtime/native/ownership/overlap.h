/* The inner part of a range, which can run while messages are under way. */
#ifndef AVIAL_OVERLAP_H
#define AVIAL_OVERLAP_H

#include "footprints.h"

/* Splits this rank's only range along the first dimension: first what needs nothing that is under
 * way to it, then what is left at the lower and the upper end. Leaves `phase.ranges` alone where
 * there is no such part. step: of the first dimension's loop. */
INTERNAL void split_interior(const Body *body, i64 step);

#endif
