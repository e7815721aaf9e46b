"""Drivers and the functions made of their loops compute what the loops in one function did."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avial_lab.compiler.passes.loops.threads import thread_loops
from avial_lab.compiler.passes.loops.threads.outline_drivers import ALONE, OutlineDrivers
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.compiler.passes.loops.threads.test_thread_loops import check_same, threaded
from tests.quick import examples

PIECES = {
    "a sum and a maximum handed on": """
      %sum{k}, %most{k} = affine.for %i = 0 to 7 iter_args(%s = %x, %m = %last) -> (i64, i64) {{
        %a = affine.load %A[%i] : memref<?xi64>
        %next = arith.addi %s, %a : i64
        %more = arith.maxsi %m, %a : i64
        affine.yield %next, %more : i64, i64 }}
      %both{k} = arith.xori %sum{k}, %most{k} : i64
      affine.store %both{k}, %A[%t] : memref<?xi64>""",
    "what threads share": """
      affine.for %i = 0 to 7 {{ affine.for %j = 0 to 7 {{
        %b = affine.load %B[%i, %j] : memref<?x?xi64>
        %a = affine.load %A[%j] : memref<?xi64>
        %c = arith.addi %b, %a : i64
        affine.store %c, %B[%i, %j] : memref<?x?xi64> }} }}""",
    "each from the one before": """
      affine.for %i = 1 to 7 {{
        %b = affine.load %B[%t, %i] : memref<?x?xi64>
        %a = affine.load %A[%i - 1] : memref<?xi64>
        %c = arith.subi %b, %a : i64
        affine.store %c, %A[%i] : memref<?xi64> }}""",
    "a nest of which each row needs the one before": """
      affine.for %i = 1 to 7 {{ affine.for %j = 1 to 7 {{
        %b = affine.load %B[%i - 1, %j - 1] : memref<?x?xi64>
        %c = affine.load %B[%i, %j - 1] : memref<?x?xi64>
        %d = arith.addi %b, %c : i64
        affine.store %d, %B[%i, %j] : memref<?x?xi64> }} }}""",
}
SHARED = PIECES["what threads share"]


@settings(max_examples=examples(12), deadline=None, suppress_health_check=SLOW)
@given(
    before=st.lists(st.sampled_from([*PIECES.values()]), min_size=1, max_size=3),
    after=st.lists(st.sampled_from([*PIECES.values()]), max_size=2),
    threads=st.sampled_from([2, 3]),
)
def test_loops_in_any_order(before: list[str], after: list[str], threads: int) -> None:
    pieces = [*before, SHARED, *after]
    body = "".join(piece.format(k=k) for k, piece in enumerate(pieces))
    text = f"""func.func @f(%A: memref<?xi64>, %B: memref<?x?xi64>, %n: index, %x: i64) {{
      affine.for %t = 0 to 6 {{
      %last = affine.load %A[%t] : memref<?xi64> {body} }}
      return }}"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thread_loops, "LINES", 1)  # else a short row is one part
        plain, split, marked, sliced = threaded(
            text, threads=threads, ordered=False, more=[OutlineDrivers(least=0)]
        )
        assert marked
        # A nest whose rows are divided stands there once more, for one thread.
        alone = bool(sliced) or any(piece != SHARED for piece in pieces)
        assert (ALONE in str(split)) == alone
        check_same(plain, split, text)
