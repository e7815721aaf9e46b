"""Before a loop whose bounds a task has loaded: will an access in it leave its array?

Module of task functions -> the same with a check before each such loop; `leave-tasks` makes it a
way out of the function. Where nothing is loaded there is nothing to check: what is known when the
program is compiled was checked then, and what depends on data in each iteration `--check` looks at.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.out_of_bounds import leaving
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.codegen.outside import Parameters, leave_if
from avial_lab.compiler.ir.effects import LOADS
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import functions_in


@dataclass(frozen=True)
class CheckLoaded:
    """Compare what a loop will reach with its arrays' sizes, once.

    before:  %n = memref.load %N[%c0]
             affine.for %i = 0 to %n { affine.store %x, %A[%i] : memref<16xf64> }
    after:   %n = memref.load %N[%c0]
             %outside = arith.cmpi sge, %n, %c17        %index = %n - 1
             llvm.call @avial.leave_if(%outside, %index) {avial.access_outside = ["A[i]", 0, …]}
             affine.for %i = 0 to %n { affine.store %x, %A[%i] : memref<16xf64> }
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_in(module):
                loaded = _loaded(function)
                if loaded:
                    _check(module, function, loaded)

    def __str__(self) -> str:
        return "check-loaded"


def _loaded(function: ir.Operation) -> set[ir.Value]:
    """The numbers that it computes outside of loops from what it loads there."""
    found: set[ir.Value] = set()
    for block in list(function.regions[0].blocks)[:1]:
        for view in block.operations:
            op = view.operation
            if op.name in LOADS or any(operand in found for operand in op.operands):
                found.update(result for result in op.results if _is_number(result))
    return found


def _within(value: ir.Value | None, function: ir.Operation) -> bool:
    """Whether it is computed in a loop or a branch of the function."""
    if value is None:
        return False
    block = value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block
    return block != function.regions[0].blocks[0]


def _is_number(value: ir.Value) -> bool:
    return isinstance(value.type, (ir.IndexType, ir.IntegerType))


def _check(module: ir.Operation, function: ir.Operation, loaded: set[ir.Value]) -> None:
    scop = read_scop(function)
    names = [name for name, value in scop.parameters.items() if value in loaded]
    parameters = Parameters(scop)
    for found in leaving(scop, names) if names else ():
        if not parameters.knows(found):
            continue
        if any(_within(scop.parameters.get(name), function) for name in found.parameters):
            continue  # it is not known yet where the check would stand
        outermost = found.statement.op
        while (around := parent_of(outermost)) is not None and around != function:
            outermost = around
        with ir.InsertionPoint(outermost), found.statement.op.location:
            leave_if(module, found, parameters)
