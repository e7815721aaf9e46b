"""Phases become one where that is worth it. What is erased is not asked for anything: it may be
somebody else's memory by then.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import pytest
from mlir import ir

from avial_lab.compiler.ir import phases
from avial_lab.compiler.ir.attributes import SPLIT
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.lowering.lower import split_into_tasks
from avial_lab.compiler.lowering.opt import parse_passes
from avial_lab.compiler.lowering.run import Pass, run_passes
from avial_lab.compiler.passes.placement import fuse_phases
from avial_lab.compiler.passes.placement.fuse_phases import FEW_RANKS, FusePhases
from avial_lab.compiler.passes.placement.place_phases import PlacePhasesHere
from avial_lab.compiler.passes.placement.widen_halos import WidenHalos
from avial_lab.machine.cpu import this_cpu
from kernels import load


def test_all_operations_are_looked_at_before_the_first_is_erased(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fused converge takes what is in it with it, and MLIR's Python objects do not know."""
    fused: list[object] = []

    class Operation:
        @property
        def name(self) -> str:
            assert not fused, "it may be gone"
            return "avial.schedule"

        attributes: ClassVar[dict[str, object]] = {}

    operations = [Operation(), Operation()]
    for module in (phases, fuse_phases):
        monkeypatch.setattr(module, "operations_in", lambda _: iter(operations))
    monkeypatch.setattr(FusePhases, "_fuse_in", lambda _, op: fused.append(op))
    FusePhases()(SimpleNamespace(context=nullcontext()))  # type: ignore[arg-type]
    assert fused == operations


@pytest.mark.parametrize(
    ("ranks", "own", "last", "fused"),
    [
        (1, 1 << 30, 1 << 30, True),
        (2, 1 << 18, 1 << 30, True),
        (2, 1 << 20, 1 << 30, False),
        (FEW_RANKS, 1 << 16, 1 << 18, True),
        (FEW_RANKS, 1 << 16, 1 << 30, False),
        (FEW_RANKS + 1, 1 << 16, 1 << 18, False),
    ],
)
def test_few_ranks_leave_blocks_of_steps_to_one_of_them(
    monkeypatch: pytest.MonkeyPatch, ranks: int, own: int, last: int, fused: bool
) -> None:
    """Up to four where steps would go through memory, two through the cache that all share."""
    caches = replace(this_cpu(), l2_bytes=own, last_bytes=last)
    monkeypatch.setattr(fuse_phases, "this_cpu", lambda: caches)
    text = load("floyd-warshall").mlir("f64", {"N": 300})
    context = ir.Context()
    with context:
        register(context)
        placed = split_into_tasks(ir.Module.parse(text, context))
        passes = (PlacePhasesHere(ranks), FusePhases(ranks=ranks))
        assert [str(each) for each in parse_passes(",".join(map(str, passes)))] == [
            str(each) for each in passes
        ]
        run_passes(placed, passes)
    assert ("avial.converge" not in str(placed)) == fused
    assert (SPLIT in str(placed)) != fused


@pytest.mark.parametrize("elsewhere", [False, True], ids=["its own", "of nobody"])
def test_what_stands_between_phases_goes_along(elsewhere: bool) -> None:
    """The norm of a column is made between the phases; where it goes has to be known to one."""
    text = load("gramschmidt").mlir("f64", {"M": 140, "N": 260})
    if elsewhere:
        store = "affine.store %norm, %R[%k, %k] : memref<260x260xf64>"
        assert store in text
        text = text.replace(store, f"{store}\n    affine.store %norm, %Z[%k] : memref<260xf64>")
        text = text.replace("(%A: memref", "(%Z: memref<260xf64>, %A: memref")
    context = ir.Context()
    with context:
        register(context)
        placed = split_into_tasks(ir.Module.parse(text, context))
        run_passes(placed, (PlacePhasesHere(1), FusePhases()))
    assert ("avial.converge" in str(placed)) == elsewhere


@pytest.mark.parametrize(("ranks", "alone"), [(2, True), (3, False)])
def test_two_ranks_leave_tiles_in_time_to_one_of_them(ranks: int, alone: bool) -> None:
    """Where no wide halo serves them, or these are left out."""
    assert ("loop1 = task" in _waves(ranks, 1200, FusePhases(ranks=ranks))) == alone


