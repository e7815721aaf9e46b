"""Triangular solves in blocks: the same bits, and what is no such solve stays as it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.analysis.parallelism.marked_loops import nearest_loops
from avial_lab.compiler.ir.attributes import PARALLEL
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.remarks import SUMS
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.contractions.block_triangular_solves import (
    BlockTriangularSolves,
)
from avial_lab.compiler.passes.loops.facts.mark_parallel import MarkParallel
from tests.compiler.analysis.polyhedral.nests import Nest, near_nests
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.compiler.passes.rewriting import assert_same_bits, check_same_bits
from tests.quick import examples

ROWS = 8


def solve(
    *,
    n: int = 40,
    row: str = "(i) -> (i)",
    low: str = "(i) -> (0)",
    high: str = "(i) -> (i)",
    column: str = "%j",
    after: str = "",
    inside: str = "",
) -> str:
    """Rows `row` of `x`, from each the products with earlier elements; `low` and `high` of the
    columns, `column` the element they are multiplied with.
    """
    return f"""func.func @f(%L: memref<97x97xi64>, %x: memref<97xi64>, %b: memref<97xi64>)
    attributes {{avial.no_alias, avial.task = "f"}} {{
  affine.for %i = 0 to {n} {{
    %r = affine.apply affine_map<{row}>(%i)
    %v = affine.load %b[%r] : memref<97xi64>
    affine.store %v, %x[%r] : memref<97xi64>
    affine.for %j = affine_map<{low}>(%i) to affine_map<{high}>(%i) {{
      %l = affine.load %L[%r, %j] : memref<97x97xi64>
      %e = affine.load %x[{column}] : memref<97xi64>
      %p = arith.muli %l, %e : i64
      %o = affine.load %x[%r] : memref<97xi64>
      %s = arith.subi %o, %p : i64
      affine.store %s, %x[%r] : memref<97xi64>
      {inside}
    }}
    {after}
  }}
  return
}}"""


SCALED = """%o = affine.load %x[%r] : memref<97xi64>
    %d = affine.load %L[%r, %r] : memref<97x97xi64>
    %q = arith.muli %o, %d : i64
    affine.store %q, %x[%r] : memref<97xi64>"""


def blocked(text: str, rows: int = ROWS) -> tuple[ir.Module, list[list[str]]]:
    """The module after the pass, and for each loop in the outermost one the bounds of those inside;
    of a nest that stays as it was nothing.
    """
    module = ir.Module.parse(text, ir.Context())
    before = str(module)
    run_passes(module.operation, (BlockTriangularSolves(rows),))
    module.operation.verify()
    if str(module) == before:
        return module, []
    (blocks,) = nearest_loops(module.body.operations[0].operation)
    assert ir.IntegerAttr(blocks.attributes["step"]).value == rows
    return module, [[_bounds(row) for row in nearest_loops(each)] for each in nearest_loops(blocks)]


def _bounds(loop: ir.Operation) -> str:
    forms = [loop.attributes[name] for name in ("lowerBoundMap", "upperBoundMap")]
    return " to ".join(str(ir.AffineMapAttr(form).value).partition("-> ")[2] for form in forms)


def check(text: str, module: ir.Module, *, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    shapes = {"L": (97, 97), "x": (97,), "b": (97,)}
    arrays = {k: rng.integers(-1 << 40, 1 << 40, shape) for k, shape in shapes.items()}
    assert_same_bits([text], [str(module)], arrays)


SOLVES = {
    "unit lower": (solve(), [["(0) to (d0)"], ["(d0) to (d0)"]]),
    "lower": (solve(after=SCALED), [["(0) to (d0)"], ["(d0) to (d0)"]]),
    "only some of the columns": (
        solve(low="(i) -> (3)", after=SCALED),
        [["(3) to (d0)"], ["(3, d0) to (d0)"]],
    ),
    "another row than the element's": (
        solve(high="(i) -> (i - 5)", column="%j + 5"),
        [["(0) to (d0 - 5)"], ["(0, d0 - 5) to (d0 - 5)"]],
    ),
}


@pytest.mark.parametrize(("text", "expected"), SOLVES.values(), ids=SOLVES)
def test_what_waits_for_a_block_is_left_to_its_end(text: str, expected: list[list[str]]) -> None:
    module, found = blocked(text)
    assert found == expected
    function = module.body.operations[0]
    longest = {"(3) to (d0)": 36, "(0) to (d0 - 5)": 34}.get(expected[0][0], 39)
    assert ir.IntegerAttr(function.attributes[SUMS]).value == longest
    check(text, module)
    run_passes(module.operation, (MarkParallel(),))
    (blocks,) = nearest_loops(function.operation)
    early, late = nearest_loops(blocks)
    assert PARALLEL in early.attributes
    assert PARALLEL not in late.attributes
    assert not any(PARALLEL in op.attributes for op in operations_in(late))


STAYS = {
    "too few rows": solve(n=4 * ROWS - 1),
    "rows that wait for none": solve(column="%j + 50"),
    "all columns wait": solve(column="%i - 1"),
    "what is read is changed by every row": solve(
        inside="affine.store %p, %b[%j] : memref<97xi64>", column="%j"
    ),
    "a term reads what it adds to": solve(low="(i) -> (i)", high="(i) -> (i + 9)"),
    "the term of the row before comes first": solve(
        row="(i) -> (39 - i)", low="(i) -> (40 - i)", high="(i) -> (40)"
    ),
    "in steps": solve().replace("0 to 40 {", "0 to 40 step 2 {"),
    "a sum down the columns": solve(
        inside="""%c = affine.load %b[%j + 50] : memref<97xi64>
          %t = arith.addi %c, %l : i64
          affine.store %t, %b[%j + 50] : memref<97xi64>"""
    ),
}


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_what_stays(text: str) -> None:
    assert not blocked(text)[1]


@pytest.mark.parametrize("n", [32, 33, 37, 39, 40, 41, 97])
@pytest.mark.parametrize("after", ["", SCALED], ids=["unit", "scaled"])
def test_rows_of_any_number(n: int, after: str) -> None:
    text = solve(n=n, after=after)
    module, found = blocked(text)
    assert found
    check(text, module, seed=n)


def inside_of_a_loop(n: int) -> str:
    """Solves of more and more rows, one after the other."""
    text = solve().replace("to 40 {", "to affine_map<(t) -> (t)>(%t) {")
    start, end = text.index("  affine.for %i"), text.rindex("  return")
    around = f"  affine.for %t = 0 to {n} {{\n{text[start:end]}  }}\n"
    return text[:start] + around + text[end:]


def test_inside_of_a_loop_as_many_terms_count_as_there_are() -> None:
    text = inside_of_a_loop(97)
    module = ir.Module.parse(text, ir.Context())
    run_passes(module.operation, (BlockTriangularSolves(ROWS),))
    assert ir.IntegerAttr(module.body.operations[0].attributes[SUMS]).value == 95
    check(text, module)
    assert not blocked(inside_of_a_loop(25))[1]


def test_blocks_that_begin_elsewhere_each_time_are_none() -> None:
    text = inside_of_a_loop(97).replace(
        "0 to affine_map<(t) -> (t)>(%t)", "affine_map<(t) -> (t)>(%t) to 97"
    )
    assert "affine_map<(t) -> (t)>(%t) to 97" in text
    assert not blocked(text)[1]


@settings(max_examples=examples(25), deadline=None, suppress_health_check=SLOW)
@given(
    st.integers(4, 23), st.integers(-3, 1), st.integers(-2, 4), st.sampled_from([1, 1, 1, 0, 2]),
    st.sampled_from(["%j", "%j", "%j", "%i", "%i - %j"]), st.integers(0, 2),
    st.sampled_from(["", SCALED]), st.integers(1, 4),
)  # fmt: skip
def test_random_solves(
    n: int, high: int, low: int, factor: int, column: str, shift: int, after: str, rows: int
) -> None:
    """Elements before the first are not there, so that all of it is 20 further on."""
    far = {
        "row": "(i) -> (i + 20)",
        "low": f"(i) -> ({low} + 20)",
        "high": f"(i) -> (i * {factor} + {high} + 20)",
    }
    text = solve(n=n, column=f"{column} + {shift}", after=after, **far)
    if "-" in column:
        text = solve(n=n, column=f"{column} + {shift + 40}", after=after, **far)
    module, found = blocked(text, rows)
    event("in blocks" if found else "left alone")
    check(text, module)


@settings(max_examples=examples(10), deadline=None, suppress_health_check=SLOW)
@given(st.lists(near_nests, min_size=6, max_size=6))
def test_the_same_bits_of_random_nests(several: list[Nest]) -> None:
    check_same_bits(several, BlockTriangularSolves(2))
