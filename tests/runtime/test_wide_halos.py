"""Several steps between two exchanges: the bits of the reference, on every number of ranks.

rank 0   [======part======|==]          rows after | are rank 1's, made a second time,
rank 1               [==|======part======]   and forgotten
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.benchmarks.kernel_suite import kernel_program
from avial_lab.program.program import Program
from avial_lab.runtime.launch.cluster import Cluster

THERE_AND_BACK = """
    affine.for %i = 1 to {last} {{ affine.for %j = 1 to 2 {{
      %up = affine.load %A[%i - 1, %j] : {kind}
      %down = affine.load %A[%i + 1, %j] : {kind}
      %left = affine.load %B[%i, %j - 1] : {kind}
      %s = arith.addf %up, %down : f64
      %m = arith.mulf %s, %third : f64
      %r = arith.subf %m, %left : f64
      affine.store %r, %B[%i, %j - 1] : {kind} }} }}
    affine.for %i = 1 to {last} {{ affine.for %j = 0 to 2 {{
      %here = affine.load %B[%i, %j] : {kind}
      %down = affine.load %B[%i + 1, %j] : {kind}
      %s = arith.addf %here, %down : f64
      %m = arith.mulf %s, %third : f64
      affine.store %m, %A[%i, %j] : {kind} }} }}"""
"""The second sweep needs more below than above, and what no sweep wrote in the last row."""

TWO_ROWS_OFF = """
    affine.for %i = 2 to {last} {{ affine.for %j = 0 to 2 {{
      %up = affine.load %A[%i - 2, -%j + 1] : {kind}
      affine.store %up, %B[%i, %j] : {kind} }} }}
    affine.for %i = 0 to {last} {{ affine.for %j = 0 to 2 {{
      %n = arith.index_cast %t : index to i64
      %x = arith.sitofp %n : i64 to f64
      %here = affine.load %B[%i, %j] : {kind}
      %s = arith.addf %here, %x : f64
      affine.store %s, %A[%i, %j] : {kind} }} }}"""
"""From one side alone, over unlike rows, with the number of the step."""

SOMETIMES = """
    affine.for %i = 1 to {last} {{ affine.for %j = 0 to 2 {{
      %here = affine.load %A[%i, %j] : {kind}
      %up = affine.load %A[%i - 1, -%j + 1] : {kind}
      %more = arith.cmpf ogt, %up, %here : f64
      scf.if %more {{ affine.store %up, %B[%i, %j] : {kind} }} }} }}
    affine.for %i = 1 to {last} {{ affine.for %j = 0 to 2 {{
      %here = affine.load %B[%i, %j] : {kind}
      affine.store %here, %A[%i, %j] : {kind} }} }}"""
"""What is not written keeps what it was before the block of steps."""

NEIGHBOURS = """
    affine.for %i = 1 to {last} {{ affine.for %j = 1 to 3 {{
      %up = affine.load %A[%i - 1, %j] : {kind}
      %right = affine.load %A[%i, %j + 1] : {kind}
      %s = arith.addf %up, %right : f64
      %m = arith.mulf %s, %third : f64
      affine.store %m, %B[%i, %j] : {kind} }} }}
    affine.for %i = 1 to {last} {{ affine.for %j = 1 to 3 {{
      %down = affine.load %B[%i + 1, %j] : {kind}
      %left = affine.load %B[%i, %j - 1] : {kind}
      %s = arith.addf %down, %left : f64
      affine.store %s, %A[%i, %j] : {kind} }} }}"""
"""Rows in the middle of a part touch nothing that is under way, and may not go ahead: what is made
beyond them runs over what the rest of the part begins with.
"""

ONE_ROW = """
    affine.for %j = 0 to 4 {{
      %n = arith.index_cast %t : index to i64
      %x = arith.sitofp %n : i64 to f64
      affine.store %x, %A[0, %j] : {kind} }}
    affine.for %i = 1 to {last} {{ affine.for %j = 0 to 4 {{
      %up = affine.load %A[%i - 1, -%j + 3] : {kind}
      %here = affine.load %B[%i, %j] : {kind}
      %m = arith.mulf %up, %third : f64
      %s = arith.addf %m, %here : f64
      affine.store %s, %B[%i, %j] : {kind} }} }}
    affine.for %i = 1 to {last} {{ affine.for %j = 0 to 4 {{
      %here = affine.load %B[%i, %j] : {kind}
      %down = affine.load %B[%i + 1, %j] : {kind}
      %s = arith.addf %here, %down : f64
      %m = arith.mulf %s, %third : f64
      affine.store %m, %A[%i, %j] : {kind} }} }}"""
"""A source in the first row: the rank that has that row goes over it, and whose halo it is in."""

STEPS = {
    "one row": ONE_ROW,
    "neighbours": NEIGHBOURS,
    "there and back": THERE_AND_BACK,
    "two rows off": TWO_ROWS_OFF,
    "sometimes": SOMETIMES,
}


def compiled(steps: str, rows: int, count: int, *, ranks: int, **options: Any) -> Program:
    kind = f"memref<{rows}x4xf64>"
    text = f"""
    func.func @steps(%A: {kind}, %B: {kind}) {{
      %third = arith.constant 0.33 : f64
      affine.for %t = 0 to {count} {{ {steps.format(kind=kind, last=rows - 1)} }}
      return }}"""
    rng = np.random.default_rng(rows)
    arrays = {name: rng.random((rows, 4)) for name in "AB"}
    return avial_lab.compile(text, arrays=arrays, ranks=ranks, **options)


def is_wide(program: Program) -> bool:
    return "avial.halo" in program.stages["placed"].text


@pytest.mark.quick("*-61-13-*,tile-time*-3", "*-17-12-*-2", "neighbours-9-9-*-3")
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(
    ("rows", "count", "sizes"),
    [
        (61, 13, "widen-halos{steps=4}"),
        (61, 13, "widen-halos{steps=4},tile-time{widths=4x6}"),
        (61, 6, "widen-halos{steps=6}"),
        (17, 12, "widen-halos{steps=5}"),  # halos over several neighbours
        (9, 9, "widen-halos{steps=9}"),
    ],
)
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_the_bits_of_the_reference(
    cluster: Cluster, steps: str, rows: int, count: int, sizes: str, ranks: int
) -> None:
    program = compiled(steps, rows, count, ranks=ranks, sizes=sizes)
    assert is_wide(program)
    program.run(cluster, check=True)


@pytest.mark.mpi
def test_messages_are_fewer_and_say_when(cluster: Cluster) -> None:
    wide = compiled(THERE_AND_BACK, 400, 64, ranks=2)
    narrow = compiled(THERE_AND_BACK, 400, 64, ranks=2, without="widen-halos")
    counts = []
    for program in (wide, narrow):
        program.run(cluster, check=True)
        assert program.plan is not None
        counts.append(sum(move.messages for move in program.plan.moves))
    assert 10 * counts[0] < counts[1]
    (loop,) = (v for v in wide.explain().reports if v.name == "loop1")
    assert "steps between two exchanges" in " ".join(loop.reasons)
    assert any(line.startswith("widen-halos{steps=") for line in loop.done)


@pytest.mark.parametrize(
    ("division", "wide"), [("block", True), ("cyclic(4)", False), ("grid", False)]
)
def test_other_divisions_keep_their_phases(division: str, wide: bool) -> None:
    kernel = kernel_program("jacobi-2d", size="SMALL")
    program = avial_lab.compile(
        kernel.text,
        arrays=kernel.arrays,
        scalars=kernel.scalars,
        ranks=4,
        division=division,
        sizes="widen-halos{steps=4}",
    )
    assert is_wide(program) == wide


def test_few_rows_are_not_widened() -> None:
    assert not is_wide(compiled(THERE_AND_BACK, 9, 13, ranks=2))
