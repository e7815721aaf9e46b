/* What has to move for a phase: which rank lacks what, as one message for each pair of ranks. */
#ifndef AVIAL_TRANSFERS_H
#define AVIAL_TRANSFERS_H

#include "state.h"

/* Adds a transfer of that box. first: of partial results, it is the first of its box. */
INTERNAL void add_transfer(i64 source, i64 dest, i64 array, const i64 *box, bool first);

/* From the footprints: what each rank lacks of what it reads comes from the rank that wrote it, or
 * that was given it. Who gets it is a holder from now on. */
INTERNAL void derive_transfers(void);

/* The transfers become messages, by ascending destination and source; what a rank sends alike to
 * every other one is made part of a collective. */
INTERNAL void group_into_messages(void);

/* Adds the phase's messages to the counts. */
INTERNAL void count_messages(void);

#endif
