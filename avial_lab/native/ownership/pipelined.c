/* Long messages, in pieces: packed, sent and unpacked while each is still in a cache, by a few buffers
 * that are used again and again. Of a new buffer as long as the message every page would be a fault.
 *
 *     source   pack 0 │ pack 1 │ pack 2 │ …            a box that is contiguous in the array travels
 *     MPI             ╰─ 0 ─╮  ╰─ 1 ─╮                 from there, and to there, as one
 *     dest                  unpack 0 │ unpack 1 │ …
 *
 * The phase runs when all of them are over: it may write what they are packed from. */

#include <sched.h>

enum { SLOTS = 4, LONG = 4, VERY_LONG = 32 }; /* pieces: under way at once; of a long message, … */

/* How far a message is packed or unpacked: stretch `number` of its move, `offset` bytes into it. */
typedef struct {
    i64 move, number, total, offset;
    Stretches s;
} Cursor;

/* One message, seen from this rank. `posted` and `done` count pieces; a slot's piece is that modulo
 * SLOTS. copied: nanoseconds that copies took. */
typedef struct {
    Message *m;
    Cursor cursor;
    i64 pieces, posted, done, copied, requests[SLOTS];
} Stream;

static ROWS(Stream) streams;

/* Both ends decide alike. Who sends for a task goes on at once. What is contiguous is soon copied, and
 * may then travel while the inner part of the phase runs, where that has one. */
static bool is_streamed(const Message *m, bool partial)
{
    if (partial || m->shared || m->source == m->dest || m->bytes < LONG * avial_piece) return false;
    if (kind != REPLICATE && kind != WIDE) return false;
    return kind == WIDE || m->bytes >= VERY_LONG * avial_piece || !in_place(m);
}

static void enter(Cursor *c)
{
    const Move *part = &moves.rows[c->move];
    c->s = stretches(&arrays[part->array], arrays[part->array].memory, box_of(part->at));
    c->total = stretch_count(&c->s);
    c->number = c->offset = 0;
}

/* The next `bytes` of the message, from the arrays to `data` or the other way. */
static void copy_next(Cursor *c, char *data, i64 bytes, bool out)
{
    while (bytes) {
        if (c->number == c->total) {
            c->move++;
            enter(c);
        }
        i64 run = c->s.run, count = 1, part = min(run - c->offset, bytes);
        if (part == run) count = min(even(&c->s, c->number), bytes / run);
        char *memory = stretch(&c->s, c->number) + c->offset;
        if (out) copy_runs(data, part, memory, c->s.step[0], count, part);
        else copy_runs(memory, c->s.step[0], data, part, count, part);
        c->offset += count == 1 ? part : 0;
        if (count > 1 || c->offset == run) {
            c->number += count;
            c->offset = 0;
        }
        data += count * part;
        bytes -= count * part;
    }
}

static void copy_piece(Stream *t, i64 piece, bool out)
{
    i64 started = clock_if_traced();
    char *slot = t->m->data + piece % SLOTS * avial_piece;
    copy_next(&t->cursor, slot, min(avial_piece, t->m->bytes - piece * avial_piece), out);
    if (avial_events) t->copied += now_ns() - started;
}

static void post_piece(Stream *t, bool out)
{
    i64 piece = t->posted++, *request = &t->requests[piece % SLOTS];
    char *slot = t->m->data + piece % SLOTS * avial_piece;
    int count = (int)min(avial_piece, t->m->bytes - piece * avial_piece);
    check(out ? MPI_Isend(slot, count, avial_byte, (int)t->m->dest, 0, avial_comm, request)
              : MPI_Irecv(slot, count, avial_byte, (int)t->m->source, 0, avial_comm, request));
}

static Stream opened(Message *m)
{
    Stream t = {.m = m, .cursor = {.move = m->first}};
    bool out = m->source == me;
    char *placed = in_place(m);
    m->data = placed;
    m->buffer = take(placed ? 0 : SLOTS * avial_piece);
    if (placed) {
        post(&pool.rows[m->buffer], out, placed, m->bytes, out ? m->dest : m->source);
        return t;
    }
    m->data = pool.rows[m->buffer].data;
    t.pieces = (m->bytes + avial_piece - 1) / avial_piece;
    enter(&t.cursor);
    while (!out && t.posted < min(SLOTS, t.pieces)) post_piece(&t, false);
    return t;
}

/* Whether anything of it went on. */
static bool advanced(Stream *t)
{
    bool out = t->m->source == me, went = false;
    while (t->done < t->posted && !avial_error) {
        int over = 0;
        check(MPI_Test(&t->requests[t->done % SLOTS], &over, status()));
        if (!over || avial_error) break;
        if (!out) copy_piece(t, t->done, false);
        t->done++;
        went = true;
        if (!out && t->posted < t->pieces) post_piece(t, false);
    }
    while (out && t->posted < min(t->pieces, t->done + SLOTS) && !avial_error) {
        copy_piece(t, t->posted, true);
        post_piece(t, true);
        went = true;
    }
    return went;
}

/* As if one had come after the other: first the sends, each as long as it was packed, then what was
 * received, each with its part of the waiting. */
static void log_streams(Stream *all, i64 count, i64 started)
{
    i64 ended = now_ns(), copied = 0, bytes = 0;
    for (i64 k = 0; k < count; k++) {
        copied += all[k].copied;
        if (all[k].m->dest == me) bytes += all[k].m->bytes;
    }
    i64 waited = max(ended - started - copied, 0);
    for (i64 sent = 1; sent >= 0; sent--)
        for (i64 k = 0; k < count; k++) {
            const Message *m = all[k].m;
            if ((m->source == me) != sent) continue;
            Event e = moved(m, sent ? SENT : RECEIVED, sent ? m->dest : m->source, m->bytes, false);
            i64 share = sent ? (bytes ? 0 : waited / count)
                             : (i64)((double)waited * (double)m->bytes / (double)bytes);
            e.start = started;
            started += share + all[k].copied;
            if (all[k].copied) e.mid = sent ? e.start + all[k].copied : started - all[k].copied;
            log_until(e, started);
        }
}

/* All of this phase that this rank has a part in. */
static void stream_all(void)
{
    i64 started = clock_if_traced(), under_way = 0;
    streams.count = 0;
    for (i64 receives = 1; receives >= 0; receives--) /* these first: the other end waits for them */
        for (i64 k = 0; k < messages.count; k++) {
            Message *m = &messages.rows[k];
            if ((receives ? m->dest : m->source) == me && is_streamed(m, false))
                *APPEND(streams) = opened(m);
        }
    for (i64 k = 0; k < streams.count; k++) under_way += streams.rows[k].pieces > 0;
    while (under_way && !avial_error) {
        bool went = false;
        for (i64 k = 0; k < streams.count; k++) {
            Stream *t = &streams.rows[k];
            if (t->done == t->pieces) continue;
            went |= advanced(t);
            under_way -= t->done == t->pieces;
        }
        if (!went) sched_yield(); /* the other end may want this core */
    }
    for (i64 k = 0; k < streams.count; k++) {
        Message *m = streams.rows[k].m;
        settled(&pool.rows[m->buffer], true);
        pool.rows[m->buffer].busy = false;
        m->buffer = -1;
    }
    if (avial_events && streams.count) log_streams(streams.rows, streams.count, started);
}
