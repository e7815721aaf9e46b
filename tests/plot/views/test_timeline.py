"""What the interactive timeline is told."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from avial_lab.planning.schedule import Schedule
from avial_lab.plot.views.timeline import LIMIT, timeline_data
from avial_lab.trace import Event, EventKind, Trace
from tests.trace.runs import runs


def told(data: dict[str, Any]) -> list[tuple[int, str, str, int, int, bool]]:
    """Rank, kind, name, start, length, whether around the run: of each bar, as the view decodes
    them.
    """
    columns = data["events"]
    bars: list[tuple[int, str, str, int, int, bool]] = []
    index = 0
    for row, bars_there in zip(data["rows"], data["counts"], strict=True):
        at = 0
        for _ in range(bars_there):
            start = at + columns["gap"][index]
            at = start + columns["length"][index]
            kind = data["kinds"][columns["kind"][index]]
            name = data["names"][columns["name"][index]]
            bars.append((row["rank"], kind, name, start, columns["length"][index], row["around"]))
            index += 1
    assert index == len(columns["kind"])
    return bars


@given(runs())
def test_every_event_is_told_as_it_was(trace: Trace) -> None:
    data = timeline_data(trace)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    begin = trace.begin_s
    wanted = [
        (event.rank, event.kind.value, event.name, round(1e9 * (event.start_s - begin)),
         round(1e9 * event.duration_s), around)
        for events, around in ((trace.events, False), (trace.around, True))
        for event in events
    ]  # fmt: skip
    assert Counter(told(data)) == Counter(wanted)
    bars = told(data)
    ends = data["messages"]
    for sent, received in zip(ends[::2], ends[1::2], strict=True):
        assert bars[sent][1] == "send"
        assert bars[received][1] == "wait"


def many(number: int) -> Trace:
    kinds = (EventKind.TASK, EventKind.SEND, EventKind.COPY)
    return Trace(
        3,
        tuple(
            Event(kinds[k % 3], f"name{k % 400}", k % 3, "", k * 1e-6, (k + 2) * 1e-6, message=k)
            for k in range(number)
        ),
    )


@pytest.mark.slow
def test_100000_events_fit_and_no_time_is_lost() -> None:
    trace = many(100_000)
    data = timeline_data(trace)
    assert len(json.dumps(data, separators=(",", ":"), ensure_ascii=False)) <= LIMIT
    assert sum(data["events"]["merged"]) == 100_000
    spent: Counter[tuple[int, str]] = Counter()
    for rank, kind, _, _, length, _ in told(data):
        spent[rank, kind] += length
    exact: Counter[tuple[int, str]] = Counter()
    for event in trace.events:
        exact[event.rank, event.kind.value] += round(1e9 * event.duration_s)
    assert {key: round(value / 1000) for key, value in spent.items()} == {
        key: round(value / 1000) for key, value in exact.items()
    }
    assert any("drawn together by kind" in note for note in data["notes"])


def test_same_run_same_bytes(deck_trace: Trace, deck_schedule: Schedule) -> None:
    again = replace(deck_trace, events=tuple(replace(event) for event in deck_trace.events))
    assert json.dumps(timeline_data(deck_trace, deck_schedule)) == json.dumps(
        timeline_data(again, deck_schedule)
    )


def test_what_was_predicted_stands_below_what_was_measured(deck_trace: Trace) -> None:
    model = replace(deck_trace, label="modelled")
    rows = timeline_data(deck_trace, predicted=model)["rows"]
    assert [(row["rank"], row["device"], row["predicted"]) for row in rows] == [
        (0, "cpu0", False), (0, "cpu0", True), (1, "cpu1", False),
        (1, "cpu1", True), (2, "gpu0", False), (2, "gpu0", True),
    ]  # fmt: skip


def test_rows_that_are_too_many_are_hidden_openly() -> None:
    events = tuple(Event(EventKind.TASK, "t", rank, f"cpu{rank}", 0, 1) for rank in range(70))
    data = timeline_data(Trace(70, events))
    assert len(data["rows"]) == 64
    assert "6 more rows hidden." in data["notes"]
