"""What a function on placed tensors moves, and what its devices hold.

Function -> lines for people: meshes, arguments, every move with its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mlir import ir

from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.compiler.ir.placements import MOVES, meshes_in, placement_of
from avial_lab.compiler.ir.sums_of_parts import summed_axes, ways_to_sum
from avial_lab.core.regions import Box
from avial_lab.core.words import format_bytes
from avial_lab.planning.sum_algorithms import SumBy, cost_of_sum
from avial_lab.planning.tensor_placement import COPY, Kind, Mesh, Placement, divided_sums


def told_of(module: ir.Operation, function: ir.Operation) -> tuple[str, ...]:
    """Meshes; where each argument lies and what a device holds of it; the moves."""
    meshes = meshes_in(module)
    block = function.regions[0].blocks[0]
    lines = [f"mesh {mesh}" for mesh in meshes.values()]
    for k, argument in enumerate(block.arguments):
        placement = placement_of(argument.type, meshes)
        if placement is not None:
            nbytes = placement.held_elements(argument.type.shape) * _itemsize(argument)
            name = name_of(argument.location) or f"arg{k}"
            lines.append(f"%{name} lies {_where(placement)}: {format_bytes(nbytes)} a device")
    lines += _moves(block, meshes)
    return tuple(lines)


def _itemsize(value: ir.Value) -> int:
    return itemsize_of(value.type.element_type)


def _where(placement: Placement) -> str:
    return f'"{placement.text}" on @{placement.mesh.name}' if placement.text else "on one device"


def _moves(block: ir.Block, meshes: Mapping[str, Mesh]) -> Iterator[str]:
    for view in block.operations:
        op = view.operation
        if op.name not in MOVES:
            continue
        value = op.operands[0]
        have = placement_of(value.type, meshes)
        made = placement_of(op.results[0].type, meshes)
        assert have is not None
        assert made is not None
        given = isinstance(value.owner, ir.Block)
        ways = ways_to_sum(op, summed_axes(have, made))
        elements = 0 if given else moved_elements(value.type.shape, have, made, ways)
        nbytes = elements * _itemsize(value)
        name = name_of(value.location)
        told = "the caller's, nothing is sent" if given else f"up to {format_bytes(nbytes)} sent"
        shape = "x".join(map(str, value.type.shape)) or "a number"
        what = f"%{name} ({shape})" if name else shape
        yield f"{op.name} of {what} from {_where(have)} to {_where(made)}: {told}"


def moved_elements(
    shape: list[int], have: Placement, made: Placement, ways: Mapping[int, SumBy] | None = None
) -> int:
    """Elements that go from one device to another, each as often as it does, where every device
    reads what it then has.

    Partial results of n devices go once round a ring in blocks, (n - 1) blocks a device, and then
    to whoever reads them, or as `ways` says by axis; every other element goes from one device that
    has it to those that read it and have not.
    """
    shape = list(shape)
    total, mesh = 0, have.mesh
    current = have
    for axis, along in enumerate(have.along):
        changes = made.mesh != mesh or made.along[axis] != along
        if along.kind.is_partial and changes and not mesh.is_time(axis):
            way = (ways or {}).get(axis, SumBy.RING)
            if way is not SumBy.RING:  # everybody has them then
                total += _sent_for_sums(shape, current, axis, way)
                current = current.with_axis(axis, COPY)
                continue
            total += _around_ring(shape, current, axis)
            current = current.with_axis(axis, divided_sums(shape, current, axis))
    if current.is_partial:  # over time, on one device
        return total
    return total + _read_elsewhere(shape, current, made)


def _around_ring(shape: list[int], placement: Placement, axis: int) -> int:
    """Each group along the axis adds its blocks up, all but the last device of a block send it."""
    parts = placement.mesh.axes[axis]
    boxes = (placement.box(shape, point) for point, _ in _once(placement))
    return sum(box.size for box in boxes) // parts * (parts - 1)


def _sent_for_sums(shape: list[int], placement: Placement, axis: int, way: SumBy) -> int:
    boxes = (placement.box(shape, point) for point, _ in _once(placement) if not point[axis])
    cost = cost_of_sum(way, placement.mesh.axes[axis], 1)
    return sum(box.size for box in boxes) * int(cost.sent_bytes)


def _once(placement: Placement) -> Iterator[tuple[tuple[int, ...], int]]:
    """The points of its mesh; of time only the first, where all turns hold the same."""
    mesh = placement.mesh
    repeats = bool(mesh.turns) and placement.along[-1].kind is not Kind.SPLIT
    return (each for each in mesh.points() if not (repeats and each[0][-1]))


def _read_elsewhere(shape: list[int], have: Placement, made: Placement) -> int:
    there: dict[int, list[Box]] = {}
    for point, device in have.mesh.points():
        there.setdefault(device, []).append(have.box(shape, point))
    total = 0
    for point, device in _once(made):
        box = made.box(shape, point)
        missing = [box] if not box.empty else []
        for held in there.get(device, ()):
            missing = [rest for part in missing for rest in part.difference(held)]
        total += sum(part.size for part in missing)
    return total
