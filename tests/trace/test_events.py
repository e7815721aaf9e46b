"""Events in columns are what the same events in a tuple are."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np

from avial_lab.trace import Described, Event, EventColumns, EventKind, Trace
from avial_lab.trace.events import EVENT_KINDS

ROWS = (
    Event(EventKind.TASK, "t0", 0, "cpu0", 0.5, 1.5),
    Event(EventKind.SEND, "send", 0, "", 1.5, 1.75, 80, 1, 3, "a[0:10]"),
    Event(EventKind.WAIT, "wait", 1, "", 1.0, 2.0, 80, 0, 3, "a[0:10]", 2),
)


def _columns(asked: list[int]) -> EventColumns:
    def described(k: int) -> Described:
        asked.append(k)
        row = ROWS[k]
        return Described(row.name, row.device, row.peer, row.message, row.what, row.turn)

    return EventColumns(
        np.array([EVENT_KINDS.index(row.kind) for row in ROWS], np.int8),
        np.array([row.rank for row in ROWS]),
        np.array([row.start_s for row in ROWS]),
        np.array([row.end_s for row in ROWS]),
        np.array([row.nbytes for row in ROWS]),
        described,
    )


def test_columns_are_the_events_and_are_made_once_somebody_looks() -> None:
    asked: list[int] = []
    columns = _columns(asked)
    trace = Trace(ranks=2, events=columns)
    assert (trace.begin_s, trace.makespan_s, len(trace.events)) == (0.5, 1.5, 3)
    assert replace(trace, ends_s=(3.0, 2.5)).makespan_s == 2.5
    assert asked == []
    assert columns == ROWS
    assert columns != ROWS[:2]
    assert columns[1] is columns[1]
    assert columns[1:] == ROWS[1:]
    assert trace == Trace(ranks=2, events=ROWS)
    assert trace.bytes_sent == 80
    assert asked == [0, 1, 2]
    assert type(pickle.loads(pickle.dumps(columns))) is tuple
    assert Trace(ranks=0, events=columns[:0]).makespan_s == 0.0
