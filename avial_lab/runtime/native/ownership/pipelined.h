/* Long messages, in pieces: packed, sent and unpacked while each is still in a cache, by a few
 * buffers that are used again and again. Of a new buffer as long as the message every page would be
 * a fault. Between devices a piece is packed, and brought to where MPI reads it, while those before it
 * travel.
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

/* Puts the copies between the message's boxes on this rank's device and the stage into a queue, out of
 * the arrays or into them; slot 0 says when they are done. */
INTERNAL void copy_staged(const Message *m, Stage *stage, bool out);

/* Whether the message goes in pieces; both ends decide alike. */
INTERNAL bool is_pipelined(const Message *m, bool partial);

/* Moves all such messages of the phase that this rank sends or receives. */
INTERNAL void run_pipelines(void);

/* Frees what is kept from one phase to the next. */
INTERNAL void release_pipelines(void);

#endif
