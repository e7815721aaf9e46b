"""A function on placed tensors, cut where something moves between devices.

Function -> Segments: maximal runs of operations on one mesh between two moves, in an order that
respects what they hand on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from mlir import ir

from avial_lab.compiler.analysis.placements.split_loops import loops_of
from avial_lab.compiler.ir.attributes import REPEATED
from avial_lab.compiler.ir.captures import used_by
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.compiler.ir.placements import MOVES, is_tensor, placement_of
from avial_lab.core.errors import PassError
from avial_lab.planning.tensor_placement import COPY, Mesh, Placement


@dataclass(frozen=True)
class Key:
    """`depth`: how many moves come before. `in_turns`: it runs once for each turn of the mesh.
    `late`: nothing that moves waits for it. `part`: how many buckets of partial results come
    before, where sums of these overlap with what is computed.
    """

    depth: int
    in_turns: bool
    mesh: str
    late: bool = False
    part: int = 0


@dataclass
class Segment:
    """`operations` in program order, without those (`free`) that each segment repeats for itself:
    made of numbers alone, or marked so. `outputs`: its values that others read.
    """

    key: Key
    operations: list[ir.Operation] = field(default_factory=list)
    outputs: list[ir.Value] = field(default_factory=list)


@dataclass
class Cut:
    """The function as segments, and where each value comes from."""

    segments: list[Segment]
    segment_of: dict[ir.Value, Segment]
    free: set[ir.Operation]
    placements: dict[ir.Value, Placement]

    def source(self, value: ir.Value) -> ir.Value:
        """What a value is before moves that only say who reads what."""
        while (op := _owner(value)) is not None and op.name in MOVES:
            if self.placements[op.operands[0]].is_partial:
                return value
            value = op.operands[0]
        return value


def _owner(value: ir.Value) -> ir.Operation | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def is_local(have: Placement, made: Placement) -> bool:
    """Whether every device has what it needs: blocks of copies."""
    return have.mesh == made.mesh and all(
        a in (b, COPY) for a, b in zip(have.along, made.along, strict=True)
    )


def cut(
    function: ir.Operation,
    meshes: Mapping[str, Mesh],
    *,
    sums_late: bool = False,
    bucket_bytes: int | None = None,
) -> Cut:
    """`sums_late`: what is summed over turns is apart from what others wait for. A segment ends
    where partial results of `bucket_bytes` are there, which are then summed; None: nowhere.

    PassError for a number that is computed of tensors and used in another segment.
    """
    block = function.regions[0].blocks[0]
    placements = {
        value: placement
        for value in (*block.arguments, *(r for view in block.operations for r in view.results))
        if (placement := placement_of(value.type, meshes, value.location)) is not None
    }
    depths: dict[ir.Value, int] = dict.fromkeys(block.arguments, 0)
    numbers: dict[ir.Value, Segment] = {}
    of_numbers: set[ir.Operation | None] = set()
    found: dict[Key, Segment] = {}
    result = Cut([], {}, set(), placements)
    buckets = _Buckets(bucket_bytes, placements)
    *operations, end = [view.operation for view in block.operations]
    sums = _only_summed(operations, placements) if sums_late else set[ir.Operation]()
    for op in operations:
        if op.name in MOVES:
            depths[op.results[0]] = depths[op.operands[0]] + _step(op, result)
            continue
        tensors = [v for v in used_by(op) if is_tensor(v.type)]
        made_of_numbers = all(_owner(v) in of_numbers for v in tensors) and not any(
            v in numbers for v in used_by(op)
        )
        # What is made of numbers alone is made where it is used, unless it is moved or handed out.
        if made_of_numbers and op.name != "func.call" and not is_handed_on(op):
            of_numbers.add(op)
            result.free.add(op)
            depths.update(dict.fromkeys(op.results, 0))
            continue
        depth = max((depths[v] for v in used_by(op) if v in depths), default=0)
        if REPEATED in op.attributes and not is_handed_on(op):
            result.free.add(op)
            depths.update(dict.fromkeys(op.results, depth))
            continue
        late = sums_late and op in sums
        segment = _segment_for(op, depth, placements, found, late=late, part=buckets.part)
        buckets.add(op)
        segment.operations.append(op)
        for value in op.results:
            depths[value] = depth
            result.segment_of[value] = segment
            if not is_tensor(value.type):
                numbers[value] = segment
        for value in used_by(op):
            if value in numbers and numbers[value] is not segment:
                raise PassError(
                    f"{op.name} uses a number that was computed of tensors before they moved",
                    span=span_of(op.location),
                    hint="keep it in a tensor of no dimensions: tensor<f32>",
                )
    order = sorted(found, key=lambda key: (key.depth, key.in_turns, key.late, key.part))
    result.segments = [found[key] for key in order]
    _find_outputs(operations, end, result)
    return result


@dataclass
class _Buckets:
    """Partial results that are summed, as they come: `part` counts full buckets."""

    limit: int | None
    placements: Mapping[ir.Value, Placement]
    part: int = 0
    held: int = 0

    def add(self, op: ir.Operation) -> None:
        if self.limit is None:
            return
        for value in op.results:
            if self._is_summed(value):
                self.held += prod(value.type.shape) * itemsize_of(value.type.element_type)
                if self.held >= self.limit:
                    self.part, self.held = self.part + 1, 0

    def _is_summed(self, value: ir.Value) -> bool:
        placement = self.placements.get(value)
        return (
            placement is not None
            and placement.is_partial
            and not placement.mesh.turns
            and any(use.owner.operation.name in MOVES for use in value.uses)
        )


def is_handed_on(op: ir.Operation) -> bool:
    """Whether its value is moved or returned."""
    users = [use.owner.operation for result in op.results for use in result.uses]
    return any(user.name in (*MOVES, "func.return") for user in users)


def _step(move: ir.Operation, cut: Cut) -> int:
    source, result = move.operands[0], move.results[0]
    if isinstance(source.owner, ir.Block):
        return 0  # everybody can read what the caller gives
    return 0 if is_local(cut.placements[source], cut.placements[result]) else 1


def _segment_for(
    op: ir.Operation,
    depth: int,
    placements: Mapping[ir.Value, Placement],
    found: dict[Key, Segment],
    *,
    late: bool,
    part: int,
) -> Segment:
    placed = [placements[v] for v in (*op.operands, *op.results) if v in placements]
    if not placed:
        raise PassError(
            f"{op.name} has no tensor that is placed",
            span=span_of(op.location),
            hint="give the types of its tensors placements",
        )
    mesh = placed[0].mesh
    axis = len(mesh.shape)
    in_turns = bool(mesh.turns) and any(each.along[axis] != COPY for each in placed)
    key = Key(depth, in_turns, mesh.name, late and in_turns, 0 if in_turns else part)
    return found.setdefault(key, Segment(key))


def _only_summed(
    operations: list[ir.Operation], placements: Mapping[ir.Value, Placement]
) -> set[ir.Operation]:
    """Operations whose values are parts of sums over turns, or are read by such alone."""
    found: set[ir.Operation] = set()
    for op in reversed(operations):
        placed = [placements[r] for r in op.results if r in placements]
        users = [use.owner.operation for r in op.results for use in r.uses]
        partial = any(p.mesh.turns and p.along[-1].kind.is_partial for p in placed)
        if op.name not in MOVES and placed and (
            partial or (users and all(user in found for user in users))
        ):  # fmt: skip
            found.add(op)
    return found


def _find_outputs(operations: list[ir.Operation], end: ir.Operation, cut: Cut) -> None:
    """What is read by other segments, by moves that add up, and by the caller."""
    needed = {cut.source(value) for value in end.operands}
    for op in operations:
        if op.name in MOVES:
            if cut.placements[op.operands[0]].is_partial:
                needed.add(cut.source(op.operands[0]))
            continue
        here = cut.segment_of.get(op.results[0]) if len(op.results) else None
        for operand in used_by(op):
            value = cut.source(operand)
            there = cut.segment_of.get(value)
            if there is not None and (there is not here or not _within(operand, value, cut)):
                needed.add(value)
    for segment in cut.segments:
        segment.outputs = [v for op in segment.operations for v in op.results if v in needed]


def _within(operand: ir.Value, value: ir.Value, cut: Cut) -> bool:
    """Whether only local moves lie between."""
    while operand != value:
        move = operand.owner.operation
        if not is_local(cut.placements[move.operands[0]], cut.placements[operand]):
            return False
        operand = move.operands[0]
    return True


def terms_of(value: ir.Value, cut: Cut) -> int:
    """Of the sums whose parts a value is, at most; 0 where their order does not matter."""
    if not isinstance(value.type.element_type, ir.FloatType):
        return 0
    value = cut.source(value)
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in MOVES:
        value = cut.source(value.owner.operation.operands[0])
    if isinstance(value.owner, ir.Block):
        return 0
    op = value.owner.operation
    loops = loops_of(op)
    extents = {
        loop: extent
        for operand, dims in zip(op.operands, loops.operands, strict=True)
        for loop, extent in zip(dims, operand.type.shape if dims else (), strict=True)
        if loop is not None and loops.is_reduction(loop)
    }
    return prod(extents.values())
