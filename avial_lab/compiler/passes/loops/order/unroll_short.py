"""Loops of a few iterations inside others, written out: what is around them is a plain nest again.

Functions of loops -> the same operations in the same order, so the same bits; the loop over
elements is the innermost one, which vectors, tiles and rows side by side are made of.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.analysis.parallelism.marked_loops import nearest_loops
from avial_lab.compiler.analysis.polyhedral.loop_ends import steps_of
from avial_lab.compiler.codegen.loops.unroll_and_jam import Values, copy_with, variable_of
from avial_lab.compiler.ir.effects import LOADS, STORES
from avial_lab.compiler.ir.operations import (
    LOOPS,
    operations_in,
    operations_named,
)

MOST_OPERATIONS = 400
"""In what comes of it: a stencil of 3 × 3 × 3 points has some 150."""


@dataclass(frozen=True)
class UnrollShort:
    """Write out loops of few iterations that read neighbours of what the nest around them writes.

    before:  affine.for %j { %s = affine.for %q = 0 to 3 iter_args(%a = %zero) -> (f64) {
               %t = math.fma %W[%q], %A[%j + %q], %a  affine.yield %t }  affine.store %s, %A[%j] }
    after:   affine.for %j { %a = math.fma %W[0], %A[%j + 0], %zero  …
               %s = math.fma %W[2], %A[%j + 2], %b  affine.store %s, %A[%j] }

    Such a nest needs tiles over time or rows side by side, which are made of plain nests. Others
    LLVM unrolls as well, and later. A loop that stores to different elements stays: they may be
    the rows of a contraction. So does the outermost one of a nest.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for nest in list(nearest_loops(module)):
                stored = {op.operands[1] for op in operations_in(nest) if op.name in STORES}
                for loop in list(nearest_loops(nest)):
                    _write_out_in(loop, stored)

    def __str__(self) -> str:
        return "unroll-short"


def _write_out_in(loop: ir.Operation, stored: Set[ir.Value]) -> None:
    """The loops in this one first, then it itself, where nothing is left of those."""
    for inner in list(nearest_loops(loop)):
        _write_out_in(inner, stored)
    steps = steps_of(loop)
    if steps is None or operations_named(loop, *LOOPS):
        return
    small = len(steps) * len(list(operations_in(loop))) <= MOST_OPERATIONS
    if small and _looks_around(loop, stored):
        write_out(loop, steps)


def _looks_around(loop: ir.Operation, stored: Set[ir.Value]) -> bool:
    """Whether its iterations read different elements of an array in `stored`, and write none that
    are different.
    """
    moving: set[ir.Value] = {variable_of(loop)}
    found = False
    for op in operations_in(loop):
        moves = any(operand in moving for operand in op.operands)
        if op.name in STORES and any(index in moving for index in list(op.operands)[2:]):
            return False
        found = found or (moves and op.name in LOADS and op.operands[0] in stored)
        if moves:
            moving.update(op.results)
    return found


def write_out(loop: ir.Operation, steps: range) -> None:
    """Its body once for each step; what one hands on is known to the next."""
    block = loop.regions[0].blocks[0]
    *body, end = [view.operation for view in block.operations]
    variable, *carried = block.arguments
    operands = list(loop.operands)
    handed = operands[len(operands) - len(carried) :]
    with ir.InsertionPoint(loop), loop.location:
        for step in steps:
            known: Values = {variable: arith.constant(variable.type, step)}
            known.update(zip(carried, handed, strict=True))
            copy_with(body, known)
            handed = [known.get(value, value) for value in end.operands]
    for result, value in zip(loop.results, handed, strict=True):
        result.replace_all_uses_with(value)
    loop.erase()
