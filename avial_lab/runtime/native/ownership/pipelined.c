#include "pipelined.h"

#include <sched.h>
#include <stdlib.h>

#include "events.h"
#include "footprints.h"
#include "messages.h"
#include "mpi_calls.h"
#include "strides.h"

/* In pieces: how many are under way at once; the least of a message that goes so, and of one whose
 * box is contiguous. */
enum { SLOTS = 4, LONG = 4, VERY_LONG = 32 };

/* How far a message is packed or unpacked: run `number` of `runs` in that transfer, `offset` bytes
 * into it. */
typedef struct {
    i64 transfer, number, runs, offset;
    StridedBox s;
} Cursor;

/* One message, seen from this rank: `posted` and `done` of its pieces; it has none where it travels
 * as one. Piece k is in slot k % SLOTS. */
typedef struct {
    Message *m;
    Cursor cursor;
    i64 pieces, posted, done, requests[SLOTS];
    i64 copied_ns;
} Pipeline;

static VECTOR(Pipeline) pipelines; /* of the phase at hand */

INTERNAL void release_pipelines(void) { RELEASE(pipelines); }

/* Not for a task: who sends goes on at once. What is contiguous is soon copied, and may then travel
 * while the inner part of the phase runs, where it has one: a wide phase has none. */
INTERNAL bool is_pipelined(const Message *m, bool partial)
{
    if (partial || m->collective || m->source == m->dest || m->bytes < LONG * avial_piece)
        return false;
    if (phase.kind != PHASE_REPLICATE && phase.kind != PHASE_WIDE) return false;
    return phase.kind == PHASE_WIDE || m->bytes >= VERY_LONG * avial_piece ||
           !is_contiguous(m);
}

/* Copies --------------------------------------------------------------------------------------- */

static void start_transfer(Cursor *c, i64 transfer)
{
    const Transfer *t = &phase.transfers.rows[transfer];
    const Array *a = &run.arrays[t->array];
    c->transfer = transfer;
    c->s = strided_box(a, a->memory, box_at(t->box));
    c->runs = run_count(&c->s);
    c->number = c->offset = 0;
}

/* Copies the next `bytes` of the message from the arrays to `data`, or (not `out`) the other
 * way. */
static void copy_next(Cursor *c, char *data, i64 bytes, bool out)
{
    while (bytes) {
        if (c->number == c->runs) start_transfer(c, c->transfer + 1);
        i64 whole = c->s.run_bytes, count = 1, part = min(whole - c->offset, bytes);
        if (part == whole) count = min(evenly_spaced(&c->s, c->number), bytes / whole);
        char *memory = run_address(&c->s, c->number) + c->offset;
        if (out) copy_runs(data, part, memory, c->s.step[0], count, part);
        else copy_runs(memory, c->s.step[0], data, part, count, part);
        c->offset += count == 1 ? part : 0;
        if (count > 1 || c->offset == whole) {
            c->number += count;
            c->offset = 0;
        }
        data += count * part;
        bytes -= count * part;
    }
}

static i64 piece_bytes(const Pipeline *p, i64 piece)
{
    return min(avial_piece, p->m->bytes - piece * avial_piece);
}

static char *slot_of(const Pipeline *p, i64 piece)
{
    return p->m->data + piece % SLOTS * avial_piece;
}

/* The next piece in the message's order. */
static void copy_piece(Pipeline *p, i64 piece, bool out)
{
    i64 started = clock_if_traced();
    copy_next(&p->cursor, slot_of(p, piece), piece_bytes(p, piece), out);
    if (avial_events) p->copied_ns += now_ns() - started;
}

/* Messages ------------------------------------------------------------------------------------- */

static void post_piece(Pipeline *p, bool out)
{
    i64 piece = p->posted++, *request = &p->requests[piece % SLOTS];
    char *slot = slot_of(p, piece);
    int count = (int)piece_bytes(p, piece);
    check(out ? MPI_Isend(slot, count, avial_byte, (int)p->m->dest, 0, avial_comm, request)
              : MPI_Irecv(slot, count, avial_byte, (int)p->m->source, 0, avial_comm, request));
}

/* The message with its buffer. One that is contiguous in the array is under way as a whole; of
 * others as many receives are posted as there are slots. */
