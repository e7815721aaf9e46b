/* A run in the process that asked for it, ended before its end: by an assertion in one of its
 * threads, or from outside. */
#ifndef AVIAL_STOPPING_H
#define AVIAL_STOPPING_H

#include "state.h"

/* Does `work` on `given`: HERE_DONE; HERE_FAILED, with a text in `avial_failed`; or HERE_STOPPED.
 * In the latter two what it was at is left as it is, locks and memory of the program among it. */
INTERNAL i64 until_stopped(void (*work)(const HereCall *), const HereCall *given);

/* As long as it lasts, SIGINT also writes a byte to the descriptor `bell`; where it is -1, nothing
 * is different. In the main thread. */
INTERNAL void listen_to_interrupts(i64 bell);
INTERNAL void listen_no_more(void);

#endif
