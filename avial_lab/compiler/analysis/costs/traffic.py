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
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.costs.weights import weight_of
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.scop import Access, ArrayKind, Loop, Scop, Statement
from avial_lab.compiler.analysis.polyhedral.trip_counts import trip_count
from avial_lab.core.element_types import ITEMSIZE
from avial_lab.core.runtime_constants import SMALL_REDUCTION

PARAM = isl.dim_type.param

ALL, ONE = -1, -2
"""In place of a dimension: every rank holds the array, or one rank does."""


class Unknown(Exception):
    """How much is done or touched is only known when the program runs."""


@dataclass(frozen=True)
class Use:
    """One way in which a phase reads or writes an array: `elements` of the `total` there are.

    follows: dimensions in which a rank's part of the iterations touches its own part of the array;
    none where each touches what may be anywhere. near: also a few elements beside its part.
    """

    array: ir.Value
    writes: bool
    elements: int
    total: int
    itemsize: int
    follows: frozenset[int]
    near: bool

    @property
    def nbytes(self) -> int:
        return self.elements * self.itemsize


@dataclass(frozen=True)
class PhaseWork:
    """One execution of a phase: its arithmetic in `flops` of the peak (`weights.py`; of the widest
    floats, `itemsize` bytes), and what it goes through. `divided` among the ranks, or on one;
    `reduced` arrays are combined.
    """

    flops: int
    itemsize: int
    uses: tuple[Use, ...]
    divided: bool
    reduced: frozenset[ir.Value]

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
    trips = _trips(scop)
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


def _trips(scop: Scop) -> dict[Loop, int]:
    """How often each loop runs; half as often as it can where that changes."""
    found: dict[Loop, int] = {}
    for statement in scop.statements:
        for place, loop in enumerate(statement.loops):
            if loop in found:
                continue
            count = trip_count(loop)
            found[loop] = _half_extent(statement, place) if count is None else count
    return found


def _half_extent(statement: Statement, place: int) -> int:
    def ends() -> tuple[int, int] | None:
        domain = statement.domain
        domain = domain.project_out(PARAM, 0, domain.dim(PARAM))
        if domain.is_empty():
            return 0, 0
        low, high = domain.dim_min_val(place), domain.dim_max_val(place)
        return (low.to_python(), high.to_python()) if low.is_int() and high.is_int() else None

    found = limited(ends, lambda: None)
    if found is None:
        raise Unknown
    return -(-(found[1] - found[0] + 1) // 2)


def _use(access: Access, trips: Mapping[Loop, int], count: int, divided: Collection[Loop]) -> Use:
    array = access.array
    assert array.value is not None, "memory has a value"
    shape = [extent for extent in array.shape if extent is not None]
    if len(shape) < array.rank:
        raise Unknown
    by_name = {loop.name: trips[loop] for loop in trips}
    chosen = {loop.name for loop in divided}
    elements, follows, near = 1, set[int](), False
    for dim, extent in enumerate(shape):
        form = access.forms[dim] if access.forms is not None else None
        if form is None:
            elements *= extent
            continue
        if len(form.terms) == 1 and form.terms[0][0] in chosen and form.terms[0][1] == 1:
            follows.add(dim)
            near |= form.constant != 0
        touched = 1 + sum(abs(f) * (by_name.get(name, 1) - 1) for name, f in form.terms)
        elements *= max(0, min(extent, touched))
    elements = min(elements, max(count, 1))
    itemsize = ITEMSIZE.get(array.element_type, 8)
    total = math.prod(shape)
    return Use(array.value, access.writes, elements, total, itemsize, frozenset(follows), near)


def _flops(block: ir.Block) -> int:
    """Of one run through the block, without what stands in loops inside."""
    return sum(_weight(view.operation) for view in block.operations)


def _weight(op: ir.Operation) -> int:
    if not len(op.results) or not isinstance(op.results[0].type, ir.F32Type | ir.F64Type):
        return 0
    if not op.name.startswith(("arith.", "math.")):
        return 0
    return weight_of(op.name).in_flops_of_peak


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
                traffic += self._read(use, divided=work.divided)
        for use in work.uses:
            if use.writes:
                traffic += self._write(use, work)
        # What one rank has for another in a phase is one message.
        return Traffic(traffic.nbytes, min(traffic.waits, 1))

    def _read(self, use: Use, *, divided: bool) -> Traffic:
        held = self.held.get(use.array)
        if held is None or ALL in held:
            return Traffic()
        away = (self.ranks - 1) / self.ranks
        if not divided:
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
