"""Innermost loops whose iterations touch no memory that another one writes, for the vectoriser.

Functions of loops -> the same, such loops marked. LLVM tells apart what one array's rows are with
checks at run time, if at all; here it is known.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.accesses.no_alias import ALLOCATIONS, functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import innermost_loops, kept_nests
from avial_lab.compiler.analysis.polyhedral.dependences import carried_among
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import ArrayKind, Scop
from avial_lab.compiler.ir.attributes import INDEPENDENT
from avial_lab.compiler.ir.effects import STORES
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.remarks import add_remark, loop_name

NAME = "independent-accesses"


@dataclass(frozen=True)
class IndependentAccesses:
    """Mark the innermost loops that carry no dependence through memory.

    before:  affine.for %j { A[i, j] -= %l * A[k, j] }        in a loop where i > k
    after:   the same {avial.independent}

    What a loop hands on to its next iteration is no memory.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                for nest in kept_nests(function):
                    mark_rows(nest)

    def __str__(self) -> str:
        return NAME


def mark_rows(nest: ir.Operation) -> None:
    """Mark those innermost loops of the nest whose iterations meet nowhere."""
    loops = [loop for loop in innermost_loops(nest) if _stores(loop)]
    scop = read_scop(nest) if loops else None
    for loop in loops:
        assert scop is not None
        if _independent(scop, loop):
            loop.attributes[INDEPENDENT] = ir.UnitAttr.get()
            add_remark(
                loop, NAME, f"iterations of {loop_name(loop)} are independent and may be vectorised"
            )


def _stores(loop: ir.Operation) -> bool:
    """Whether it writes memory, and all of what it does is understood by those who lower it."""
    inside = list(operations_in(loop))
    return any(op.name in STORES for op in inside) and not any(
        op.name in ALLOCATIONS for op in inside
    )


def _independent(scop: Scop, loop: ir.Operation) -> bool:
    (own,) = scop.loops_of(loop)
    inside = scop.within(own)
    if any(a.array.kind is ArrayKind.EFFECT for s in inside for a in s.accesses):
        return False
    return not any(d.array.kind is ArrayKind.MEMORY for d in carried_among(own, inside))
