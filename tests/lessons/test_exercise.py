"""What a check says of a program: what holds, and for what does not, what was found, why, where."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.core.errors import CellSpan, CheckError
from avial_lab.planning.task_graph import Dependency, Hazard, TaskKind
from avial_lab.program.program import Program
from avial_lab.trace import Event, EventKind, Total, Trace
from tests.notebook.conftest import recorded_loops, recorded_program


def told(capsys: pytest.CaptureFixture[str], program: Program, **wanted: Any) -> tuple[str, str]:
    """What a check prints, and its error."""
    error = ""
    try:
        avial_lab.check(program, **wanted)
    except CheckError as raised:
        error = raised.message
    return capsys.readouterr().out, error


@pytest.fixture
def deck() -> Program:
    """The deck's program, its tasks at lines 4, 12 and 20 of a cell."""
    program = recorded_program()
    tasks = [
        replace(task, span=CellSpan("In [4]", "", 4 + 8 * k, 3))
        for k, task in enumerate(program.graph.tasks)
    ]
    graph = replace(program.graph, tasks=tuple(tasks))
    program.built = replace(program.built, schedule=replace(program.schedule, graph=graph))
    return program


def test_what_holds_is_said_with_its_reason(
    deck: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    out, error = told(
        capsys, deck,
        tasks=3, levels=2, ranks=3, depends=[("task1", "task3")], on={"task3": "gpu"},
        independent=[("task1", "task2")], writes={"task2": ["d"]}, messages=2, bytes_moved=160,
    )  # fmt: skip
    assert error == ""
    assert "✗" not in out
    assert "✓ task3 waits for task1: RAW c[0:20], 80 B" in out
    assert "✓ 2 messages between ranks, planned\n" in out
    assert out.count("✓") == 9


WRONG: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "tasks": ({"tasks": 2}, ("3 tasks:\n", "task1, task2, task3")),
    "levels": ({"levels": 1}, ("level 1: task3", "task3 waits for task1 (RAW c[0:20], 80 B)")),
    "ranks": ({"ranks": 2}, ("the program has 3 ranks", "--ranks 2")),
    "nothing in common": (
        {"depends": [("task1", "task2")]},
        ("task1 reads a, b and writes c; task2 reads a, b and writes d", "In [4]:12:3"),
    ),
    "the other way round": ({"depends": [("task3", "task1")]}, ("task3 waits for task1", "4:3")),
    "not independent": ({"independent": [("task3", "task1")]}, ("RAW c[0:20]", "In [4]:20:3")),
    "writes another": ({"writes": {"task2": ["c"]}}, ("it writes d[0:20]", "In [4]:12:3")),
    "reads another": ({"reads": {"task1": ["a"]}}, ("it reads a[0:20], b[0:20]", "In [4]:4:3")),
    "a slip of the pen": (
        {"writes": {"taks2": ["d"]}},
        ("no task 'taks2'; there are: task1, task2, task3",),
    ),
    "a device": ({"on": {"task3": "cpu"}}, ("its target is %gpu (sm_90)", "In [4]:20:3")),
    "messages": ({"messages": 1}, ("needs 2 messages:", "task3 needs what task1 wrote")),
    "bytes": ({"bytes_moved": 80}, ("the program needs 160 bytes:",)),
    "copies": (
        {"bytes_copied": 80},
        ("the program copies 0 bytes\n",),
    ),
    "no loops": ({"divided": ["S1"]}, ("there is no loop 'S1'; there are: none",)),
    "not run": ({"values": {"d": np.zeros(20)}}, ("it has not run yet: `%avial run deck`",)),
    "no array": ({"values": {"dd": np.zeros(20)}}, ("there are: a, b, c, d",)),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_hold_says_what_was_found_and_where(
    case: str, deck: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted, words = WRONG[case]
    out, error = told(capsys, deck, **wanted)
    assert out.startswith("✗ ")
    for word in words:
        assert word in out
    assert error == "1 of 1 point not met: see the ✗ above"


def test_waiting_by_way_of_another_counts(
    deck: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    """task1 ─► task2 ─► task3, and no edge from the first to the last."""
    schedule = deck.schedule
    first = Dependency("task1", "task2", Hazard.EXPLICIT, "", (), 0)
    rest = [edge for edge in schedule.graph.dependencies if edge.before == "task2"]
    graph = replace(schedule.graph, dependencies=(first, *rest))
    deck.built = replace(deck.built, schedule=replace(schedule, graph=graph))
    out, error = told(capsys, deck, depends=[("task1", "task3")])
    assert error == ""
    assert "task2 for task1 (after %task1, as written), then task3 for task2 (RAW d" in out
    out, error = told(capsys, deck, independent=[("task1", "task3")])
    assert "no: task3 waits for task1: task2 for task1" in out
    assert error


def test_loops_say_why_they_are_not_divided(capsys: pytest.CaptureFixture[str]) -> None:
    heat = recorded_loops()
    reports = {report.kind: report for report in heat.explain().reports}
    loop, divided = reports[TaskKind.CONVERGE], reports[TaskKind.REPLICATE]
    out, error = told(capsys, heat, divided=[divided.name], in_order=[loop.name])
    assert error == ""
    out, error = told(capsys, heat, divided=[loop.name])
    assert out.startswith(f"✗ {loop.name} is divided over the ranks\n")
    assert loop.reasons[0] in out


def ran(deck: Program, *sent: int) -> None:
    """As if it had run, with a message of so many bytes each."""
    sends = (Event(EventKind.SEND, f"send {k}", k, "", 0, 1, n) for k, n in enumerate(sent))
    deck.trace = Trace(3, (Event(EventKind.TASK, "task1", 0, "cpu0", 0, 1), *sends))


def test_what_a_run_sent_counts(deck: Program, capsys: pytest.CaptureFixture[str]) -> None:
    ran(deck, 80, 80)
    out, _ = told(capsys, deck, messages=2, bytes_moved=160)
    assert out == (
        "✓ 2 messages between ranks, planned and counted\n"
        "✓ 160 bytes between ranks, planned and counted\n"
    )
    ran(deck, 80)
    out, _ = told(capsys, deck, messages=2)
    assert out == "✗ 2 messages between ranks\n    planned, but the run sent 1\n"


def test_values_are_compared_with_the_answer(
    deck: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(deck)
    answer = np.zeros(20, np.int32)
    assert told(capsys, deck, values={"d": answer})[1] == ""
    deck.arrays["d"][7] = 5
    out, error = told(capsys, deck, values={"d": answer})
    assert "1 of 20 elements differ, first d[7]: 5 instead of 0" in out
    assert "task3 writes it last; task3 is at In [4]:20:3" in out
    assert error
    out, _ = told(capsys, deck, values={"d": np.zeros(3)})
    assert "its shape is (20,); expected (3,)" in out


def test_floating_point_values_may_be_rounded_otherwise(
    deck: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(deck)
    deck.arrays["d"] = np.full(20, 100.0)
    assert told(capsys, deck, values={"d": np.full(20, 100 + 1e-8)})[1] == ""
    assert told(capsys, deck, values={"d": np.full(20, 100 + 1e-6)})[1] != ""
    deck.arrays["d"][3] = np.nan
    assert told(capsys, deck, values={"d": np.full(20, 100.0)})[1] != ""


def test_what_cannot_fail_is_no_check(deck: Program) -> None:
    with pytest.raises(CheckError, match="nothing to check"):
        avial_lab.check(deck)
    with pytest.raises(CheckError, match="takes a program, not str"):
        avial_lab.check("deck", levels=2)  # type: ignore[arg-type]


def test_a_predicted_time_is_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spent = [
        Total(0, "S1", EventKind.TASK, 1, 0.001, 0),
        Total(0, "S2", EventKind.WAIT, 1, 0.003, 8),
    ]
    events = (Event(EventKind.TASK, "S1", 0, "cpu0", 0.0, 0.004),)
    trace = Trace(1, events, "simulated on a laptop", totals=tuple(spent))
    monkeypatch.setattr(Program, "simulate", lambda *_: trace)
    program = recorded_loops()
    out, error = told(capsys, program, predicted={"preset:laptop": 0.005})
    assert (out, error) == ("✓ at most 5 ms on a laptop, simulated\n", "")
    out, error = told(capsys, program, predicted={"preset:laptop": 0.002})
    assert "✗ at most 2 ms on a laptop, simulated" in out
    assert "it takes 4 ms" in out
    assert out.index("75 % of the ranks' time: sending and waiting for S2") < out.index("25 %")
    assert error == "1 of 1 point not met: see the ✗ above"
