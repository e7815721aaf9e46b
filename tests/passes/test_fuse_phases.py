"""Phases become one where that is worth it. What is erased is not asked for anything: it may be
somebody else's memory by then.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from mlir import ir

from avial_lab.cpu import this_cpu
from avial_lab.dialects import register
from avial_lab.passes import fuse_phases
from avial_lab.passes.fuse_phases import FEW_RANKS, FusePhases
from avial_lab.passes.phases import SPLIT
from avial_lab.passes.place_phases import PlacePhasesHere
from avial_lab.pipelines import parse_passes, run_passes
from avial_lab.spmd import take_apart
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

    operations = [Operation(), Operation()]
    monkeypatch.setattr(fuse_phases, "operations_in", lambda _: iter(operations))
    monkeypatch.setattr(FusePhases, "_fuse_in", lambda _, op: fused.append(op))
    FusePhases()(SimpleNamespace(context=nullcontext()))  # type: ignore[arg-type]
    assert fused == operations


@pytest.mark.parametrize(
    ("ranks", "cache", "fused"),
    [(1, 1 << 30, True), (2, 1 << 16, True), (2, 1 << 30, False), (FEW_RANKS + 1, 1 << 16, False)],
)
def test_few_ranks_leave_blocks_of_steps_to_one_of_them(
    monkeypatch: pytest.MonkeyPatch, ranks: int, cache: int, fused: bool
) -> None:
    """Where steps would go through memory, and not through caches."""
    monkeypatch.setattr(fuse_phases, "this_cpu", lambda: replace(this_cpu(), last_bytes=cache))
    text = load("floyd-warshall").mlir("f64", {"N": 300})
    context = ir.Context()
    with context:
        register(context)
        placed = take_apart(ir.Module.parse(text, context))
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
        placed = take_apart(ir.Module.parse(text, context))
        run_passes(placed, (PlacePhasesHere(1), FusePhases()))
    assert ("avial.converge" in str(placed)) == elsewhere
