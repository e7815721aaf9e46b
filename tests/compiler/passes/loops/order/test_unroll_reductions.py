"""Sums over channels and windows, written out: the same bits in any order of the loops around."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.order.unroll_reductions import UnrollReductions
from tests.compiler.passes.rewriting import assert_same_bits

ENDS = {"o": 3, "j": 21, "c": 11, "p": 3}


def windows(order: str, *, place: str = "%o, %j", more: str = "") -> str:
    """Y[o, j] += X[c, j + p] * W[o, c, p], in loops of that order."""
    x, w, y = "memref<11x24xf64>", "memref<3x11x3xf64>", "memref<3x40xf64>"
    loops = " ".join(f"affine.for %{name} = 0 to {ENDS[name]} {{" for name in order)
    return f"""
      func.func @f(%X: {x}, %W: {w}, %Y: {y}) attributes {{avial.no_alias, avial.task = "f"}} {{
        {loops}
          %x = affine.load %X[%c, %j + %p] : {x}
          %w = affine.load %W[%o, %c, %p] : {w}
          %old = affine.load %Y[{place}] : {y}
          %t = arith.mulf %x, %w : f64
          %new = arith.addf %old, %t : f64
          affine.store %new, %Y[{place}] : {y}
          {more}
        {"}" * len(order)}
        return }}"""


def written_out(text: str, **how: bool) -> ir.Module:
    with ir.Context():
        module = ir.Module.parse(text)
    run_passes(module.operation, (UnrollReductions(**how),))
    assert module.operation.verify()
    return module


def check(text: str) -> None:
    after = str(written_out(text))
    rng = np.random.default_rng(7)
    shapes = {"X": (11, 24), "W": (3, 11, 3), "Y": (3, 40)}
    # No NaN: all of Y would be one.
    arrays = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    assert_same_bits([text], [after], arrays)


@pytest.mark.parametrize("order", list(map("".join, permutations("ojcp"))))
def test_any_order(order: str) -> None:
    check(windows(order))


def test_a_long_sum_of_windows_has_elements_inside() -> None:
    module = written_out(windows("ojcp"))
    inner = operations_named(module.operation, "affine.for")[0]
    assert len(operations_named(inner, "affine.load")) == 3 * 3, "the terms of a window"
    with module.context:
        assert "21" in str(inner.attributes["upperBoundMap"]), "for each element"


STAYS = {
    "an element for all": windows("ojcp", place="%o, %j + %back").replace(
        "%x = affine.load", "%back = affine.apply affine_map<(d) -> (3 - d)>(%j)\n%x = affine.load"
    ),
    "other elements for other terms": windows("ojcp", place="%o, %j + %c"),
    "an element for two": windows("ojcp", place="%o, %j floordiv 2"),
    "what another iteration adds to": windows(
        "ojcp", more="affine.store %t, %Y[%o, %j + 1] : memref<3x40xf64>"
    ),
    "what is loaded elsewhere": windows("ojcp").replace(
        "%X[%c, %j + %p] : memref<11x24xf64>", "%Y[%o, %j + %p] : memref<3x40xf64>"
    ),
}


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_what_stays_in_its_order(text: str) -> None:
    check(text)
