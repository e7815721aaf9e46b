"""What a phase costs on one rank, and what it costs to share it among several.

Scop of a phase, its divided loops -> Uses of arrays and operations; then, phase after phase, the
bytes that a rank has to be sent because it holds another part than it needs.

    for i: for j: B[i, j] = …           B lies by rows on the ranks: dimension 0 follows i
    for j: for i: C[i, j] = B[i, j]     reads it by columns: a rank sends all that is not in its own

A part that a rank was given by the caller lies as it is needed. Numbers are of the size of arrays,
not exact: whatever is not known ends in Unknown.

Source: K. Kennedy, U. Kremer, Automatic data layout for distributed-memory machines, TOPLAS 20
(1998): layouts of phases, and what it costs to go from one to the next.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from mlir import ir

from avial_lab.compiler.analysis.costs.work import Unknown, Use, trips_of
from avial_lab.compiler.analysis.costs.work import flops as _flops
from avial_lab.compiler.analysis.costs.work import use as _use
from avial_lab.compiler.analysis.polyhedral.scop import ArrayKind, Loop, Scop
from avial_lab.core.runtime_constants import SMALL_REDUCTION

ALL, ONE = -1, -2
"""In place of a dimension: every rank holds the array, or one rank does."""


@dataclass(frozen=True)
class PhaseWork:
    """One execution of a phase: its arithmetic in `flops` of the peak (`weights.py`; of the widest
    floats, `itemsize` bytes), and what it goes through. `divided` among the ranks, or on one;
    `reduced` arrays are combined. roams: it runs each time on the rank that has most of what it
    reads.
    """

    flops: int
    itemsize: int
    uses: tuple[Use, ...]
    divided: bool
    reduced: frozenset[ir.Value]
    roams: bool = False

    @property
    def nbytes(self) -> int:
        """Read and written, each element once."""
        most: dict[tuple[ir.Value, bool], int] = {}
        for use in self.uses:
            key = use.array, use.writes
            most[key] = max(most.get(key, 0), use.nbytes)
        return sum(most.values())


def phase_work(
    scop: Scop, divided: Collection[Loop], reduced: Collection[ir.Value] = ()
) -> PhaseWork:
    """Of the phase that the scop is of; raises Unknown."""
    if not all(statement.exact for statement in scop.statements):
        raise Unknown
    trips = trips_of(scop)
    uses: dict[tuple[ir.Value, bool, frozenset[int]], Use] = {}
    blocks: dict[ir.Block, int] = {}
    widest = 4
    for statement in scop.statements:
        count = math.prod(trips[loop] for loop in statement.loops)
        blocks[statement.op.block] = max(blocks.get(statement.op.block, 0), count)
        for access in statement.accesses:
            array = access.array
            if array.kind is ArrayKind.EFFECT:
                raise Unknown
            if array.kind is not ArrayKind.MEMORY or array.loops or array.value is None:
                continue
            use = _use(access, trips, count, divided)
            widest = max(widest, use.itemsize)
            key = use.array, use.writes, use.follows
            known = uses.get(key, use)
            near = use.near or known.near
            uses[key] = replace(max(known, use, key=lambda each: each.elements), near=near)
    flops = sum(_flops(block) * count for block, count in blocks.items())
    return PhaseWork(flops, widest, tuple(uses.values()), bool(divided), frozenset(reduced))


# Where the parts of arrays are --------------------------------------------------------------------


@dataclass(frozen=True)
class Traffic:
    """What a rank is sent: bytes, and in how many phases it waits for them."""

    nbytes: float = 0
    waits: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.nbytes + other.nbytes, self.waits + other.waits)

    def times(self, count: int) -> Traffic:
        return Traffic(self.nbytes * count, self.waits * count)


@dataclass
class Layouts:
    """How the arrays lie on so many `ranks`: by which of their dimensions, at ALL of them, at ONE.

    An array that is not here lies as the caller gave it to whoever needs it.
    """

    ranks: int
    held: dict[ir.Value, set[int]] = field(default_factory=dict[ir.Value, set[int]])

    def run(self, work: PhaseWork) -> Traffic:
        """What has to be sent for a phase, which leaves what it writes as it divides it."""
        traffic = Traffic()
        for use in work.uses:
            if use.array in work.reduced:
                continue
            if not use.writes:
                traffic += self._read(use, work)
        for use in work.uses:
            if use.writes:
                traffic += self._write(use, work)
        # What one rank has for another in a phase is one message.
        return Traffic(traffic.nbytes, min(traffic.waits, 1))

    def _read(self, use: Use, work: PhaseWork) -> Traffic:
        held = self.held.get(use.array)
        if held is None or ALL in held or (work.roams and 2 * use.elements < use.total):
            return Traffic()
        away = (self.ranks - 1) / self.ranks
        if not work.divided:
            wanted, nbytes = {ONE}, use.nbytes * away
        elif use.follows:
            if use.follows & held:
                return Traffic(waits=int(use.near))
            share = use.nbytes if ONE in held and len(held) == 1 else use.nbytes / self.ranks
            wanted, nbytes = set(use.follows), share * away
        else:
            wanted, nbytes = {ALL}, use.nbytes * away
        if wanted <= held:
            return Traffic()
        if 2 * use.elements >= use.total:
            held |= wanted
        return Traffic(nbytes, 1)

    def _write(self, use: Use, work: PhaseWork) -> Traffic:
        if use.array in work.reduced:
            self.held[use.array] = {ALL if use.elements <= SMALL_REDUCTION else 0}
            return Traffic(use.nbytes * (self.ranks - 1) / self.ranks, 1)
        if 2 * use.elements >= use.total or use.array not in self.held:
            # What is left of it, say a row that is set apart, lies as before.
            self.held[use.array] = {min(use.follows, default=ONE)} if work.divided else {ONE}
        return Traffic()
