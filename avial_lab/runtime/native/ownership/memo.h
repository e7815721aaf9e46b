/* Phases that come again: what one came to is kept, and used where everything is as it was.
 *
 * An entry of a phase holds its footprints and the directories of the arrays they touch, and what
 * followed: its messages and the directories after it. Loops repeat themselves, and to compare is
 * much quicker than to derive. Every rank keeps the same entries, so that all find the same one.
 */
#ifndef AVIAL_MEMO_H
#define AVIAL_MEMO_H

#include "state.h"

/* Whether an entry has these footprints and directories: the phase's messages are then at hand, and
 * `phase.memo_found` is it. Else `phase.memo_open` is the entry to be filled, or NULL. */
INTERNAL bool memo_find(void);

/* Keeps the messages in the open entry, before the program runs the phase. Of a phase that is not
 * divided, or combines partial results, nothing is kept: it has other footprints than it reported,
 * or more messages. */
INTERNAL void memo_store_messages(void);

/* Keeps the directories after the phase; the entry is then complete. */
INTERNAL void memo_store_directories(void);

/* Makes the directories what they were after the phase that was found. */
INTERNAL void memo_restore_directories(void);

#endif
