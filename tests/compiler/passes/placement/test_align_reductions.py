"""Which sums go by the rows that a rank has, and with what they become one."""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.compiler.ir.attributes import SPLIT
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.phases import alone_in, reduced_arrays
from avial_lab.compiler.lowering.lower import split_into_tasks
from avial_lab.compiler.lowering.opt import parse_passes
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.placement import align_reductions
from avial_lab.compiler.passes.placement.align_reductions import (
    BY_ROWS,
    AlignReductions,
    shared_sums,
)
from avial_lab.compiler.passes.placement.place_phases import PlacePhasesHere
from avial_lab.machine.cpu import Cpu
from tests.sums_by_rows import CHANGED, COLUMNS, ROWS, SCALED, both, product

CPU = Cpu(64, 32, True, 32 << 10, 1 << 20, 32 << 20, 2)
"""So that the answers are those of one machine."""

BY_SUM = CHANGED.replace("%w[%i]", "%y[%i]")
"""It needs what COLUMNS adds to."""


def phases_of(text: str, monkeypatch: pytest.MonkeyPatch, *, strict: bool = False) -> list[str]:
    """The names of the phases on two ranks; a star where one goes by rows because of others."""
    monkeypatch.setattr(align_reductions, "this_cpu", lambda: CPU)
    context = ir.Context()
    with context:
        register(context)
        placed = split_into_tasks(ir.Module.parse(text, context), strict=strict)
        passes = (PlacePhasesHere(2), AlignReductions(2))
        assert [str(each) for each in parse_passes(",".join(map(str, passes)))] == [
            str(each) for each in passes
        ]
        run_passes(placed, passes)
        assert alone_in(placed) is None
        phases = [op for op in operations_in(placed) if op.name == "avial.replicate"]
        for op in phases:
            assert (BY_ROWS in op.attributes) == bool(reduced_arrays(op))
            assert any(SPLIT in inner.attributes for inner in operations_in(op))
        assert shared_sums(placed) == {
            ir.StringAttr(name).value: 1000
            for op in phases
            if BY_ROWS in op.attributes
            for name in ir.ArrayAttr(op.attributes[BY_ROWS])
        }
        names = (ir.StringAttr(op.attributes["name"]).value for op in phases)
        return [
            name + "*" * (BY_ROWS in op.attributes) for name, op in zip(names, phases, strict=True)
        ]


@pytest.mark.parametrize(
    ("text", "phases"),
    [
        pytest.param(both(1000, ROWS, COLUMNS), ["S1*"], id="rows, then columns"),
        pytest.param(both(1000, COLUMNS, ROWS), ["S1*"], id="columns, then rows"),
        pytest.param(both(1000, SCALED, COLUMNS), ["S1*"], id="rows that were changed"),
        pytest.param(both(1000, COLUMNS, SCALED), ["S1*"], id="rows that are changed then"),
        pytest.param(both(1000, ROWS, COLUMNS, ROWS), ["S1*"], id="three sums"),
        pytest.param(both(1000, ROWS, COLUMNS, of="%x[%j]"), ["S1*"], id="its own element"),
        pytest.param(both(1000, CHANGED, COLUMNS, of="%x[%i]"), ["S1", "S2*"], id="all elements"),
        pytest.param(both(1000, CHANGED, COLUMNS, of="%y[%i]"), ["S1", "S2"], id="of its own sum"),
        pytest.param(both(1000, BY_SUM, COLUMNS), ["S1", "S2*"], id="read before"),
        pytest.param(both(1000, ROWS, COLUMNS, of="%x[%i]"), ["S1", "S2"], id="no sooner"),
        pytest.param(both(1000, COLUMNS, COLUMNS), ["S1", "S2"], id="columns alone"),
        pytest.param(both(1000, ROWS, ROWS), ["S1", "S2"], id="rows alone"),
        pytest.param(both(1000, ROWS, product("%B")), ["S1", "S2"], id="of another array"),
        pytest.param(both(20, ROWS, COLUMNS), ["S1", "S2"], id="less than a message"),
    ],
)
def test_sums_go_by_the_rows_that_a_rank_has(
    text: str, phases: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert phases_of(text, monkeypatch) == phases


def test_a_strict_program_keeps_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    text = both(1000, ROWS, COLUMNS)
    assert phases_of(text, monkeypatch, strict=True) == ["S1", "S2"]
