"""Moves that add up what devices hold parts of: along which axes, and by which way.

Move -> axes, placements, marks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir import ir

from avial_lab.compiler.ir.attributes import SUMMED_BY
from avial_lab.compiler.ir.placements import placement_of
from avial_lab.planning.sum_algorithms import SumBy
from avial_lab.planning.tensor_placement import Mesh, Placement


def placements_of(move: ir.Operation, meshes: Mapping[str, Mesh]) -> tuple[Placement, Placement]:
    """Of what is moved, and of what comes of it."""
    have = placement_of(move.operands[0].type, meshes)
    made = placement_of(move.results[0].type, meshes)
    assert have is not None
    assert made is not None
    return have, made


def summed_axes(have: Placement, made: Placement) -> list[int]:
    """The axes of devices along which a move combines what they hold."""
    return [
        axis
        for axis, each in enumerate(have.along)
        if each.kind.is_partial
        and not have.mesh.is_time(axis)
        and (made.mesh != have.mesh or made.along[axis] != each)
    ]


def ways_to_sum(move: ir.Operation, axes: Sequence[int]) -> dict[int, SumBy]:
    """As they are marked, for each of its axes; the ring where they are not."""
    if SUMMED_BY not in move.attributes:
        return dict.fromkeys(axes, SumBy.RING)
    marks = [ir.StringAttr(each).value for each in ir.ArrayAttr(move.attributes[SUMMED_BY])]
    return {axis: SumBy(mark) for axis, mark in zip(axes, marks, strict=True)}
