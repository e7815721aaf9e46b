/* Messages on their way: buffers, receives, sends, collectives. Long ones: `streams.h`. */

static bool is_streamed(const Message *m, bool partial);
static void stream_all(void);

static void *status(void) { return (void *)(intptr_t)avial_status_ignore; }

/* Whether the buffer's messages are over; `wait` until they are. */
static bool settled(Buffer *b, bool wait)
{
    for (; b->count > 0 && !avial_error; b->count--) {
        int over = 1;
        if (wait) check(MPI_Wait(&b->requests[b->count - 1], status()));
        else check(MPI_Test(&b->requests[b->count - 1], &over, status()));
        if (!over) return false;
    }
    return b->count == 0;
}

/* A free buffer of at least that many bytes, whose index stays as long as it is busy. */
static i64 take(i64 bytes)
{
    i64 best = -1, spare = -1, under_way = 0;
    for (i64 k = 0; k < pool.count; k++) {
        Buffer *b = &pool.rows[k];
        if (b->busy && b->sending && settled(b, false)) b->busy = false;
        if (b->busy) {
            under_way += b->capacity;
            continue;
        }
        spare = k;
        if (b->capacity >= bytes && (best < 0 || b->capacity < pool.rows[best].capacity)) best = k;
    }
    for (i64 k = 0; best < 0 && k < pool.count && under_way > avial_staging; k++) {
        Buffer *b = &pool.rows[k];
        if (!b->busy || !b->sending) continue;
        if (!settled(b, true)) break;
        b->busy = false;
        under_way -= b->capacity;
        spare = k;
        if (b->capacity >= bytes) best = k;
    }
    if (best < 0) best = spare;
    if (best < 0) {
        *APPEND(pool) = (Buffer){0};
        best = pool.count - 1;
    }
    Buffer *b = &pool.rows[best];
    if (b->capacity < bytes) { /* not realloc: what is in it is of no use */
        free(b->data);
        b->capacity = 0;
        b->data = malloc((size_t)bytes);
        if (!b->data) fail(NO_MEMORY);
        b->capacity = bytes;
    }
    b->busy = true;
    b->sending = false;
    b->count = 0;
    return best;
}

static i64 *next_request(Buffer *b)
{
    b->requests = grown(b->requests, &b->room, b->count + 1, 8);
    return &b->requests[b->count++];
}

/* One message, in pieces that MPI's counts can hold; its requests are the buffer's. */
static void post(Buffer *b, bool send, char *data, i64 bytes, i64 peer)
{
    for (i64 at = 0; at < bytes && !avial_error; at += avial_chunk) {
        int count = (int)min(avial_chunk, bytes - at);
        i64 *request = next_request(b);
        check(send ? MPI_Isend(data + at, count, avial_byte, (int)peer, 0, avial_comm, request)
                   : MPI_Irecv(data + at, count, avial_byte, (int)peer, 0, avial_comm, request));
    }
}

/* Where the message may lie as it travels: one box that is contiguous in the array. */
static char *in_place(const Message *m)
{
    const Move *only = &moves.rows[m->first];
    Stretches s = stretches(&arrays[only->array], arrays[only->array].memory, box_of(only->at));
    return m->count == 1 && stretch_count(&s) == 1 ? s.memory : NULL;
}

static char *partial_or_array(const Array *a, bool partial) { return partial ? a->scratch : a->memory; }

static void pack(const Message *m, char *to, bool partial)
{
    for (i64 k = m->first; k < m->first + m->count; k++) {
        const Array *a = &arrays[moves.rows[k].array];
        to = copy_out(to, a, partial_or_array(a, partial), box_of(moves.rows[k].at));
    }
}

static void unpack(const Message *m)
{
    const char *from = m->data;
    for (i64 k = m->first; k < m->first + m->count; k++) {
        const Array *a = &arrays[moves.rows[k].array];
        from = copy_in(from, a, a->memory, box_of(moves.rows[k].at));
    }
}

static void combine(const Message *m)
{
    const char *from = m->data;
    for (i64 k = m->first; k < m->first + m->count; k++) {
        const Move *part = &moves.rows[k];
        from = accumulate(&arrays[part->array], box_of(part->at), from, part->first);
    }
}

/* Where an incoming message goes: to its place, or to a buffer to be taken from there. */
static void make_room(Message *m, bool partial)
{
    m->data = partial || m->source == me ? NULL : in_place(m);
    m->placed = m->data;
    m->buffer = take(m->data ? 0 : m->bytes);
    if (!m->data) m->data = pool.rows[m->buffer].data;
}

/* An event of that message, which begins now. */
static Event moved(const Message *m, enum EventKind what, i64 peer, i64 bytes, bool partial)
{
    if (!avial_events) return (Event){0};
    const Move *first = &moves.rows[m->first];
    const Array *a = &arrays[first->array];
    const i64 *box = box_of(first->at);
    return (Event){.kind = what + (partial ? PARTIAL : 0), .start = now_ns(), .bytes = bytes, .peer = peer,
                   .array = first->array, .count = m->count, .low = a->scalar ? 0 : box[0],
                   .high = a->scalar ? -1 : box[a->nd]};
}

static void post_receives(bool partial)
{
    for (i64 k = 0; k < messages.count; k++) {
        Message *m = &messages.rows[k];
        if (m->dest != me || m->shared || is_streamed(m, partial)) continue;
        make_room(m, partial);
        if (m->source == me) {
            pack(m, m->data, partial);
            continue;
        }
        post(&pool.rows[m->buffer], false, m->data, m->bytes, m->source);
        pending++;
    }
}

