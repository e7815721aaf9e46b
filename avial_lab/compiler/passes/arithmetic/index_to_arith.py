"""The index dialect's arithmetic in words of arith, on which MLIR's rewrites are right.

Module with index.add, index.cmp, … -> the same with arith.addi, arith.cmpi, … of type index.

MLIR 22 takes `index.cmp` of a difference and 0 for a comparison of its operands, which a wrap makes
wrong (llvm#216042), and negates in `index.ceildivs`, which the least number cannot be (llvm PR
223127), in its constant folder as in its lowering.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.ir.operations import operations_in


@dataclass(frozen=True)
class IndexToArith:
    """Nothing of the index dialect stays.

    before:  %d = index.sub %n, %two             after:  %d = arith.subi %n, %two : index
             %r = index.cmp ule(%d, %zero)               %r = arith.cmpi ule, %d, %zero : index
             %q = index.ceildivs %m, %two                %q = arith.ceildivsi %m, %two : index

    An index has 64 bits here, as in all of this compiler.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_in(module):
                write = _IN_ARITH.get(op.name)
                if write is not None:
                    with ir.InsertionPoint(op), op.location:
                        op.results[0].replace_all_uses_with(write(op))
                    op.erase()

    def __str__(self) -> str:
        return "index-to-arith"


Write = Callable[[ir.Operation], ir.Value]


def _named(name: str) -> Write:
    return partial(_same, f"arith.{name}")


def _same(name: str, op: ir.Operation) -> ir.Value:
    kinds = [result.type for result in op.results]
    return ir.Operation.create(name, kinds, list(op.operands)).results[0]


def _constant(op: ir.Operation) -> ir.Value:
    kinds = [result.type for result in op.results]
    value = {"value": op.attributes["value"]}
    return ir.Operation.create("arith.constant", kinds, attributes=value).results[0]


def _compared(op: ir.Operation) -> ir.Value:
    spelled = str(op.attributes["pred"]).partition("<cmp_predicate ")[2].removesuffix(">")
    return arith.cmpi(arith.CmpIPredicate[spelled], *op.operands)


def _cast(op: ir.Operation, *, signed: bool) -> ir.Value:
    """index to i8 is index_cast, which keeps the low bits; to i128 it extends."""
    write = arith.index_cast if signed else arith.index_castui
    return write(op.results[0].type, op.operands[0])


def _size(op: ir.Operation) -> ir.Value:
    return arith.constant(ir.IndexType.get(), 64)


_IN_ARITH: dict[str, Write] = {
    **{
        f"index.{name}": _named(other)
        for name, other in {
            "add": "addi", "sub": "subi", "mul": "muli", "divs": "divsi", "divu": "divui",
            "ceildivs": "ceildivsi", "ceildivu": "ceildivui", "floordivs": "floordivsi",
            "rems": "remsi", "remu": "remui", "maxs": "maxsi", "maxu": "maxui", "mins": "minsi",
            "minu": "minui", "shl": "shli", "shrs": "shrsi", "shru": "shrui", "and": "andi",
            "or": "ori", "xor": "xori",
        }.items()
    },
    "index.casts": partial(_cast, signed=True),
    "index.castu": partial(_cast, signed=False),
    "index.cmp": _compared,
    "index.constant": _constant,
    "index.bool.constant": _constant,
    "index.sizeof": _size,
}  # fmt: skip
