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

from avial_lab.polyhedra.anchors import Anchor, anchor
from avial_lab.polyhedra.bounds import counts_from, fixed_in, trip_count, variable_of
from avial_lab.polyhedra.conflicts import Conflict, Conflicts
from avial_lab.polyhedra.dependences import Dependence, carried_among
from avial_lab.polyhedra.model import Array, ArrayKind, Loop, LoopKind, Scop, Statement
from avial_lab.polyhedra.operations import LOOPS
from avial_lab.polyhedra.reductions import Reduction, reductions

MOST_REASONS = 3

MOST_CHOICES = 24
"""Ways to choose loops that are tried for one nest, those further out first."""

FEW = 16
"""A loop of fewer iterations is split only where no longer one can be."""


@dataclass(frozen=True)
class Split:
    """A nest whose iterations are divided: parts with different values of `loops` do not meet.

    `op` is its outermost loop, `loops` the chosen ones: each statement of the nest is in exactly
    one of them, and where there are several, equal values belong to one rank. `second` divides it
    too, in the same way; the two together make a grid. `reductions` are what parts combine at the
    end. `private` arrays hold nothing that another part, or anything after the nest, reads: each
    rank uses its own. `triangular`: how much one value has to do depends on the value. `thin`: the
    chosen loops hold no others, so that there is about as much data as work.
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
class Nest:
    """A loop nest to be divided; `around`: how many loops are around it."""

    op: ir.Operation
    loops: tuple[Loop, ...]
    statements: tuple[Statement, ...]

    @property
    def around(self) -> int:
        return self.loops[0].depth


Choice = tuple[Loop, ...]
"""Loops, none inside another, that hold all statements."""


class Splitter:
    """Splits nests of one scop; what is found out about pairs of accesses serves all of them."""

    def __init__(self, scop: Scop) -> None:
        self.scop = scop
        self._conflicts = Conflicts(scop)

    def split(self, nest: Nest) -> Split | Refusal:
        """The nest divided, by its own loop if that may be, else by loops inside, else with
        reductions.
        """
        if nest.loops[0].kind is LoopKind.WHILE:
            return Refusal(self.reasons(nest, ()))
        wanted = _results_wanted(nest.op)
        if wanted is not None:
            return Refusal((wanted,))
        choice = _longest(self._choices(nest))
        if choice is not None:
            return self._split(nest, choice, ())
        carried = self._carried(nest)
        found, against = self._reduced(nest, carried)
        if found:
            return self._split(nest, nest.loops[:1], found)
        return Refusal(against)

    # -- by loops that hold all statements

    def _choices(self, nest: Nest) -> Iterator[Choice]:
        """What the nest may be split by, loops further out first."""
        options = self._options(nest, nest.statements, nest.around)
        for choice in islice(options, MOST_CHOICES):
            if _clampable(choice, nest):
                yield choice

    def _options(self, nest: Nest, statements: Sequence[Statement], depth: int) -> Iterator[Choice]:
        """The choices of loops at that depth or further in; all `statements` share those around."""
        groups: dict[Loop, list[Statement]] = {}
        for statement in statements:
            if len(statement.loops) == depth:
                return  # it is in no loop from here on
            groups.setdefault(statement.loops[depth], []).append(statement)
        each = [
            [
                (loop,) if self._free(nest, {s.name: loop for s in group}) else None,
                *self._options(nest, group, depth + 1),
            ]
            for loop, group in groups.items()
        ]
        usable = [[option for option in options if option] for options in each]
        found = [sum(parts, ()) for parts in islice(product(*usable), MOST_CHOICES)]
        for choice in sorted(found, key=lambda choice: sum(loop.depth for loop in choice)):
            if len(groups) == 1 or self._free(nest, _chosen(choice, statements)):
                yield choice

    def _free(self, nest: Nest, chosen: Mapping[str, Loop]) -> bool:
        return next(self._meetings(nest, chosen), None) is None

    def _meetings(self, nest: Nest, chosen: Mapping[str, Loop]) -> Iterator[Conflict]:
        places = {name: loop.depth for name, loop in chosen.items()}
        statements = [s for s in nest.statements if s.name in chosen]
        return self._conflicts.among(statements, places, nest.around)

    def _split(self, nest: Nest, choice: Choice, found: tuple[Reduction, ...]) -> Split:
        chosen = _chosen(choice, nest.statements)
        return Split(
            nest.op,
            choice,
            () if found else self._second(nest, choice),
            found,
            (),
            anchor(nest.statements, chosen, without=[r.array for r in found]),
            _triangular(choice, nest),
            all(len(s.loops) == chosen[s.name].depth + 1 for s in nest.statements),
        )

    def _second(self, nest: Nest, first: Choice) -> Choice:
        """Another choice, of other loops, whose ranges do not vary while the nest runs."""
        for choice in self._choices(nest):
            count = trip_count(choice[0])
            if (
                not any(loop in first for loop in choice)
                and all(loop.op == nest.op or fixed_in(loop, nest.op) for loop in choice)
                and (count is None or count >= FEW)
            ):
                return choice
        return ()

    # -- with reductions

    def _carried(self, nest: Nest) -> tuple[Dependence, ...]:
        return carried_among(nest.loops[0], nest.statements)

    def _reduced(
        self, nest: Nest, carried: Sequence[Dependence]
    ) -> tuple[tuple[Reduction, ...], tuple[str, ...]]:
        """The reductions that make the nest's own loop parallel; or why none do."""
        loop = nest.loops[0]
        found = reductions(loop, self.scop, carried)
        relaxed = {id(d) for r in found for d in r.relaxed}
        against = [d for d in carried if id(d) not in relaxed]
        texts = [d.reason() for d in against[:MOST_REASONS]]
        texts += [why for r in found if (why := _irreducible(r, nest)) is not None]
        return (found, ()) if not texts else ((), tuple(dict.fromkeys(texts))[:MOST_REASONS])

    def reasons(self, nest: Nest, otherwise: tuple[str, ...]) -> tuple[str, ...]:
        """Why the nest's own loop is not parallel."""
        texts = (d.reason() for d in self._carried(nest))
        return tuple(islice(dict.fromkeys(texts), MOST_REASONS)) or otherwise


