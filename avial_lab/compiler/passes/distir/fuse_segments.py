"""Segments joined with the one that reads them: fewer tasks, less kept between two of them.

Function on placed tensors -> the same, with marks on operations that are computed where they are
read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from mlir import ir

from avial_lab.compiler.ir.attributes import REPEATED
from avial_lab.compiler.ir.captures import used_by
from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.compiler.ir.placements import MOVES, is_tensor, meshes_in
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.passes.distir.propagate import place_on_one
from avial_lab.compiler.passes.distir.segments import Cut, Segment, cut, is_handed_on
from avial_lab.compiler.passes.distir.told import tell
from avial_lab.core.words import count, format_bytes


@dataclass(frozen=True)
class FuseSegments:
    """What one segment makes for one other of the same mesh alone, that one makes for itself.

    before:  S1: %a = exp %x, %b = tanh %x   %m = move %b   S2: %c = mulf %m, %a     S1 keeps %a
    after:   S1: %b = tanh %x                %m = move %b   S2: %a = exp %x, %c = mulf %m, %a

    An operation goes where the segment that reads it is, if S1 then has no more to keep of what it
    is made of than it had of its value. Nothing is computed twice.
    """

    def __call__(self, module: ir.Operation) -> None:
        function = program_function(module)
        place_on_one(module, function)
        meshes = meshes_in(module)
        before = cut(function, meshes)
        fused = _Fusion(before).of(function)
        with module.context:
            for op in fused:
                op.attributes[REPEATED] = ir.UnitAttr.get()
        tell(function, _told(before, cut(function, meshes) if fused else before, len(fused)))

    def __str__(self) -> str:
        return "fuse-segments"


def _told(before: Cut, after: Cut, fused: int) -> str:
    segments = count(len(before.segments), "segment")
    if not fused:
        return (
            f"fuse-segments: {segments} left alone: what one keeps for another is read by several, "
            "moved, or made of more than it is"
        )
    kept, still = _kept_bytes(before), _kept_bytes(after)
    return (
        f"fuse-segments: {count(fused, 'operation')} where they are read: {len(after.segments)} of "
        f"{segments}, {format_bytes(still)} of {format_bytes(kept)} handed on between them"
    )


def _kept_bytes(made: Cut) -> int:
    return sum(map(_bytes_of, (value for each in made.segments for value in each.outputs)))


def _bytes_of(value: ir.Value) -> int:
    return prod(value.type.shape) * itemsize_of(value.type.element_type)


@dataclass
class _Fusion:
    """`reads`: of an operation that has gone elsewhere, the segment that it is in."""

    made: Cut
    gone: dict[ir.Operation, Segment] = field(default_factory=dict)
    kept: set[ir.Value] = field(init=False)

    def __post_init__(self) -> None:
        self.kept = {value for each in self.made.segments for value in each.outputs}

    def of(self, function: ir.Operation) -> list[ir.Operation]:
        """The operations to mark, the last first."""
        *operations, _ = [view.operation for view in function.regions[0].blocks[0].operations]
        for op in reversed(operations):
            reader = self._reader(op)
            if reader is None:
                continue
            new = self._newly_kept(op)
            if sum(map(_bytes_of, new)) <= _bytes_of(op.results[0]):
                self.gone[op] = reader
                self.kept.discard(op.results[0])
                self.kept.update(new)
        return list(self.gone)

    def _reader(self, op: ir.Operation) -> Segment | None:
        """The one other segment that reads its value, on the same mesh and in the same turns."""
        if op.name in MOVES or len(op.results) != 1 or not is_tensor(op.results[0].type):
            return None
        here = self.made.segment_of.get(op.results[0])
        if here is None or REPEATED in op.attributes or is_handed_on(op):
            return None
        found: list[Segment] = []
        for use in op.results[0].uses:
            there = self._segment(_of_block(use.owner.operation, op))
            if there is None:
                return None
            if there not in found:
                found.append(there)
        if len(found) != 1 or found[0] is here:
            return None
        same = (found[0].key.mesh, found[0].key.in_turns) == (here.key.mesh, here.key.in_turns)
        return found[0] if same else None

    def _segment(self, op: ir.Operation) -> Segment | None:
        if op in self.gone:
            return self.gone[op]
        return self.made.segment_of.get(op.results[0]) if len(op.results) else None

    def _newly_kept(self, op: ir.Operation) -> list[ir.Value]:
        """What its own segment would have to hand on in its place."""
        here = self.made.segment_of[op.results[0]]
        return [
            value
            for value in dict.fromkeys(used_by(op))
            if self.made.segment_of.get(value) is here and value not in self.kept
        ]


def _of_block(op: ir.Operation, beside: ir.Operation) -> ir.Operation:
    """The operation that it is in, in the block of another."""
    while op.parent != beside.parent:
        assert op.parent is not None
        op = op.parent.operation
    return op
