"""What a run spent its time on: shares of each rank, overlap, the critical path as measured, slack.

Trace -> plain facts. Nothing is modelled here: only what the events say, on aligned clocks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from avial_lab.trace.events import Event, EventKind, Trace

Link = tuple[Event, Event]
"""A message: its send, and the wait that ended with it."""

Interval = tuple[float, float]

Arrival = tuple[Event | None, float]
"""What a wait ended by: when that was, and the last event before it where it happened."""

ROUNDING = 1e-12
"""Of a run's time, what sums of its events' times may be off."""


@dataclass(frozen=True)
class Share:
    """Where the time of one rank went, in seconds; the parts add up to the run's.

    A wait is not work. between: from one event to the next, where the rank updates the ownership
    directory, and runs what is between the loops. idle: before its first event and after its last.
    """

    rank: int
    compute_s: float
    send_s: float
    wait_s: float
    copy_s: float
    between_s: float
    idle_s: float

    @property
    def parts(self) -> tuple[float, float, float, float, float, float]:
        return (
            self.compute_s, self.send_s, self.wait_s,
            self.copy_s, self.between_s, self.idle_s,
        )  # fmt: skip


@dataclass(frozen=True)
class Overlap:
    """How long messages were under way (from the start of the send until the receiver had them,
    as each receiving rank saw it), and how much of that it computed meanwhile.
    """

    under_way_s: float
    hidden_s: float

    @property
    def fraction(self) -> float:
        return self.hidden_s / self.under_way_s if self.under_way_s else 0.0


@dataclass(frozen=True)
class Segment:
    """A stretch of the critical path: an event (or a part of it), a message under way, or, without
    an event, what a rank did between two of them.
    """

    kind: str
    name: str
    rank: int
    start_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True)
class TaskTime:
    """All times a task ran, or all pieces of a phase: of how many ranks, and how long."""

    name: str
    events: int
    ranks: int
    seconds: float
    longest_s: float
    slack_s: float


def links(events: Iterable[Event]) -> list[Link]:
    """Every message whose two ends are known, by the end of its wait.

    Several ranks may send, and several receive, under one number: a collective. Who receives then
    waits for each of the others' sends.
    """
    sends: dict[int, list[Event]] = defaultdict(list)
    receives: list[Event] = []
    for event in events:
        if event.message is None:
            continue
        if event.kind is EventKind.SEND:
            sends[event.message].append(event)
        elif event.kind is EventKind.WAIT:
            receives.append(event)
    receives.sort(key=lambda event: (event.end_s, event.rank))
    return [
        (sent, received)
        for received in receives
        for sent in sends.get(received.message or 0, ())
        if sent.rank != received.rank
    ]


def shares(trace: Trace) -> tuple[Share, ...]:
    """Of every rank, also of one that did nothing."""
    spent = _seconds_by_kind(trace)
    begin, whole = trace.begin_s, trace.makespan_s
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    for event in trace.events:
        first[event.rank] = min(first.get(event.rank, event.start_s), event.start_s)
        last[event.rank] = max(last.get(event.rank, event.end_s), event.end_s)
    last |= {rank: end for rank, end in enumerate(trace.ends_s) if rank in last}
    found: list[Share] = []
    for rank in range(trace.ranks):
        kinds = spent[rank]
        compute, copy = kinds[EventKind.TASK], kinds[EventKind.COPY]
        send = kinds[EventKind.SEND] + kinds[EventKind.POST]
        wait = kinds[EventKind.WAIT] + kinds[EventKind.BARRIER]
        idle = first[rank] - begin + begin + whole - last[rank] if rank in first else whole
        between = max(0.0, whole - compute - send - wait - copy - idle)
        found.append(Share(rank, compute, send, wait, copy, between, max(0.0, idle)))
    return tuple(found)


def _seconds_by_kind(trace: Trace) -> dict[int, dict[EventKind, float]]:
    spent: dict[int, dict[EventKind, float]] = defaultdict(lambda: dict.fromkeys(EventKind, 0.0))
    if trace.totals:
        for total in trace.totals:
            spent[total.rank][total.kind] += total.seconds
    else:
        for event in trace.events:
            spent[event.rank][event.kind] += event.duration_s
    return spent


def balance(of_ranks: Sequence[Share]) -> float:
    """Mean over greatest compute time: 1 where all ranks have as much to do; 0 for no work."""
    times = [share.compute_s for share in of_ranks]
    return sum(times) / len(times) / max(times) if any(times) else 0.0


def overlap(trace: Trace) -> Overlap:
    under_way: dict[int, list[Interval]] = defaultdict(list)
    for sent, received in links(trace.events):
        if received.end_s > sent.start_s:
            under_way[received.rank].append((sent.start_s, received.end_s))
    tasks: dict[int, list[Interval]] = defaultdict(list)
    for event in trace.events:
        if event.kind is EventKind.TASK:
            tasks[event.rank].append((event.start_s, event.end_s))
    whole = hidden = 0.0
    for rank, intervals in under_way.items():
        merged = _union(intervals)
        whole += sum(end - start for start, end in merged)
        hidden += _common(merged, _union(tasks[rank]))
    return Overlap(whole, hidden)


def _union(intervals: Iterable[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _common(first: Sequence[Interval], second: Sequence[Interval]) -> float:
    """Seconds in both, each a union."""
    seconds, i, j = 0.0, 0, 0
    while i < len(first) and j < len(second):
        seconds += max(0.0, min(first[i][1], second[j][1]) - max(first[i][0], second[j][0]))
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return seconds


# The critical path --------------------------------------------------------------------------------


def critical_path(trace: Trace) -> tuple[Segment, ...]:
    """What the run's end waited for, back to its start, in order of time: it has no gap, so its
    length is the run's (as far as events were kept).

        rank 0   ■■task1■■ ▲send
                             ╲
        rank 1   ■task2■ ░░wait░░ ■task3■        task1, send, message, task3

    From the last event backwards: where a wait ended because a message came that was sent after
    the wait had begun, the path goes to who sent it, else to what the rank did before.
    """
    if not trace.events:
        return ()
    before, arrivals = _order(trace.events), _arrivals(trace.events)
    last = max(trace.events, key=lambda event: (event.end_s, event.start_s))
    path: list[Segment] = []
    begin, time, event = trace.begin_s, last.end_s, last
    while True:
        if time > event.end_s:
            path.append(Segment("between", "", event.rank, event.end_s, time))
            time = event.end_s
        cause, at = arrivals.get(id(event), [(None, 0.0)])[0]
        if cause is not None and event.start_s < at < time:
            kind = "barrier" if event.kind is EventKind.BARRIER else "message"
            path.append(Segment(kind, event.name, event.rank, at, time))
            time, event = at, cause
            continue
        if event.start_s < time:
            path.append(Segment(event.kind.value, event.name, event.rank, event.start_s, time))
            time = event.start_s
        previous = before.get(id(event))
        if previous is None:
            break
        event = previous
    if time > begin:
        path.append(Segment("idle", "", event.rank, begin, time))
    return tuple(reversed(path))


def _order(events: Iterable[Event]) -> dict[int, Event]:
    """The event before each one on its rank, by id()."""
    by_rank: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        by_rank[event.rank].append(event)
    before: dict[int, Event] = {}
    for listed in by_rank.values():
        listed.sort(key=lambda event: (event.end_s, event.start_s))
        before |= {id(event): previous for previous, event in pairwise(listed)}
    return before


def _arrivals(events: Sequence[Event]) -> dict[int, list[Arrival]]:
    """For each wait and barrier what elsewhere it waited for, by id(), the last of it first: sends,
    and that the other ranks came to the barrier.
    """
    arrivals: dict[int, list[Arrival]] = defaultdict(list)
    for sent, received in links(events):
        arrivals[id(received)].append((sent, sent.end_s))
    before = _order(events)
    for group in _barriers(events):
        for event in group if len(group) > 1 else ():
            arrivals[id(event)] += [
                (before.get(id(other)), other.start_s) for other in group if other is not event
            ]
    for listed in arrivals.values():
        listed.sort(key=lambda arrival: -arrival[1])
    return arrivals


def _barriers(events: Iterable[Event]) -> list[list[Event]]:
    """The events of each barrier: the k-th of one rank is the k-th of every other."""
    groups: dict[int, list[Event]] = defaultdict(list)
    seen: dict[int, int] = defaultdict(int)
    for event in sorted(events, key=lambda event: event.start_s):
        if event.kind is EventKind.BARRIER:
            groups[seen[event.rank]].append(event)
            seen[event.rank] += 1
    return [groups[number] for number in sorted(groups)]


def made_of(path: Iterable[Segment]) -> dict[str, float]:
    """Seconds of the path by kind, the greatest first."""
    seconds: dict[str, float] = defaultdict(float)
    for segment in path:
        seconds[segment.kind] += segment.duration_s
    return dict(sorted(seconds.items(), key=lambda item: (-item[1], item[0])))


def slack(trace: Trace) -> Mapping[int, float]:
    """How much later each event could have ended without the run ending later, in seconds, by
    id().

    Waiting is what gives way: a wait needs only what is left of it after the message was sent.
    """
    before, arrivals = _order(trace.events), _arrivals(trace.events)
    waiters: dict[int, list[tuple[Event, float]]] = defaultdict(list)
    for event in trace.events:
        for cause, at in arrivals.get(id(event), ()):
            if cause is not None:
                waiters[id(cause)].append((event, at))
    after = {id(previous): event for event in trace.events if (previous := before.get(id(event)))}
    end = max((event.end_s for event in trace.events), default=0.0)
    latest: dict[int, float] = {}
    for event in _causes_last(trace.events, before, arrivals):
        bounds = [end]
        following = after.get(id(event))
        if following is not None:
            gap = max(0.0, following.start_s - event.end_s)
            bounds.append(latest[id(following)] - _needs(following, arrivals) - gap)
        for waiter, at in waiters[id(event)]:
            bounds.append(latest[id(waiter)] - _needs(waiter, arrivals) - (at - event.end_s))
        latest[id(event)] = min(bounds)
    rounding = ROUNDING * (end - trace.begin_s)
    spare = {id(event): latest[id(event)] - event.end_s for event in trace.events}
    return {key: seconds if seconds > rounding else 0.0 for key, seconds in spare.items()}


def _causes_last(
    events: Sequence[Event],
    before: Mapping[int, Event],
    arrivals: Mapping[int, Sequence[Arrival]],
) -> list[Event]:
    """The events, each after all that came of it. Times do not suffice: many are equal, and clocks
    err.
    """
    causes: dict[int, list[Event]] = {}
    for event in events:
        found = [before.get(id(event)), *(cause for cause, _ in arrivals.get(id(event), ()))]
        causes[id(event)] = [cause for cause in found if cause is not None]
    effects: dict[int, int] = defaultdict(int)
    for found in causes.values():
        for cause in found:
            effects[id(cause)] += 1
    ready = [event for event in events if not effects[id(event)]]
    ordered: list[Event] = []
    while ready:
        event = ready.pop()
        ordered.append(event)
        for cause in causes[id(event)]:
            effects[id(cause)] -= 1
            if not effects[id(cause)]:
                ready.append(cause)
    return ordered


def _needs(event: Event, arrivals: Mapping[int, Sequence[Arrival]]) -> float:
    """Seconds of the event that are not waiting for someone who came later."""
    if id(event) not in arrivals:
        return event.duration_s
    return max(0.0, event.end_s - max(event.start_s, arrivals[id(event)][0][1]))


def task_times(trace: Trace) -> tuple[TaskTime, ...]:
    """Every task, or phase, by the time it took on all ranks together, the longest first.

    The slack is the least of its events that were kept.
    """
    spare = slack(trace)
    found: dict[str, list[Event]] = defaultdict(list)
    for event in trace.events:
        if event.kind is EventKind.TASK:
            found[event.name].append(event)
    exact: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for total in trace.totals:
        if total.kind is EventKind.TASK:
            exact[total.phase][0] += total.events
            exact[total.phase][1] += total.seconds
    times: list[TaskTime] = []
    for name, events in found.items():
        number, seconds = exact.get(name, (len(events), sum(e.duration_s for e in events)))
        longest = max(event.duration_s for event in events)
        least = min(spare[id(event)] for event in events)
        ranks = len({event.rank for event in events})
        times.append(TaskTime(name, int(number), ranks, seconds, longest, least))
    return tuple(sorted(times, key=lambda time: (-time.seconds, time.name)))
