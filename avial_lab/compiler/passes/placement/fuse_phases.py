"""Phases that are better one: on a single rank nothing has to happen between them.

Module of replicates, converges and tasks, placed -> the same, where a loop around phases is tiled
over time a single task, or takes so little time for each that calls would count; on few ranks,
where tiles or blocks of its steps on one of them are sooner done than shares of each step.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlir import ir

from avial_lab.compiler.analysis.patterns.time_tiling import Resident
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.trip_counts import most_iterations
from avial_lab.compiler.analysis.polyhedral.units import Immovable
from avial_lab.compiler.ir.attributes import (
    ALONE,
    AS_WRITTEN,
    FUSED,
    HALO,
    PHASES,
    SPLIT,
    WHERE_IT_LIES,
)
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.nesting import FORS, holds
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.phases import as_one, bytes_of, on_cpu, phases_in
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name
from avial_lab.compiler.passes.loops.contractions.block_contractions import STEPS, BlockContractions
from avial_lab.compiler.passes.loops.order.tile_time import TileTime
from avial_lab.core.element_types import ITEMSIZE
from avial_lab.machine.constants import BYTES_OF_A_SHORT_STEP, BYTES_WHILE_THREADS_MEET
from avial_lab.machine.cpu import this_cpu

MANY_STEPS = 64
"""From so many on that adds up; a timeline of fewer is worth more."""

FEW_RANKS = 4
"""A step that goes through memory takes about five times as long as its part of a block of steps
(shortest paths over 2,800 nodes): so many ranks have their shares of it no sooner.
"""

TWO_RANKS = 2
"""The same where steps go through the last cache, or tiles in time are less high than blocks (waves
in two dimensions: a third of the time of step by step).
"""


@dataclass(frozen=True)
class FusePhases:
    """A converge around phases becomes one task where its time loop can be tiled or blocked, or its
    phases are short and run often.

    before:  avial.converge { affine.for %t { avial.replicate {S1}  avial.replicate {S2} } }
    after:   avial.task { affine.for %t { S1  S2 } } {name = "loop1", avial.fused = ["S1", "S2"]}

    The options are those of `TileTime`, which tiles the task later, and of `BlockContractions`,
    which makes blocks of its steps if it is a factorisation; with `steps` 0 that is not looked for.
    On a few `ranks` too where shares of its steps would be no sooner done: of arrays that are in no
    core's own cache, and not where halos are wide.
    """

    l1: int = 0
    l2: int = 0
    widths: str = ""
    steps: int = STEPS
    ranks: int = 1

    @property
    def tiling(self) -> TileTime:
        return TileTime(self.l1, self.l2, self.widths)

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            # All of them first: what stood in a converge that is fused is gone with it.
            for schedule in [op for op in operations_in(module) if op.name == "avial.schedule"]:
                each = replace(self, ranks=1) if ALONE in schedule.attributes else self
                each._fuse_in(schedule)

    def __str__(self) -> str:
        tiling = str(self.tiling).partition("{")[2].removesuffix("}")
        steps = f"steps={self.steps}" if self.steps != STEPS else ""
        ranks = f"ranks={self.ranks}" if self.ranks != 1 else ""
        options = " ".join(filter(None, [tiling, steps, ranks]))
        return f"fuse-phases{{{options}}}" if options else "fuse-phases"

    def _fuse_in(self, op: ir.Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                for inner in [view.operation for view in block.operations]:
                    if inner.name in PHASES or (
                        inner.name == "avial.converge" and self._fuse(inner)
                    ):
                        continue
                    self._fuse_in(inner)

    def _fuse(self, converge: ir.Operation) -> bool:
        """Whether the converge became a task."""
        phases = phases_in(converge)
        between = not phases
        if between:
            phases = phases_in(converge, between=True)
        if not phases or not all(on_cpu(op) for op in phases):
            return False
        if self.ranks > self._few(converge) or any(HALO in op.attributes for op in phases):
            return False
        in_turns = any(WHERE_IT_LIES in op.attributes for op in operations_in(converge))
        if in_turns and self.ranks > 1:
            return False
        task = as_one(converge, phases, "avial.task")
        for op in operations_in(task):
            if SPLIT in op.attributes:
                del op.attributes[SPLIT]
        found = self._blocks_in(task) or (
            self.ranks <= TWO_RANKS and not between and self._tiles_in(task, converge)
        )
        if not found and in_turns:
            found = "its turns are all where the others are"
        if not found and self.ranks == 1:
            found = _short_phases(converge, phases)
        if not found:
            task.erase()
            return False
        names = [text_attribute(op, "name") for op in phases]
        where = "one rank" if self.ranks == 1 else "one rank, faster than step by step on all"
        why = f"{listed(names)} run as one task on {where}: {found}"
        task.attributes["avial.why"] = ir.ArrayAttr.get([ir.StringAttr.get(why)])
        if any(AS_WRITTEN in op.attributes for op in phases):
            task.attributes[AS_WRITTEN] = ir.UnitAttr.get()
        task.attributes[FUSED] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in names])
        converge.erase()
        return True

    def _few(self, converge: ir.Operation) -> int:
        """So many ranks have shares of its steps no sooner than one has all of them at once."""
        nbytes = bytes_of(converge)
        if nbytes > this_cpu().last_bytes:
            return FEW_RANKS
        return TWO_RANKS if nbytes > TWO_RANKS * this_cpu().l2_bytes else 1

    def _blocks_in(self, task: ir.Operation) -> str:
        """What the steps of a factorisation become, if its loop is the only one."""
        loops = _loops_in(task)
        if not self.steps or len(loops) != 1:
            return ""
        with contextlib.suppress(Immovable):
            found = BlockContractions(steps=self.steps).blocks(loops[0])
            if found is not None:
                what = "update the arrays together" if found.updates else "stay in the cache"
                return f"blocks of {found.width} steps {what}"
        return ""

    def _tiles_in(self, task: ir.Operation, converge: ir.Operation) -> str:
        """What the first loop worth it gains; why others do not is a remark on the converge."""
        for loop in _loops_in(task):
            try:
                tiles = self.tiling.tiles(loop)
            except Immovable as reason:
                if self.ranks > 1:
                    continue
                if isinstance(reason, Resident) and _is_short(reason):
                    return (
                        f"{reason.steps:,} steps over {reason.nbytes:,} bytes, "
                        "each shorter than starting its phases would take"
                    )
                add_remark(converge, "tile-time", f"loop {loop_name(loop)} is not tiled: {reason}")
            else:
                return (
                    f"several steps run on each part of the arrays while it is in cache ({tiles})"
                )
        return ""


def _loops_in(task: ir.Operation) -> list[ir.Operation]:
    ops = [view.operation for view in task.regions[0].blocks[0].operations]
    return [op for op in ops if op.name in FORS]


def _is_short(reason: Resident) -> bool:
    return reason.nbytes <= BYTES_WHILE_THREADS_MEET and reason.steps >= MANY_STEPS


def _short_phases(converge: ir.Operation, phases: Sequence[ir.Operation]) -> str:
    """What makes phases shorter than it takes to begin them; nothing where they are few or long."""
    runs, work = 0, 0
    for loop in _loops_in(converge):
        try:
            scop = read_scop(loop)
        except Immovable:
            return ""
        for statement in scop.statements:
            phase = next((each for each in phases if holds(each, statement.op)), None)
            counts = [most_iterations(statement.domain, k) for k in range(len(statement.loops))]
            around = (phase is None or holds(each.op, phase) for each in statement.loops)
            runs = max(runs, math.prod(itertools.compress(counts, around)))
            sizes = (ITEMSIZE.get(access.array.element_type, 8) for access in statement.accesses)
            work += math.prod(counts) * max(sizes, default=0)
    if runs < MANY_STEPS or work > BYTES_OF_A_SHORT_STEP * runs:
        return ""
    return f"{runs:,} steps, each shorter than starting its phases would take"
