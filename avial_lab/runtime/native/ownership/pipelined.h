/* Long messages, in pieces: packed, sent and unpacked while each is still in a cache, by a few
 * buffers that are used again and again. Of a new buffer as long as the message every page would be
 * a fault.
 *
 *     source   pack 0 │ pack 1 │ pack 2 │ …           a box that is contiguous in the array
 *     MPI             ╰─ 0 ─╮  ╰─ 1 ─╮                travels from there, and to there, as one
 *     dest                  unpack 0 │ unpack 1 │ …
 *
 * The phase runs when all of them are over: it may write what they are packed from.
 */
#ifndef AVIAL_PIPELINED_H
#define AVIAL_PIPELINED_H

#include "state.h"

/* Whether the message goes in pieces; both ends decide alike. */
INTERNAL bool is_pipelined(const Message *m, bool partial);

/* Moves all such messages of the phase that this rank sends or receives. */
INTERNAL void run_pipelines(void);

/* Frees what is kept from one phase to the next. */
INTERNAL void release_pipelines(void);

#endif
