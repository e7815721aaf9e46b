"""A program keeps the memory that it allocates for itself, for its next run.

LLVM dialect -> the same, its calls of `malloc` and `free` being those of `memory.c`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.operations import operations_named

TAKE, GIVE = "avial_take", "avial_give"
_NEW = {"malloc": TAKE, "free": GIVE}


@dataclass(frozen=True)
class PoolAllocations:
    """Memory is taken from what the program kept, and given back to that.

    before:  llvm.func @malloc(i64) -> !llvm.ptr                          %p = llvm.call @malloc(%n)
    after:   llvm.func @avial_take(i64) -> (!llvm.ptr {llvm.noalias})     … @avial_take(%n)
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_named(module, "llvm.func"):
                if not len(op.regions[0].blocks):
                    _rename(op, "sym_name", ir.StringAttr.get)
            for op in operations_named(module, "llvm.call"):
                if "callee" in op.attributes:
                    _rename(op, "callee", ir.FlatSymbolRefAttr.get)

    def __str__(self) -> str:
        return "pool-allocations"


def _rename(op: ir.Operation, attribute: str, named: Callable[[str], ir.Attribute]) -> None:
    old = op.attributes[attribute]
    name = ir.StringAttr(old).value if attribute == "sym_name" else ir.FlatSymbolRefAttr(old).value
    if name not in _NEW:
        return
    op.attributes[attribute] = named(_NEW[name])
    if op.name == "llvm.func" and _NEW[name] == TAKE:
        fact = ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})
        op.attributes["res_attrs"] = ir.ArrayAttr.get([fact])