static void post_sends(bool partial)
{
    for (i64 k = 0; k < messages.count; k++) {
        const Message *m = &messages.rows[k];
        if (m->source != me || m->dest == me || m->shared || is_streamed(m, partial)) continue;
        Event e = moved(m, SENT, m->dest, m->bytes, partial);
        i64 buffer = take(m->bytes);
        Buffer *b = &pool.rows[buffer];
        b->sending = true;
        pack(m, b->data, partial);
        e.mid = clock_if_traced();
        post(b, true, b->data, m->bytes, m->dest);
        log_event(e);
    }
}

/* The message of a collective that concerns this rank: what it gets from `source`, or what it sends. */
static Message *shared_from(i64 source)
{
    return of_rank[source] ? &messages.rows[of_rank[source] - 1] : NULL;
}

static void broadcast(i64 source, bool partial)
{
    Message *m = shared_from(source);
    Event e = moved(m, source == me ? SENT_SHARED : GOT_SHARED, source == me ? -1 : source,
                    source == me ? (ranks - 1) * m->bytes : m->bytes, partial);
    make_room(m, partial);
    e.number = collectives_done++;
    if (source == me && !m->placed) {
        pack(m, m->data, partial);
        e.mid = clock_if_traced();
    }
    for (i64 at = 0; at < m->bytes && !avial_error; at += avial_chunk) {
        int count = (int)min(avial_chunk, m->bytes - at);
        check(MPI_Bcast(m->data + at, count, avial_byte, (int)source, avial_comm));
    }
    log_event(e);
    if (source != me) return;
    pool.rows[m->buffer].busy = false;
    m->buffer = -1;
}

/* Every rank's contribution, one after the other; false where MPI cannot count so far. */
static bool gather_all(bool partial)
{
    i64 total = 0;
    RESERVE(counts, 2 * ranks);
    int *count = counts.rows, *at = counts.rows + ranks;
    for (i64 r = 0; r < ranks; r++) {
        const Message *m = shared_from(r);
        i64 bytes = m ? m->bytes : 0;
        if (total + bytes > min(avial_chunk, INT_MAX)) return false;
        count[r] = (int)bytes;
        at[r] = (int)total;
        total += bytes;
    }
    i64 into = take(total), from = take(count[me]);
    Message *own = shared_from(me);
    if (own) {
        Event e = moved(own, SENT_SHARED, -1, (ranks - 1) * own->bytes, partial);
        pack(own, pool.rows[from].data, partial);
        e.mid = clock_if_traced();
        e.number = collectives_done;
        log_event(e);
    }
    i64 started = clock_if_traced();
    check(MPI_Allgatherv(pool.rows[from].data, count[me], avial_byte, pool.rows[into].data, count, at,
                         avial_byte, avial_comm));
    pool.rows[from].busy = false;
    for (i64 k = 0; k < messages.count; k++) {
        Message *m = &messages.rows[k];
        if (!m->shared || m->dest != me) continue;
        m->buffer = into;
        m->data = pool.rows[into].data + at[m->source];
    }
    log_event((Event){.kind = GOT_SHARED + (partial ? PARTIAL : 0), .start = started,
                      .bytes = total - count[me], .peer = -1, .array = -1,
                      .number = collectives_done++});
    return true;
}

static void collectives(bool partial)
{
    i64 sources = 0;
    memset(of_rank, 0, (size_t)ranks * 8);
    for (i64 k = 0; k < messages.count; k++) {
        const Message *m = &messages.rows[k];
        if (!m->shared || (m->dest != me && m->source != me)) continue;
        sources += !of_rank[m->source];
        of_rank[m->source] = k + 1;
    }
    if (avial_error || !sources || (sources > 1 && gather_all(partial))) return;
    for (i64 r = 0; r < ranks; r++)
        if (of_rank[r]) broadcast(r, partial);
}

/* Waits for what this rank receives, and hands each message, by ascending source, to `deliver`. */
static void receive(void (*deliver)(const Message *), bool partial)
{
    for (i64 k = 0; k < messages.count; k++) {
        Message *m = &messages.rows[k];
        if (m->dest != me || m->buffer < 0) continue;
        Event e = moved(m, RECEIVED, m->source, m->bytes, partial);
        Buffer *b = &pool.rows[m->buffer];
        settled(b, true);
        if (!m->placed) e.mid = clock_if_traced();
        if (!m->placed && !avial_error) deliver(m);
        if (m->source != me && !m->shared) log_event(e);
        else if (!m->placed) log_copy(e.mid, moves.rows[m->first].array);
        b->busy = false;
        m->buffer = -1;
    }
    pending = 0;
}

/* Receives first, then sends: one that waits for room waits for receives that are there. What comes by
 * a collective, or in pieces, has come when this returns; unless it is partial, it is in its place. */
static void start(bool partial)
{
    pending = 0;
    post_receives(partial);
    post_sends(partial);
    if (!partial) stream_all();
    collectives(partial);
    for (i64 k = 0; k < messages.count && !partial; k++) {
        Message *m = &messages.rows[k];
        if (!m->shared || m->dest != me || m->buffer < 0) continue;
        i64 started = clock_if_traced();
        if (!m->placed && !avial_error) {
            unpack(m);
            log_copy(started, moves.rows[m->first].array);
        }
        pool.rows[m->buffer].busy = false;
        m->buffer = -1;
    }
}
