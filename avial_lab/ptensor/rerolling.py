"""A Python loop becomes a loop of the program: turns that recorded the same are one.

Statements in order -> statements and loops of them. Two turns are the same if their statements are,
but for the values that each defines for itself. What a turn hands to the next is in memory, or is a
value that the next one takes, or the one after that.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from avial_lab.runtime.rank.interpreter import Operation

LEAST_TURNS = 3
LEAST_CARRYING = 8
"""Turns of a loop that hands values on: fewer are fused better one after the other."""

MOST_PERIODS, MOST_IN_TURN = 24, 400
"""Lengths of a turn that are tried at one place, and the longest of them."""

MEMORY = re.compile(r"%m\d+")
VALUE = re.compile(r"%v\d+")


class Statement(Protocol):
    """text: of MLIR; defines: a value, or None for what writes memory."""

    @property
    def text(self) -> str: ...

    @property
    def operation(self) -> Operation: ...

    @property
    def defines(self) -> str | None: ...

    @property
    def uses(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Loop:
    """`turns` times the same statements, those of the first turn. carried: what a turn takes of
    others; left: values that are used behind it, and which of the carried they are.
    """

    turns: int
    body: tuple[Statement, ...]
    carried: tuple[Carried, ...] = ()
    left: Mapping[str, Carried] = field(default_factory=dict)


@dataclass(frozen=True)
class Carried:
    """Statement number `place` of a turn, as the turn knows it that comes so many `later`. begin:
    the value that is it in the first turn.
    """

    place: int
    later: int
    begin: str


def turn_of(kinds: Sequence[object]) -> int:
    """How long the turns are that these end with; 0 where the last two of none are the same.

    >>> turn_of(["begin", "a", "b", "a", "a", "b", "a"])
    3
    """
    for period in range(1, min(MOST_IN_TURN, len(kinds) // 2) + 1):
        if kinds[-period:] == kinds[-2 * period : -period]:
            return period
    return 0


def rerolled(statements: Sequence[Statement], own: Collection[str] = ()) -> list[Statement | Loop]:
    """The statements with loops in place of turns that are the same. own: the memories that nobody
    knows before or behind them: those that a turn alone mentions may be another one's.
    """
    found = _through_memory(statements)
    if len(found) < len(statements) or len(statements) < 2 * LEAST_CARRYING:
        return found
    return _carrying(statements, own)


def _through_memory(statements: Sequence[Statement]) -> list[Statement | Loop]:
    if sum(1 for statement in statements if statement.defines is None) < LEAST_TURNS:
        return list(statements)  # a turn writes something
    shapes = _shapes(statements)
    next_like = _next_like(statements, shapes)
    used_last = _last_uses(statements)
    found: list[Statement | Loop] = []
    at = 0
    while at < len(statements):
        period = next_like.get(at, 0)
        turns = _turns(shapes, at, period) if period else 1
        # What a turn defines and somebody behind the loop takes is that turn's own.
        while turns >= LEAST_TURNS and _is_used_behind(statements, used_last, at, period, turns):
            turns -= 1
        if turns >= LEAST_TURNS:
            found.append(Loop(turns, tuple(statements[at : at + period])))
            at += period * turns
        else:
            found.append(statements[at])
            at += 1
    return found


@dataclass(frozen=True)
class _Shape:
    """A statement without the names of values: text, and the places where those that it uses are
    defined.
    """

    text: str
    uses: tuple[int, ...]

    def within(self, begin: int, first: int) -> tuple[str, tuple[int, ...]]:
        """In the turn that begins there, of a loop that begins at `first`: values of the turn by
        their place in it, those of before the loop by theirs. What another turn defined is neither.
        """
        uses = tuple(use - begin if use >= begin else -1 - use for use in self.uses)
        other = any(first <= use < begin for use in self.uses)
        return (f"{begin}: {self.text}" if other else self.text), uses


def _shapes(statements: Sequence[Statement]) -> list[_Shape]:
    place: dict[str, int] = {}
    shapes: list[_Shape] = []
    for at, statement in enumerate(statements):
        uses = tuple(place[name] for name in statement.uses)
        shapes.append(_Shape(VALUE.sub("%", statement.text), uses))
        if statement.defines is not None:
            place[statement.defines] = at
    return shapes


def _next_like(statements: Sequence[Statement], shapes: Sequence[_Shape]) -> Mapping[int, int]:
    """From where a turn may begin, how far it is to the next: a turn ends in a write to memory, and
    the next write that is the same ends the next one.
    """
    last: dict[str, int] = {}
    periods: dict[int, int] = {}
    for at, statement in enumerate(statements):
        if statement.defines is not None:
            continue
        before = last.get(shapes[at].text)
        if before is not None:
            period = at - before
            for start in (before + 1 - period, before + 1):
                if start >= 0 and start not in periods:
                    periods[start] = period
        last[shapes[at].text] = at
    return periods


def _turns(shapes: Sequence[_Shape], first: int, period: int) -> int:
    """How many turns from there on are the same."""

    def turn(begin: int) -> list[tuple[str, tuple[int, ...]]]:
        return [shape.within(begin, first) for shape in shapes[begin : begin + period]]

    wanted = turn(first)
    turns = 1
    while turn(first + turns * period) == wanted:
        turns += 1
    return turns


def _last_uses(statements: Sequence[Statement]) -> Mapping[str, int]:
    return {name: at for at, statement in enumerate(statements) for name in statement.uses}


def _is_used_behind(
    statements: Sequence[Statement], last: Mapping[str, int], at: int, period: int, turns: int
) -> bool:
    end = at + period * turns
    return any(
        statement.defines is not None and last.get(statement.defines, 0) >= end
        for statement in statements[end - period : end]
    )


# -- loops that hand values on ---------------------------------------------------------------------


def _carrying(statements: Sequence[Statement], own: Collection[str]) -> list[Statement | Loop]:
    turns = _Turns(statements, own)
    found: list[Statement | Loop] = []
    at = 0
    while at < len(statements):
        begin, loop = turns.loop_from(at)
        found += statements[at:begin]
        at = begin
        if loop is not None:
            found.append(loop)
            at += loop.turns * len(loop.body)
    return found


class _Turns:
    def __init__(self, statements: Sequence[Statement], own: Collection[str]) -> None:
        self.statements = statements
        shapes = _shapes(statements)
        self.uses = [shape.uses for shape in shapes]
        kinds: dict[str, int] = {}
        texts = [MEMORY.sub("%m", shape.text) for shape in shapes]
        self.kinds = [kinds.setdefault(text, len(kinds)) for text in texts]
        mentions = [MEMORY.findall(statement.text) for statement in statements]
        self.first: dict[str, int] = {}
        self.last: dict[str, int] = {}
        for at, names in enumerate(mentions):
            for name in names:
                self.first.setdefault(name, at)
                self.last[name] = at
        self.mentions = mentions
        self.own = frozenset(own)
        self.same: dict[int, list[int]] = {}
        for at, kind in enumerate(self.kinds):
            self.same.setdefault(kind, []).append(at)
        self.used_by: dict[int, int] = {}
        for at, uses in enumerate(self.uses):
            self.used_by.update(dict.fromkeys(uses, at))

    def loop_from(self, at: int) -> tuple[int, Loop | None]:
        """Where the loop begins whose turns are there, so that they hand on least; else the next
        place.
        """
        loop = self._loop_at(at)
        if loop is None:
            return at + 1, None
        period = len(loop.body)
        handed_on = [len(self._carried(at + k, period)) for k in range(period)]
        begin = at + handed_on.index(min(handed_on))
        other = self._loop(begin, period) if begin > at else None
        return (at, loop) if other is None else (begin, other)

    def _loop_at(self, at: int) -> Loop | None:
        others = self.same[self.kinds[at]]
        first = bisect_right(others, at)
        for other in others[first : first + MOST_PERIODS]:
            period = other - at
            if period > MOST_IN_TURN or at + LEAST_CARRYING * period > len(self.statements):
                return None
            if self._looks_so(at, period) and (loop := self._loop(at, period)) is not None:
                return loop
        return None

    def _looks_so(self, at: int, period: int) -> bool:
        kinds = self.kinds
        return kinds[at : at + period] == kinds[at + period : at + 2 * period]

    def _loop(self, at: int, period: int) -> Loop | None:
        wanted = self._turn(at, period)
        turns = 1
        while self._turn(at + turns * period, period) == wanted:
            turns += 1
        while turns >= LEAST_CARRYING:
            carried = self._carried(at, period)
            left = self._left(at, period, turns, carried)
            if left is not None:
                body = tuple(self.statements[at : at + period])
                return Loop(turns, body, tuple(carried.values()), left)
            turns -= 1
        return None

    def _turn(self, begin: int, period: int) -> list[tuple[object, ...]]:
        """Values of the turn and of the two before by how far they are from where it begins, others
        by their place; the turn's own memories by where it mentions them first, others by name.
        """
        oldest, beyond = begin - 2 * period, -2 * period - 1
        turn: list[tuple[object, ...]] = []
        for at in range(begin, min(begin + period, len(self.statements))):
            uses = (use - begin if use >= oldest else beyond - use for use in self.uses[at])
            memories = (
                self.first[name] - begin if self._is_turns_own(name, begin, period) else name
                for name in self.mentions[at]
            )
            turn.append((self.kinds[at], *uses, *memories))
        return turn

    def _is_turns_own(self, name: str, begin: int, period: int) -> bool:
        inside = begin <= self.first[name] and self.last[name] < begin + period
        return inside and name in self.own

    def _carried(self, at: int, period: int) -> dict[tuple[int, int], Carried]:
        taken = {u for uses in self.uses[at : at + period] for u in uses}
        wanted = {
            ((use - at) % period, later)
            for use in taken
            if at - 2 * period <= use < at
            for later in range(1, (at - 1 - use) // period + 2)
        }
        return {
            (place, later): Carried(place, later, name)
            for place, later in sorted(wanted)
            if (name := self.statements[at - later * period + place].defines) is not None
        }

    def _left(
        self, at: int, period: int, turns: int, carried: Mapping[tuple[int, int], Carried]
    ) -> dict[str, Carried] | None:
        """None where what is used behind so many turns is not among the carried."""
        end = at + turns * period
        left: dict[str, Carried] = {}
        for use in range(at, end):
            name = self.statements[use].defines
            if name is None or self.used_by.get(use, 0) < end:
                continue
            key = (use - at) % period, (end - 1 - use) // period + 1
            if key not in carried:
                return None
            left[name] = carried[key]
        return left
