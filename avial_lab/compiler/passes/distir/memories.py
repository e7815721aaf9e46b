"""Memory of values that lie on several devices, and the blocks of it that tasks work on.

Memory, slot, box -> the type that a body takes, the subview that a task hands to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import memref

from avial_lab.compiler.ir.placements import is_tensor
from avial_lab.compiler.passes.distir.task_order import Part
from avial_lab.core.regions import Box
from avial_lab.planning.tensor_placement import Kind, Mesh, Placement


@dataclass(eq=False)
class Memory:
    """Where a value is kept: in the whole tensor's shape, once or in `slots`. `axes` are those of
    its mesh whose devices have slots of their own; slot 0 is in `first`, where that is given.
    """

    shape: tuple[int, ...]
    element: ir.Type
    axes: tuple[int, ...] = ()
    slots: int = 1
    memory: ir.Value | None = None
    first: ir.Value | None = None
    name: str = ""

    def slot(self, mesh: Mesh, point: Sequence[int]) -> int:
        number = 0
        for axis in self.axes:
            number = number * mesh.axes[axis] + point[axis]
        return number

    def place(self, slot: int) -> tuple[ir.Value, int | None]:
        """The memref of a slot and, where it holds several, the index of the slot in it."""
        if self.first is not None and slot == 0:
            return self.first, None
        assert self.memory is not None
        return self.memory, slot if self.slots > 1 else None


@dataclass(frozen=True)
class Held:
    """A value in memory, and how it was put there."""

    memory: Memory
    placement: Placement | None


def kind_of(part: Part) -> ir.MemRefType:
    """The type of a block as a body takes it: it may begin anywhere."""
    memory, slot = part.memory
    root, index = memory.place(slot)
    whole = ir.MemRefType(root.type)
    if index is None and part.box == Box.whole(memory.shape):
        return whole
    strides = _strides(list(whole.shape))[0 if index is None else 1 :]
    layout = ir.StridedLayoutAttr.get(ir.ShapedType.get_dynamic_stride_or_offset(), strides)
    return ir.MemRefType.get(list(part.box.shape), memory.element, layout)


def subview_of(part: Part) -> ir.Value:
    memory, slot = part.memory
    root, index = memory.place(slot)
    if index is None and part.box == Box.whole(memory.shape):
        return root
    lead = [] if index is None else [index]
    offsets, sizes = [*lead, *part.box.start], [1] * len(lead) + list(part.box.shape)
    strides = _strides(list(ir.MemRefType(root.type).shape))
    offset = sum(o * s for o, s in zip(offsets, strides, strict=True))
    layout = ir.StridedLayoutAttr.get(offset, strides[len(lead) :])
    kind = ir.MemRefType.get(list(part.box.shape), memory.element, layout)
    return ir.Operation.create(
        "memref.subview",
        [kind],
        [root],
        {
            "static_offsets": ir.DenseI64ArrayAttr.get(offsets),
            "static_sizes": ir.DenseI64ArrayAttr.get(sizes),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * len(sizes)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        },
    ).result


def _strides(shape: list[int]) -> list[int]:
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    return strides


def allocated(kind: ir.MemRefType, name: str) -> ir.Value:
    """Memory, with a name where it has one."""
    here = ir.Location.current
    return memref.AllocOp(kind, [], [], loc=ir.Location.name(name, here) if name else here).result


def memory_type(type_: ir.Type) -> ir.Type:
    """A tensor's memory; other types as they are."""
    if not is_tensor(type_):
        return type_
    return ir.MemRefType.get(list(type_.shape), type_.element_type)


def fill(memory: ir.Value, kind: Kind) -> None:
    """Every element is what changes nothing when it is combined."""
    element = ir.MemRefType(memory.type).element_type
    text = {Kind.SUM: "0.0", Kind.MAX: "-inf", Kind.MIN: "inf"}[kind]
    if isinstance(element, ir.FloatType):
        value = ir.FloatAttr.get(element, float(text))
    else:
        value = ir.IntegerAttr.get(element, 0)
    neutral = ir.Operation.create("arith.constant", [element], [], {"value": value}).result
    scratch = ir.Operation.create(
        "linalg.fill", [], [neutral, memory],
        {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])}, regions=1,
    )  # fmt: skip
    block = ir.Block.create_at_start(scratch.regions[0], [element] * 2, [memory.location] * 2)
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", [], [block.arguments[0]])
