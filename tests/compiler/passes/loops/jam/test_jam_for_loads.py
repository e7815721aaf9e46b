"""Rows that load the same elements run side by side, and compute the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.facts.independent_accesses import IndependentAccesses
from avial_lab.compiler.passes.loops.jam.jam_for_loads import ROWS, JamForLoads
from avial_lab.machine.cpu import Cpu
from tests.compiler.passes.rewriting import assert_same_bits, random_array

SIDE = 23
NARROW, WIDE = Cpu(), Cpu(vector_bytes=64)


def stencil(low: int, high: int, loads: list[str], store: str = "%B[%i, %j]") -> str:
    """The sum of what `loads` names, into B, for rows from `low` to `high`."""
    array = f"memref<{SIDE}x{SIDE}xf64>"
    lines = [f"%x0 = affine.load {loads[0]} : {array}"]
    total = "%x0"
    for k, load in enumerate(loads[1:], 1):
        lines.append(f"%x{k} = affine.load {load} : {array}")
        lines.append(f"%s{k} = arith.addf {total}, %x{k} : f64")
        total = f"%s{k}"
    body = "\n".join(lines)
    return f"""
    func.func @f(%A: {array}, %B: {array}) attributes {{avial.no_alias}} {{
      affine.for %i = {low} to {high} {{
        affine.for %j = 2 to {SIDE - 2} {{
          {body}
          affine.store {total}, {store} : {array}
        }}
      }}
      return
    }}"""


def shared(text: str, cpu: Cpu = NARROW) -> str:
    with ir.Context():
        module = ir.Module.parse(text)
        run_passes(module.operation, (IndependentAccesses(), JamForLoads(cpu)))
        return str(module)


def check(before: str, after: str) -> None:
    rng = np.random.default_rng(5)
    assert_same_bits([before], [after], {n: random_array(rng, (SIDE, SIDE), "f64") for n in "AB"})


COLUMN = ["%A[%i - 1, %j]", "%A[%i, %j]", "%A[%i + 1, %j]"]
CROSS = [*COLUMN, "%A[%i, %j - 1]", "%A[%i, %j + 1]"]
SQUARE = [f"%A[%i + {p}, %j + {q}]" for p in (-1, 0, 1) for q in (-1, 0, 1)]
TURNED = ["%A[%j, %i - 1]", "%A[%j, %i]", "%A[%j, %i + 1]"]


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 7, 8, 19])
@pytest.mark.parametrize("loads", [COLUMN, CROSS, SQUARE, TURNED])
def test_neighbours(loads: list[str], rows: int) -> None:
    text = stencil(2, 2 + rows, loads)
    after = shared(text)
    assert f"step {ROWS}" in after
    check(text, after)


@pytest.mark.parametrize(
    "loads",
    [
        ["%A[%i, %j]"],
        ["%A[%i, %j - 1]", "%A[%i, %j]", "%A[%i, %j + 1]"],
        ["%A[%i - 1, %j]", "%A[%i, %j]", "%B[%i, %j]"],  # one of three, for three rows of four
        [f"%A[%i + {p}, %j + {q}]" for p in (-2, -1, 0, 1, 2) for q in (0, 1)],  # too many
    ],
)
def test_little_in_common_or_much_to_hold(loads: list[str]) -> None:
    assert f"step {ROWS}" not in shared(stencil(2, 20, loads))


@pytest.mark.parametrize(
    ("loads", "store", "side_by_side"),
    [
        (COLUMN, "%B[%i, %j]", False),
        (CROSS, "%B[%i, %j]", False),
        (SQUARE, "%B[%i, %j]", True),
        (TURNED, "%B[%j, %i]", True),  # columns are no vectors
    ],
)
def test_few_loads_where_vectors_are_as_long_as_lines(
    loads: list[str], store: str, side_by_side: bool
) -> None:
    assert (f"step {ROWS}" in shared(stencil(2, 20, loads, store), WIDE)) == side_by_side


@pytest.mark.parametrize("store", ["%A[%i, %j]", "%A[%i + 2, %j]"])
def test_rows_that_wait_for_rows_stay_in_order(store: str) -> None:
    assert f"step {ROWS}" not in shared(stencil(2, 20, COLUMN, store))


def at_once(text: str, cpu: Cpu) -> bool:
    with ir.Context():
        module = ir.Module.parse(text)
        run_passes(module.operation, (IndependentAccesses(), JamForLoads(cpu)))
        return f"step {ROWS}" in str(module)


@pytest.mark.parametrize(
    ("columns", "l2_bytes", "side_by_side"),
    [(512, 1 << 15, True), (511, 1 << 15, False), (511, 1 << 20, True)],
)
def test_rows_on_one_page_go_one_by_one(columns: int, l2_bytes: int, side_by_side: bool) -> None:
    """But where the array is in a cache."""
    text = stencil(2, 21, COLUMN).replace(f"{SIDE}x{SIDE}xf64", f"{SIDE}x{columns}xf64")
    assert at_once(text, Cpu(l2_bytes=l2_bytes)) == side_by_side


@pytest.mark.parametrize(("height", "side_by_side"), [(40, True), (10, False)])
def test_planes_of_short_rows_are_on_pages_of_their_own(height: int, side_by_side: bool) -> None:
    text = stencil(2, 21, ["%A[%i - 1, 1, %j]", "%A[%i, 1, %j]"], "%B[%i, 1, %j]")
    text = text.replace(f"{SIDE}x{SIDE}xf64", f"{SIDE}x{height}x{SIDE}xf64")
    assert at_once(text, Cpu(l2_bytes=1 << 10)) == side_by_side


def test_rows_in_the_same_lines_go_side_by_side() -> None:
    """Of an array that lies across, whose next row is the next element."""
    text = stencil(2, 21, TURNED, "%B[%j, %i]")
    assert at_once(text, Cpu(l2_bytes=1 << 10))
    assert not at_once(text.replace("%B[%j, %i]", "%B[%i, %j]"), Cpu(l2_bytes=1 << 10))
