#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif
#include "events.h"

#include <string.h>
#include <time.h>

#include "footprints.h"

_Static_assert(sizeof(Event) == EVENT_WORDS * sizeof(int64_t), "the trace is rows of words");

INTERNAL i64 now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (i64)time.tv_sec * 1000000000 + time.tv_nsec;
}

INTERNAL i64 clock_if_traced(void) { return avial_events ? now_ns() : 0; }

INTERNAL void log_until(Event e, i64 end)
{
    PhaseRecord *record = &run.phases.rows[phase.number];
    i64 kind = e.kind % EVENT_PARTIAL;
    e.phase = phase.number;
    e.turn = record->begun;
    e.end = run.last_clock_ns = end;
    EventTotal *t = &record->totals[kind];
    t->events++;
    t->ns += e.end - e.start;
    t->bytes += e.bytes;
    if (e.mid) {
        bool sends = kind == EVENT_SENT || kind == EVENT_COLLECTIVE_SENT;
        t->copies++;
        t->copies_ns += sends ? e.mid - e.start : e.end - e.mid;
        t->copies_bytes += e.bytes;
    }
    if (avial_events_count < avial_events_capacity)
        memcpy(avial_events + EVENT_WORDS * avial_events_count++, &e, sizeof e);
    else avial_events_dropped++;
}

INTERNAL void log_event(Event e)
{
    if (avial_events) log_until(e, now_ns());
}

INTERNAL void log_copy(i64 start, i64 array)
{
    log_event((Event){
        .kind = EVENT_COPY, .start = start, .peer = -1, .array = array, .count = 1, .high = -1});
}

INTERNAL Event message_event(const Message *m, enum RunEvent kind, i64 peer, i64 bytes,
                             bool partial)
{
    if (!avial_events) return (Event){0};
    const Transfer *t = &phase.transfers.rows[m->first];
    const Array *a = &run.arrays[t->array];
    const i64 *box = box_at(t->box);
    return (Event){.kind = (i64)kind + (partial ? EVENT_PARTIAL : 0),
                   .start = now_ns(),
                   .bytes = bytes,
                   .peer = peer,
                   .array = t->array,
                   .count = m->count,
                   .low = a->scalar ? 0 : box[0],
                   .high = a->scalar ? -1 : box[a->nd]};
}
