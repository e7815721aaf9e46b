/* Memory: what a program allocates for itself, kept for the next time it asks.
 *
 * What the system gives away anew it clears, page by page, when a page is touched first: for a
 * contraction of a thousand rows as long as packing its panels, and that in every run. So blocks
 * that were given back wait here for the next who wants as much, together no more than MOST_KEPT
 * bytes: where more than that is asked for, the work on it outweighs the clearing. New blocks lie
 * on large pages, where the system has such. Any thread may call any of them.
 */
#ifndef AVIAL_MEMORY_H
#define AVIAL_MEMORY_H

#include <stddef.h>

#include "linkage.h"

/* In place of malloc: memory whose content is undefined, aligned for any type; NULL where there is
 * none. */
HIDDEN void *avial_take(size_t bytes);

/* In place of free, of what `avial_take` returned, or NULL. */
HIDDEN void avial_give(void *memory);

/* Called by the engine: what nobody has goes back to the system, since the program may not run
 * again. */
EXPORTED void avial_drop(void);

/* After a run that was left before its end: what it had taken goes back to the system. */
EXPORTED void avial_reclaim(void);

#endif
