/* All files of the ownership runtime as one unit: this is what programs are linked to. The compiler
 * sees through every call, and nothing but the entry points is visible outside. Each file compiles
 * by itself, too; tests see to that. */
#define AVIAL_ONE_UNIT
#ifdef __linux__
#define _GNU_SOURCE /* stopping.c, and what POSIX has; before any header */
#else
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif

#include "combine.c"
#include "events.c"
#include "footprints.c"
#include "here.c"
#include "memo.c"
#include "messages.c"
#include "overlap.c"
#include "ownership.c"
#include "partition.c"
#include "pieces.c"
#include "pipelined.c"
#include "reductions.c"
#include "state.c"
#include "stays.c"
#include "stopping.c"
#include "strides.c"
#include "tables.c"
#include "transfers.c"
#include "turns.c"
