"""How one nest may be divided: by which loops, with which reductions, and if not, why.

A nest's outermost loop -> a Split, or the reasons against one.

    for i, for j, for k < i:  C[k, j] += …      by j: equal j on one rank, all of i and k on each
    for i: s[0] += A[i]                         by i, with the reduction sum of s
    for i: A[i] = A[i - 1]                      not: A[i - 1] is written by the iteration before

A nest is split by the values of one loop, or of several loops inside it that hold all its accesses,
such that two executions that touch one element, one of them writing it, have the same value. Then
ranks need nothing from each other while it runs.

Source: A. W. Lim, M. S. Lam, Maximizing parallelism and minimizing synchronization with affine
transforms, POPL 1997, restricted to the loops as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from mlir import ir

from avial_lab.compiler.analysis.parallelism.conflicts import Conflict, Conflicts
from avial_lab.compiler.analysis.parallelism.owner_computes import Anchor, anchor
from avial_lab.compiler.analysis.parallelism.privatisation import (
    is_dead_after,
    is_temporary,
    reads_its_own,
)
from avial_lab.compiler.analysis.parallelism.reductions import Reduction, reductions
from avial_lab.compiler.analysis.polyhedral.dependences import carried_among
from avial_lab.compiler.analysis.polyhedral.operations import LOOPS
from avial_lab.compiler.analysis.polyhedral.scop import (
    Array,
    ArrayKind,
    Loop,
    LoopKind,
    Scop,
    Statement,
)
from avial_lab.compiler.analysis.polyhedral.trip_counts import counts_from, fixed_in, trip_count
from avial_lab.compiler.ir.attributes import DIVIDED
from avial_lab.compiler.ir.program import is_strict
from avial_lab.core.element_types import combines

MOST_REASONS = 3

MOST_CHOICES = 24
"""Ways to choose loops that are tried for one nest, those further out first."""

FEW = 16
"""A loop of fewer iterations is split only where no longer one can be."""


@dataclass(frozen=True)
class Split:
    """A nest whose iterations are divided: parts with different values of `loops` do not meet.

    `op` is its outermost loop, `loops` the chosen ones: each statement of the nest is in exactly
    one of them, but for reads of what the nest does not write, which every part does. Where there
    are several loops, equal values belong to one rank. Those inside `op` have step 1. `second`
    divides it too, in the same way; the two together make a grid. `reductions` are what parts
    combine at the end. `private` arrays hold nothing that another part, or anything after the nest,
    reads: each rank uses its own. `triangular`: how much one value has to do depends on the value.
    `thin`: the chosen loops hold no others, so that there is about as much data as work.
    """

    op: ir.Operation
    loops: tuple[Loop, ...]
    second: tuple[Loop, ...]
    reductions: tuple[Reduction, ...]
    private: tuple[Array, ...]
    anchor: Anchor | None
    triangular: bool
    thin: bool


@dataclass(frozen=True)
class Refusal:
    """Why a nest is not split."""

    reasons: tuple[str, ...]


@dataclass(frozen=True)
class LoopNest:
    """A loop nest to be divided; `around`: how many loops are around it."""

    op: ir.Operation
    loops: tuple[Loop, ...]
    statements: tuple[Statement, ...]

    @property
    def around(self) -> int:
        return self.loops[0].depth


@dataclass(frozen=True)
class Choice:
    """Loops, none inside another, that hold all statements of a nest but what only reads what the
    nest does not write; and the temporaries of which each value needs its own.
    """

    loops: tuple[Loop, ...]
    private: tuple[Array, ...]


class Splitter:
    """Splits nests of one scop; what is found out about pairs of accesses serves all of them."""

    def __init__(self, scop: Scop) -> None:
        self.scop = scop
        self._conflicts = Conflicts(scop)
        self._private: dict[tuple[tuple[str, ...], tuple[int, ...], str], bool] = {}

    def split(self, nest: LoopNest) -> Split | Refusal:
        """The nest divided, by its own loop if that may be, else by loops inside, else with
        reductions.
        """
        wanted = _results_wanted(nest.op)
        if wanted is not None:
            return Refusal((wanted,))
        choice = _longest(self._choices(nest))
        if choice is not None:
            return self._split(nest, choice, ())
        if nest.loops[0].kind is LoopKind.WHILE or trip_count(nest.loops[0]) in (0, 1):
            return Refusal(self._reasons(nest))
        return self.reduced(nest)

    # -- by loops that hold all statements

    def _choices(self, nest: LoopNest) -> Iterator[Choice]:
        """What the nest may be split by, loops further out first."""
        written = {a.array for s in nest.statements for a in s.accesses if a.writes}
        # What only reads, and what nobody writes there, may stand outside: every part reads it.
        needed = [s for s in nest.statements if any(a.array in written for a in s.accesses)]
        for loops in islice(self._options(nest, needed, nest.around), MOST_CHOICES):
            if not _clampable(loops, nest):
                continue
            met = dict.fromkeys(c.array for c in self._meetings(nest, _chosen(loops, needed)))
            if all(self._is_private(array, nest, loops) for array in met):
                yield Choice(loops, tuple(met))

    def _options(
        self, nest: LoopNest, statements: Sequence[Statement], depth: int
    ) -> Iterator[tuple[Loop, ...]]:
        """Loops at that depth or further in that hold all `statements`, which share those around;
        some that do not conflict, unless in temporaries.
        """
        groups: dict[Loop, list[Statement]] = {}
        for statement in statements:
            if len(statement.loops) == depth:
                return  # it is in no loop from here on
            groups.setdefault(statement.loops[depth], []).append(statement)
        each: list[list[tuple[Loop, ...]]] = []
        for loop, group in groups.items():
            own = [(loop,)] if self._free(nest, {s.name: loop for s in group}) else []
            each.append(own + list(islice(self._options(nest, group, depth + 1), MOST_CHOICES)))
        found = [sum(parts, ()) for parts in islice(product(*each), MOST_CHOICES)]
        for loops in sorted(found, key=lambda loops: sum(loop.depth for loop in loops)):
            if loops and (len(groups) == 1 or self._free(nest, _chosen(loops, statements))):
                yield loops

    def _free(self, nest: LoopNest, chosen: Mapping[str, Loop]) -> bool:
        return all(is_temporary(c.array) for c in self._meetings(nest, chosen))

    def _meetings(self, nest: LoopNest, chosen: Mapping[str, Loop]) -> Iterator[Conflict]:
        statements = [s for s in nest.statements if s.name in chosen]
        return self._conflicts.among(statements, _places(chosen), nest.around)

    def _is_private(self, array: Array, nest: LoopNest, loops: Sequence[Loop]) -> bool:
        """Whether each rank may use an `array` of its own when `loops` are split."""
        key = tuple(s.name for s in nest.statements), tuple(map(id, loops)), array.name
        if key not in self._private:
            places = _places(_chosen(loops, nest.statements))
            self._private[key] = (
                is_temporary(array)
                and reads_its_own(array, nest.statements, places, nest.around)
                and is_dead_after(array, nest.statements, nest.around, self.scop.statements)
            )
        return self._private[key]

    def conflicts(self, nest: LoopNest) -> Iterator[Conflict]:
        """Because of what the nest's own loop is not split, but for what reductions relax."""
        loops = nest.loops[:1]
        for conflict in self._meetings(nest, _chosen(loops, nest.statements)):
            if not self._is_private(conflict.array, nest, loops):
                yield conflict

    def _split(self, nest: LoopNest, choice: Choice, found: tuple[Reduction, ...]) -> Split:
        chosen = _chosen(choice.loops, nest.statements)
        inside = [s for s in nest.statements if s.name in chosen]
        others = [*(array for reduction in found for array in reduction.arrays), *choice.private]
        return Split(
            nest.op,
            choice.loops,
            () if found else self._second(nest, choice),
            found,
            choice.private,
            anchor(inside, chosen, without=others),
            _triangular(choice.loops, nest),
            all(len(s.loops) == chosen[s.name].depth + 1 for s in inside),
        )

    def _second(self, nest: LoopNest, first: Choice) -> tuple[Loop, ...]:
        """Other loops to split by, whose ranges do not vary while the nest runs.

        Without private arrays: those of the first choice are private to its values as a whole.
        """
        for choice in self._choices(nest):
            count = trip_count(choice.loops[0])
            if (
                not choice.private
                and not any(loop in first.loops for loop in choice.loops)
                and all(loop.op == nest.op or fixed_in(loop, nest.op) for loop in choice.loops)
                and (count is None or count >= FEW)
            ):
                return choice.loops
        return ()

    # -- with reductions

    def reduced(self, nest: LoopNest) -> Split | Refusal:
        """The nest's own loop, with the reductions that make it parallel; or why none do."""
        loop = nest.loops[0]
        carried = carried_among(loop, nest.statements)
        met = dict.fromkeys(d.array for d in carried)
        private = [array for array in met if self._is_private(array, nest, (loop,))]
        carried = tuple(d for d in carried if d.array not in private)
        found = reductions(loop, self.scop, carried)
        relaxed = {id(d) for r in found for d in r.relaxed}
        texts = [
            d.reason()
            for d in islice((d for d in carried if id(d) not in relaxed), 2 * MOST_REASONS)
        ]
        texts += [why for r in found if (why := _irreducible(r, nest)) is not None]
        if found and not texts:
            return self._split(nest, Choice((loop,), tuple(private)), found)
        texts = texts or [f"{nest.op.name} writes no array"]
        return Refusal(tuple(dict.fromkeys(texts))[:MOST_REASONS])

    def _reasons(self, nest: LoopNest) -> tuple[str, ...]:
        """Why the nest's own loop is not parallel."""
        loop = nest.loops[0]
        texts = (d.reason() for d in carried_among(loop, nest.statements))
        few = f"{loop} has at most one iteration"
        return tuple(islice(dict.fromkeys(texts), MOST_REASONS)) or (few,)


