/* Messages on their way: buffers, receives, sends, collectives. Long ones: pipelined.h. */
#ifndef AVIAL_MESSAGES_H
#define AVIAL_MESSAGES_H

#include "state.h"

/* Buffers -------------------------------------------------------------------------------------- */

/* The number of a free buffer of at least that many bytes, for messages of that place; it is busy from
 * now on. Buffers of sends that are over are free again; where more than `avial_staging` bytes are
 * under way, sends are waited for first. The buffer may be moved in memory by the next call, its data
 * not. */
INTERNAL i64 acquire_buffer(i64 place, i64 bytes);
INTERNAL void release_buffer(Message *m);

/* Where it begins. */
INTERNAL char *buffer_memory(const Buffer *b);

/* Waits for what is sent from stages, or received there; devices may then go. */
INTERNAL void release_stages(void);

/* Starts to send (or receive) that many bytes of the message; the requests are the buffer's. */
INTERNAL void post_bytes(Buffer *b, const Message *m, char *data, i64 bytes);

/* Whether the requests of the buffer are complete; waits until they are, if asked to. After an
 * error of MPI's it never does. */
INTERNAL bool requests_complete(Buffer *b, bool wait);

/* MPI's MPI_STATUS_IGNORE. */
INTERNAL void *ignored_status(void);

/* Messages ------------------------------------------------------------------------------------- */

/* The end of the message that is this rank's; of one to itself that of its receiver. */
static inline i64 own_end(const Message *m) { return is_own(m->dest) ? m->dest : m->source; }

/* The rank at the other end. */
static inline i64 peer_of(const Message *m)
{
    return run.driver[is_own(m->dest) ? m->source : m->dest];
}

/* Whether the bytes of the message lie one after the other in an array. */
INTERNAL bool is_contiguous(const Message *m);

/* Where the bytes of the message lie one after the other in this host's array; NULL where they do
 * not. */
INTERNAL char *contiguous_address(const Message *m);

/* What an incoming message is for: to be copied into the array, or combined with it. */
typedef void (*Delivery)(const Message *m);
INTERNAL void unpack_message(const Message *m);
INTERNAL void combine_message(const Message *m);

/* Starts all messages of the phase that concern this rank. partial: they carry partial results.
 *
 * Receives first, then sends: one that waits for room waits for receives that are there. Pipelined
 * messages are over when this returns, and so are collectives; what they brought is then where it
 * belongs, unless it is partial. */
INTERNAL void start_messages(bool partial);

/* Waits for what this rank receives, and delivers it by ascending source. */
INTERNAL void complete_receives(Delivery deliver, bool partial);

#endif
