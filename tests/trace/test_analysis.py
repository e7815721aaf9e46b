"""What a run's time went into."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given

from avial_lab.trace import Event, EventKind, Total, Trace
from avial_lab.trace.analysis import (
    balance,
    critical_path,
    links,
    made_of,
    overlap,
    shares,
    slack,
    task_times,
)
from avial_lab.trace.run_facts import percentages, rank_table
from tests.trace.runs import runs

TASK, SEND, WAIT, BARRIER = EventKind.TASK, EventKind.SEND, EventKind.WAIT, EventKind.BARRIER


def pipeline() -> Trace:
    """
    rank 0   ■■task1■■ ▲▲
                         ╲
    rank 1   ■task2■ ░░░░░░ ■task3■        seconds: 0 … 4 … 5 … 6 … 9
    """
    return Trace(
        2,
        (
            Event(TASK, "task1", 0, "cpu0", 0, 4),
            Event(TASK, "task2", 1, "cpu1", 0, 2),
            Event(WAIT, "wait for a", 1, "", 2, 6, 8, 0, message=0),
            Event(SEND, "send a", 0, "", 4, 5, 8, 1, message=0),
            Event(TASK, "task3", 1, "cpu1", 6, 9),
        ),
    )


def test_the_critical_path_goes_by_the_message_that_was_waited_for() -> None:
    path = critical_path(pipeline())
    assert [(s.kind, s.name, s.rank, s.start_s, s.end_s) for s in path] == [
        ("task", "task1", 0, 0, 4),
        ("send", "send a", 0, 4, 5),
        ("message", "wait for a", 1, 5, 6),
        ("task", "task3", 1, 6, 9),
    ]
    assert made_of(path) == {"task": 7, "message": 1, "send": 1}


def test_a_message_that_was_there_already_is_not_waited_for() -> None:
    """Rank 1 computes until 7: the path stays on it."""
    late = tuple(
        replace(event, end_s=7.0) if event.name == "task2"
        else replace(event, start_s=7.0, end_s=7.5) if event.kind is WAIT
        else replace(event, start_s=7.5, end_s=9.0) if event.name == "task3"
        else event
        for event in pipeline().events
    )  # fmt: skip
    path = critical_path(Trace(2, late))
    assert [(segment.kind, segment.rank) for segment in path] == [
        ("task", 1), ("wait", 1), ("task", 1)
    ]  # fmt: skip


def test_slack_is_what_a_wait_can_give() -> None:
    trace = pipeline()
    spare = {event.name: slack(trace)[id(event)] for event in trace.events}
    # What waits for the message could begin 3 seconds later, and still only the message matters.
    assert spare == {"task1": 0, "task2": 3, "wait for a": 0, "send a": 0, "task3": 0}


def test_a_wait_is_not_work() -> None:
    zero, one = shares(pipeline())
    assert (zero.compute_s, zero.send_s, zero.wait_s, zero.idle_s) == (4, 1, 0, 4)
    assert (one.compute_s, one.send_s, one.wait_s, one.idle_s) == (5, 0, 4, 0)
    assert balance((zero, one)) == 0.9


def test_overlap_counts_what_the_receiver_computed_meanwhile() -> None:
    """Sent at 4, there at 6: nothing. With task2 until 4.5, half a second of it."""
    assert overlap(pipeline()).fraction == 0
    longer = tuple(
        replace(event, end_s=4.5) if event.name == "task2"
        else replace(event, start_s=4.5) if event.kind is WAIT
        else event
        for event in pipeline().events
    )  # fmt: skip
    found = overlap(Trace(2, longer))
    assert (found.under_way_s, found.hidden_s) == (2, 0.5)


def test_a_collective_links_everyone_who_waits_with_everyone_who_sends() -> None:
    events = (
        Event(SEND, "send", 0, "", 0, 1, message=5),
        Event(SEND, "send", 1, "", 0, 2, message=5),
        *(Event(WAIT, "wait", rank, "", [1, 2, 0][rank], 3, message=5) for rank in range(3)),
    )
    found = [(sent.rank, received.rank) for sent, received in links(events)]
    assert found == [(1, 0), (0, 1), (0, 2), (1, 2)]
    # Who sent last is what everyone waited for.
    assert critical_path(Trace(3, events))[0].rank == 1


def test_a_barrier_waits_for_the_last_to_come() -> None:
    events = (
        Event(TASK, "short", 0, "cpu0", 0, 1),
        Event(TASK, "long", 1, "cpu1", 0, 5),
        Event(BARRIER, "barrier", 0, "", 1, 6),
        Event(BARRIER, "barrier", 1, "", 5, 6),
        Event(TASK, "after", 0, "cpu0", 6, 7),
    )
    path = critical_path(Trace(2, events))
    assert [(segment.name, segment.rank) for segment in path] == [
        ("long", 1), ("barrier", 0), ("after", 0)
    ]  # fmt: skip
    spare = {event.name: slack(Trace(2, events))[id(event)] for event in events}
    assert spare["short"] == 4
    assert spare["long"] == 0


def test_sums_count_where_events_were_dropped() -> None:
    kept = (Event(TASK, "S", 0, "cpu0", 0, 1, turn=1),)
    sums = (Total(0, "S", TASK, 1000, 90.0, 0), Total(0, "S", SEND, 7, 4.0, 800))
    trace = Trace(1, kept, totals=sums, dropped=(1006,), turns=(("S", 1000),), ends_s=(100.0,))
    (share,) = shares(trace)
    assert (share.compute_s, share.send_s, share.between_s, share.idle_s) == (90, 4, 6, 0)
    assert trace.makespan_s == 100
    assert trace.bytes_sent == 800
    (found,) = task_times(trace)
    assert (found.events, found.seconds) == (1000, 90.0)
    assert "1,006 later events" in rank_table(trace).note


def test_no_events_no_facts() -> None:
    nothing = Trace(2, ())
    assert critical_path(nothing) == ()
    assert overlap(nothing).fraction == 0
    assert [share.idle_s for share in shares(nothing)] == [0, 0]
    assert percentages(shares(nothing)[0].parts) == [0] * 6


@given(runs())
def test_the_shares_of_a_rank_add_up_to_the_run(trace: Trace) -> None:
    for share in shares(trace):
        assert sum(share.parts) == pytest.approx(trace.makespan_s)
        assert min(share.parts) >= 0
        assert sum(percentages(share.parts)) in (0, 100)
        busy = (e.duration_s for e in trace.events if e.rank == share.rank and e.kind is TASK)
        assert share.compute_s == pytest.approx(sum(busy))


@given(runs())
def test_the_critical_path_has_no_gap_and_is_as_long_as_the_run(trace: Trace) -> None:
    path = critical_path(trace)
    for before, after in pairwise(path):
        assert before.end_s == after.start_s
        assert before.rank == after.rank or after.kind in ("message", "barrier", "wait", "between")
    if trace.events:
        assert sum(segment.duration_s for segment in path) == pytest.approx(trace.makespan_s)


@given(runs())
def test_what_is_late_by_its_slack_makes_nothing_longer_and_by_more_it_does(trace: Trace) -> None:
    """Each event is delayed by its slack, and by a second more, and the run played again."""
    end = trace.begin_s + trace.makespan_s
    for event in trace.events:
        spare = slack(trace)[id(event)]
        assert replayed_end(trace, event, spare) == pytest.approx(end, abs=1e-12)
        assert replayed_end(trace, event, spare + 1) == pytest.approx(end + 1, abs=1e-12)


def replayed_end(trace: Trace, late: Event, by_s: float) -> float:
    """When the run would have ended: every step begins as long after the one before as it did, a
    task takes as long, and a wait ends as long after the last of what it waited for.
    """
    order = sorted(trace.events, key=lambda event: (event.end_s, event.start_s))
    waits_for: dict[int, list[Event]] = {}
    for sent, received in links(trace.events):
        waits_for.setdefault(id(received), []).append(sent)
    ends: dict[int, float] = {}
    last: dict[int, Event] = {}
    barriers = barriers_of(trace)
    previous: dict[int, Event | None] = {}
    for event in order:
        previous[id(event)] = last.get(event.rank)
        last[event.rank] = event

    def start_of(event: Event) -> float:
        before = previous[id(event)]
        if before is None:
            return event.start_s
        return end_of(before) + event.start_s - before.end_s

    def end_of(event: Event) -> float:
        if id(event) in ends:
            return ends[id(event)]
        start = start_of(event)
        group = barriers.get(id(event))
        if group is not None:
            came, coming = max(e.start_s for e in group), max(start_of(e) for e in group)
        else:
            others = waits_for.get(id(event), [])
            came = max([event.start_s, *(sent.end_s for sent in others)])
            coming = max([start, *(end_of(sent) for sent in others)])
        end = coming + event.end_s - came + (by_s if event is late else 0)
        ends[id(event)] = end
        return end

    return max(end_of(event) for event in trace.events)


def barriers_of(trace: Trace) -> dict[int, list[Event]]:
    of_rank: dict[int, list[Event]] = {}
    for event in trace.events:
        if event.kind is BARRIER:
            of_rank.setdefault(event.rank, []).append(event)
    groups = [list(group) for group in zip(*of_rank.values(), strict=True)]
    return {id(event): group for group in groups for event in group}
