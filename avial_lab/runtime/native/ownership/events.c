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

/* Adds the event to the trace, and to the totals of its phase. */
static void keep_event(Event e)
{
    PhaseRecord *record = &run.phases.rows[e.phase];
    i64 kind = e.kind % EVENT_PARTIAL;
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

INTERNAL void log_until(Event e, i64 end)
{
    e.phase = phase.number;
    e.turn = run.phases.rows[phase.number].begun;
    e.end = run.last_clock_ns = end;
    keep_event(e);
}

enum { PHASE_BITS = 24, PLACE_BITS = 16 };

INTERNAL i64 launch_tag(void)
{
    i64 turn = run.phases.rows[phase.number].begun;
    return (turn << PLACE_BITS | phase.place) << PHASE_BITS | phase.number;
}

INTERNAL void log_launched(i64 tag, i64 began, i64 ended)
{
    i64 number = tag & ((1 << PHASE_BITS) - 1), place = tag >> PHASE_BITS & ((1 << PLACE_BITS) - 1);
    keep_event((Event){.phase = number,
                       .turn = tag >> (PHASE_BITS + PLACE_BITS),
                       .kind = EVENT_RUN,
                       .start = began,
                       .end = ended,
                       .peer = place,
                       .array = -1,
                       .high = -1});
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
