/* The trace of a rank: what it did and when, and the sums of that by phase and kind. */
#ifndef AVIAL_EVENTS_H
#define AVIAL_EVENTS_H

#include "state.h"

/* Nanoseconds of CLOCK_MONOTONIC. */
INTERNAL i64 now_ns(void);

/* The same where the run is traced; else 0, and the clock is not read. */
INTERNAL i64 clock_if_traced(void);

/* Adds `e` to the trace and the sums of this phase, where the run is traced; it ends now. */
INTERNAL void log_event(Event e);

/* The same, of a run that is traced; it ended at `end`. */
INTERNAL void log_until(Event e, i64 end);

/* A copy within this rank, of some of `array`, that began at `start`. */
INTERNAL void log_copy(i64 start, i64 array);

/* An event of that message, which begins now; filled in only where the run is traced. peer, bytes:
 * of the event, which for a collective are not the message's. */
INTERNAL Event message_event(const Message *m, enum RunEvent kind, i64 peer, i64 bytes,
                             bool partial);

/* What says of which phase, turn and place the launch at hand is; and a launch that ran is an event of
 * those. */
INTERNAL i64 launch_tag(void);
INTERNAL void log_launched(i64 tag, i64 began, i64 ended);

#endif
