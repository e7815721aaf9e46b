"""The way down for structured programs: stages, places, reports, and what is told of each loop."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from mlir import ir

import avial_lab
from avial_lab.benchmarks.kernel_suite import kernel_program
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.lowering.opt import parse_passes
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.core.errors import ScheduleError, VerifyError
from avial_lab.planning.distribution import Division
from avial_lab.planning.task_graph import TaskKind

HEAT = """
func.func @heat(%A: memref<40x20xf64>, %B: memref<40x20xf64>) {
  %half = arith.constant 0.5 : f64
  affine.for %t = 0 to 4 {
    affine.for %i = 1 to 39 {
      affine.for %j = 1 to 19 {
        %n = affine.load %A[%i - 1, %j] : memref<40x20xf64>
        %e = affine.load %A[%i, %j + 1] : memref<40x20xf64>
        %s = arith.addf %n, %e : f64
        %m = arith.mulf %half, %s : f64
        affine.store %m, %B[%i, %j] : memref<40x20xf64>
      }
    }
    affine.for %i = 1 to 39 {
      affine.for %j = 1 to 19 {
        %v = affine.load %B[%i, %j] : memref<40x20xf64>
        affine.store %v, %A[%i, %j] : memref<40x20xf64>
      }
    }
  }
  return
}
"""

BY_HAND = """
avial.schedule %a, %b, %e {
  %cpu = avial.target {arch = "cpu"}
  %gpu = avial.target {arch = "gpu"}
  %loop = avial.converge until %e lt 1.0e-2 max 50 {
    %s = avial.replicate %cpu, %a, %b {
      affine.for %i = 1 to 29 {
        %l = affine.load %a[%i - 1]
        %r = affine.load %a[%i + 1]
        %sum = arith.addf %l, %r
        %half = arith.constant 0.5 : f64
        %m = arith.mulf %sum, %half
        affine.store %m, %b[%i]
      }
    }
    %z = avial.task %cpu, %e {
      %zero = arith.constant 0.0 : f64
      memref.store %zero, %e[]
    }
    %n = avial.replicate %cpu, %a, %b, %e {
      affine.for %i = 1 to 29 {
        %x = affine.load %a[%i]
        %y = affine.load %b[%i]
        %d = arith.subf %x, %y
        %q = math.absf %d
        %old = affine.load %e[]
        %new = arith.maximumf %old, %q
        affine.store %new, %e[]
      }
    }
    %c = avial.task %gpu, %a, %b {
      gpu.launch {
        %k = gpu.thread_id x
        %y = memref.load %b[%k]
        memref.store %y, %a[%k]
      }
    }
  }
}
"""


@pytest.fixture(scope="module")
def heat() -> avial_lab.Program:
    rng = np.random.default_rng(3)
    arrays = {name: rng.random((40, 20)) for name in "AB"}
    return avial_lab.compile(HEAT, arrays=arrays, ranks=3, without="widen-halos")


def test_each_stage_is_made_of_the_one_before(heat: avial_lab.Program) -> None:
    """The line that a stage shows makes, of the text before it, what lowers further."""
    before = {"avial": "source", "mpi": "placed", "loops": "mpi", "host": "loops"}
    for name, source in before.items():
        words = shlex.split(heat.stages[name].command)
        assert words[:3] == ["python", "-m", "avial_lab.compiler.lowering.opt"]
        assert words[-3:] == [f"{source}.mlir", "-o", f"{name}.mlir"]
        context = ir.Context()
        register(context)
        module = ir.Module.parse(heat.stages[source].text, context).operation
        run_passes(module, parse_passes(words[words.index("-p") + 1]))
        assert _operations(module) == _operations(_parsed(heat.stages[name].text))


def _parsed(text: str) -> ir.Operation:
    context = ir.Context()
    register(context)
    return ir.Module.parse(text, context).operation


def _operations(module: ir.Operation) -> dict[str, int]:
    counts: dict[str, int] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        counts[op.name] = counts.get(op.name, 0) + 1
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return counts


def test_what_became_of_each_loop(heat: avial_lab.Program) -> None:
    reports = heat.built.reports
    assert [(v.name, v.kind, v.depth) for v in reports] == [
        ("loop1", TaskKind.CONVERGE, 0),
        ("S1", TaskKind.REPLICATE, 1),
        ("S2", TaskKind.REPLICATE, 1),
    ]
    text = str(heat.explain())
    line = 1 + HEAT[: HEAT.index("affine.store %v")].count("\n")
    assert f"A[i - 1, j] is written by an earlier iteration of t: line {line}" in text
    assert "the rank that owns B[i, :] runs iteration i" in text


def test_a_row_goes_down_at_each_turn_and_nothing_else(heat: avial_lab.Program) -> None:
    assert heat.plan is not None
    row = 18 * 8
    # What the first turn needs comes from the caller.
    assert {(m.phase, m.source, m.dest, m.messages, m.nbytes) for m in heat.plan.moves} == {
        ("S1", rank, rank + 1, 3, 3 * row) for rank in (0, 1)
    }
    assert heat.plan.complete
    trace = heat.run(check=True)
    assert sorted(map(str, trace.moves)) == sorted(map(str, heat.plan.moves))


@pytest.mark.quick("1-cyclic(5)", "4-cyclic(5)", "4-grid")
@pytest.mark.parametrize("division", ["block", "cyclic(5)", "grid"])
@pytest.mark.parametrize("ranks", [1, 4])
def test_divisions(division: str, ranks: int) -> None:
    rng = np.random.default_rng(4)
    arrays = {name: rng.random((40, 20)) for name in "AB"}
    program = avial_lab.compile(HEAT, arrays=arrays, ranks=ranks, division=division)
    program.run(check=True)
    assert "bit for bit (1,368 elements)" in (program.check_report or "")
    placed = program.stages["placed"].text
    assert ("avial.block = 5" in placed) == (division == "cyclic(5)")
    assert ("avial.columns = 2" in placed) == (division == "grid" and ranks == 4)


@pytest.mark.parametrize("text", ["spiral", "cyclic(0)", "cyclic()", "block(3)", ""])
def test_a_division_that_makes_no_sense(text: str) -> None:
    with pytest.raises(ScheduleError, match="there are: block, cyclic"):
        Division.parse(text)


@pytest.mark.quick("3-1")
@pytest.mark.parametrize(("ranks", "gpus"), [(1, 1), (3, 1), (4, 2)])
def test_a_program_written_by_hand_stops_everywhere_at_the_same_round(
    ranks: int, gpus: int
) -> None:
    rng = np.random.default_rng(5)
    arrays = {"a": rng.random(30), "b": rng.random(30), "e": np.zeros(())}
    program = avial_lab.compile(BY_HAND, arrays=arrays, ranks=ranks, gpus=gpus)
    assert program.plan is not None
    assert not program.plan.complete  # how many rounds there are, only the values say
    trace = program.run(check=True)
    assert trace.label == "measured, GPU emulated"
    drivers = {device.rank for device in program.schedule.topology.devices if device.emulated}
    assert {event.rank for event in trace.events if event.name == "c"} <= drivers


def test_a_replicate_whose_iterations_depend_on_each_other() -> None:
    text = BY_HAND.replace("affine.store %m, %b[%i]", "affine.store %m, %a[%i]")
    text = text.replace("%s = avial.replicate %cpu, %a, %b {", "%s = avial.replicate %cpu, %a {")
    arrays = {"a": np.zeros(30), "b": np.zeros(30), "e": np.zeros(())}
    with pytest.raises(VerifyError, match=r"a\[i - 1\] is written by the previous iteration of i"):
        avial_lab.compile(text, arrays=arrays, ranks=2)


def test_arrays_that_share_memory_keep_the_function_in_one_piece() -> None:
    base = np.random.default_rng(6).random((41, 20))
    program = avial_lab.compile(HEAT, arrays={"A": base[1:], "B": base[:-1]}, ranks=3)
    assert "its arrays share memory" in str(program.explain())
    program.run(check=True)


def test_an_access_certain_to_leave_its_array() -> None:
    text = HEAT.replace("affine.for %i = 1 to 39 {", "affine.for %i = 0 to 39 {", 1)
    arrays = {name: np.zeros((40, 20)) for name in "AB"}
    with pytest.raises(VerifyError, match="reaches index -1 of dimension 0, which has size 40"):
        avial_lab.compile(text, arrays=arrays, ranks=2)


@pytest.mark.quick("durbin")
@pytest.mark.parametrize("name", ["durbin", "ludcmp", "prefix-sum"])
def test_the_same_program_gives_the_same_text(name: str) -> None:
    """Values and operations are told apart by where they lie, which is another place each time."""
    kernel = kernel_program(name, size="MINI")
    texts = {
        avial_lab.compile(
            f"{kernel.text}\n// {k}",  # else the first would be kept
            arrays=kernel.arrays,
            scalars=kernel.scalars,
            function=kernel.function,
            ranks=2,
        )
        .stages["mpi"]
        .text
        for k in range(5)
    }
    assert len(texts) == 1
