"""What a kernel is handed: pointers and numbers, of which arrays are made in it.

Type of an argument -> the words of its descriptor that the kernel needs; those -> the argument.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import llvm

from avial_lab.compiler.ir.dialects.avial import CAST
from avial_lab.compiler.ir.views import DYNAMIC

ALIGNED, OFFSET = 1, 2
"""Words of a memref's descriptor: {allocated, aligned, offset, sizes[r], strides[r]}."""


def plain_words(kind: ir.Type) -> list[int]:
    """Of a memref where it begins and what is known only at run time; of a number itself.

    memref<4x5xf32>: [1]        memref<?x5xf32>: [1, 3]        f32: [0]
    """
    if not isinstance(kind, ir.MemRefType):
        return [0]
    known = _fields(kind)
    return [ALIGNED, *(word for word, value in known.items() if value == DYNAMIC)]


def _fields(kind: ir.MemRefType) -> dict[int, int]:
    """By the words from the offset on what the type says of each."""
    strides, offset = kind.get_strides_and_offset()
    return dict(enumerate([offset, *kind.shape, *strides], start=OFFSET))


def plain_types(kind: ir.Type) -> list[ir.Type]:
    """Of those words, in a kernel."""
    if not isinstance(kind, ir.MemRefType):
        return [kind]
    i64 = ir.IntegerType.get_signless(64)
    return [llvm.PointerType.get(), *[i64] * (len(plain_words(kind)) - 1)]


def array_of(kind: ir.MemRefType, words: Sequence[ir.Value]) -> ir.Value:
    """The array, of the words that are given, at the insertion point."""
    i64 = ir.IntegerType.get_signless(64)
    extents = f", array<{kind.rank} x i64>" * 2 if kind.rank else ""
    pointer, *rest = words
    whole = ir.Type.parse(f"!llvm.struct<({pointer.type}, {pointer.type}, i64{extents})>")
    value = ir.Operation.create("llvm.mlir.poison", [whole]).result
    given = iter(rest)
    for place in (0, ALIGNED):
        value = llvm.insertvalue(value, pointer, [place])
    for word, known in _fields(kind).items():
        field = next(given) if known == DYNAMIC else _constant(i64, known)
        inner = word - OFFSET - 1
        place = [OFFSET] if inner < 0 else [3 + inner // kind.rank, inner % kind.rank]
        value = llvm.insertvalue(value, field, place)
    return ir.Operation.create(CAST, [kind], [value]).result


def _constant(kind: ir.Type, number: int) -> ir.Value:
    return llvm.mlir_constant(ir.IntegerAttr.get(kind, number))
