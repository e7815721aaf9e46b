/* All files of the devices as one unit, for programs that have any. */
#define _DEFAULT_SOURCE         /* MAP_ANONYMOUS, before any header */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "apart.c"
#include "common.c"
#include "cuda.c"
#include "null.c"
#include "places.c"
