"""Sums over the columns of an array that other phases go through by rows: by the same rows, with
partial sums.

Module of replicates and converges, placed on several ranks -> the same, where a nest that would go
over its part of the columns goes over the rows that its rank has already.

    x1[i] += A[i, j] * y1[j]      a rank has some rows i of A …
    x2[i] += A[j, i] * y2[j]      … and would need as many columns: half of the array again

A rank that goes over its rows j adds to all of x2: partial sums of a vector are sent in place of a
part of the array.

Source: L. S. Blackford et al., ScaLAPACK users' guide, SIAM 1997 (PBLAS: pdgemv of a matrix and of
its transposed leave the matrix where it is).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.accesses.reassociation import TERMS
from avial_lab.compiler.analysis.costs.schedule_cost import Cost, lying_before, ranks_of, work_in
from avial_lab.compiler.analysis.costs.traffic import PhaseWork
from avial_lab.compiler.analysis.costs.work import Unknown
from avial_lab.compiler.analysis.parallelism.fusion import needs_own_iteration
from avial_lab.compiler.analysis.parallelism.marked_loops import nearest_loops
from avial_lab.compiler.analysis.parallelism.partition import summed
from avial_lab.compiler.analysis.parallelism.splits import Split
from avial_lab.compiler.analysis.polyhedral.loop_ends import known_ends
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.codegen.describe_split import describe_split
from avial_lab.compiler.ir.attributes import FUSED, PHASES, SPLIT
from avial_lab.compiler.ir.captures import remap
from avial_lab.compiler.ir.dialects.avial import buffer_of
from avial_lab.compiler.ir.effects import STORES, is_pure
from avial_lab.compiler.ir.loop_bounds import BOUNDS
from avial_lab.compiler.ir.nesting import body_of, holds
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.phases import alone_in, on_cpu, reduced_arrays
from avial_lab.compiler.ir.program import is_strict
from avial_lab.compiler.ir.remarks import listed, loop_name
from avial_lab.compiler.passes.placement.join_phases import (
    as_joined,
    have_common,
    may_join,
    names_of,
)
from avial_lab.compiler.passes.placement.keep_on_one import WORTH
from avial_lab.machine.cpu import this_cpu

DIVISION = ("avial.bounds0", "avial.owned0", "avial.weights")
"""What a replicate says of the iterations of a loop that is divided."""


BY_ROWS = "avial.by_rows"
"""On a replicate: the phases, by name, that it goes through by rows because of others."""


@dataclass(frozen=True)
class AlignReductions:
    """Divide a sum by the rows of the array that it goes through, where other phases have those.

    before:  avial.replicate { for %i split { for %j { x[i] += A[i, j] * u[j] } } }       {S1}
             avial.replicate { for %i split { for %j { y[i] += A[j, i] * v[j] } } }       {S2}
    after:   avial.replicate { for %i split { for %j { x[i] += A[i, j] * u[j] } }
                               for %j split { for %i { y[i] += A[j, i] * v[j] } } }
             {S1, avial.reduced = [y], avial.fused = ["S1", "S2"]}

    Where that is sooner done on so many `ranks`, by the model of `keep-on-one`. Sums of floats are
    added in another order; a strict module stays as it is.
    """

    ranks: int = 2

    def __call__(self, module: ir.Operation) -> None:
        if is_strict(module) or alone_in(module) is not None:
            return
        with module.context:
            for schedule in [op for op in operations_in(module) if op.name == "avial.schedule"]:
                self._share_in(schedule)

    def __str__(self) -> str:
        return f"align-reductions{{ranks={self.ranks}}}"

    def _share_in(self, schedule: ir.Operation) -> None:
        phases = [op for op in operations_in(schedule) if op.name in PHASES]
        if len(phases) < 2 or not any(_sums_in(op) for op in phases):
            return
        if lying_before(schedule):
            return  # arrays on ranks, whose sums have the same bits on any number of these
        ranks = ranks_of(phases, self.ranks)
        if ranks < 2:
            return
        other = schedule.clone(ip=ir.InsertionPoint(schedule)).operation
        try:
            cost = Cost(ranks, this_cpu())
            sooner = _turned(other) and (cost.of(other).several < WORTH * cost.of(schedule).several)
        except Unknown:
            sooner = False
        (schedule if sooner else other).erase()


def shared_sums(module: ir.Operation) -> dict[str, int]:
    """The phases whose sums ranks add up in parts because of this, with the number of terms."""
    return {
        name: ir.IntegerAttr(op.attributes[TERMS]).value
        for op in operations_in(module)
        if BY_ROWS in op.attributes and TERMS in op.attributes
        for name in _texts_of(op, BY_ROWS)
    }


@dataclass(frozen=True)
class _Nest:
    """Two loops, perfectly nested, from a number to a number each; the outer one is divided."""

    outer: ir.Operation
    inner: ir.Operation

    def exchange(self) -> None:
        """The inner loop is the outer one, and is what is divided; twice is not at all."""
        a, b = self.outer, self.inner
        for name in BOUNDS:
            a.attributes[name], b.attributes[name] = b.attributes[name], a.attributes[name]
        i, j = (loop.regions[0].blocks[0].arguments[0] for loop in (a, b))
        for op in operations_in(b):
            remap(op, {i: j, j: i})
        first, second = i.location, j.location
        i.set_location(second)
        j.set_location(first)


def _sums_in(phase: ir.Operation) -> _Nest | None:
    """The nest that it is, if that only stores what the outer, divided loop tells apart."""
    if phase.name != "avial.replicate" or not on_cpu(phase) or reduced_arrays(phase):
        return None
    body = body_of(phase)
    if len(body) != 1 or not _is_plain(body[0]) or SPLIT not in body[0].attributes:
        return None
    outer, inside = body[0], body_of(body[0])
    if len(inside) != 1 or not _is_plain(inside[0]):
        return None
    inner = inside[0]
    stores = [op for op in operations_in(inner) if op.name in STORES]
    column = inner.regions[0].blocks[0].arguments[0]
    plain = not any(len(op.regions) for op in operations_in(inner))
    sums = plain and bool(stores) and not any(column in list(op.operands) for op in stores)
    return _Nest(outer, inner) if sums else None


def _is_plain(op: ir.Operation) -> bool:
    """Whether it is a loop from a number to a number that hands nothing on."""
    return (
        op.name == "affine.for"
        and not len(op.operands)
        and all(len(ends) == 1 and ends[0] is not None for ends in known_ends(op))
    )


def _turned(schedule: ir.Operation) -> bool:
    """Whether sums in it go by rows now; what then goes over the same rows is one."""
    works = {op: work_in(op) for op in operations_in(schedule) if op.name in PHASES}
    turned = [
        phase
        for phase, work in works.items()
        if _goes_by_columns(work, [other for other in works.values() if other is not work])
        and _turn(phase)
    ]
    if turned:
        _join_in(schedule)
    return bool(turned)


def _goes_by_columns(work: PhaseWork, others: Sequence[PhaseWork]) -> bool:
    """Whether it reads by another dimension what one of the others has by the first."""
    rows = {use.array for other in others if other.divided for use in other.uses
            if 0 in use.follows}  # fmt: skip
    return any(
        use.array in rows and use.follows and 0 not in use.follows and not use.writes
        for use in work.uses
    )


def _turn(phase: ir.Operation) -> bool:
    """Whether the phase goes by rows now, or stays as it was."""
    nest = _sums_in(phase)
    if nest is None:
        return False
    nest.exchange()
    found = summed(phase, nest.outer)
    if not isinstance(found, Split) or found.private:
        nest.exchange()
        return False
    for name in DIVISION:
        if name in phase.attributes:
            del phase.attributes[name]
    describe_split(found, phase)
    names = listed(str(array) for each in found.reductions for array in each.arrays)
    why = f"each rank adds its own rows {loop_name(nest.outer)} to all of {names}"
    phase.attributes["avial.why"] = _texts([why])
    phase.attributes[FUSED] = phase.attributes[BY_ROWS] = _texts(names_of(phase))
    return True


def _texts(lines: Sequence[str]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.StringAttr.get(line) for line in lines])


def _texts_of(op: ir.Operation, attribute: str) -> list[str]:
    """The lines of an attribute; none where `op` does not have it."""
    if attribute not in op.attributes:
        return []
    return [ir.StringAttr(line).value for line in ir.ArrayAttr(op.attributes[attribute])]


# Phases over the same rows ------------------------------------------------------------------------


def _join_in(op: ir.Operation) -> None:
    """The replicates in each block of `op` that nothing stands between but arithmetic."""
    for region in op.regions:
        for block in region.blocks:
            before: ir.Operation | None = None
            for inner in [view.operation for view in block.operations]:
                if inner.name in PHASES:
                    before = _joined(before, inner)
                elif not is_pure(inner):
                    before = None
                    _join_in(inner)


def _joined(before: ir.Operation | None, phase: ir.Operation) -> ir.Operation:
    """A replicate of both where a rank needs nothing from another one between them, and one of them
    goes by rows because of the other; else the phase itself.
    """
    if before is None or not _may_be_one(before, phase):
        return phase
    pair = (before, phase)
    turned = [op for op in pair if BY_ROWS in op.attributes]
    summed_up = dict.fromkeys(array for op in pair for array in reduced_arrays(op))
    copies = [op.clone(ip=ir.InsertionPoint(phase)).operation for op in pair]
    names = [name for op in pair for name in names_of(op)]
    lines = [f"{listed(names)} run as one phase on every rank: they access the same rows"]
    lines += [line for op in turned for line in _texts_of(op, "avial.why") if line not in lines]
    made = as_joined(copies[0], copies[1], "avial.replicate", lines)
    if not _goes_on_alone(made, summed_up):
        made.erase()
        return phase
    _describe(made, pair, summed_up)
    for op in pair:
        op.erase()
    return made


def _may_be_one(before: ir.Operation, phase: ir.Operation) -> bool:
    """Whether both divide a loop over the same rows of some array that both go through."""
    pair = (before, phase)
    return (
        all(op.name == "avial.replicate" and may_join(op) for op in pair)
        and any(BY_ROWS in op.attributes for op in pair)
        and before.operands[0] == phase.operands[0]
        and have_common(before, phase)
        and _division(before) is not None
        and _division(before) == _division(phase)
    )


def _division(phase: ir.Operation) -> tuple[str, ...] | None:
    """What the ranks divide, and what each has of it; None where that is not one loop's range."""
    loops = list(nearest_loops(phase))
    if not all(SPLIT in loop.attributes and _is_plain(loop) for loop in loops):
        return None
    ranges = {tuple(str(loop.attributes[name]) for name in BOUNDS) for loop in loops}
    said = [str(phase.attributes[name]) for name in DIVISION if name in phase.attributes]
    return (*ranges.pop(), *said) if len(ranges) == 1 else None


