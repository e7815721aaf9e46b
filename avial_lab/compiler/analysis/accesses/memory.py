"""Operations that touch memory: which elements of which of their operands.

Load, store, copy, vector or linalg operation -> the reader notes its touches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mlir import ir

from avial_lab.compiler.analysis.accesses.linear import ONE, Linear, Window
from avial_lab.compiler.ir.dialects.avial import SEGMENTS, operand_segments
from avial_lab.compiler.ir.views import VIEWS, is_memref

if TYPE_CHECKING:
    from avial_lab.compiler.analysis.accesses.footprints import BodyReader


def _memref_load(reader: BodyReader, op: ir.Operation) -> None:
    operands = op.operands
    indices = reader.indices([operands[k] for k in range(1, len(operands))])
    reader.touch_element(op, operands[0], indices, reads=True, writes=False)


def _memref_store(reader: BodyReader, op: ir.Operation) -> None:
    operands = op.operands
    indices = reader.indices([operands[k] for k in range(2, len(operands))])
    reader.touch_element(op, operands[1], indices, reads=False, writes=True)


def _atomic_rmw(reader: BodyReader, op: ir.Operation) -> None:
    first = 1 if op.name == "memref.atomic_rmw" else 0
    operands = list(op.operands)
    indices = reader.indices(operands[first + 1 :])
    reader.touch_element(op, operands[first], indices, reads=True, writes=True)
    if len(op.regions):
        reader.read_regions(op, certain=True)


def _affine_load(reader: BodyReader, op: ir.Operation) -> None:
    operands = list(op.operands)
    reader.touch_element(
        op, operands[0], reader.affine_indices(op, operands[1:]), reads=True, writes=False
    )


def _affine_store(reader: BodyReader, op: ir.Operation) -> None:
    operands = list(op.operands)
    reader.touch_element(
        op, operands[1], reader.affine_indices(op, operands[2:]), reads=False, writes=True
    )


def _affine_vector(reader: BodyReader, op: ir.Operation) -> None:
    store = op.name == "affine.vector_store"
    operands = list(op.operands)
    memref, rest = (operands[1], operands[2:]) if store else (operands[0], operands[1:])
    vector = operands[0].type if store else op.results[0].type
    _touch_vector(
        reader, op, memref, reader.affine_indices(op, rest), vector, reads=not store, writes=store
    )


def _vector_load(reader: BodyReader, op: ir.Operation) -> None:
    operands = list(op.operands)
    indices = reader.indices(operands[1:])
    _touch_vector(reader, op, operands[0], indices, op.results[0].type, reads=True, writes=False)


def _vector_store(reader: BodyReader, op: ir.Operation) -> None:
    operands = list(op.operands)
    indices = reader.indices(operands[2:])
    _touch_vector(reader, op, operands[1], indices, operands[0].type, reads=False, writes=True)


def _touch_vector(
    reader: BodyReader,
    op: ir.Operation,
    memref: ir.Value,
    indices: Sequence[Linear],
    vector: ir.Type,
    *,
    reads: bool,
    writes: bool,
) -> None:
    shape = list(ir.VectorType(vector).shape)
    windows = [ONE] * (len(indices) - len(shape)) + [Window(1, size) for size in shape]
    reader.touch(op, memref, indices, windows, reads=reads, writes=writes)


def _vector_read(reader: BodyReader, op: ir.Operation) -> None:
    """Of elements that its numbers or its mask choose."""
    reader.touch_whole(op, op.operands[0], reads=True)


def _memref_copy(reader: BodyReader, op: ir.Operation) -> None:
    source, dest = op.operands[0], op.operands[1]
    reader.touch_whole(op, source, reads=True)
    # Source and destination have one shape, so every element of the destination is written.
    reader.touch_whole(op, dest, writes=True, certain=True)


def linalg(reader: BodyReader, op: ir.Operation) -> None:
    """Inputs are read; an output is read too where the body uses its old value."""
    operands = list(op.operands)
    body = op.regions[0].blocks[0] if len(op.regions) else None
    inputs = _inputs(op)
    if body is None or inputs is None or len(body.arguments) != len(operands):
        reader.touch_operands(op)
        return
    memrefs = [operand for operand in operands if is_memref(operand)]
    sizes = [size for operand in memrefs for size in reader.extents(operand)]
    everywhere = all(_some(size) for size in sizes) and _covers_outputs(op)
    for k, operand in enumerate(operands):
        if not is_memref(operand):
            continue
        if k < inputs:
            reader.touch_whole(op, operand, reads=True)
            continue
        old_value_used = any(True for _ in body.arguments[k].uses)
        reader.touch_whole(op, operand, reads=old_value_used, writes=True, certain=everywhere)
    reader.read_regions(op, certain=False)


def _inputs(op: ir.Operation) -> int | None:
    """How many operands are inputs; None where that is not known."""
    if SEGMENTS in op.attributes:
        return operand_segments(op)[0]
    count = len(op.operands)
    if op.name == "linalg.reduce":
        return count // 2
    return count - 1 if op.name in ("linalg.transpose", "linalg.broadcast", "linalg.map") else None


def _some(size: Linear) -> bool:
    """Whether there is an element for sure along a dimension of that size."""
    bounds = size.bounds()
    return bounds is not None and bounds[0] > 0


def _covers_outputs(op: ir.Operation) -> bool:
    """Whether the outputs' indexing maps are plain permutations, so that each element is written.

    Only `linalg.generic` carries its maps; the named operations we trust are elementwise or
    contractions.
    """
    if op.name != "linalg.generic":
        return True
    maps = [ir.AffineMapAttr(item).value for item in ir.ArrayAttr(op.attributes["indexing_maps"])]
    outputs = maps[_inputs(op) :]
    return all(m.is_projected_permutation for m in outputs)


def _dealloc(_reader: BodyReader, _op: ir.Operation) -> None:
    """Frees what the body allocated; touches nothing of the caller's."""


