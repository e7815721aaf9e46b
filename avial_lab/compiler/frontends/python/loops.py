"""Loops: over ranges as affine ones, upwards; over tuples one iteration after the other; and those
that end when data say so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from avial_lab.compiler.frontends.python.arithmetic import affine, constant
from avial_lab.compiler.frontends.python.assignments import Assignments
from avial_lab.compiler.frontends.python.calls import Sequenced
from avial_lab.compiler.frontends.python.exceptions import HangsOnTheIteration
from avial_lab.compiler.frontends.python.frames import Cell
from avial_lab.compiler.frontends.python.jumps import StoppedFor
from avial_lab.compiler.frontends.python.kinds import BOOL, INT
from avial_lab.compiler.frontends.python.linear import Linear, Range, number, term
from avial_lab.compiler.frontends.python.liveness import live_before
from avial_lab.compiler.frontends.python.values import Value

MOST_UNROLLED = 64
"""Iterations of loops whose body has a meaning only where its variable is known."""


_MADE = re.compile(r"(result|global)\d*_*")
"""Names of arguments that the person does not know."""


@dataclass(frozen=True)
class _Point:
    """How far a translation has come."""

    lines: int
    entry: int
    ranges: Mapping[str, Range]
    dims: frozenset[str]
    names: Mapping[str, Value | Cell]
    head: list[str]


class Loops(Assignments):
    """The layer of `Translation` that repeats."""

    def _for(self, node: ast.For, live: frozenset[str]) -> None:
        nested = None if isinstance(node, StoppedFor) else self.closures.nested(node)
        if nested is not None:
            self._for(nested, live)
            return
        sequence = self.calls.iterated(node.iter)
        if sequence.items is not None:
            self._unrolled(node, sequence.items, live)
            return
        if isinstance(node, StoppedFor):
            self._stopped(node, sequence, node.flag, live)
            return
        before = self._here()
        try:
            self._rolled(node, sequence, live)
        except HangsOnTheIteration:
            turns = _known_turns(sequence)
            self.unrolled += 1 if turns is None else len(turns)
            if turns is None or self.unrolled > MOST_UNROLLED:
                raise
            # Sizes that hang on the loop's variable are known in each iteration by itself.
            self._back_to(before)
            self._unrolled(node, [sequence.element(number(turn)) for turn in turns], live)

    def _here(self) -> _Point:
        e = self.e
        names = dict(self.frame.names)
        return _Point(len(e.lines), len(e.entry), dict(e.ranges), e.dims, names, list(self.head))

    def _back_to(self, point: _Point) -> None:
        """Everything since then is undone."""
        del self.e.lines[point.lines :], self.e.entry[point.entry :]
        self.e.ranges, self.e.dims = dict(point.ranges), point.dims
        self.frame.names, self.head = dict(point.names), list(point.head)

    def _rolled(self, node: ast.For, sequence: Sequenced, live: frozenset[str]) -> None:
        cells = self.cells_of(node, live)
        names = dict(self.frame.names)
        low, high, step = sequence.low, sequence.high, sequence.step
        word = node.target.id if isinstance(node.target, ast.Name) else "i"
        if not (word.isascii() and word.isidentifier()) or _MADE.fullmatch(word):
            word = "i"
        known = step.known
        affine_ends = self.e.is_affine(low) and self.e.is_affine(high)
        if known is not None and known > 0 and affine_ends:
            with self.e.loop(low, high, known, word) as at:
                self._turn(node, sequence.element(at), live, cells)
        elif known is not None and known < 0:
            self._downwards(node, sequence, -known, live, cells)
        else:
            if known is None:
                one = self.e.value("arith.constant 1 : index")
                ok = self.e.value(f"arith.cmpi sge, {self.e.index(step)}, {one} : index")
                self.a.raise_unless(
                    ok, "ValueError", "the step of this range is not positive (not supported yet)"
                )
            with self.arrays.plain_loop(low, high, step) as at:
                self._turn(node, sequence.element(at), live, cells)
        self.frame.names = {**names, **cells}
        self._settle(cells, live)

    def _downwards(
        self,
        node: ast.For,
        sequence: Sequenced,
        by: int,
        live: frozenset[str],
        cells: Mapping[str, Cell],
    ) -> None:
        """range(low, high, -by), counted upwards."""
        low, high = sequence.low, sequence.high
        turns = low - high
        if by != 1:
            turns = self.rounded_up(turns, by)
        if self.e.is_affine(turns):
            with self.e.loop(number(0), turns) as at:
                self._turn(node, sequence.element(low - at.scaled(by)), live, cells)
        else:
            with self.arrays.plain_loop(number(0), turns, number(1)) as at:
                self._turn(node, sequence.element(low - at.scaled(by)), live, cells)

    def rounded_up(self, count: Linear, by: int) -> Linear:
        """Divided by that."""
        up = count + number(by - 1)
        if up.known is not None:
            return number(up.known // by)
        divided = self.a.binary(ast.FloorDiv(), affine(up), affine(number(by)))
        if divided.linear is not None:
            return divided.linear
        name = self.e.value(f"arith.index_cast {self.a.value(divided)} : i64 to index")
        return term(name)

    def _turn(
        self, node: ast.For, value: Value, live: frozenset[str], cells: Mapping[str, Cell]
    ) -> None:
        self._bind(node.target, value)
        at_end = live | live_before([node], live)
        self.block(node.body, at_end)

    def _unrolled(self, node: ast.For, items: Sequence[Value], live: frozenset[str]) -> None:
        """Over a tuple."""
        for value in items:
            self._bind(node.target, value)
            self.block(node.body, live | live_before([node], live))

    def _stopped(self, node: ast.For, sequence: Sequenced, stop: str, live: frozenset[str]) -> None:
        """A loop with a break: while it has not come."""
        if sequence.step.known is None:
            raise self.refused("the step of a range with a break is a number here", "")
        step = sequence.step.known
        cells = self.cells_of(node, live)
        names = dict(self.frame.names)
        turn = self.arrays.cell(INT, affine(sequence.low))
        compare = ast.Lt() if step > 0 else ast.Gt()
        self.e.may_not_end("how long the loop runs depends on data")
        self.e.bare("scf.while : () -> () {")
        with self.e.block("", end=""):
            now = replace(self.arrays.load(turn, []), kind=INT)
            more = self.a.compared(compare, now, affine(sequence.high))
            going = self.a.negation(self.a.truth(self.number(self.name(stop, node), node)))
            both = self.e.value(
                f"arith.andi {self.a.value(more, BOOL)}, {self.a.value(going, BOOL)} : i1"
            )
            self.e.line(f"scf.condition({both})")
        with self.e.block("} do {"):
            now = replace(self.arrays.load(turn, []), kind=INT)
            name = self.e.value(f"arith.index_cast {self.a.value(now)} : i64 to index")
            ends = (sequence.low, sequence.high - number(1))
            if step < 0:
                ends = (sequence.high + number(1), sequence.low)
            self.e.ranges[name] = Range(*ends)
            self._turn(node, sequence.element(term(name)), live, cells)
            after = self.a.binary(ast.Add(), now, constant(step))
            self.arrays.store(after, turn, [])
            self.e.line("scf.yield")
        self.frame.names = {**names, **cells}
        self._settle(cells, live)

    def _while(self, node: ast.While, live: frozenset[str]) -> None:
        cells = self.cells_of(node, live)
        names = dict(self.frame.names)
        self.e.may_not_end("how long the loop runs depends on data")
        self.e.bare("scf.while : () -> () {")
        with self.e.block("", end=""):
            condition = self.condition(node.test)
            self.e.line(f"scf.condition({self.a.value(condition, BOOL)})")
        with self.e.block("} do {"):
            self.block(node.body, live | live_before([node], live))
            self.e.line("scf.yield")
        self.frame.names = {**names, **cells}
        self._settle(cells, live)


def _known_turns(sequence: Sequenced) -> range | None:
    """The few values that a loop's variable takes, where they are known."""
    low, high, step = (each.known for each in (sequence.low, sequence.high, sequence.step))
    if low is None or high is None or not step:
        return None
    turns = range(low, high, step)
    return turns if len(turns) <= MOST_UNROLLED else None
