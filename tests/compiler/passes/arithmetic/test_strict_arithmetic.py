"""In a strict module no pass that adds in another order, or fuses, changes anything."""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.lowering.opt import parse_passes
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.arithmetic.strict_arithmetic import StrictArithmetic
from tests.compiler.passes.golden import cases_of

REORDERING = {
    "privatise_array_sums": ("rows_and_columns", "privatise-array-sums"),
    "privatise_scalar_sums": ("one_sum", "privatise-scalar-sums"),
    "merge_split_reductions": ("triangle_and_mirror", "merge-split-reductions{least=0}"),
    "align_reductions": ("rows_and_columns", "align-reductions{ranks=2}"),
}


@pytest.mark.parametrize("name", REORDERING)
@pytest.mark.parametrize("strict", [True, False])
def test_the_order_of_the_text(name: str, strict: bool) -> None:
    case, passes = REORDERING[name]
    context = ir.Context()
    register(context)
    with context:
        module = ir.Module.parse(cases_of(name)[case]).operation
        if strict:
            run_passes(module, (StrictArithmetic(),))
        before = str(module)
        run_passes(module, parse_passes(passes))
        assert (str(module) == before) == strict
