"""Loops that are written out compute the same bits, whatever their iterations hand on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.loop_ends import MOST_ITERATIONS
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.order.unroll_reductions import MOST_TERMS, UnrollReductions
from avial_lab.compiler.passes.loops.order.unroll_short import UnrollShort
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.kernels.jit import Machine
from tests.quick import examples

ROOM = 8
"""Elements around those that are written."""


def weighted(rows: range, columns: range, *, swapped: bool, inner: bool) -> str:
    """In place, from `rows` × `columns` around: two values are handed on, `swapped` or not; the
    outer sum is carried by the loop over rows, or (`inner`) made in an element.
    """
    kind = "memref<30x30xi64>"
    pair = "%two, %one" if swapped else "%one, %two"
    loops = [
        f"affine.for %{name} = {each.start} to {each.stop} step {each.step}"
        for name, each in (("p", rows), ("q", columns))
    ]
    body = f"""{loops[1]} iter_args(%a = %x, %b = %y) -> (i64, i64) {{
          %e = affine.load %A[%i + %p, %j + %q] : {kind}
          %w = affine.load %W[%p + {ROOM}, %q + {ROOM}] : {kind}
          %m = arith.muli %e, %w : i64
          %one = arith.addi %a, %m : i64
          %two = arith.subi %b, %e : i64
          affine.yield {pair} : i64, i64 }}"""
    if inner:
        nest = f"""{loops[0]} {{
          %x = affine.load %A[%i, %j] : {kind}
          %y = arith.constant 3 : i64
          %s:2 = {body}
          %t = arith.xori %s#0, %s#1 : i64
          affine.store %t, %A[%i, %j] : {kind} }}"""
    else:
        nest = f"""%r:2 = {loops[0]} iter_args(%x = %c, %y = %d) -> (i64, i64) {{
          %s:2 = {body}
          affine.yield %s#1, %s#0 : i64, i64 }}
        %t = arith.xori %r#0, %r#1 : i64
        affine.store %t, %A[%i, %j] : {kind}"""
    return f"""func.func @f(%A: {kind}, %W: {kind}) {{
      %c = arith.constant 7 : i64
      %d = arith.constant 11 : i64
      affine.for %i = {ROOM} to 20 {{ affine.for %j = {ROOM} to 20 {{
        {nest} }} }}
      return }}"""


@st.composite
def short(draw: st.DrawFn) -> range:
    start = draw(st.integers(-4, 3))
    return range(start, start + draw(st.integers(0, 5)), draw(st.integers(1, 2)))


@settings(max_examples=examples(40), deadline=None, suppress_health_check=SLOW)
@given(rows=short(), columns=short(), swapped=st.booleans(), inner=st.booleans())
def test_random_neighbours(rows: range, columns: range, swapped: bool, inner: bool) -> None:
    text = weighted(rows, columns, swapped=swapped, inner=inner)
    context = ir.Context()
    module = ir.Module.parse(text, context)
    run_passes(module.operation, (UnrollShort(),))
    left = sum(op.name == "affine.for" for op in operations_in(module.operation)) - 2
    event(f"{left} loops are left")
    whole = all(1 <= len(each) <= MOST_ITERATIONS for each in (rows, columns))
    assert (left == 0) == whole
    same_values(text, module, seed=len(rows) * 10 + len(columns))


def same_values(before: str, after: ir.Module, *, seed: int) -> None:
    """Of `A`, from random ones of `A` and `W`."""
    with after.context:
        machine = Machine([("before", before), ("after", str(after))], after.context)
    rng = np.random.default_rng(seed)
    arrays = {name: rng.integers(-99, 99, (30, 30)) for name in "AW"}
    first, then = machine.call("before", arrays), machine.call("after", arrays)
    np.testing.assert_array_equal(then["A"], first["A"])


@settings(max_examples=examples(40), deadline=None, suppress_health_check=SLOW)
@given(rows=short(), columns=short(), swapped=st.booleans(), inner=st.booleans())
def test_random_sums(rows: range, columns: range, swapped: bool, inner: bool) -> None:
    """Also where the window's elements are those that the nest changes: the order is the text's."""
    text = (
        weighted(rows, columns, swapped=swapped, inner=inner)
        .replace("@f(%A", "private @f(%A")
        .replace("xi64>) {", 'xi64>) attributes {avial.task = "S1"} {', 1)
    )
    context = ir.Context()
    module = ir.Module.parse(text, context)
    run_passes(module.operation, (UnrollReductions(),))
    left = sum(op.name == "affine.for" for op in operations_in(module.operation)) - 2
    assert (left == 0) == all(1 <= len(each) <= MOST_TERMS for each in (rows, columns))
    public = ir.Module.parse(str(module).replace("func private", "func"), context)
    same_values(text.replace("private ", ""), public, seed=len(rows) * 10 + len(columns))


WINDOWS = {
    "it slides": ("%j + %t", 32, True),
    "from further on": ("%j + %t + 3", 20, True),
    "longer than any": ("%j + %t", 33, False),
    "not a neighbour": ("%j + 2 * %t", 12, False),
    "backwards": ("%j - %t + 40", 12, False),
    "every other element": ("2 * %j + %t", 12, False),
    "the element does not move it": ("%i + %t", 12, False),
    "few of anything": ("%j + 2 * %t", 8, True),
}
"""What is loaded, of how many terms, and whether they are written out."""

SHAPES = {"A": (30, 30), "W": (30, 120)}


@pytest.mark.parametrize("case", WINDOWS)
def test_windows_that_slide_are_written_out(case: str) -> None:
    place, terms, out = WINDOWS[case]
    text = f"""
    func.func private @f(%A: memref<30x30xi64>, %W: memref<30x99xi64>)
        attributes {{avial.task = "S1"}} {{
      %most = arith.constant 99 : i64
      affine.for %i = 0 to 30 {{ affine.for %j = 0 to 30 {{
        %s = affine.for %t = 0 to {terms} iter_args(%least = %most) -> (i64) {{
          %x = affine.load %W[%i, {place}] : memref<30x99xi64>
          %next = arith.minsi %least, %x : i64
          affine.yield %next : i64
        }}
        affine.store %s, %A[%i, %j] : memref<30x30xi64>
      }} }}
      return
    }}"""
    module = ir.Module.parse(text, ir.Context())
    run_passes(module.operation, (UnrollReductions(),))
    assert (sum(op.name == "affine.for" for op in operations_in(module.operation)) == 2) == out
    before, after = (
        each.replace("func private", "func").replace("memref<30x99x", "memref<30x120x")
        for each in (text, str(module))
    )
    machine = Machine([("before", before), ("after", after)], ir.Context())
    rng = np.random.default_rng(terms)
    arrays = {name: rng.integers(-99, 99, shape) for name, shape in SHAPES.items()}
    first, then = machine.call("before", arrays), machine.call("after", arrays)
    np.testing.assert_array_equal(then["A"], first["A"])
