"""Switches on an index compare all of its 64 bits.

Module with scf.index_switch -> module with one scf.if in the other for its cases.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, scf

from avial_lab.compiler.ir.operations import operations_named


@dataclass(frozen=True)
class SwitchesToIfs:
    """Compare one case after the other.

    before:  %r = scf.index_switch %i -> i32 case 3 { yield %a } default { yield %b }
    after:   %r = scf.if %i == 3 -> i32 { yield %a } else { yield %b }

    MLIR's own lowering makes a switch on 32 bits of it, to which 2^32 + 3 is 3. LLVM makes a switch
    of the comparisons again.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            # From the inside to the outside: what is moved is as it will be.
            for op in reversed(operations_named(module, "scf.index_switch")):
                with ir.InsertionPoint(op), op.location:
                    values = _compared(op, list(ir.DenseI64ArrayAttr(op.attributes["cases"])))
                for old, new in zip(op.results, values, strict=True):
                    old.replace_all_uses_with(new)
                op.erase()

    def __str__(self) -> str:
        return "switches-to-ifs"


def _compared(op: ir.Operation, cases: list[int]) -> list[ir.Value]:
    """The results of the branches that are written at the insertion point; the bodies of the cases,
    and of the default, are moved into them.
    """
    default, *bodies = (region.blocks[0] for region in op.regions)
    kinds = [result.type for result in op.results]

    def write(number: int) -> list[ir.Value]:
        case = arith.constant(ir.IndexType.get(), cases[number])
        taken = arith.cmpi(arith.CmpIPredicate.eq, op.operands[0], case)
        branch = scf.IfOp(taken, kinds, has_else=True)
        _move(bodies[number], branch.then_block)
        otherwise = branch.elseRegion.blocks[0]
        if number + 1 == len(cases):
            _move(default, otherwise)
        else:
            with ir.InsertionPoint(otherwise):
                scf.YieldOp(write(number + 1))
        return list(branch.results)

    if cases:
        return write(0)
    *inner, end = [view.operation for view in default.operations]
    for each in inner:
        each.move_before(op)
    return list(end.operands)


def _move(block: ir.Block, into: ir.Block) -> None:
    """All of a body, its end too."""
    point = ir.InsertionPoint(into)
    for view in list(block.operations):
        op = view.operation
        op.detach_from_parent()
        point.insert(op)
