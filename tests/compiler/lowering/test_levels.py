"""`sync="levels"` for programs of loops: where the ranks meet, in text, plan, run and trace."""

from __future__ import annotations

import re

import numpy as np
import pytest
from mlir import ir

import avial_lab
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.lowering.opt import parse_passes
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.machine.topology import Target
from avial_lab.planning.schedule import Step, StepKind, Sync, phase_levels
from avial_lab.planning.task_graph import Task, TaskKind, build_dag
from avial_lab.trace import EventKind
from tests.compiler.lowering.test_lower import BY_HAND, HEAT

SIDE_BY_SIDE = """
func.func @side(%A: memref<24xf64>, %B: memref<24xf64>, %C: memref<24xf64>) {
  %two = arith.constant 2.0 : f64
  affine.for %i = 0 to 24 {
    %a = affine.load %A[%i] : memref<24xf64>
    %m = arith.mulf %a, %two : f64
    affine.store %m, %B[%i] : memref<24xf64>
  }
  affine.for %i = 0 to 23 {
    %a = affine.load %A[%i + 1] : memref<24xf64>
    affine.store %a, %C[%i] : memref<24xf64>
  }
  affine.for %i = 1 to 24 {
    %b = affine.load %B[%i - 1] : memref<24xf64>
    %c = affine.load %C[%i] : memref<24xf64>
    %s = arith.addf %b, %c : f64
    affine.store %s, %A[%i] : memref<24xf64>
  }
  return
}
"""
"""The first two phases need nothing of each other, the third needs both."""


def compiled(text: str, ranks: int, *names: str, shape: tuple[int, ...], sync: str = "levels"):
    rng = np.random.default_rng(7)
    arrays = {name: rng.random(shape) for name in names}
    return avial_lab.compile(text, arrays=arrays, ranks=ranks, sync=sync, without="all")


def calls(program: avial_lab.Program) -> list[str]:
    """What the entry calls of the runtime for its phases, in order."""
    text = program.stages["mpi"].text
    return re.findall(r"llvm\.call @avial_(begin|end|barrier)\(", text)


def test_phases_that_need_nothing_of_each_other_are_one_level() -> None:
    program = compiled(SIDE_BY_SIDE, 3, "A", "B", "C", shape=(24,))
    phase = ["begin", "end"]
    assert calls(program) == [*phase, *phase, "barrier", *phase, "barrier"]
    placed = program.stages["placed"].text
    assert re.findall(r"avial\.level = (\d+)", placed) == ["0", "0", "1"]
    assert 'avial.sync = "levels"' in placed
    assert "sync=levels" in program.stages["placed"].command


@pytest.mark.mpi
def test_ranks_meet_after_each_level_of_a_loops_body_in_every_iteration() -> None:
    program = compiled(HEAT, 3, "A", "B", shape=(40, 20))
    phase = ["begin", "end", "barrier"]
    assert calls(program) == [*phase, *phase]  # both stand in the loop
    assert program.plan is not None
    assert [count.barriers for count in program.plan.phases] == [4, 4]
    assert program.schedule.sync is Sync.LEVELS
    trace = program.run(check=True)
    met = [event for event in trace.events if event.kind is EventKind.BARRIER]
    assert [
        (event.rank, event.name, event.turn) for event in sorted(met, key=lambda e: e.rank)
    ] == [
        (rank, f"barrier after {name}", turn)
        for rank in range(3)
        for turn in (1, 2, 3, 4)
        for name in ("S1", "S2")
    ]
    # None is through before the last has come.
    for turn in (1, 2, 3, 4):
        for name in ("S1", "S2"):
            those = [e for e in met if e.turn == turn and e.name.endswith(name)]
            assert (
                min(e.end_s for e in those) >= max(e.start_s for e in those) - trace.clock_error_s
            )
    assert {total.kind for total in trace.totals} >= {EventKind.BARRIER}


@pytest.mark.quick("4")
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 4])
def test_values_are_the_same(ranks: int) -> None:
    program = compiled(HEAT, ranks, "A", "B", shape=(40, 20))
    program.run(check=True)
    assert "bit for bit" in (program.check_report or "")
    assert ("barrier" in calls(program)) == (ranks > 1)


@pytest.mark.mpi
def test_ranks_meet_in_loops_whose_end_depends_on_data() -> None:
    rng = np.random.default_rng(5)
    arrays = {"a": rng.random(30), "b": rng.random(30), "e": np.zeros(())}
    program = avial_lab.compile(BY_HAND, arrays=arrays, ranks=3, gpus=1, sync="levels")
    trace = program.run(check=True)
    met = [event.rank for event in trace.events if event.kind is EventKind.BARRIER]
    assert met.count(0) == met.count(1) == met.count(2) > 0


