"""Rows side by side compute the same bits, however short they are and however they lag."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.ir.attributes import NO_ALIAS, PARALLEL
from avial_lab.compiler.ir.llvm_attributes import NO_VECTORS, NOT_INLINED, flags_of
from avial_lab.compiler.ir.operations import functions_in, operations_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.facts.mark_parallel import MarkParallel
from avial_lab.compiler.passes.loops.jam.jam_for_latency import JamForLatency
from avial_lab.compiler.passes.loops.threads.thread_loops import ThreadLoops
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.kernels.jit import Machine
from tests.quick import examples

EDGE = 3


@dataclass(frozen=True)
class Recurrence:
    """A[i, j] from `reads` of A and B around it, and perhaps a second loop over the columns that
    goes on with B; `before`: a store between the loops, which only independent rows may have;
    `carried`: what the second loop computes goes on in a register, and at last to the row's edge.
    `weight`: each row multiplies by an element of B, which it loads before its loops.
    """

    rows: int
    columns: int
    reads: tuple[tuple[str, int, int], ...]
    second: tuple[int, ...]
    before: bool
    carried: bool = False
    weight: bool = False

    @property
    def text(self) -> str:
        kind = f"memref<{self.rows + 2 * EDGE}x{self.columns + 2 * EDGE}xi64>"
        low, right, bottom = EDGE, EDGE + self.columns, EDGE + self.rows
        lines = [
            f"func.func @f(%A: {kind}, %B: {kind}) attributes {{{NO_ALIAS}}} {{",
            "%three = arith.constant 3 : i64",
            f"affine.for %i = {low} to {bottom} {{",
        ]
        if self.before:
            lines.append(f"affine.store %three, %B[%i, {EDGE - 1}] : {kind}")
        if self.weight:
            lines.append(f"%w = affine.load %B[%i, {EDGE}] : {kind}")
        lines.append(f"affine.for %j = {low} to {right} {{")
        lines += self._sum("u", self.reads, kind)
        lines += [f"affine.store %u{len(self.reads)}, %A[%i, %j] : {kind}", "}"]
        if self.second:
            lines.append(f"affine.for %j = {low} to {right} {{")
            lines += self._sum("w", tuple(("B", 0, by) for by in self.second), kind)
            lines += [f"affine.store %w{len(self.second)}, %B[%i, %j] : {kind}", "}"]
        if self.carried:
            lines += [
                f"%last = affine.for %j = {low} to {right} iter_args(%s = %three) -> (i64) {{",
                f"%c = affine.load %B[%i, %j] : {kind}",
                "%next0 = arith.muli %s, %three : i64",
                "%next = arith.addi %next0, %c : i64",
                f"affine.store %next, %B[%i, %j] : {kind}",
                "affine.yield %next : i64 }",
                f"affine.store %last, %B[%i, {EDGE - 2}] : {kind}",
            ]
        return "\n".join([*lines, "}", "return", "}"])

    def _sum(self, stem: str, reads: tuple[tuple[str, int, int], ...], kind: str) -> Iterator[str]:
        yield f"%{stem}0 = arith.constant 5 : i64"
        for k, (array, down, right) in enumerate(reads):
            yield f"%{stem}l{k} = affine.load %{array}[%i + {down}, %j + {right}] : {kind}"
            factor = "w" if self.weight else "three"
            yield f"%{stem}m{k} = arith.muli %{stem}{k}, %{factor} : i64"
            yield f"%{stem}{k + 1} = arith.addi %{stem}m{k}, %{stem}l{k} : i64"


@st.composite
def recurrences(draw: st.DrawFn) -> Recurrence:
    near = st.integers(-EDGE, EDGE)
    reads = st.tuples(st.sampled_from("AAB"), st.integers(-2, 2), near)
    return Recurrence(
        draw(st.integers(1, 19)),
        draw(st.integers(1, 24)),
        (("A", 0, -1), *draw(st.lists(reads, max_size=3))),
        tuple(draw(st.sampled_from([(), (), (-1,), (-2, 0), (1,)]))),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
    )


def check_same_bits(recurrence: Recurrence, rows: int) -> bool:
    """Whether rows were put side by side at all."""
    context = ir.Context()
    module = ir.Module.parse(recurrence.text, context)
    run_passes(module.operation, (MarkParallel(), JamForLatency(rows)))
    module.operation.verify()
    with context:
        machine = Machine([("before", recurrence.text), ("after", str(module))], context)
    rng = np.random.default_rng(len(recurrence.text))
    shape = (recurrence.rows + 2 * EDGE, recurrence.columns + 2 * EDGE)
    arrays = {name: rng.integers(-(1 << 40), 1 << 40, shape) for name in "AB"}
    before, after = machine.call("before", arrays), machine.call("after", arrays)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)
    return any(
        op.name == "affine.for" and ir.IntegerAttr(op.attributes["step"]).value == rows
        for op in operations_in(module.operation)
    )


@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOW)
@given(recurrence=recurrences(), rows=st.sampled_from([2, 3, 4, 8]))
def test_random_recurrences(recurrence: Recurrence, rows: int) -> None:
    event("side by side" if check_same_bits(recurrence, rows) else "left alone")


UP_RIGHT = (("A", 0, -1), ("A", -1, 1), ("A", -1, -1), ("A", 0, 0))  # twice is not once


@pytest.mark.quick("8-*", "17-*")
@pytest.mark.parametrize("columns", [1, 2, 13, 14, 15, 16, 40])
@pytest.mark.parametrize("rows", [1, 7, 8, 9, 16, 17])
def test_the_ends_of_rows(rows: int, columns: int) -> None:
    done = check_same_bits(Recurrence(rows, columns, UP_RIGHT, (), False), 8)
    # In two columns a row is through before the next begins; one row alone waits for none.
    assert done == (columns > min(2, rows))


@pytest.mark.parametrize("rows", [8, 17])
def test_what_a_loop_hands_on(rows: int) -> None:
    assert check_same_bits(Recurrence(rows, 13, (("A", 0, -1),), (), False, carried=True), 8)


@pytest.mark.parametrize("rows", [8, 17])
def test_what_rows_load_before_their_loops(rows: int) -> None:
    assert check_same_bits(Recurrence(rows, 13, UP_RIGHT, (), False, weight=True), 8)


CASES = {
    "a row that needs nothing of itself": Recurrence(16, 16, (("B", 0, 0),), (), False),
    "two loops in rows that depend on each other": Recurrence(16, 16, UP_RIGHT, (-1,), False),
    "a store between rows that depend on each other": Recurrence(16, 16, UP_RIGHT, (), True),
}


@pytest.mark.parametrize("recurrence", CASES.values(), ids=CASES)
def test_what_is_left_alone(recurrence: Recurrence) -> None:
    assert not check_same_bits(recurrence, 8)


def smoothed(subscripts: str, rows: int) -> str:
    """Independent rows, each of 20 elements of which every one needs the one before."""
    kind = "memref<70x70xf64>"
    before = subscripts.replace("%j", "%j - 1")
    return f"""func.func @SIDE(%A: {kind}, %B: {kind}) attributes {{avial.no_alias}} {{
      %half = arith.constant 0.5 : f64
      affine.for %i = 0 to {rows} {{ affine.for %j = 1 to 21 {{
        %a = affine.load %A[{before}] : {kind}
        %b = affine.load %B[%i, %j] : {kind}
        %s = arith.addf %a, %b : f64
        %m = arith.mulf %half, %s : f64
        affine.store %m, %A[{subscripts}] : {kind} }} }}
      return }}"""


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 31, 32, 33, 65])
@pytest.mark.parametrize(("subscripts", "wanted"), [("%i, %j", 4), ("%j, %i", 32)])
def test_as_many_as_memory_likes(subscripts: str, wanted: int, rows: int) -> None:
    text = smoothed(subscripts, rows)
    context = ir.Context()
    module = ir.Module.parse(text, context)
    run_passes(module.operation, (MarkParallel(), JamForLatency()))
    steps = {
        ir.IntegerAttr(op.attributes["step"]).value
        for op in operations_in(module.operation)
        if op.name == "affine.for"
    }
    assert steps == {1, 4, wanted}  # four of those that are left over, too
    with context:
        functions = [("before", text), ("after", str(module))]
        machine = Machine([(n, t.replace("@SIDE", f"@{n}")) for n, t in functions], context)
    rng = np.random.default_rng(rows)
    arrays = {name: rng.random((70, 70)) for name in "AB"}
    before, after = machine.call("before", arrays), machine.call("after", arrays)
    np.testing.assert_array_equal(after["A"], before["A"])


NEXT = """
      affine.for %i = 3 to 40 { affine.for %j = 3 to 60 {
        %b = affine.load %B[%i, %j] : KIND
        %t = arith.addf %b, %b : f64
        affine.store %t, %B[%i, %j] : KIND } }"""


@pytest.mark.parametrize(("more", "alone"), [("", True), (NEXT, False)])
def test_no_vectors_are_made_of_rows_behind_each_other(more: str, alone: bool) -> None:
    """Where a function has nothing else, which vectors are good for; threads' parts of it too."""
    kind = "memref<50x70xf64>"
    text = f"""
    func.func @f(%A: {kind}, %B: {kind}) attributes {{{NO_ALIAS}}} {{
      affine.for %t = 0 to 2 {{
        affine.for %i = 1 to 41 {{ affine.for %j = 1 to 61 {{
          %l = affine.load %A[%i, %j - 1] : {kind}
          %r = affine.load %A[%i - 1, %j + 1] : {kind}
          %s = arith.addf %l, %r : f64
          affine.store %s, %A[%i, %j] : {kind} }} }}
      }} {{{PARALLEL}}}
      {more.replace("KIND", kind)}
      return }}"""
    with ir.Context():
        module = ir.Module.parse(text).operation
        run_passes(module, (JamForLatency(), ThreadLoops()))
        part, function = functions_in(module)
        assert (NO_VECTORS in flags_of(function)) == alone
        assert (NO_VECTORS in flags_of(part)) == alone
        assert NOT_INLINED in flags_of(part)