def holds_loops(op: ir.Operation) -> bool:
    """Whether there is a loop somewhere inside `op`."""
    return any(
        inner.operation.name in LOOPS or holds_loops(inner.operation)
        for region in op.regions
        for body in region.blocks
        for inner in body.operations
    )


def _chosen(loops: Sequence[Loop], statements: Iterable[Statement]) -> dict[str, Loop]:
    """The one of `loops` that each statement is in, by its name; without those that are in none."""
    among = set(loops)  # there may be hundreds, one for each statement
    return {s.name: loop for s in statements for loop in s.loops if loop in among}


def _places(chosen: Mapping[str, Loop]) -> dict[str, int]:
    return {name: loop.depth for name, loop in chosen.items()}


def _longest(choices: Iterable[Choice]) -> Choice | None:
    """The first whose loops have more than a few iterations, or are marked as the ones to divide;
    else the one with the most.
    """
    best: tuple[int, Choice] | None = None
    for choice in choices:
        if any(DIVIDED in loop.op.attributes for loop in choice.loops):
            return choice
        counts = [trip_count(loop) for loop in choice.loops]
        if None in counts:
            return choice
        count = max(count for count in counts if count is not None)
        if count >= FEW:
            return choice
        if best is None or count > best[0]:
            best = count, choice
    return best[1] if best is not None and best[0] > 1 else None


