"""What stays in registers, and what the vectoriser is told, changes no bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.ir.attributes import NO_ALIAS
from avial_lab.compiler.passes.loops.facts.independent_accesses import IndependentAccesses
from avial_lab.compiler.passes.loops.storage.promote_scalars import PromoteScalars
from tests.compiler.analysis.polyhedral.nests import Nest, near_nests
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.compiler.passes.rewriting import check_same_bits
from tests.kernels.jit import Machine
from tests.quick import examples


@dataclass(frozen=True)
class OnArraysApart:
    """Both passes on a function that is marked, the second on what the first made."""

    marks: bool

    def __call__(self, module: ir.Operation) -> None:
        (function,) = module.regions[0].blocks[0].operations
        function.attributes[NO_ALIAS] = ir.UnitAttr.get(module.context)
        PromoteScalars()(module)
        module.verify()
        if self.marks:
            IndependentAccesses()(module)
        del function.attributes[NO_ALIAS]


@pytest.mark.parametrize("passes", [OnArraysApart(False), OnArraysApart(True)], ids=str)
@settings(max_examples=examples(8), deadline=None, suppress_health_check=SLOW)
@given(several=st.lists(near_nests, min_size=6, max_size=6))
def test_the_same_bits(passes, several: list[Nest]) -> None:
    check_same_bits(several, passes)


SUM = """func.func @f(%x: memref<10xi64>, %A: memref<9x9xi64>, %n: index)
    attributes {{avial.no_alias}} {{
  %seven = arith.constant 7 : i64
  affine.for %i = 0 to 9 {{
    {before}
    affine.for %j = 0 to %n {{
      %a = affine.load %A[%i, %j] : memref<9x9xi64>
      %old = affine.load %x[%i] : memref<10xi64>
      %new = arith.addi %old, %a : i64
      affine.store %new, %x[%i] : memref<10xi64>
    }}
  }}
  return
}}"""

BEFORE = {
    "stored": ("affine.store %seven, %x[%i] : memref<10xi64>", False),
    "loaded alone": ("%t = affine.load %x[%i] : memref<10xi64>", True),
    "another stored": ("affine.store %seven, %x[%i + 1] : memref<10xi64>", True),
    "stored sometimes": (
        "affine.if affine_set<(d0) : (d0 - 4 >= 0)>(%i) "
        "{ affine.store %seven, %x[%i] : memref<10xi64> }",
        True,
    ),
}


@pytest.mark.parametrize(("before", "asks"), BEFORE.values(), ids=BEFORE)
def test_a_loop_that_may_not_run_is_asked_for_unless_its_element_was_stored(
    before: str, asks: bool
) -> None:
    text = SUM.format(before=before)
    context = ir.Context()
    module = ir.Module.parse(text, context)
    PromoteScalars()(module.operation)
    made = str(module)
    assert "iter_args" in made
    assert made.count("affine.if") - text.count("affine.if") == asks
    machine = Machine([("before", text), ("after", made)], context)
    rng = np.random.default_rng(1)
    arrays = {"x": rng.integers(0, 99, 10), "A": rng.integers(0, 99, (9, 9))}
    for n in (0, 1, 9):
        want, got = (
            machine.call(name, arrays | {"n": np.int64(n)}) for name in ("before", "after")
        )
        np.testing.assert_array_equal(got["x"], want["x"])