def holds_loops(op: ir.Operation) -> bool:
    """Whether there is a loop somewhere inside `op`."""
    return any(
        inner.operation.name in LOOPS or holds_loops(inner.operation)
        for region in op.regions
        for body in region.blocks
        for inner in body.operations
    )


def _chosen(choice: Choice, statements: Iterable[Statement]) -> dict[str, Loop]:
    """Each statement's chosen loop, by the statement's name."""
    return {s.name: next(loop for loop in s.loops if loop in choice) for s in statements}


def _longest(choices: Iterable[Choice]) -> Choice | None:
    """The first whose loops have more than a few iterations, else the one with the most."""
    best: tuple[int, Choice] | None = None
    for choice in choices:
        counts = [trip_count(loop) for loop in choice]
        if None in counts:
            return choice
        count = max(count for count in counts if count is not None)
        if count >= FEW:
            return choice
        if best is None or count > best[0]:
            best = count, choice
    return best[1] if best is not None and best[0] > 1 else None


def _clampable(choice: Choice, nest: Nest) -> bool:
    """Whether each chosen loop can be cut down to a range of values."""
    if any(loop.kind is LoopKind.WHILE or _results_wanted(loop.op) for loop in choice):
        return False
    if all(loop.step == 1 for loop in choice):
        return True
    # Which values a longer step meets depends on where it starts: once for all.
    return len(choice) == 1 and (choice[0].op == nest.op or fixed_in(choice[0], nest.op))


def _results_wanted(op: ir.Operation) -> str | None:
    """A value that leaves the loop is known to the rank alone that runs its last iteration."""
    if any(True for result in op.results for _ in result.uses):
        return f"a value that {op.name} computes is used after it"
    return None


def _triangular(choice: Choice, nest: Nest) -> bool:
    loops = {id(loop): loop for s in nest.statements for loop in s.loops[nest.around :]}
    inside = [loop for loop in loops.values() if loop not in choice]
    mine = [variable_of(loop) for loop in choice]
    if any(counts_from(loop, mine) for loop in inside if loop.kind is not LoopKind.WHILE):
        return True
    # Or the chosen loop runs over other values each time.
    others = [variable_of(loop) for loop in inside if loop.kind is not LoopKind.WHILE]
    return any(counts_from(loop, others) for loop in choice)


# -- what can be combined

_COMBINED = ("i1", "i8", "i16", "i32", "i64", "index", "f32", "f64")


def _irreducible(reduction: Reduction, nest: Nest) -> str | None:
    """Why its parts cannot be combined at the end, if so."""
    array = reduction.array
    if array.kind is not ArrayKind.MEMORY:
        return f"{array} is handed from one iteration of {reduction.loop} to the next"
    if array.element_type not in _COMBINED:
        return f"parts of {array} cannot be combined as {array.element_type}"
    updating = {name for u in reduction.updates for name in (u.load, u.store)}
    for statement in nest.statements:
        for access in statement.accesses:
            if access.array is array and statement.name not in updating:
                line = f": line {statement.span.line}" if statement.span is not None else ""
                how = "written" if access.writes else "read"
                return f"{array}, which is summed up, is {how} as {access} too{line}"
    return None
