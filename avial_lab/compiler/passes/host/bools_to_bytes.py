"""Arrays of i1 as arrays of bytes, 0 or 1, as NumPy keeps them.

Module with memref<…xi1> -> module without. (LLVM's lowering of an i1 load aborts in this MLIR.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.core.errors import PassError

if TYPE_CHECKING:
    from typing_extensions import Buffer

_LOADS = ("memref.load", "vector.load")
_STORES = ("memref.store", "vector.store")
_PLAIN = frozenset(
    {
        "func.func",
        "func.call",
        "func.return",
        "memref.alloc",
        "memref.alloca",
        "memref.dealloc",
        "memref.dim",
        "memref.cast",
        "memref.subview",
        "memref.view",
        "memref.reinterpret_cast",
        "memref.collapse_shape",
        "memref.expand_shape",
        "memref.transpose",
        "memref.global",
        "memref.get_global",
        "memref.memory_space_cast",
        "memref.extract_strided_metadata",
        "memref.extract_aligned_pointer_as_index",
        "arith.select",
        "scf.yield",
        "scf.if",
        "scf.for",
        "scf.while",
        "scf.condition",
        "memref.assume_alignment",
        "mpi.isend",
        "mpi.irecv",
        "mpi.send",
        "mpi.recv",
        "memref.rank",
    }
)
"""What means the same for bytes as for bools."""


@dataclass(frozen=True)
class BoolsToBytes:
    """Change the arrays' type; loads compare with 0, stores extend.

    before:  %x = memref.load %a[%i] : memref<8xi1>
    after:   %b = memref.load %a[%i] : memref<8xi8>   %x = arith.trunci %b : i8 to i1
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context, ir.Location.unknown(module.context):
            ops = list(operations_in(module))
            if not any(map(_makes_bools, ops)):
                return
            for op in ops:
                if _touches_bools(op):
                    _check(op)
            for op in ops:
                _change_types(op)
                if op.name in _LOADS or op.name in _STORES:
                    _change_access(op)

    def __str__(self) -> str:
        return "bools-to-bytes"


def _makes_bools(op: ir.Operation) -> bool:
    """Whether it is where an array of bools comes from."""
    if len(op.regions):
        blocks = [block for region in op.regions for block in region.blocks]
        if any(_is_bools(each.type) for block in blocks for each in block.arguments):
            return True
    if op.name in ("func.func", "memref.global"):  # they may have no body, and no result
        return "xi1" in str(op.attributes["function_type" if op.name == "func.func" else "type"])
    return any(_is_bools(result.type) for result in op.results)


def _touches_bools(op: ir.Operation) -> bool:
    return any(_is_bools(value.type) for value in [*op.operands, *op.results])


def _check(op: ir.Operation) -> None:
    if op.name not in _PLAIN and op.name not in _LOADS and op.name not in _STORES:
        raise PassError(
            f"{op.name} on an array of i1 is not yet lowered",
            span=span_of(op.location),
            hint="use an array of i8",
        )


def _is_bools(kind: ir.Type) -> bool:
    return isinstance(kind, ir.MemRefType) and str(kind.element_type) == "i1"


def _bytes(kind: ir.Type) -> ir.Type:
    if not _is_bools(kind):
        return kind
    old = ir.MemRefType(kind)
    i8 = ir.IntegerType.get_signless(8)
    return ir.MemRefType.get(list(old.shape), i8, old.layout, old.memory_space)


def _change_types(op: ir.Operation) -> None:
    for result in op.results:
        if _is_bools(result.type):
            result.set_type(_bytes(result.type))
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                if _is_bools(argument.type):
                    argument.set_type(_bytes(argument.type))
    if op.name == "func.func":
        old = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        new = ir.FunctionType.get([_bytes(t) for t in old.inputs], [_bytes(t) for t in old.results])
        op.attributes["function_type"] = ir.TypeAttr.get(new)
    elif op.name == "memref.global":
        _change_global(op)


def _change_global(op: ir.Operation) -> None:
    old = ir.TypeAttr(op.attributes["type"]).value
    if not _is_bools(old):
        return
    op.attributes["type"] = ir.TypeAttr.get(_bytes(old))
    if "initial_value" in op.attributes and "dense" in str(op.attributes["initial_value"]):
        values = np.array(ir.DenseElementsAttr(op.attributes["initial_value"]), dtype=np.int8)
        fixed = np.ascontiguousarray(values.reshape(list(ir.MemRefType(old).shape)))
        op.attributes["initial_value"] = ir.DenseElementsAttr.get(cast("Buffer", fixed))


def _change_access(op: ir.Operation) -> None:
    """The array is bytes by now; the value outside stays a bool."""
    array = op.operands[0 if op.name in _LOADS else 1]
    value = op.results[0] if op.name in _LOADS else op.operands[0]
    element = ir.MemRefType(array.type).element_type
    if not _is_bool(value.type) or str(element) != "i8":
        return
    wide = _wide(value.type)
    if op.name in _STORES:
        with ir.InsertionPoint(op), op.location:
            op.operands[0] = arith.extui(wide, value)
        return
    with ir.InsertionPoint.after(op), op.location:
        narrow = arith.TruncIOp(value.type, value)
    value.replace_all_uses_except(narrow.result, narrow.operation)
    value.set_type(wide)


def _is_bool(kind: ir.Type) -> bool:
    if isinstance(kind, ir.VectorType):
        return str(kind.element_type) == "i1"
    return str(kind) == "i1"


def _wide(kind: ir.Type) -> ir.Type:
    i8 = ir.IntegerType.get_signless(8)
    return ir.VectorType.get(list(kind.shape), i8) if isinstance(kind, ir.VectorType) else i8