@pytest.mark.mpi
def test_phases_that_became_one_are_a_level_of_their_own() -> None:
    """Joined over time, the whole loop is one phase."""
    rng = np.random.default_rng(3)
    arrays = {name: rng.random((40, 20)) for name in "AB"}
    program = avial_lab.compile(HEAT, arrays=arrays, ranks=2, sync="levels")
    assert calls(program) == ["begin", "end", "barrier"]
    program.run(check=True)


def test_dynamic_programs_meet_too() -> None:
    arrays = {name: np.random.default_rng(3).random((40, 20)) for name in "AB"}
    text = HEAT.replace("40x20", "?x?")
    edges = avial_lab.compile(text, arrays=arrays, ranks=2, dynamic=True, without="all")
    levels = avial_lab.compile(
        text, arrays=arrays, ranks=2, dynamic=True, without="all", sync="levels"
    )
    assert edges.built.dynamic
    assert levels.built.dynamic
    assert "barrier" not in calls(edges)
    assert calls(levels).count("barrier") == 2


@pytest.mark.mpi
def test_an_edited_level_moves_the_barrier() -> None:
    program = compiled(SIDE_BY_SIDE, 2, "A", "B", "C", shape=(24,))
    text = program.stages["placed"].text
    edited = program.resume("placed", text.replace("avial.level = 0", "avial.level = 5", 1))
    phase = ["begin", "end", "barrier"]
    assert calls(edited) == [*phase, *phase, *phase]
    assert edited.schedule.sync is Sync.LEVELS
    edited.run(check=True)


@pytest.mark.parametrize(
    ("options", "levels"),
    [
        ("ranks=2 sync=levels", ["0", "0", "1"]),
        ("ranks=1 sync=levels", []),  # there is nobody to wait for
        ("ranks=2", []),
    ],
)
def test_the_pass_on_a_command_line(options: str, levels: list[str]) -> None:
    text = compiled(SIDE_BY_SIDE, 2, "A", "B", "C", shape=(24,)).stages["avial"].text
    context = ir.Context()
    register(context)
    module = ir.Module.parse(text, context).operation
    (place,) = parse_passes(f"place-phases{{{options}}}")
    run_passes(module, (place,))
    assert re.findall(r"avial\.level = (\d+)", str(module)) == levels
    assert ("avial.sync" in str(module)) == bool(levels)
    assert str(place).startswith(f"place-phases{{{options.partition(' ')[0]}")


def test_levels_of_phases() -> None:
    def task(name: str, group: str = "", after: str = "") -> Task:
        kind, groups = TaskKind.REPLICATE, (group,) * bool(group)
        return Task(name, Target("cpu"), (), (), tuple(after.split()), kind, group=groups)

    graph = build_dag(
        [
            task("before"), task("beside"), task("needs", after="before"),
            task("a", "t"), task("b", "t"), task("c", "t", after="a"), task("d", "t", after="b"),
            task("after"),
        ],
        (), (),
    )  # fmt: skip
    assert phase_levels(graph) == {
        "before": 0, "beside": 0, "needs": 1, "a": 2, "b": 2, "c": 3, "d": 3, "after": 4,
    }  # fmt: skip


def test_what_each_rank_does_follows_from_the_plan() -> None:
    program = compiled(HEAT, 3, "A", "B", shape=(40, 20))
    plan = program.plan
    assert plan is not None
    assert plan.carried == (("A",), ("A",))
    assert [(move.source, move.dest) for move in plan.moves] == [(0, 1), (1, 2)]
    run = [Step(StepKind.RUN, name, times=4) for name in ("S1", "S2")]
    barrier = Step(StepKind.BARRIER, times=4)

    def message(kind: StepKind, move: int) -> Step:
        return Step(kind, transfer=move, times=3)

    first, second = (0, 1)
    assert tuple(map(program.schedule.program, range(3))) == (
        (message(StepKind.SEND, first), run[0], message(StepKind.WAIT_SENT, first), barrier,
         run[1], barrier),
        (message(StepKind.POST, first), message(StepKind.SEND, second),
         message(StepKind.WAIT_RECEIVED, first), run[0], message(StepKind.WAIT_SENT, second),
         barrier, run[1], barrier),
        (message(StepKind.POST, second), message(StepKind.WAIT_RECEIVED, second), run[0], barrier,
         run[1], barrier),
    )  # fmt: skip
