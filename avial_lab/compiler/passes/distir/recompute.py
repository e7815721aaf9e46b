"""Recomputation: values of the way forward that the way back computes anew, and that nobody keeps.

Step on placed tensors -> the same, with marks on operations that every segment repeats for itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.attributes import REPEATED
from avial_lab.compiler.ir.captures import used_by
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.compiler.ir.placements import MOVES, meshes_in, placement_of
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.passes.distir.data_parallel import batch_of
from avial_lab.compiler.passes.distir.propagate import arguments_named, place_on_one
from avial_lab.compiler.passes.distir.segments import cut, is_handed_on
from avial_lab.compiler.passes.distir.stages import (
    arithmetic_of,
    bytes_of,
    values_in_batch,
    weights_met,
)
from avial_lab.compiler.passes.distir.told import tell
from avial_lab.core.errors import ScheduleError
from avial_lab.core.regions import Box
from avial_lab.core.words import count, format_bytes
from avial_lab.planning.recomputation import Link, kept_of_chain
from avial_lab.planning.tensor_placement import Mesh


@dataclass(frozen=True)
class Recompute:
    """What a device keeps of the batch from one task to a later one, is computed again there.

    before:  %a = math.tanh %h        kept by a stage for every micro-batch, until it comes back
    after:   %a = math.tanh %h {avial.repeated}       each segment that reads it computes it

    `of`: weights, with + between: what is computed with these alone; all where there are none.
    `most_bytes`: that each device keeps so many bytes of such values, and which these are costs the
    least arithmetic: the optimum for a chain of operations. (Chen et al., Training Deep Nets with
    Sublinear Memory Cost, 2016.) What moves, is returned or is summed over the batch is kept.
    """

    of: str = ""
    most_bytes: int = 0

    def __call__(self, module: ir.Operation) -> None:
        function = program_function(module)
        place_on_one(module, function)
        kept = _kept_for_others(function, meshes_in(module))
        if not kept:
            raise ScheduleError(
                "no task keeps anything of the batch for a later one: there is nothing to compute "
                "again",
                span=span_of(function.location),
                hint="write it behind what divides a step of training: pipeline 2 x 8, recompute",
            )
        if self.of:
            names = self.of.replace("+", " ").split()
            weights = set(arguments_named(function, names))
            met = weights_met(function, batch_of(function))
            kept = [op for op in kept if met.get(op) in weights]
        still = _worth_keeping(module, kept, self.most_bytes) if self.most_bytes else set()
        with module.context:
            for op in kept:
                if op not in still:
                    op.attributes[REPEATED] = ir.UnitAttr.get()
        again = [op for op in kept if op not in still]
        nbytes = sum(bytes_of(op.results[0]) for op in again)
        alone = f"; {len(still)} left alone, which fit" if still else ""
        tell(function, f"{self}: {count(len(again), 'operation')} computed again in place of "
             f"{format_bytes(nbytes)} kept by all devices together{alone}")  # fmt: skip

    def __str__(self) -> str:
        given = [f"of={self.of}"] if self.of else []
        given += [f"most-bytes={self.most_bytes}"] if self.most_bytes else []
        return f"recompute{{{' '.join(given)}}}" if given else "recompute"


def _kept_for_others(function: ir.Operation, meshes: Mapping[str, Mesh]) -> list[ir.Operation]:
    """The operations on the batch whose values one segment keeps for another, and those that these
    take to be computed from what is kept in any case.
    """
    made = cut(function, meshes)
    in_batch = values_in_batch(function, batch_of(function))
    *operations, _ = [view.operation for view in function.regions[0].blocks[0].operations]
    wanted = {
        value
        for op in operations
        if op.name not in MOVES and op.results[0] in made.segment_of
        for value in used_by(op)
        if made.segment_of.get(value) not in (None, made.segment_of[op.results[0]])
    }
    found: list[ir.Operation] = []
    for op in reversed(operations):
        if (
            op.name not in MOVES
            and len(op.results) == 1
            and op.results[0] in wanted
            and op.results[0] in in_batch
            and not is_handed_on(op)
        ):
            found.append(op)
            wanted.update(used_by(op))
    return found[::-1]


def _worth_keeping(
    module: ir.Operation, found: Sequence[ir.Operation], most_bytes: int
) -> set[ir.Operation]:
    """The operations whose values are kept, mesh by mesh."""
    meshes = meshes_in(module)
    chains: dict[str, list[ir.Operation]] = {}
    for op in found:
        placement = placement_of(op.results[0].type, meshes)
        assert placement is not None
        chains.setdefault(placement.mesh.name, []).append(op)
    kept: set[ir.Operation] = set()
    for chain in chains.values():
        links = [_link(op, meshes, set(chain)) for op in chain]
        kept |= {chain[k] for k in kept_of_chain(links, most_bytes)}
    return kept


def _link(op: ir.Operation, meshes: Mapping[str, Mesh], chain: set[ir.Operation]) -> Link:
    value = op.results[0]
    placement = placement_of(value.type, meshes)
    assert placement is not None
    boxes: dict[int, set[Box]] = {}
    for point, device in placement.mesh.points():
        boxes.setdefault(device, set()).add(placement.box(value.type.shape, point))
    elements = max(sum(box.size for box in each) for each in boxes.values())
    users = {use.owner.operation for use in value.uses}
    return Link(
        elements * itemsize_of(value.type.element_type), arithmetic_of(op), not users <= chain
    )
