"""memref.copy as loops: MLIR's own lowering calls a run-time library that engines do not have.

Module with memref.copy -> module without.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, scf

from avial_lab.compiler.ir.operations import operations_named


@dataclass(frozen=True)
class CopiesToLoops:
    """Copy element by element, in row-major order; LLVM makes a memcpy of it where the memory is
    contiguous.

    before:  memref.copy %a, %b : memref<4x8xf32> to memref<4x8xf32, strided<[16, 1]>>
    after:   scf.for %i … { scf.for %j … { %x = memref.load %a[%i, %j]  memref.store %x, %b[%i, %j]
    } }

    The accesses carry `avial.access = "memref.copy"`, so that a report names what was written.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_named(module, "memref.copy"):
                with ir.InsertionPoint(op), op.location:
                    _copy(op.operands[0], op.operands[1])
                op.erase()

    def __str__(self) -> str:
        return "copies-to-loops"


def _copy(source: ir.Value, target: ir.Value) -> None:
    index = ir.IndexType.get()
    shape = _static_shape(source, target)
    dynamic = ir.ShapedType.get_dynamic_size()
    zero, one = arith.constant(index, 0), arith.constant(index, 1)
    extents = [
        arith.constant(index, extent)
        if extent != dynamic
        else memref.dim(source, arith.constant(index, d))
        for d, extent in enumerate(shape)
    ]
    _nest(source, target, extents, [], zero, one)


def _nest(
    source: ir.Value,
    target: ir.Value,
    extents: list[ir.Value],
    places: list[ir.Value],
    zero: ir.Value,
    one: ir.Value,
) -> None:
    if len(places) == len(extents):
        load = memref.LoadOp(source, places)
        store = memref.StoreOp(load.result, target, places)
        for op in (load, store):
            op.attributes["avial.access"] = ir.StringAttr.get("memref.copy")
        return
    loop = scf.ForOp(zero, extents[len(places)], one)
    with ir.InsertionPoint(loop.body):
        _nest(source, target, extents, [*places, loop.induction_variable], zero, one)
        scf.YieldOp([])


def _static_shape(source: ir.Value, target: ir.Value) -> list[int]:
    """The extents, known where either side knows them."""
    dynamic = ir.ShapedType.get_dynamic_size()
    pairs = zip(ir.MemRefType(source.type).shape, ir.MemRefType(target.type).shape, strict=True)
    return [b if a == dynamic else a for a, b in pairs]