MEMORY: dict[str, Callable[[BodyReader, ir.Operation], None]] = {
    "memref.load": _memref_load,
    "memref.store": _memref_store,
    "memref.atomic_rmw": _atomic_rmw,
    "memref.generic_atomic_rmw": _atomic_rmw,
    "affine.load": _affine_load,
    "affine.store": _affine_store,
    "affine.vector_load": _affine_vector,
    "affine.vector_store": _affine_vector,
    "vector.load": _vector_load,
    "vector.store": _vector_store,
    "vector.transfer_read": _vector_read,
    "vector.gather": _vector_read,
    "vector.maskedload": _vector_read,
    "vector.expandload": _vector_read,
    "memref.copy": _memref_copy,
    "memref.dealloc": _dealloc,
}

# Operations that touch no memory: whole dialects of arithmetic, and these.
SILENT_DIALECTS = {"arith", "math", "index", "complex", "ub"}
SILENT = {
    "omp.terminator", "scf.yield", "scf.reduce.return", "affine.yield", "gpu.terminator",
    "gpu.barrier", "linalg.yield", "linalg.index", "memref.alloc", "memref.alloca",
    "memref.dim", "memref.rank", "memref.get_global", "affine.apply", "affine.min",
    "affine.max", "scf.condition", "gpu.thread_id", "gpu.block_id", "gpu.block_dim",
    "gpu.grid_dim", "gpu.global_id", "gpu.lane_id", "gpu.subgroup_id", "memref.yield",
    "gpu.yield", "cf.assert", "avial.target", "memref.alloca_scope.return",
    "memref.assume_alignment", "vector.broadcast", "vector.splat", "vector.extract",
    "vector.insert", "vector.fma", "vector.reduction", "vector.contract", "vector.shuffle",
    "vector.transpose", "vector.shape_cast", "vector.step", "vector.extract_strided_slice",
    "vector.insert_strided_slice", "vector.constant_mask", "vector.create_mask",
    "vector.bitcast", "vector.multi_reduction", "vector.outerproduct", "vector.from_elements",
    "vector.to_elements", "gpu.shuffle", "gpu.all_reduce",
    "func.return", "cf.br", "cf.cond_br", *VIEWS,
}  # fmt: skip


def is_linalg(name: str) -> bool:
    return name.startswith("linalg.") and name not in ("linalg.yield", "linalg.index")
