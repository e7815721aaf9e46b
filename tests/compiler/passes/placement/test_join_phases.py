"""Which phases on one rank become a task of one nest, and how often they are read for that."""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.compiler.ir.attributes import SPLIT
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.lower import split_into_tasks
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.order import fuse_loops
from avial_lab.compiler.passes.placement.join_phases import FUSED, JoinPhases, names_of
from avial_lab.compiler.passes.placement.place_phases import PlacePhasesHere
from tests.sums_by_rows import CHANGED, COLUMNS, ROWS, SCALED, both

OTHERS = COLUMNS.replace("%A[", "%B[")
"""Of the other matrix."""

TIMES = COLUMNS.replace("arith.addf", "arith.mulf")


def joined(text: str) -> list[list[str]]:
    """The names of the phases that each is of, in the end."""
    context = ir.Context()
    with context:
        register(context)
        placed = split_into_tasks(ir.Module.parse(text, context))
        run_passes(placed, (PlacePhasesHere(1), JoinPhases()))
        phases = [
            op for op in operations_in(placed) if op.name in ("avial.replicate", "avial.task")
        ]
        for op in phases:
            one = FUSED in op.attributes
            assert (op.name == "avial.task") == one
            assert not one or not any(SPLIT in inner.attributes for inner in operations_in(op))
        assert placed.verify()
        return [names_of(op) for op in phases]


@pytest.mark.parametrize(
    ("text", "phases"),
    [
        pytest.param(both(1000, ROWS, COLUMNS), [["S1", "S2"]], id="rows, then columns"),
        pytest.param(both(1000, ROWS), [["S1"]], id="one"),
        pytest.param(both(1000, ROWS, OTHERS), [["S1"], ["S2"]], id="of two matrices"),
        pytest.param(
            both(1000, ROWS, OTHERS, COLUMNS), [["S1"], ["S2"], ["S3"]],
            id="with another matrix between",
        ),
        pytest.param(
            both(1000, OTHERS, ROWS, COLUMNS), [["S1"], ["S2", "S3"]],
            id="the first does not go with the second",
        ),
        pytest.param(
            both(1000, ROWS, COLUMNS, OTHERS), [["S1", "S2"], ["S3"]],
            id="the third does not go with both",
        ),
        pytest.param(
            both(1000, SCALED, COLUMNS, ROWS), [["S1", "S2", "S3"]], id="three of them",
        ),
        pytest.param(both(1000, CHANGED, TIMES), [["S1", "S2"]], id="what was changed"),
    ],
)  # fmt: skip
def test_what_becomes_one(text: str, phases: list[list[str]]) -> None:
    assert joined(text) == phases


def test_nests_of_three_loops_become_one() -> None:
    kind = "memref<40x50x60xf64>"
    nest = """affine.for %i = 0 to 40 {{ affine.for %j = 0 to 50 {{ affine.for %k = 0 to 60 {{
      %a = affine.load %{0}[%i, %j, %k] : {2}
      %b = arith.mulf %a, %a : f64
      affine.store %b, %{1}[%i, %j, %k] : {2} }} }} }}"""
    nests = "\n".join(nest.format(*arrays, kind) for arrays in ("AB", "BC", "CC"))
    text = f"func.func @f(%A: {kind}, %B: {kind}, %C: {kind}) {{\n{nests}\nreturn }}"
    assert joined(text) == [["S1", "S2", "S3"]]


@pytest.mark.parametrize(("count", "phases"), [(1000, 2), (10_000_000, 1)])
def test_single_loops_over_what_is_in_no_cache_become_one(count: int, phases: int) -> None:
    loop = """affine.for %i = 0 to {2} {{
      %a = affine.load %{0}[%i] : memref<{2}xf64>
      %b = arith.mulf %a, %a : f64
      affine.store %b, %{1}[%i] : memref<{2}xf64> }}"""
    loops = "\n".join(loop.format(*arrays, count) for arrays in ("AB", "BC"))
    arguments = ", ".join(f"%{name}: memref<{count}xf64>" for name in "ABC")
    assert len(joined(f"func.func @f({arguments}) {{\n{loops}\nreturn }}")) == phases


def test_what_waits_for_all_stays() -> None:
    text = both(1000, ROWS, COLUMNS.replace("%w", "%x").replace("{of}", "%x[%j]"))
    assert joined(text) == [["S1"], ["S2"]]


@pytest.mark.parametrize("count", [2, 5, 12])
def test_many_are_read_once_more_for_each(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    read = fuse_loops.read_scop

    def counted(op: ir.Operation) -> object:
        reads.append(op.name)
        return read(op)

    monkeypatch.setattr(fuse_loops, "read_scop", counted)
    assert joined(both(1000, *[SCALED] * count)) == [[f"S{k + 1}" for k in range(count)]]
    assert len(reads) == count - 1
