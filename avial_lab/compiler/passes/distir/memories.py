"""Memory of values that lie on several devices, and the blocks of it that tasks work on.

Memory, slot, box -> the type that a body takes, the subview that a task hands to it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from mlir import ir
from mlir.dialects import memref

from avial_lab.compiler.ir.placements import is_tensor
from avial_lab.compiler.passes.distir.task_order import Part
from avial_lab.core.regions import Box
from avial_lab.planning.tensor_placement import Kind, Mesh, Placement


@dataclass(frozen=True)
class Rotation:
    """How turns share memory: in `slots` of `shape`. `places`: of each block that a turn writes, by
    where it begins along `dim` of the whole tensor: its slot, and where it begins in that.
    """

    dim: int
    slots: int
    shape: tuple[int, ...]
    places: Mapping[int, tuple[int, int]]

    @cached_property
    def _starts(self) -> list[int]:
        return sorted(self.places)

    def located(self, box: Box) -> tuple[int, Box]:
        """The slot that elements of the whole tensor are in, and where in it."""
        begin = self._starts[bisect_right(self._starts, box.start[self.dim]) - 1]
        slot, there = self.places[begin]
        start, stop = list(box.start), list(box.stop)
        start[self.dim] += there - begin
        stop[self.dim] += there - begin
        return slot, Box(tuple(start), tuple(stop))


@dataclass(eq=False)
class Memory:
    """Where a value is kept: in the whole tensor's shape, once or in `slots`. `axes` are those of
    its mesh whose devices have slots of their own; slot 0 is in `first`, where that is given.
    `turned` is the dimension that turns divide, -1 where none does; with a `rotation` they share
    each slot.
    """

    shape: tuple[int, ...]
    element: ir.Type
    axes: tuple[int, ...] = ()
    slots: int = 1
    memory: ir.Value | None = None
    first: ir.Value | None = None
    name: str = ""
    turned: int = -1
    rotation: Rotation | None = None
    views: dict[tuple[int, Box], View] = field(default_factory=dict)
    """Of its blocks by slot, once it is allocated."""

    @property
    def stored_shape(self) -> list[int]:
        """Of the memory that holds all slots."""
        rotation = self.rotation
        inner = self.shape if rotation is None else (rotation.slots, *rotation.shape)
        return [self.slots, *inner] if self.slots > 1 else list(inner)

    def located(self, slot: int, box: Box) -> tuple[ir.Value, list[int], Box]:
        """The memref that elements of a slot are in, the indices of that slot (and turn) in it, and
        which elements of that they are.
        """
        if self.first is not None and slot == 0:
            return self.first, [], box
        assert self.memory is not None
        lead = [slot] if self.slots > 1 else []
        if self.rotation is None:
            return self.memory, lead, box
        turn, inside = self.rotation.located(box)
        return self.memory, [*lead, turn], inside

    def slot(self, mesh: Mesh, point: Sequence[int]) -> int:
        number = 0
        for axis in self.axes:
            number = number * mesh.axes[axis] + point[axis]
        return number

    def root(self, slot: int) -> ir.Value:
        """The memref that a slot is in."""
        found = self.first if self.first is not None and slot == 0 else self.memory
        assert found is not None
        return found


@dataclass(frozen=True)
class Held:
    """A value in memory, and how it was put there."""

    memory: Memory
    placement: Placement | None


@dataclass(frozen=True)
class View:
    """Where a block is in its memref: what `memref.subview` takes of it, and what that makes. All
    of the memref has no `sizes`.
    """

    root: ir.Value
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    kind: ir.MemRefType

    def move(self, subview: ir.Operation) -> None:
        """Let a subview of that memref and those sizes be this one."""
        subview.attributes["static_offsets"] = ir.DenseI64ArrayAttr.get(self.offsets)
        subview.results[0].set_type(self.kind)


def view_of(part: Part) -> View:
    memory, slot = part.memory
    known = memory.views.get((slot, part.box))
    if known is None:
        known = memory.views[slot, part.box] = _view(memory, slot, part.box)
    return known


def _view(memory: Memory, slot: int, box: Box) -> View:
    root, lead, box = memory.located(slot, box)
    if not lead and box == Box.whole(memory.shape):
        return View(root, (), (), ir.MemRefType(root.type))
    offsets, sizes = (*lead, *box.start), (*[1] * len(lead), *box.shape)
    strides = _strides(list(ir.MemRefType(root.type).shape))
    offset = sum(o * s for o, s in zip(offsets, strides, strict=True))
    layout = ir.StridedLayoutAttr.get(offset, strides[len(lead) :])
    return View(root, offsets, sizes, ir.MemRefType.get(list(box.shape), memory.element, layout))


def kind_of(part: Part) -> ir.MemRefType:
    """The type of a block as a body takes it: it may begin anywhere."""
    view = view_of(part)
    if not view.sizes:
        return view.kind
    strides, _ = view.kind.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(ir.ShapedType.get_dynamic_stride_or_offset(), strides)
    return ir.MemRefType.get(list(view.kind.shape), view.kind.element_type, layout)


def subview_of(part: Part) -> ir.Value:
    view = view_of(part)
    if not view.sizes:
        return view.root
    return ir.Operation.create(
        "memref.subview",
        [view.kind],
        [view.root],
        {
            "static_offsets": ir.DenseI64ArrayAttr.get(view.offsets),
            "static_sizes": ir.DenseI64ArrayAttr.get(view.sizes),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * len(view.sizes)),
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
