"""The two types of manifest answer the same questions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avial_lab.artifact.manifest import DerivedMessages, KnownMessages, Standing
from avial_lab.core.errors import CellSpan
from avial_lab.core.regions import Box
from avial_lab.planning.schedule import DeviceCopy, Step, StepKind, Transfer
from avial_lab.runtime.launch.progress import ProgressReporter, TaskState
from avial_lab.runtime.rank.journal import Entry, RankState
from avial_lab.runtime.rank.outcome import describe_step, timed_out

TRANSFER = Transfer(0, "a", Box((0,), (4,)), 0, 1, "x", "y", 16)

KNOWN = KnownMessages(
    entry="main", ranks=2, buffers=(), storages=(), inputs=(), results=(),
    programs=(
        (Step(StepKind.RUN, "x"), Step(StepKind.SEND, transfer=0), Step(StepKind.BARRIER)),
        (Step(StepKind.WAIT_RECEIVED, transfer=0), Step(StepKind.RUN, "y")),
    ),
    transfers=(TRANSFER,), devices={"x": "cpu0", "y": "gpu0"},
    kinds={"cpu0": "cpu", "gpu0": "emulated-gpu"},
)  # fmt: skip

DERIVED = DerivedMessages(
    entry="main", ranks=2, buffers=(), storages=(), inputs=(), results=(),
    phases=("S1", "S2"), rounds=(3, 2), planned=640,
)  # fmt: skip

UNKNOWN = DerivedMessages(
    entry="main", ranks=2, buffers=(), storages=(), inputs=(), results=(), phases=("S1", "S2")
)
"""Control depends on data."""


def test_what_a_rank_is_in() -> None:
    assert [KNOWN.at(0, mark) for mark in (-1, 1, 3)] == [None, KNOWN.programs[0][1], None]
    assert [DERIVED.at(1, mark) for mark in (-1, 2)] == [None, None]
    assert DERIVED.at(1, 0) == Step(StepKind.RUN, "S1", times=3)
    assert UNKNOWN.at(1, 0) == Step(StepKind.RUN, "S1", times=0)
    assert KNOWN.message(KNOWN.programs[1][0]) == TRANSFER
    assert [describe_step(KNOWN, 0, mark) for mark in (-1, 0, 1, 2)] == [
        "before its first task", "in task 'x' on cpu0",
        "sending a[0:4] to rank 1 (for task 'y')", "at a barrier",
    ]  # fmt: skip
    assert describe_step(KNOWN, 1, 1) == "in task 'y' on gpu0 (emulated)"
    assert [describe_step(DERIVED, 1, mark) for mark in (-1, 1)] == [
        "before its first task", "in task 'S2' on cpu1",
    ]  # fmt: skip


def test_a_copy_to_a_device_is_no_barrier() -> None:
    """Place 2 of two ranks is the first GPU."""
    box = Box((0,), (4,))
    copies = (DeviceCopy(0, "a", box, 1, 2, "y", 16), DeviceCopy(1, "a", box, 2, 1, "", 16))
    steps = (Step(StepKind.COPY, copy=0), Step(StepKind.RUN, "y"), Step(StepKind.COPY, copy=1))
    manifest = replace(KNOWN, programs=(KNOWN.programs[0], steps), copies=copies)
    assert describe_step(manifest, 1, 0) == "copying a[0:4] from cpu1 to gpu0 (for task 'y')"
    assert describe_step(manifest, 1, 2) == "copying a[0:4] from gpu0 to cpu1 (a result)"


def test_what_is_foreseen() -> None:
    assert list(KNOWN.tasks) == [("x", 1), ("y", 1)]
    assert list(DERIVED.tasks) == [("S1", 3), ("S2", 2)]
    assert list(UNKNOWN.tasks) == [("S1", 0), ("S2", 0)]
    planned = [manifest.planned_bytes for manifest in (KNOWN, DERIVED, UNKNOWN)]
    assert planned == [16, 640, None]


def test_how_far_a_rank_has_come() -> None:
    assert KNOWN.standing(0, -1, (), 0) == Standing(0, 3, {}, 0)
    assert KNOWN.standing(0, 1, (), 0) == Standing(1, 3, {"x": 1}, 0)
    assert KNOWN.standing(0, 2, (), 0) == Standing(2, 3, {"x": 1}, 16)
    assert KNOWN.standing(1, 1 << 62, (), 0) == Standing(2, 2, {"y": 1}, 0)
    assert DERIVED.standing(0, 1, (2, 1), 160) == Standing(2, 5, {"S1": 2, "S2": 1}, 160)
    assert UNKNOWN.standing(0, 1, (7, 6), 160) == Standing(12, 0, {"S1": 7, "S2": 6}, 160)


@pytest.mark.parametrize(
    ("manifest", "states"),
    [
        (DERIVED, [TaskState.DONE, TaskState.RUNNING]),
        (UNKNOWN, [TaskState.WAITING, TaskState.RUNNING]),  # nobody knows whether S1 comes again
    ],
)
def test_a_phase_is_done_once_it_was_begun_as_often_as_planned(
    manifest: DerivedMessages, states: list[TaskState], tmp_path
) -> None:
    entries = [
        Entry(RankState.RUNNING, 1, 1, 1, 320, (3, 2)),
        Entry(RankState.RUNNING, 1, 2, 1, 0, (3, 1)),
    ]
    reporter = ProgressReporter(manifest)
    reporter.begin(tmp_path, entries.__getitem__)
    state = reporter._state()
    assert [task.state for task in state.tasks] == states
    assert [(task.begun, task.ranks) for task in state.tasks] == [(3, ()), (2, (0, 1))]
    assert (state.sent_bytes, state.planned_bytes) == (320, manifest.planned_bytes)


def test_who_is_late_is_shown_where_its_task_stands() -> None:
    spans = {name: CellSpan("In [1]", "", line, 1) for line, name in enumerate(("y", "S2"), 1)}
    for manifest, steps, line in ((KNOWN, {0: 2, 1: 1}, 1), (DERIVED, {0: -1, 1: 1}, 2)):
        span = timed_out(manifest, 1.0, steps, spans).span
        assert span is not None
        assert span.line == line
