#include "messages.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"
#include "footprints.h"
#include "mpi_calls.h"
#include "pieces.h"
#include "pipelined.h"
#include "reductions.h"
#include "strides.h"

/* Buffers -------------------------------------------------------------------------------------- */

INTERNAL void *ignored_status(void) { return (void *)(intptr_t)avial_status_ignore; }

INTERNAL bool requests_complete(Buffer *b, bool wait)
{
    for (; b->count > 0 && !avial_error; b->count--) {
        int over = 1;
        if (wait) check(MPI_Wait(&b->requests[b->count - 1], ignored_status()));
        else check(MPI_Test(&b->requests[b->count - 1], &over, ignored_status()));
        if (!over) return false;
    }
    return b->count == 0;
}

static void retire(Buffer *b)
{
    if (b->stage) {
        avial_stage_free(b->stage);
        b->stage = NULL;
        b->capacity = 0;
    }
    b->busy = false;
}

/* The smallest buffer that is free and large enough; else any free one, to be enlarged; else -1.
 * Adds up the bytes of those that are not free. */
static i64 find_free_buffer(i64 bytes, i64 *under_way)
{
    i64 best = -1, spare = -1;
    for (i64 k = 0; k < run.buffers.count; k++) {
        Buffer *b = &run.buffers.rows[k];
        if (b->busy && b->sending && requests_complete(b, false)) retire(b);
        if (b->busy) {
            *under_way += b->capacity;
            continue;
        }
        spare = k;
        bool fits = b->capacity >= bytes;
        if (fits && (best < 0 || b->capacity < run.buffers.rows[best].capacity)) best = k;
    }
    return best >= 0 ? best : spare;
}

static bool has_room(i64 buffer, i64 bytes)
{
    return buffer >= 0 && run.buffers.rows[buffer].capacity >= bytes;
}

/* Waits for sends, from the oldest buffer on, until less than `avial_staging` bytes are under way
 * or there is one that is large enough; returns the last that became free, or `buffer`. */
static i64 wait_for_sends(i64 buffer, i64 bytes, i64 under_way)
{
    for (i64 k = 0; k < run.buffers.count && under_way > avial_staging; k++) {
        Buffer *b = &run.buffers.rows[k];
        if (has_room(buffer, bytes)) break;
        if (!b->busy || !b->sending) continue;
        if (!requests_complete(b, true)) break;
        under_way -= b->capacity;
        retire(b);
        buffer = k;
    }
    return buffer;
}

/* Not realloc: what is in it is of no use. A device's message has a stage in place of such memory. */
static void give_memory(Buffer *b, i64 place, i64 bytes)
{
    if (!is_device(place) && b->capacity >= bytes) return;
    free(b->data);
    b->capacity = 0;
    b->data = is_device(place) ? NULL : malloc((size_t)bytes);
    if (is_device(place)) b->stage = avial_stage(place, bytes);
    if (is_device(place) && !b->stage) fail(ERROR_DEVICE);
    if (!is_device(place) && !b->data) fail(ERROR_NO_MEMORY);
    b->capacity = bytes;
}

INTERNAL i64 acquire_buffer(i64 place, i64 bytes)
{
    i64 under_way = 0, found = find_free_buffer(bytes, &under_way);
    if (!has_room(found, bytes)) found = wait_for_sends(found, bytes, under_way);
    if (found < 0) {
        *APPEND(run.buffers) = (Buffer){0};
        found = run.buffers.count - 1;
    }
    Buffer *b = &run.buffers.rows[found];
    give_memory(b, place, bytes);
    b->busy = true;
    b->sending = false;
    b->count = 0;
    return found;
}

INTERNAL void release_buffer(Message *m)
{
    retire(&run.buffers.rows[m->buffer]);
    m->buffer = -1;
}

INTERNAL void release_stages(void)
{
    for (i64 k = 0; k < run.buffers.count; k++) {
        Buffer *b = &run.buffers.rows[k];
        if (b->stage && requests_complete(b, true)) retire(b);
    }
}

static i64 *next_request(Buffer *b)
{
    b->requests = grow(b->requests, &b->request_capacity, b->count + 1, 8);
    return &b->requests[b->count++];
}

/* In pieces that MPI's counts can hold. */
INTERNAL void post_bytes(Buffer *b, const Message *m, char *data, i64 bytes)
{
    int peer = (int)peer_of(m), tag = (int)m->tag;
    for (i64 at = 0; at < bytes && !avial_error; at += avial_chunk) {
        int count = (int)min(avial_chunk, bytes - at);
        i64 *request = next_request(b);
        check(is_own(m->source)
                  ? MPI_Isend(data + at, count, avial_byte, peer, tag, avial_comm, request)
                  : MPI_Irecv(data + at, count, avial_byte, peer, tag, avial_comm, request));
    }
}

