"""Made-up runs that could have been: what a rank does has an order, and no message comes before it
is sent.
"""

from __future__ import annotations

from hypothesis import strategies as st

from avial_lab.trace import Event, EventKind, Trace

_US = 1e-6


@st.composite
def runs(draw: st.DrawFn) -> Trace:
    """Ranks that compute, send, wait and meet, with gaps between; microseconds."""
    ranks = draw(st.integers(1, 4))
    now = [float(draw(st.integers(0, 5))) for _ in range(ranks)]
    events: list[Event] = []
    sent: list[tuple[int, int, float]] = []
    gap, time = st.integers(0, 3), st.integers(0, 20)

    def add(kind: EventKind, name: str, rank: int, end: float, **more: object) -> None:
        device = f"cpu{rank}" if kind is EventKind.TASK else ""
        start = now[rank]
        events.append(Event(kind, name, rank, device, start * _US, end * _US, **more))  # type: ignore[arg-type]
        now[rank] = end + draw(gap)

    for k in range(draw(st.integers(1, 20))):
        rank = draw(st.integers(0, ranks - 1))
        what = draw(st.sampled_from(["task", "copy", "send", "receive", "meet"]))
        if what in ("task", "copy"):
            kind = EventKind.TASK if what == "task" else EventKind.COPY
            add(kind, f'{what} "{k % 7}" <é>', rank, now[rank] + draw(time))
        elif what == "send" and ranks > 1:
            to = draw(st.sampled_from([other for other in range(ranks) if other != rank]))
            end = now[rank] + draw(time)
            sent.append((k, to, end))
            add(EventKind.SEND, "send", rank, end, nbytes=8 * k, peer=to, message=k, what="a[0:4]")
        elif what == "receive" and sent:
            number, to, left = sent.pop(0)
            end = max(now[to], left) + draw(time)
            add(EventKind.WAIT, "wait", to, end, message=number)
        elif what == "meet" and ranks > 1:
            together = max(now)
            for each in range(ranks):
                add(EventKind.BARRIER, "barrier", each, together + draw(time))
    events.sort(key=lambda event: event.start_s)
    aside = Event(EventKind.COPY, "set up the inputs", 0, "", -9e-6, -2e-6, 80)
    around = (aside,) if draw(st.booleans()) else ()
    return Trace(ranks, tuple(events), clock_error_s=2e-9, around=around, machine="a machine")