def _clampable(loops: Sequence[Loop], nest: LoopNest) -> bool:
    """Whether each chosen loop can be cut down to a range of values."""
    if any(loop.kind is LoopKind.WHILE or _results_wanted(loop.op) for loop in loops):
        return False
    # Which values a longer step meets depends on where the loop starts: only of the nest's own is
    # that known before it runs.
    return all(loop.step == 1 or loop.op == nest.op for loop in loops)


def _results_wanted(op: ir.Operation) -> str | None:
    """A value that leaves the loop is known to the rank alone that runs its last iteration."""
    if any(True for result in op.results for _ in result.uses):
        return f"a value that {op.name} computes is used after it"
    return None


def _triangular(chosen: Sequence[Loop], nest: LoopNest) -> bool:
    loops = {id(loop): loop for s in nest.statements for loop in s.loops[nest.around :]}
    inside = [loop for loop in loops.values() if loop not in chosen]
    mine = [loop.variable for loop in chosen]
    if any(counts_from(loop, mine) for loop in inside if loop.kind is not LoopKind.WHILE):
        return True
    # Or the chosen loop runs over other values each time.
    others = [loop.variable for loop in inside if loop.kind is not LoopKind.WHILE]
    return any(counts_from(loop, others) for loop in chosen)


# -- what can be combined


def _irreducible(reduction: Reduction, nest: LoopNest) -> str | None:
    """Why its parts cannot be combined at the end, if so."""
    if reduction.reorders_rounding and is_strict(nest.op):
        return f"the {reduction} keeps its order: the program is strict"
    for array in reduction.arrays:
        if array.kind is not ArrayKind.MEMORY:
            return f"{array} is passed from one iteration of {reduction.loop} to the next"
    kind = reduction.element_type
    if not combines(reduction.op, kind):
        return f"partial results of {reduction.array} cannot be combined as {kind}"
    updating = {name for u in reduction.updates for name in (u.load, u.store)}
    for statement in nest.statements:
        for access in statement.accesses:
            array = access.array
            if array in reduction.arrays and statement.name not in updating:
                line = f": line {statement.span.line}" if statement.span is not None else ""
                how = "written" if access.writes else "read"
                return f"{array}, which is reduced, is also {how} as {access}{line}"
    return None