static Pipeline open_pipeline(Message *m)
{
    Pipeline p = {.m = m};
    bool out = m->source == run.rank;
    char *whole = contiguous_address(m);
    m->buffer = acquire_buffer(whole ? 0 : SLOTS * avial_piece);
    m->data = whole ? whole : run.buffers.rows[m->buffer].data;
    if (whole) {
        post_bytes(&run.buffers.rows[m->buffer], out, whole, m->bytes, out ? m->dest : m->source);
        return p;
    }
    p.pieces = (m->bytes + avial_piece - 1) / avial_piece;
    start_transfer(&p.cursor, m->first);
    while (!out && p.posted < min(SLOTS, p.pieces)) post_piece(&p, false);
    return p;
}

/* Receives first: the other end waits for them. */
static void open_pipelines(void)
{
    pipelines.count = 0;
    for (i64 receives = 1; receives >= 0; receives--)
        for (i64 k = 0; k < phase.messages.count; k++) {
            Message *m = &phase.messages.rows[k];
            if ((receives ? m->dest : m->source) == run.rank && is_pipelined(m, false))
                *APPEND(pipelines) = open_pipeline(m);
        }
}

/* Does what can be done without waiting; whether that was anything. */
static bool advance_pipeline(Pipeline *p)
{
    bool out = p->m->source == run.rank, advanced = false;
    while (p->done < p->posted && !avial_error) {
        int over = 0;
        check(MPI_Test(&p->requests[p->done % SLOTS], &over, ignored_status()));
        if (!over || avial_error) break;
        if (!out) copy_piece(p, p->done, false);
        p->done++;
        advanced = true;
        if (!out && p->posted < p->pieces) post_piece(p, false);
    }
    while (out && p->posted < min(p->pieces, p->done + SLOTS) && !avial_error) {
        copy_piece(p, p->posted, true);
        post_piece(p, true);
        advanced = true;
    }
    return advanced;
}

/* Those that travel as one. */
static void complete_wholes(void)
{
    for (i64 k = 0; k < pipelines.count; k++) {
        Message *m = pipelines.rows[k].m;
        requests_complete(&run.buffers.rows[m->buffer], true);
        run.buffers.rows[m->buffer].busy = false;
        m->buffer = -1;
    }
}

/* Events of the messages as if one had come after the other: first the sends, each as long as it
 * was packed, then what was received, each with its part of the waiting. */
static void log_pipelines(i64 started)
{
    const Pipeline *all = pipelines.rows;
    i64 count = pipelines.count, ended = now_ns(), copied_ns = 0, received = 0;
    for (i64 k = 0; k < count; k++) {
        copied_ns += all[k].copied_ns;
        if (all[k].m->dest == run.rank) received += all[k].m->bytes;
    }
    i64 waited = max(ended - started - copied_ns, 0);
    for (i64 sent = 1; sent >= 0; sent--)
        for (i64 k = 0; k < count; k++) {
            const Message *m = all[k].m;
            i64 copy = all[k].copied_ns;
            if ((m->source == run.rank) != sent) continue;
            Event e = sent ? message_event(m, EVENT_SENT, m->dest, m->bytes, false)
                           : message_event(m, EVENT_RECEIVED, m->source, m->bytes, false);
            i64 share = sent ? (received ? 0 : waited / count)
                             : (i64)((double)waited * (double)m->bytes / (double)received);
            e.start = started;
            started += share + copy;
            if (copy) e.mid = sent ? e.start + copy : started - copy;
            log_until(e, started);
        }
}

INTERNAL void run_pipelines(void)
{
    i64 started = clock_if_traced(), under_way = 0;
    open_pipelines();
    for (i64 k = 0; k < pipelines.count; k++) under_way += pipelines.rows[k].pieces > 0;
    while (under_way && !avial_error) {
        bool advanced = false;
        for (i64 k = 0; k < pipelines.count; k++) {
            Pipeline *p = &pipelines.rows[k];
            if (p->done == p->pieces) continue;
            advanced |= advance_pipeline(p);
            under_way -= p->done == p->pieces;
        }
        if (!advanced) sched_yield(); /* the other end may want this core */
    }
    complete_wholes();
    if (avial_events && pipelines.count) log_pipelines(started);
}
