/* What each turn of a phase was, for who simulates a run: kept by a plan that is asked to.
 *
 * A turn is a phase that was begun once. What every rank does in it is a pattern; loops repeat, and
 * equal patterns are kept once. */
#ifndef AVIAL_TURNS_H
#define AVIAL_TURNS_H

#include "footprints.h"

/* Whether this plan keeps turns. */
INTERNAL bool keeps_turns(void);

/* Keeps which place (-1: every host) has that range of the phase at hand, and how much of its work
 * that is; of the phase's weights where it has any, so before they are forgotten. */
INTERNAL void keep_shares(i64 place, const i64 *range, const i64 *space);

/* The phase at hand as one more turn: its shares, its messages and its copies. */
INTERNAL void keep_turn(const Body *body);

/* Partial results are combined at the end of the turn, by the messages at hand. */
INTERNAL void keep_partials(void);

/* The copies of the results from devices as the last turn. */
INTERNAL void keep_results(void);

#endif
