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
enum { SLOTS = STAGE_SLOTS, LONG = 4, VERY_LONG = 32 };

/* A device's pieces are so many times as long: each takes several calls of its driver. */
enum { DEVICE_PIECES = 4 };

/* How far a message is packed or unpacked: run `number` of `runs` in that transfer, `offset` bytes
 * into it. stage: of a device's; NULL of the host's. */
typedef struct {
    i64 transfer, number, runs, offset;
    StridedBox s;
    Stage *stage;
} Cursor;

/* One message, seen from this rank: `packed`, `posted` and `done` of its pieces, of `piece` bytes; it
 * has none where it travels as one. Piece k is in slot k % SLOTS. */
typedef struct {
    Message *m;
    Cursor cursor;
    i64 piece, pieces, packed, posted, done, requests[SLOTS];
    i64 copied_ns;
} Pipeline;

static VECTOR(Pipeline) pipelines; /* of the phase at hand */

static i64 piece_of(const Message *m)
{
    return is_device(m->source) ? DEVICE_PIECES * avial_piece : avial_piece;
}

INTERNAL void release_pipelines(void) { RELEASE(pipelines); }

/* Not for a task: who sends goes on at once. What is contiguous is soon copied, and may then travel
 * while the inner part of the phase runs, where it has one: a wide phase has none. */
INTERNAL bool is_pipelined(const Message *m, bool partial)
{
    if (partial || m->collective || m->source == m->dest || m->bytes < LONG * piece_of(m))
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

/* Copies that many runs, of `part` bytes each, between the array and `at` bytes from `data`, or there
 * in the stage. */
static void copy_some(const Cursor *c, char *data, i64 at, i64 count, i64 part, bool out)
{
    i64 array = phase.transfers.rows[c->transfer].array;
    char *memory = run_address(&c->s, c->number) + c->offset;
    if (c->stage) {
        StageRuns runs = {array, memory - run.arrays[array].memory, c->s.step[0], count, part};
        if (!avial_stage_runs(c->stage, at, &runs, out)) fail(ERROR_DEVICE);
    } else if (out) copy_runs(data + at, part, memory, c->s.step[0], count, part);
    else copy_runs(memory, c->s.step[0], data + at, part, count, part);
}

/* Copies the next `bytes` of the message from the arrays to `at` bytes from `data`, or (not `out`) the
 * other way. */
static void copy_next(Cursor *c, char *data, i64 at, i64 bytes, bool out)
{
    while (bytes) {
        if (c->number == c->runs) start_transfer(c, c->transfer + 1);
        i64 whole = c->s.run_bytes, count = 1, part = min(whole - c->offset, bytes);
        if (part == whole) count = min(evenly_spaced(&c->s, c->number), bytes / whole);
        copy_some(c, data, at, count, part, out);
        c->offset += count == 1 ? part : 0;
        if (count > 1 || c->offset == whole) {
            c->number += count;
            c->offset = 0;
        }
        at += count * part;
        bytes -= count * part;
    }
}

INTERNAL void copy_staged(const Message *m, Stage *stage, bool out)
{
    Cursor c = {.stage = stage};
    start_transfer(&c, m->first);
    copy_next(&c, NULL, 0, m->bytes, out);
    avial_stage_mark(stage, 0, out);
}

static i64 piece_bytes(const Pipeline *p, i64 piece)
{
    return min(p->piece, p->m->bytes - piece * p->piece);
}

static i64 slot_at(const Pipeline *p, i64 piece) { return piece % SLOTS * p->piece; }

/* The next piece in the message's order; a device's copies are then in its queue. */
static void copy_piece(Pipeline *p, i64 piece, bool out)
{
    i64 started = clock_if_traced();
    copy_next(&p->cursor, p->m->data, slot_at(p, piece), piece_bytes(p, piece), out);
    if (p->cursor.stage) avial_stage_mark(p->cursor.stage, piece % SLOTS, out);
    if (avial_events) p->copied_ns += now_ns() - started;
}

/* Waits until a device's copies of the piece, or of the one that had its slot before, are done. */
static void await_copies(Pipeline *p, i64 piece)
{
    if (p->cursor.stage && !avial_stage_wait(p->cursor.stage, piece % SLOTS)) fail(ERROR_DEVICE);
}

/* Messages ------------------------------------------------------------------------------------- */

static void post_piece(Pipeline *p, bool out)
{
    i64 piece = p->posted++, *request = &p->requests[piece % SLOTS];
    char *slot = p->m->data + slot_at(p, piece);
    int count = (int)piece_bytes(p, piece), peer = (int)peer_of(p->m), tag = (int)p->m->tag;
    await_copies(p, piece);
    check(out ? MPI_Isend(slot, count, avial_byte, peer, tag, avial_comm, request)
              : MPI_Irecv(slot, count, avial_byte, peer, tag, avial_comm, request));
}

/* The message with its buffer. One that is contiguous in the array is under way as a whole; of
 * others as many receives are posted as there are slots. */
static Pipeline open_pipeline(Message *m)
{
    Pipeline p = {.m = m, .piece = piece_of(m)};
    bool out = is_own(m->source);
    char *whole = contiguous_address(m);
    m->buffer = acquire_buffer(own_end(m), whole ? 0 : SLOTS * p.piece);
    Buffer *b = &run.buffers.rows[m->buffer];
    m->data = whole ? whole : buffer_memory(b);
    if (whole) {
        post_bytes(b, m, whole, m->bytes);
        return p;
    }
    p.pieces = (m->bytes + p.piece - 1) / p.piece;
    p.cursor.stage = b->stage;
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
            if (is_own(receives ? m->dest : m->source) && is_pipelined(m, false))
                *APPEND(pipelines) = open_pipeline(m);
        }
}

/* Does what can be done without waiting for messages; whether that was anything. A device packs all
 * slots that are free, and is waited for piece by piece; of what it unpacks the piece before the last
 * is waited for, so that it goes on meanwhile. */
static bool advance_pipeline(Pipeline *p)
{
    bool out = is_own(p->m->source), device = p->cursor.stage, advanced = false;
    while (p->done < p->posted && !avial_error) {
        int over = 0;
        check(MPI_Test(&p->requests[p->done % SLOTS], &over, ignored_status()));
        if (!over || avial_error) break;
        if (!out) copy_piece(p, p->done, false);
        p->done++;
        advanced = true;
        if (!out && p->posted < min(p->pieces, p->done + SLOTS - device)) post_piece(p, false);
    }
    while (out && p->posted < min(p->pieces, p->done + SLOTS) && !avial_error) {
        i64 packed = device ? min(p->pieces, p->done + SLOTS) : p->posted + 1;
        while (p->packed < packed) copy_piece(p, p->packed++, true);
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
        release_buffer(m);
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
        if (is_own(all[k].m->dest)) received += all[k].m->bytes;
    }
    i64 waited = max(ended - started - copied_ns, 0);
    for (i64 sent = 1; sent >= 0; sent--)
        for (i64 k = 0; k < count; k++) {
            const Message *m = all[k].m;
            i64 copy = all[k].copied_ns;
            if (is_own(m->source) != sent) continue;
            enum RunEvent kind = sent ? EVENT_SENT : EVENT_RECEIVED;
            Event e = message_event(m, kind, peer_of(m), m->bytes, false);
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
