"""Arithmetic of whole numbers by its definition: divisions that round up or down, and no promises.

Module -> the same without `index.ceildivs`, `arith.ceildivsi` and the like, and without flags.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.ir.operations import operations_in, operations_named
from avial_lab.compiler.worker.reference.forms import ceil_division, floor_division, number


@dataclass(frozen=True)
class ScalarsByDefinition:
    """A division is a quotient, a rest, and one more or less; a sum that may not wrap is a sum.

    before:  %q = index.ceildivs %a, %b            %s = arith.addi %x, %y overflow<nsw>
    after:   %t = arith.divsi %a, %b               %s = arith.addi %x, %y
             %r = arith.remsi %a, %b
             %q = %t + 1 where %r is not 0 and has the sign of %b, else %t

    MLIR's own code for `index.ceildivs` negates, which the least number cannot be; it and its
    constant folder say +2^62 for -2^63 by 2 (llvm PR 223127). What breaks a promise (`nsw`, `nuw`,
    `exact`, `disjoint`, `nneg`) has the value that the operation has without it.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_in(module):
                _take_promises_back(op)
                write = _DEFINITIONS.get(op.name)
                if write is not None:
                    with ir.InsertionPoint(op), op.location:
                        op.results[0].replace_all_uses_with(write(*op.operands))
                    op.erase()

    def __str__(self) -> str:
        return "scalars-by-definition"


@dataclass(frozen=True)
class SwitchesByDefinition:
    """A switch asks for the number of its case, which is small, whatever the case is.

    before:  scf.index_switch %v case 4294967299 {…} case 7 {…} default {…}
    after:   %k = arith.select (%v == 4294967299), 0, (arith.select (%v == 7), 1, 2)
             scf.index_switch %k case 0 {…} case 1 {…} default {…}

    MLIR's lowering compares 32 bits.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_named(module, "scf.index_switch"):
                cases = list(ir.DenseI64ArrayAttr(op.attributes["cases"]))
                with ir.InsertionPoint(op), op.location:
                    which = number(len(cases))
                    for k, case in reversed(list(enumerate(cases))):
                        equal = arith.cmpi(arith.CmpIPredicate.eq, op.operands[0], number(case))
                        which = arith.select(equal, number(k), which)
                op.operands[0] = which
                op.attributes["cases"] = ir.DenseI64ArrayAttr.get(list(range(len(cases))))

    def __str__(self) -> str:
        return "switches-by-definition"


def _take_promises_back(op: ir.Operation) -> None:
    """Of arith, and of LLVM's own operations in the text."""
    if "overflowFlags" in op.attributes:
        none = f"#{op.name.partition('.')[0]}.overflow<none>"
        op.attributes["overflowFlags"] = ir.Attribute.parse(none)
    for promise in ("isExact", "isDisjoint", "nonNeg"):
        if promise in op.attributes:
            del op.attributes[promise]


def _unsigned_ceil(left: ir.Value, right: ir.Value) -> ir.Value:
    quotient, rest = arith.divui(left, right), arith.remui(left, right)
    kind = left.type
    exact = arith.cmpi(arith.CmpIPredicate.eq, rest, number(0, kind))
    return arith.select(exact, quotient, arith.addi(quotient, number(1, kind)))


_DEFINITIONS = {
    "arith.ceildivsi": ceil_division,
    "arith.ceildivui": _unsigned_ceil,
    "arith.floordivsi": floor_division,
    "index.ceildivs": ceil_division,
    "index.ceildivu": _unsigned_ceil,
    "index.floordivs": floor_division,
}
