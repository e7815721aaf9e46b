"""Operations that move elements (tensor.*) as ONNX's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from mlir import ir

from avial_lab.compiler.backends.onnx.graph import Graph, dtype_of, refused
from avial_lab.compiler.ir.views import DYNAMIC

Move = Callable[[Graph, ir.Operation, Sequence[str]], str]
"""Operation, names of its operands -> name of its result."""


def _static(op: ir.Operation, name: str) -> list[int]:
    numbers = list(ir.DenseI64ArrayAttr(op.attributes[name]))
    if DYNAMIC in numbers:
        raise refused(op, "has a place that only a run knows, which ONNX is not given here")
    return numbers


def _reshape(graph: Graph, op: ir.Operation, names: Sequence[str]) -> str:
    return graph.reshaped(names[0], op.results[0].type.shape)


def _slice(graph: Graph, op: ir.Operation, names: Sequence[str]) -> str:
    offsets, sizes, strides = (
        _static(op, name) for name in ("static_offsets", "static_sizes", "static_strides")
    )
    whole, name = op.operands[0].type.shape, names[0]
    axes = [k for k in range(len(whole)) if (offsets[k], sizes[k], strides[k]) != (0, whole[k], 1)]
    if axes:
        ends = [offsets[k] + (sizes[k] - 1) * strides[k] + 1 if sizes[k] else offsets[k]
                for k in axes]  # fmt: skip
        name = graph.node(
            "Slice",
            name,
            graph.constant([offsets[k] for k in axes]),
            graph.constant(ends),
            graph.constant(axes),
            graph.constant([strides[k] for k in axes]),
        )
    shape = list(op.results[0].type.shape)
    return name if shape == sizes else graph.reshaped(name, shape)


def _insert(graph: Graph, op: ir.Operation, names: Sequence[str]) -> str:
    """Along each dimension a row of the part is gathered for each row of the whole; where it is
    none of the slice, the whole is kept.
    """
    offsets, sizes, strides = (
        _static(op, name) for name in ("static_offsets", "static_sizes", "static_strides")
    )
    shape = list(op.results[0].type.shape)
    part, whole = names
    if list(op.operands[0].type.shape) != sizes:
        part = graph.reshaped(part, sizes)
    inside: str | None = None
    for axis, extent in enumerate(shape):
        if (offsets[axis], sizes[axis], strides[axis]) == (0, extent, 1):
            continue
        row, rest = np.divmod(np.arange(extent) - offsets[axis], strides[axis])
        there = (rest == 0) & (row >= 0) & (row < sizes[axis])
        if not there.any():
            return graph.expanded(whole, shape)
        part = graph.node("Gather", part, graph.constant(np.where(there, row, 0)), axis=axis)
        mask = graph.constant(there.reshape([-1, *[1] * (len(shape) - axis - 1)]), "bool")
        inside = mask if inside is None else graph.node("And", inside, mask)
    if inside is None:
        return part
    if dtype_of(op, op.results[0].type).kind != "b":
        return graph.node("Where", inside, part, whole)
    kept = graph.node("And", graph.node("Not", inside), whole)
    return graph.node("Or", graph.node("And", inside, part), kept)


def _pad(graph: Graph, op: ir.Operation, names: Sequence[str]) -> str:
    """`names`: of what is padded, and of the number that it is padded with."""
    low, high = _static(op, "static_low"), _static(op, "static_high")
    return graph.node("Pad", names[0], graph.constant([*low, *high]), names[1])


def _concat(graph: Graph, op: ir.Operation, names: Sequence[str]) -> str:
    return graph.node("Concat", *names, axis=ir.IntegerAttr(op.attributes["dim"]).value)


def _from_elements(graph: Graph, op: ir.Operation, names: Sequence[str]) -> str:
    shape = list(op.results[0].type.shape)
    flat = graph.node("Concat", *(graph.reshaped(each, [1]) for each in names), axis=0)
    return graph.reshaped(flat, shape)


def _cast(graph: Graph, op: ir.Operation, names: Sequence[str]) -> str:
    return names[0]


MOVES: dict[str, Move] = {
    "tensor.collapse_shape": _reshape, "tensor.expand_shape": _reshape,
    "tensor.reshape": _reshape, "tensor.extract_slice": _slice, "tensor.insert_slice": _insert,
    "tensor.pad": _pad, "tensor.concat": _concat, "tensor.from_elements": _from_elements,
    "tensor.cast": _cast,
}  # fmt: skip