static StridedBox first_box(const Message *m)
{
    const Transfer *first = &phase.transfers.rows[m->first];
    const Array *a = &run.arrays[first->array];
    return strided_box(a, a->memory, box_at(first->box));
}

INTERNAL bool is_contiguous(const Message *m)
{
    if (m->count != 1 || is_device(m->source)) return false;
    StridedBox s = first_box(m);
    return run_count(&s) == 1;
}

INTERNAL char *contiguous_address(const Message *m)
{
    if (m->count != 1 || is_device(m->source)) return NULL;
    StridedBox s = first_box(m);
    return run_count(&s) == 1 ? s.memory : NULL;
}

static void pack_message(const Message *m, char *to, bool partial)
{
    for (i64 k = m->first; k < m->first + m->count; k++) {
        const Transfer *t = &phase.transfers.rows[k];
        const Array *a = &run.arrays[t->array];
        to = pack_box(to, a, partial ? a->scratch : a->memory, box_at(t->box));
    }
}

INTERNAL void unpack_message(const Message *m)
{
    const char *from = m->data;
    if (is_device(m->dest)) {
        copy_staged(m, run.buffers.rows[m->buffer].stage, false);
        return;
    }
    for (i64 k = m->first; k < m->first + m->count; k++) {
        const Transfer *t = &phase.transfers.rows[k];
        const Array *a = &run.arrays[t->array];
        from = unpack_box(from, a, a->memory, box_at(t->box));
    }
}

INTERNAL void combine_message(const Message *m)
{
    const char *from = m->data;
    for (i64 k = m->first; k < m->first + m->count; k++) {
        const Transfer *t = &phase.transfers.rows[k];
        from = accumulate(&run.arrays[t->array], box_at(t->box), from, t->first);
    }
}

INTERNAL char *buffer_memory(const Buffer *b)
{
    return b->stage ? avial_stage_memory(b->stage) : b->data;
}

/* Where an incoming message goes: where it belongs, or to a buffer. */
static void prepare_receive(Message *m, bool partial)
{
    m->data = partial || m->source == run.rank ? NULL : contiguous_address(m);
    m->in_place = m->data;
    m->buffer = acquire_buffer(own_end(m), m->data ? 0 : m->bytes);
    if (!m->data) m->data = buffer_memory(&run.buffers.rows[m->buffer]);
}

/* Point to point ------------------------------------------------------------------------------- */

static void post_receives(bool partial)
{
    for (i64 k = 0; k < phase.messages.count; k++) {
        Message *m = &phase.messages.rows[k];
        if (!is_own(m->dest) || m->collective || is_pipelined(m, partial)) continue;
        prepare_receive(m, partial);
        if (m->source == run.rank) {
            pack_message(m, m->data, partial);
            continue;
        }
        post_bytes(&run.buffers.rows[m->buffer], m, m->data, m->bytes);
        phase.pending++;
    }
}

/* Devices begin to pack what they send, all of it before any of it is waited for. */
static void start_packing(bool partial)
{
    for (i64 k = 0; k < phase.messages.count; k++) {
        Message *m = &phase.messages.rows[k];
        if (!is_own(m->source) || !is_device(m->source) || is_pipelined(m, partial)) continue;
        m->buffer = acquire_buffer(m->source, m->bytes);
        copy_staged(m, run.buffers.rows[m->buffer].stage, true);
    }
}

/* The message's bytes in that buffer, which is sent from there. */
static void pack(const Message *m, Buffer *b, bool partial)
{
    if (!b->stage) pack_message(m, b->data, partial);
    else if (!avial_stage_wait(b->stage, 0)) fail(ERROR_DEVICE);
}

static void post_sends(bool partial)
{
    for (i64 k = 0; k < phase.messages.count; k++) {
        Message *m = &phase.messages.rows[k];
        if (!is_own(m->source) || is_own(m->dest)) continue;
        if (m->collective || is_pipelined(m, partial)) continue;
        Event e = message_event(m, EVENT_SENT, peer_of(m), m->bytes, partial);
        i64 buffer = m->buffer < 0 ? acquire_buffer(m->source, m->bytes) : m->buffer;
        Buffer *b = &run.buffers.rows[buffer];
        b->sending = true;
        m->buffer = -1;
        pack(m, b, partial);
        e.mid = clock_if_traced();
        post_bytes(b, m, buffer_memory(b), m->bytes);
        log_event(e);
    }
}

/* Collectives ---------------------------------------------------------------------------------- */

/* Of the collective that `source` sends in, the message that concerns this rank: what it gets, or,
 * of its own, one of those it sends; NULL where it sends in none. By `run_collectives`. */
static Message *collective_message(i64 source)
{
    return scratch.per_rank[source] ? &phase.messages.rows[scratch.per_rank[source] - 1] : NULL;
}

