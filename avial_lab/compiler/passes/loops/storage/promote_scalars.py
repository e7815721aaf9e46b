"""Elements that an innermost loop meets in every iteration stay in a register meanwhile.

Functions of loops -> the same values, with fewer loads and stores. LLVM does the same, but where
other accesses of the loop are to the same array it cannot distinguish rows; the polyhedra can.

Source: D. Callahan, S. Carr, K. Kennedy, Improving register allocation for subscripted variables,
PLDI 1990.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import innermost_loops, kept_nests
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.codegen.loops.promotion import (
    Group,
    fixed_in,
    independent_groups,
    into_value,
    promote,
)
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.ir.remarks import add_remark, listed
from avial_lab.compiler.passes.loops.storage.peel_at_element import cut_at_element

NAME = "promote-scalars"


@dataclass(frozen=True)
class PromoteScalars:
    """Load what does not move before the loop, hand it on, store it behind.

    before:  affine.for %j = 0 to %i { x[i] = x[i] - L[i, j] * x[j] }
    after:   affine.if (0 < %i) {
               %first = affine.load %x[%i]
               %last = affine.for %j = 0 to %i iter_args(%xi = %first) { … affine.yield %rest }
               affine.store %last, %x[%i]
             }

    A loop that does not run touches nothing, as before; nobody asks where what stands before it met
    the element. One in which a single iteration writes what the others read is cut there first.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                for nest in list(kept_nests(function)):
                    for loop in innermost_loops(nest):
                        cut_at_element(loop)
            found = [
                (loop, groups)
                for function in functions_without_aliases(module)
                for nest in kept_nests(function)
                for loop, groups in _promotable(nest)
            ]
            for loop, groups in found:
                _, branch = promote(loop, groups)
                if branch is not None:
                    _ask_before(branch)
            for memory in operations_named(module, "memref.alloca"):
                into_value(memory)

    def __str__(self) -> str:
        return NAME


def _promotable(nest: ir.Operation) -> list[tuple[ir.Operation, list[Group]]]:
    """The innermost loops of `nest` and what stays in registers there."""
    candidates = [(loop, groups) for loop in innermost_loops(nest) if (groups := fixed_in(loop))]
    if not candidates:
        return []
    scop = read_scop(nest)
    kept = [(loop, independent_groups(scop, loop, groups)) for loop, groups in candidates]
    for loop, groups in kept:
        if groups:
            names = listed(dict.fromkeys(_element(scop, group) for group in groups))
            add_remark(loop, NAME, f"{names} kept in a register in loop {scop.loops_of(loop)[0]}")
    return [(loop, groups) for loop, groups in kept if groups]


def _element(scop: Scop, group: Group) -> str:
    return next(str(s.accesses[0]) for s in scop.statements if s.op in group)


def _ask_before(branch: ir.Operation) -> None:
    """Put the loops around under the condition, where there is nothing else in them and it is the
    same for all of their iterations: other passes look for loops in loops.
    """
    loop = parent_of(branch)
    if loop is None or loop.name != "affine.for" or len(loop.results) or len(branch.results):
        return
    variable = loop.regions[0].blocks[0].arguments[0]
    first, *rest = [view.operation for view in loop.regions[0].blocks[0].operations]
    if first != branch or len(rest) > 1 or branch.name != "affine.if":
        return
    if variable in list(branch.operands):
        return
    branch.move_before(loop)
    *inside, end = [view.operation for view in branch.regions[0].blocks[0].operations]
    for op in inside:
        op.move_before(rest[0])
    loop.move_before(end)
    _ask_before(branch)