def _goes_on_alone(made: ir.Operation, summed_up: Collection[ir.Value]) -> bool:
    """Whether each rank finds in what it made itself all that its later loops need of the earlier,
    and nothing else touches what is summed up.
    """
    scop = read_scop(made)
    nests = list(nearest_loops(made))
    inside = [[s for s in scop.statements if holds(nest, s.op)] for nest in nests]
    for number, after in enumerate(inside):
        for before in inside[:number]:
            touched = [
                {a.array.value for s in nest for a in s.accesses} for nest in (before, after)
            ]
            if touched[0] & touched[1] & set(summed_up) or not needs_own_iteration(before, after):
                return False
    return True


def _describe(
    made: ir.Operation, phases: Sequence[ir.Operation], summed_up: Collection[ir.Value]
) -> None:
    """Write on the replicate what stood on those that it is of."""
    for op in phases:
        for name in (*DIVISION, TERMS):
            if name in op.attributes:
                made.attributes[name] = op.attributes[name]
    made.attributes[BY_ROWS] = _texts([n for op in phases for n in _texts_of(op, BY_ROWS)])
    operands = [buffer_of(operand) for operand in made.operands]
    # An array that is read and written is listed twice: the later is the write.
    places = {value: k for k, value in enumerate(operands) if value in summed_up}
    made.attributes["avial.reduced"] = ir.DenseI64ArrayAttr.get(sorted(places.values()))