def test_ranks_share_steps_in_their_own_caches_and_wide_halos() -> None:
    assert "loop1 = task" not in _waves(2, 60, FusePhases(ranks=2))
    both = WidenHalos(2), FusePhases(ranks=2)
    for placed in (_placed(SWEEPS, *both), _waves(2, 1200, *both)):
        assert "avial.halo" in placed
        assert "avial.task" not in placed.replace("avial.task_ref", "")
        assert "loop1 = task" not in placed


SWEEPS = """
func.func @sweeps(%A: memref<1300x1300xf64>, %B: memref<1300x1300xf64>) {
  affine.for %t = 0 to 500 {
    affine.for %i = 1 to 1299 {
      affine.for %j = 1 to 1299 {
        %a = affine.load %A[%i - 1, %j] : memref<1300x1300xf64>
        %b = affine.load %A[%i + 1, %j - 1] : memref<1300x1300xf64>
        %sum = arith.addf %a, %b : f64
        affine.store %sum, %B[%i, %j] : memref<1300x1300xf64>
      }
    }
    affine.for %i = 1 to 1299 {
      affine.for %j = 1 to 1299 {
        %b = affine.load %B[%i, %j] : memref<1300x1300xf64>
        affine.store %b, %A[%i, %j] : memref<1300x1300xf64>
      }
    }
  }
  return
}"""


def _waves(ranks: int, n: int, *passes: Pass) -> str:
    text = load("fdtd-2d").mlir("f64", {"TMAX": 500, "NX": n, "NY": n})
    return _placed(text, *passes, ranks=ranks).replace('"avial.task"', "loop1 = task")


def _placed(text: str, *passes: Pass, ranks: int = 2) -> str:
    context = ir.Context()
    with context:
        register(context)
        placed = split_into_tasks(ir.Module.parse(text, context))
        run_passes(placed, (PlacePhasesHere(ranks), *passes))
        return str(placed)


@pytest.mark.parametrize(
    ("steps", "columns", "ranks", "fused"),
    [(100, 5_000, 1, True), (100, 50_000, 1, False), (40, 5_000, 1, False), (100, 5_000, 2, False)],
)
def test_short_steps_that_are_many_are_one_phase(
    steps: int, columns: int, ranks: int, fused: bool
) -> None:
    """Rows of a table one by one: nothing to tile, and each would begin a phase."""
    table = f"memref<{steps}x{columns}xf64>"
    text = f"""
    func.func @best(%D: {table}) {{
      affine.for %i = 1 to {steps} {{
        affine.for %j = 5 to {columns} {{
          %a = affine.load %D[%i - 1, %j] : {table}
          %b = affine.load %D[%i - 1, %j - 5] : {table}
          %best = arith.maximumf %a, %b : f64
          affine.store %best, %D[%i, %j] : {table}
        }}
      }}
      return
    }}"""
    placed = _placed(text, FusePhases(ranks=ranks), ranks=ranks)
    assert ("avial.converge" not in placed) == fused


@pytest.mark.parametrize(("element", "fused"), [("f64", False), ("f32", True)])
def test_short_phases_in_a_branch_are_one(element: str, fused: bool) -> None:
    """Rows and columns that are turned where an element says so; what counts is how long each
    phase is, not how long the outermost loop's steps are, in bytes.
    """
    matrix, columns = f"memref<80x20000x{element}>", 20_000
    text = f"""
    func.func @turned(%A: {matrix}) {{
      %zero = arith.constant 0.0 : {element}
      affine.for %p = 0 to 79 {{
        affine.for %q = affine_map<(d) -> (d + 1)>(%p) to 80 {{
          %x = affine.load %A[%p, %q] : {matrix}
          %c = arith.cmpf ogt, %x, %zero : {element}
          scf.if %c {{
            affine.for %k = 0 to {columns} {{
              %a = affine.load %A[%p, %k] : {matrix}
              %b = affine.load %A[%q, %k] : {matrix}
              %s = arith.addf %a, %b : {element}
              %d = arith.subf %a, %b : {element}
              affine.store %s, %A[%p, %k] : {matrix}
              affine.store %d, %A[%q, %k] : {matrix}
            }}
          }}
        }}
      }}
      return
    }}"""
    placed = _placed(text, FusePhases(), ranks=1)
    assert ("avial.converge" not in placed) == fused
