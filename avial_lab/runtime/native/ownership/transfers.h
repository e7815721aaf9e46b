/* What has to move for a phase: which rank lacks what, as one message for each pair of ranks. */
#ifndef AVIAL_TRANSFERS_H
#define AVIAL_TRANSFERS_H

#include "state.h"

/* Adds a transfer of that box. first: of partial results, it is the first of its box. */
INTERNAL void add_transfer(i64 source, i64 dest, i64 array, const i64 *box, bool first);

/* From the footprints: what each place lacks of what it reads comes from another place of its rank
 * that holds it, as a copy, else by a message: to a device from the device that wrote it, where one
 * did, else to the host of its rank from the host of who wrote it, or was given it. Who gets it is a
 * holder from now on. */
INTERNAL void derive_transfers(void);

/* The host of whose device wrote a piece last is to hold it, for all arrays of the caller's: adds
 * the copies to those of the phase. */
INTERNAL void derive_results(void);

/* Starts this rank's copies of the phase, those that are late or the others. */
INTERNAL void start_copies(bool late);

/* The transfers become messages, by the ascending ranks and places of destinations and sources; what
 * a host sends alike to every other one is made part of a collective. */
INTERNAL void group_into_messages(void);

/* Adds the phase's messages to the counts. */
INTERNAL void count_messages(void);

#endif
