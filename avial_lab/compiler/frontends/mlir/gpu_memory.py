"""What other compilers have the host do with a GPU's memory and queues, in program order.

Module with tokens, allocations and copies of the gpu dialect -> memref.alloc, memref.copy,
memref.dealloc: which array is where, and what is copied when, is derived of what reads and writes.
"""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from mlir.dialects import linalg, memref

from avial_lab.compiler.frontends.mlir.gpu_functions import SEGMENTS, launch_again
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.core.errors import VerifyError

_GLOBAL = (
    "1",
    "1 : i64",
    "1 : i32",
    "#gpu.address_space<global>",
    "#spirv.storage_class<CrossWorkgroup>",
    "#spirv.storage_class<StorageBuffer>",
)
"""How a GPU's memory is written; that of a block and of a thread stays what it is."""


def settle_gpu_memory(module: ir.Module) -> None:
    """Memory of GPUs is memory, and what waits for a token comes later in the text anyway.

    before:  %t = gpu.wait async  %m, %u = gpu.alloc async [%t] () : memref<4xf32, 1>
             %v = gpu.memcpy async [%u] %m, %A : memref<4xf32, 1>, memref<4xf32>
    after:   %m = memref.alloc() : memref<4xf32>  memref.copy %A, %m

    Raises VerifyError where a token goes through control flow.
    """
    found = list(operations_in(module.operation))
    if not any(op.name.startswith("gpu.") for op in found):
        return
    with module.context, ir.Location.unknown():
        _drop_global_spaces(found)
        for op in reversed(found):  # what waits before what it waits for
            if op.name in _PLAIN:
                with ir.InsertionPoint(op), op.location:
                    _PLAIN[op.name](op)
                _refuse_users(op)
                op.erase()
            elif op.name == "gpu.launch" and _tokens(op):
                _refuse_users(op)
                _in_order(op)


def _refuse_users(op: ir.Operation) -> None:
    """VerifyError where something that does not wait for its token uses it."""
    for result in op.results:
        for use in result.uses:
            raise VerifyError(
                f"{use.owner.name} hands on a token of the gpu dialect",
                span=span_of(use.owner.location),
                hint="leave the tokens out: what reads an array comes after what writes it",
            )


def _tokens(launch: ir.Operation) -> bool:
    return len(launch.results) > 0 or ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS])[0] > 0


def _alloc(op: ir.Operation) -> None:
    kind = ir.MemRefType(op.results[0].type)
    waits, sizes, symbols = list(ir.DenseI32ArrayAttr(op.attributes[SEGMENTS]))
    operands = list(op.operands)[waits:]
    fresh = memref.alloc(kind, operands[:sizes], operands[sizes : sizes + symbols])
    op.results[0].replace_all_uses_with(fresh)


def _dealloc(op: ir.Operation) -> None:
    memref.dealloc(list(op.operands)[-1])


def _memcpy(op: ir.Operation) -> None:
    target, source = list(op.operands)[-2:]  # memref.copy names the source first
    memref.copy(source, target)


def _memset(op: ir.Operation) -> None:
    target, value = list(op.operands)[-2:]
    linalg.fill(value, outs=[target])


def _nothing(op: ir.Operation) -> None:
    """Told to a runtime that is not here."""


_PLAIN: dict[str, Callable[[ir.Operation], None]] = {
    "gpu.alloc": _alloc,
    "gpu.dealloc": _dealloc,
    "gpu.memcpy": _memcpy,
    "gpu.memset": _memset,
    "gpu.wait": _nothing,
    "gpu.host_register": _nothing,
    "gpu.host_unregister": _nothing,
    "gpu.set_default_device": _nothing,
}


def _in_order(launch: ir.Operation) -> None:
    """The launch without tokens."""
    segments = list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))
    launch_again(launch, list(launch.operands)[segments[0] :], [0, *segments[1:]])


def _drop_global_spaces(found: list[ir.Operation]) -> None:
    for op in found:
        values = [*op.results, *(a for region in op.regions for b in region for a in b.arguments)]
        for value in values:
            value.set_type(_plain(value.type))
        for key in ("function_type", "type"):
            if key in op.attributes and isinstance(op.attributes[key], ir.TypeAttr):
                op.attributes[key] = ir.TypeAttr.get(_plain(ir.TypeAttr(op.attributes[key]).value))
    for op in found:
        if op.name == "memref.memory_space_cast" and op.operands[0].type == op.results[0].type:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()


def _plain(kind: ir.Type) -> ir.Type:
    if isinstance(kind, ir.MemRefType) and str(kind.memory_space) in _GLOBAL:
        return ir.MemRefType.get(list(kind.shape), kind.element_type, kind.layout)
    if isinstance(kind, ir.FunctionType):
        return ir.FunctionType.get([*map(_plain, kind.inputs)], [*map(_plain, kind.results)])
    return kind
