"""Which way devices add up partial results: by a ring, a tree, or recursive doubling.

Function on placed tensors -> the same, with a mark on each sum that `lower-placements` follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.attributes import GRADIENT_OF, IN_PLACE, SUMMED_BY
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.compiler.ir.placements import MOVES, meshes_in
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.ir.sums_of_parts import placements_of, summed_axes
from avial_lab.compiler.passes.distir.propagate import place_on_one
from avial_lab.compiler.passes.distir.told import tell
from avial_lab.core.errors import ScheduleError
from avial_lab.core.words import count, format_bytes, format_seconds
from avial_lab.machine.constants import MESSAGE_BYTES_PER_S, MESSAGE_LATENCY_S
from avial_lab.planning.sum_algorithms import SumBy, SumCost, cost_of_sum, fastest_sum
from avial_lab.planning.tensor_placement import COPY, Mesh


@dataclass(frozen=True)
class ChooseCollectives:
    """Small sums take few rounds, large ones few bytes.

    before:  %s = "distir.all_reduce"(%g)                                  (sum -> copy, 4 devices)
    after:   %s = "distir.all_reduce"(%g) {avial.summed_by = ["doubling"]}

    `by`: that one for all. A sum that ends in blocks, or is added where its parts lie (ZeRO), goes
    round the ring, of which that is one half. Seconds are those of `latency_s` a message and
    `bytes_per_s` of a link.
    """

    by: str = ""
    latency_s: float = MESSAGE_LATENCY_S
    bytes_per_s: float = MESSAGE_BYTES_PER_S

    def __call__(self, module: ir.Operation) -> None:
        known = [each.value for each in SumBy]
        if self.by and self.by not in known:
            raise ScheduleError(
                f"there is no sum by '{self.by}'", hint=f"there are: {', '.join(known)}"
            )
        function = program_function(module)
        place_on_one(module, function)
        meshes = meshes_in(module)
        sums = 0
        for view in function.regions[0].blocks[0].operations:
            op = view.operation
            axes = summed_axes(*placements_of(op, meshes)) if op.name in MOVES else []
            if axes:
                sums += 1
                self._choose(function, op, axes, meshes)
        if not sums:
            tell(function, "choose-collectives: nothing is summed over devices so far; what comes "
                 "behind it goes round rings")  # fmt: skip

    def _choose(
        self, function: ir.Operation, op: ir.Operation, axes: list[int], meshes: Mapping[str, Mesh]
    ) -> None:
        value = op.operands[0]
        have, made = placements_of(op, meshes)
        shape = tuple(value.type.shape)
        nbytes = have.held_elements(shape) * itemsize_of(value.type.element_type)
        size = f"{'x'.join(map(str, shape)) or 'a number'}, {format_bytes(nbytes)}"
        name = name_of(value.location)
        if GRADIENT_OF in op.attributes:
            name = f"{ir.StringAttr(op.attributes[GRADIENT_OF]).value}'s gradient"
        what = f"%{name} ({size})" if name else f"({size})"
        chosen: list[str] = []
        for axis in axes:
            devices = have.mesh.axes[axis]
            whole = made.mesh == have.mesh and made.along[axis] == COPY
            if not whole or IN_PLACE in op.attributes or devices == 1:
                chosen.append(SumBy.RING.value)
                why = "it stays in blocks" if devices > 1 else "nothing moves"
                tell(function, f"choose-collectives: the sum of {what} over "
                     f"{count(devices, 'device')} is left to the ring: {why}")  # fmt: skip
                continue
            best, *others = fastest_sum(devices, nbytes, self.latency_s, self.bytes_per_s)
            if self.by:
                others = [each for each in (best, *others) if each.by.value != self.by]
                best = cost_of_sum(SumBy(self.by), devices, nbytes)
            chosen.append(best.by.value)
            tell(function, f"choose-collectives: the sum of {what} over {devices} devices by "
                 f"{self._told(best)}; {', '.join(map(self._told, others))}")  # fmt: skip
        with function.context:
            op.attributes[SUMMED_BY] = ir.ArrayAttr.get([ir.StringAttr.get(c) for c in chosen])

    def _told(self, cost: SumCost) -> str:
        seconds = format_seconds(cost.seconds(self.latency_s, self.bytes_per_s))
        sent = format_bytes(int(cost.sent_bytes))
        return f"{cost.by.value} {seconds} ({count(cost.rounds, 'round')}, {sent} in all)"

    def __str__(self) -> str:
        return f"choose-collectives{{by={self.by}}}" if self.by else "choose-collectives"