static void broadcast(i64 source, bool partial)
{
    Message *m = collective_message(source);
    bool sends = source == run.rank;
    Event e = sends
                  ? message_event(m, EVENT_COLLECTIVE_SENT, -1, (run.ranks - 1) * m->bytes, partial)
                  : message_event(m, EVENT_COLLECTIVE_RECEIVED, source, m->bytes, partial);
    prepare_receive(m, partial);
    e.number = run.collectives++;
    if (sends && !m->in_place) {
        pack_message(m, m->data, partial);
        e.mid = clock_if_traced();
    }
    for (i64 at = 0; at < m->bytes && !avial_error; at += avial_chunk) {
        int count = (int)min(avial_chunk, m->bytes - at);
        check(MPI_Bcast(m->data + at, count, avial_byte, (int)source, avial_comm));
    }
    log_event(e);
    if (sends) release_buffer(m);
}

/* What each rank sends, in one call; false, and nothing done, where MPI cannot count that far. */
static bool allgather(bool partial)
{
    i64 total = 0;
    RESERVE(scratch.counts, 2 * run.ranks);
    int *count = scratch.counts.rows, *at = scratch.counts.rows + run.ranks;
    for (i64 r = 0; r < run.ranks; r++) {
        const Message *m = collective_message(r);
        i64 bytes = m ? m->bytes : 0;
        if (total + bytes > min(avial_chunk, INT_MAX)) return false;
        count[r] = (int)bytes;
        at[r] = (int)total;
        total += bytes;
    }
    i64 into = acquire_buffer(run.rank, total), from = acquire_buffer(run.rank, count[run.rank]);
    Message *own = collective_message(run.rank);
    if (own) {
        Event e =
            message_event(own, EVENT_COLLECTIVE_SENT, -1, (run.ranks - 1) * own->bytes, partial);
        pack_message(own, run.buffers.rows[from].data, partial);
        e.mid = clock_if_traced();
        e.number = run.collectives;
        log_event(e);
    }
    i64 started = clock_if_traced();
    check(MPI_Allgatherv(run.buffers.rows[from].data, count[run.rank], avial_byte,
                         run.buffers.rows[into].data, count, at, avial_byte, avial_comm));
    run.buffers.rows[from].busy = false;
    for (i64 k = 0; k < phase.messages.count; k++) {
        Message *m = &phase.messages.rows[k];
        if (!m->collective || m->dest != run.rank) continue;
        m->buffer = into;
        m->data = run.buffers.rows[into].data + at[m->source];
    }
    log_event((Event){.kind = EVENT_COLLECTIVE_RECEIVED + (partial ? EVENT_PARTIAL : 0),
                      .start = started,
                      .bytes = total - count[run.rank],
                      .peer = -1,
                      .array = -1,
                      .number = run.collectives++});
    return true;
}

/* One broadcast, or where several ranks send one gathering of all. */
static void run_collectives(bool partial)
{
    i64 sources = 0;
    memset(scratch.per_rank, 0, (size_t)run.ranks * 8);
    for (i64 k = 0; k < phase.messages.count; k++) {
        const Message *m = &phase.messages.rows[k];
        if (!m->collective || (m->dest != run.rank && m->source != run.rank)) continue;
        sources += !scratch.per_rank[m->source];
        scratch.per_rank[m->source] = k + 1;
    }
    if (avial_error || !sources || (sources > 1 && allgather(partial))) return;
    for (i64 r = 0; r < run.ranks; r++)
        if (scratch.per_rank[r]) broadcast(r, partial);
}

/* Completion ----------------------------------------------------------------------------------- */

INTERNAL void complete_receives(Delivery deliver, bool partial)
{
    for (i64 k = 0; k < phase.messages.count; k++) {
        Message *m = &phase.messages.rows[k];
        if (!is_own(m->dest) || m->buffer < 0) continue;
        Event e = message_event(m, EVENT_RECEIVED, peer_of(m), m->bytes, partial);
        requests_complete(&run.buffers.rows[m->buffer], true);
        if (!m->in_place) e.mid = clock_if_traced();
        if (!m->in_place && !avial_error) deliver(m);
        if (m->source != run.rank && !m->collective) log_event(e);
        else if (!m->in_place) log_copy(e.mid, phase.transfers.rows[m->first].array);
        release_buffer(m);
    }
    phase.pending = 0;
}

/* What came by collectives, which are over: to where it belongs. */
static void unpack_collectives(void)
{
    for (i64 k = 0; k < phase.messages.count; k++) {
        Message *m = &phase.messages.rows[k];
        if (!m->collective || m->dest != run.rank || m->buffer < 0) continue;
        i64 started = clock_if_traced();
        if (!m->in_place && !avial_error) {
            unpack_message(m);
            log_copy(started, phase.transfers.rows[m->first].array);
        }
        release_buffer(m);
    }
}

INTERNAL void start_messages(bool partial)
{
    phase.pending = 0;
    post_receives(partial);
    if (run.places > run.ranks) start_packing(partial);
    post_sends(partial);
    if (!partial) run_pipelines();
    run_collectives(partial);
    if (!partial) unpack_collectives();
}
