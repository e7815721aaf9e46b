"""A Python loop becomes a loop of the program: turns that recorded the same are one.

Statements in order -> statements and loops of them. Two turns are the same if their statements are,
but for the values that each defines for itself; what a turn hands to the next is in memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

LEAST_TURNS = 3
_VALUE = re.compile(r"%v\d+")


class Statement(Protocol):
    """text: of MLIR; defines: a value, or None for what writes memory."""

    @property
    def text(self) -> str: ...

    @property
    def defines(self) -> str | None: ...

    @property
    def uses(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Loop:
    """`turns` times the same statements, those of the first turn."""

    turns: int
    body: tuple[Statement, ...]


def rerolled(statements: Sequence[Statement]) -> list[Statement | Loop]:
    """The statements with loops in place of turns that are the same."""
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
        shapes.append(_Shape(_VALUE.sub("%", statement.text), uses))
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
