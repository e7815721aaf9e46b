"""Copies to a block's memory that a device makes while its threads go on, made where they are asked
for.

Launch with nvgpu.device_async_copy -> the same with loads and stores in their place.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, memref, scf

from avial_lab.compiler.ir.operations import operations_in, operations_named

_COPY = "nvgpu.device_async_copy"
COPYING = (_COPY, "nvgpu.device_async_create_group", "nvgpu.device_async_wait")


def copy_at_once(launch: ir.Operation) -> None:
    """Who waits for such copies finds them done.

    before:  %t = nvgpu.device_async_copy %a[%i], %s[%j], 2 : memref<…> to memref<…, 3>
             %g = nvgpu.device_async_create_group %t    nvgpu.device_async_wait %g
    after:   memref.store (memref.load %a[%i]), %s[%j]    … %a[%i + 1] …
    """
    for op in reversed(list(operations_in(launch))):
        if op.name in COPYING and op.name != _COPY:
            op.erase()
    for op in operations_named(launch, _COPY):
        with ir.InsertionPoint(op), op.location:
            _copy(op)
        op.erase()


def _copy(op: ir.Operation) -> None:
    """Element by element; zeros behind as many as there are of the source, where it says that."""
    (to,), at, (source,), begins, given = _parts(op)
    kind, index = ir.MemRefType(to.type).element_type, ir.IndexType.get()
    for k in range(ir.IntegerAttr(op.attributes["dstElements"]).value):
        here = arith.constant(index, k)
        place = [*begins[:-1], arith.addi(begins[-1], here)]
        if given:
            is_there = arith.cmpi(arith.CmpIPredicate.ult, here, given[0])
            value = _or_zero(is_there, source, place, kind)
        else:
            value = memref.load(source, place)
        memref.store(value, to, [*at[:-1], arith.addi(at[-1], here)])


def _or_zero(
    is_there: ir.Value, source: ir.Value, place: Sequence[ir.Value], kind: ir.Type
) -> ir.Value:
    branch = scf.IfOp(is_there, [kind], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([memref.load(source, place)])
    with ir.InsertionPoint(branch.elseRegion.blocks[0]):
        none = 0.0 if isinstance(kind, ir.FloatType) else 0
        scf.YieldOp([arith.constant(kind, none)])
    return branch.results[0]


def _parts(op: ir.Operation) -> list[list[ir.Value]]:
    """Target, its subscripts, source, its subscripts, and how many elements are copied of it."""
    operands, parts = list(op.operands), list[list[ir.Value]]()
    for size in ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]):
        parts.append(operands[:size])
        operands = operands[size:]
    return parts
