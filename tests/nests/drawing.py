"""Random trees: hypothesis draws them, each array as large as its subscripts ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from tests.compiler.analysis.polyhedral.nests import Expression
from tests.nests.running import FLOATING, INTEGER, RandomFunction, TooLong
from tests.nests.tree import (
    SIZE,
    Array,
    Binary,
    Carried,
    Constant,
    Counter,
    Element,
    For,
    If,
    Nest,
    Node,
    Scratch,
    Store,
    Value,
    While,
)
from tests.nests.writing import text_of

Interval = tuple[int, int]


def _interval(e: Expression, ranges: Sequence[Interval], n: int) -> Interval:
    """The least and greatest value while the variables are in those ranges."""
    low = high = e.of_n * n + e.constant
    for factor, (a, b) in zip(e.factors, ranges, strict=True):
        low += min(factor * a, factor * b)
        high += max(factor * a, factor * b)
    if e.then == "floordiv":
        return low // e.divisor, high // e.divisor
    return (0, e.divisor - 1) if e.then == "mod" else (low, high)


class _Drawer:
    """Draws one function; `ranges` are those of the variables of the loops around."""

    def __init__(self, draw: st.DrawFn, *, floats: bool, deepest: int, longest: int) -> None:
        self.draw, self.deepest, self.longest = draw, deepest, longest
        self.n = draw(st.integers(1, 7))
        kinds = ["f32", "f64"] if floats else ["i32"]
        kind = draw(st.sampled_from(kinds))
        self.arrays: dict[str, Array] = {
            "A": Array(kind, draw(st.integers(1, 2))),
            "B": Array(kind, draw(st.integers(1, 3))),
            "C": Array("i32", 1),
        }
        if draw(st.booleans()):
            self.arrays["D"] = Array(kind, draw(st.integers(0, 2)))
        for array in self.arrays.values():
            array.extents = [1] * array.rank
            array.dynamic = array.rank > 0 and draw(st.integers(0, 3)) == 0
        for name in ("P", "Q"):
            if draw(st.integers(0, 2)) == 0:
                self.arrays[name] = Array("i32", 1, [1], table=True, below=draw(st.integers(1, 5)))
        if draw(st.integers(0, 2)) == 0:
            self.arrays["w"] = Array(kind, draw(st.integers(0, 1)), local=True)
            self.arrays["w"].extents = [1] * self.arrays["w"].rank
        self.kind = kind
        self.live: set[str] = set()

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == 1

    # expressions

    def expression(self, ranges: Sequence[Interval], *, least: int | None) -> Expression:
        """Affine in the variables; where `least` is given, so shifted that it is never below."""
        depth = len(ranges)
        factors = [0] * depth
        if depth:
            factors[self.draw(st.integers(0, depth - 1))] = self.draw(
                st.sampled_from([1, 1, 1, 1, -1, 2])
            )
            if self.chance(4):
                factors[self.draw(st.integers(0, depth - 1))] += self.draw(st.sampled_from([1, -1]))
            if self.chance(6):
                factors = [0] * depth
        plain = Expression(tuple(factors), 0, self.draw(st.integers(-1, 2)))
        if least is None:
            return plain
        low, _ = _interval(plain, ranges, self.n)
        shift = max(least - low, 0)
        found = Expression(plain.factors, 0, plain.constant + shift)
        if self.chance(10):
            then, by = self.draw(st.sampled_from([("floordiv", 2), ("mod", 2), ("mod", 3)]))
            return Expression(found.factors, 0, found.constant, then, by)
        return found

    def element(self, name: str, ranges: Sequence[Interval], *, indirect: bool = True) -> Element:
        array = self.arrays[name]
        subscripts, through = [], []
        tables = [key for key, each in self.arrays.items() if each.table]
        for d in range(array.rank):
            e = self.expression(ranges, least=0)
            table = None
            if array.scratch:  # its size is given
                e = Expression(e.factors, e.of_n, e.constant, "mod", array.extents[0])
                subscripts.append(e)
                through.append(table)
                continue
            if indirect and tables and self.chance(6):
                table = self.draw(st.sampled_from(tables))
                self._make_room(self.arrays[table], 0, _interval(e, ranges, self.n)[1])
                self._make_room(array, d, self.arrays[table].below - 1)
            else:
                self._make_room(array, d, _interval(e, ranges, self.n)[1])
            subscripts.append(e)
            through.append(table)
        return Element(name, tuple(subscripts), tuple(through))

    @staticmethod
    def _make_room(array: Array, dimension: int, index: int) -> None:
        array.extents[dimension] = max(array.extents[dimension], index + 1)

    # values

    def written(self, kind: str | None = None) -> str:
        names = [
            key
            for key, each in self.arrays.items()
            if not each.table
            and (kind is None or each.kind == kind)
            and (not each.scratch or key in self.live)
        ]
        return self.draw(st.sampled_from(names))

    def value(self, kind: str, ranges: Sequence[Interval], carried: Sequence[str]) -> Value:
        return self._value(kind, ranges, carried, 2)

    def _value(
        self, kind: str, ranges: Sequence[Interval], carried: Sequence[str], most: int
    ) -> Value:
        choices = ["element", "element", "constant"]
        if most:
            choices += ["binary", "binary", "binary"]
        if kind == "i32":
            choices.append("counter")
        handed = [k for k, each in enumerate(carried) if each == kind]
        if handed and self.chance(5):
            return Carried(self.draw(st.sampled_from(handed)))
        chosen = self.draw(st.sampled_from(choices))
        if chosen == "element":
            return self.element(self.written(kind), ranges)
        if chosen == "counter":
            return Counter(self.expression(ranges, least=None))
        if chosen == "constant":
            return self.constant(kind)
        sides = (self._value(kind, ranges, carried, most - 1) for _ in range(2))
        return Binary(self.operation(kind), *sides)

    def constant(self, kind: str) -> Constant:
        if kind == "i32":
            return Constant(self.draw(st.integers(-5, 5)))
        return Constant(self.draw(st.sampled_from([0.5, -0.25, 0.75, 1.0])))

    def operation(self, kind: str) -> str:
        table = INTEGER if kind == "i32" else FLOATING
        return self.draw(st.sampled_from(sorted(table)))

    # nodes

    def store(self, ranges: Sequence[Interval], carried: Sequence[str]) -> Store:
        name = self.written()
        kind = self.arrays[name].kind
        to = self.element(name, ranges)
        value = self.value(kind, ranges, carried)
        if self.chance(3):  # an update in place
            operation = self.draw(st.sampled_from(_UPDATES[kind == "i32"]))
            value = Binary(operation, to, value)
        return Store(to, value)

    def bounds(self, ranges: Sequence[Interval]) -> tuple[tuple[Expression, ...], ...]:
        depth = len(ranges)
        zeros = (0,) * depth
        lows = [Expression(zeros, 0, self.draw(st.integers(-2, 2)))]
        highs = [Expression(zeros, 0, lows[0].constant + self.draw(st.integers(0, self.longest)))]
        if depth and self.chance(4):
            lows[0] = self._of_outer(depth, 1, self.draw(st.integers(0, 1)))
        if depth and self.chance(4):
            highs[0] = self._of_outer(depth, self.draw(st.sampled_from([1, 1, -1])),
                                      self.draw(st.integers(1, 4)))  # fmt: skip
        elif self.chance(3):
            highs[0] = Expression(zeros, 1, self.draw(st.integers(-1, 1)))
        if self.chance(8):
            highs.append(Expression(zeros, 0, self.draw(st.integers(1, self.longest))))
        return tuple(lows), tuple(highs)

    def _of_outer(self, depth: int, factor: int, constant: int) -> Expression:
        which = self.draw(st.integers(0, depth - 1))
        return Expression(tuple(factor * (k == which) for k in range(depth)), 0, constant)

    def loop(self, ranges: Sequence[Interval], carried: Sequence[str]) -> For:
        lows, highs = self.bounds(ranges)
        low = max(_interval(e, ranges, self.n)[0] for e in lows)
        high = min(_interval(e, ranges, self.n)[1] for e in highs)
        inside = [*ranges, (low, max(high - 1, low))]
        step = self.draw(st.sampled_from([1, 1, 1, 1, 2, 3]))
        if not self.chance(4):
            return For(lows, highs, step, self.body(inside, carried))
        name = self.written()
        kind = self.arrays[name].kind
        handed = [*carried, kind]
        body = self.body(inside, handed) if self.chance(3) else ()
        term = self.value(kind, inside, carried)
        operation = self.draw(st.sampled_from(_UPDATES[kind == "i32"]))
        return For(
            lows, highs, step, body, term, operation, self.constant(kind),
            self.element(name, ranges, indirect=False),
        )  # fmt: skip

    def pointwise(self) -> Nest:
        """A parallel loop as a front end writes it: each iteration has its own element."""
        name = self.draw(st.sampled_from([k for k in ("A", "B", "C") if self.arrays[k].rank]))
        others = [k for k in ("A", "B", "C", "D") if k in self.arrays and k != name]
        others = [k for k in others if self.arrays[k].kind == self.arrays[name].kind]
        high = self.draw(st.integers(1, self.longest))
        ranges: list[Interval] = [(0, high - 1)]
        array = self.arrays[name]
        first = Expression((1,), 0, self.draw(st.integers(0, 2)))
        self._make_room(array, 0, _interval(first, ranges, self.n)[1])
        rest = [Expression((0,), 0, 0)] * (array.rank - 1)
        to = Element(name, (first, *rest), (None,) * array.rank)
        value: Value = self.constant(array.kind)
        if others:
            value = self.element(self.draw(st.sampled_from(others)), ranges)
        value = Binary(self.operation(array.kind), value, self.constant(array.kind))
        zero, end = Expression((), 0, 0), Expression((), 0, high)
        return (For((zero,), (end,), 1, (Store(to, value),), parallel=True),)

    def scratch(self, ranges: Sequence[Interval], carried: Sequence[str]) -> Scratch:
        name = f"t{sum(array.scratch for array in self.arrays.values())}"
        size = self.draw(st.integers(1, 3))
        self.arrays[name] = Array(self.kind, 1, [size], local=True, scratch=True)
        self.live.add(name)
        body = self.body(ranges, carried)
        self.live.discard(name)
        starts = tuple(self.constant(self.kind).value for _ in range(size))
        return Scratch(name, starts, body)

    def branch(self, ranges: Sequence[Interval], carried: Sequence[str]) -> If:
        data = self.element("C", ranges) if self.chance(3) else None
        then = self.body(ranges, carried, most=2)
        otherwise = self.body(ranges, carried, most=1) if self.chance(3) else ()
        condition = self.expression(ranges, least=None)
        return If(condition, self.chance(4), data, then, otherwise)

    def body(self, ranges: Sequence[Interval], carried: Sequence[str], *, most: int = 3) -> Nest:
        found: list[Node] = []
        for _ in range(self.draw(st.sampled_from([1, 1, 2, most]))):
            choices = ["store", "store"]
            if len(ranges) < self.deepest:
                choices += ["loop", "loop", "loop"]
            if ranges:
                choices.append("branch")
            if self.chance(8):
                choices = ["scratch"]
            chosen = self.draw(st.sampled_from(choices))
            if chosen == "store":
                found.append(self.store(ranges, carried))
            elif chosen == "scratch":
                found.append(self.scratch(ranges, carried))
            elif chosen == "loop":
                found.append(self.loop(ranges, carried))
            else:
                found.append(self.branch(ranges, carried))
        return tuple(found)

    def nest(self) -> Nest:
        """What stands at the top of the function, one of several."""
        chosen = self.draw(st.integers(1, 12))
        if chosen == 1:
            return (self.store((), ()),)
        if chosen == 2:
            return self.pointwise()
        if chosen == 3:
            element = self.element("C", (), indirect=False)
            limit, most = self.draw(st.integers(-5, 30)), self.draw(st.integers(1, 3))
            return (While(element, limit, most, self.body((), ())),)
        if chosen == 4:  # a time loop around a few nests
            steps = (Expression((), 0, 0),), (Expression((), 0, self.draw(st.integers(1, 3))),)
            body = tuple(self.loop([(0, 2)], ()) for _ in range(self.draw(st.integers(1, 3))))
            return (For(*steps, 1, body),)
        return (self.loop((), ()),)


_UPDATES = (
    ["addf", "addf", "mulf", "minimumf", "maximumf"],
    ["addi", "addi", "muli", "minsi", "maxsi", "xori"],
)


@st.composite
def functions(
    draw: st.DrawFn,
    *,
    floats: bool | None = None,
    deepest: int = 4,
    longest: int = 6,
    most_nests: int = 3,
) -> RandomFunction:
    """`floats`: whether most arrays hold them; without it, both kinds of function come up.

    deepest, longest: loops in each other, and iterations of one whose bounds are constants.
    """
    real = draw(st.booleans()) if floats is None else floats
    drawer = _Drawer(draw, floats=real, deepest=deepest, longest=longest)
    nests = tuple(
        (drawer.nest(), draw(st.booleans())) for _ in range(draw(st.integers(1, most_nests)))
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arrays = {}
    for name, array in drawer.arrays.items():
        if array.extents and draw(st.booleans()) and not array.local:
            array.extents[0] += draw(st.integers(0, 3))
        if not array.local:
            arrays[name] = _values(array, rng)
    used = text_of(nests, drawer.arrays)
    function = RandomFunction(
        used, arrays, {SIZE: drawer.n}, _reordered(nests, drawer.arrays),
        tuple(nest for nest, _ in nests), drawer.arrays,
    )  # fmt: skip
    _assume_short(function)
    return function


def _assume_short(function: RandomFunction) -> None:
    try:
        function.expected()
    except TooLong:
        assume(False)


def _values(array: Array, rng: np.random.Generator) -> np.ndarray:
    if array.table:
        return rng.integers(0, array.below, array.shape).astype(np.int32)
    if array.kind == "i32":
        return rng.integers(-9, 10, array.shape).astype(np.int32)
    return np.asarray(rng.uniform(-1, 1, array.shape), array.dtype)


def _reordered(nests: Sequence[tuple[Nest, bool]], arrays: Mapping[str, Array]) -> frozenset[str]:
    """Which arrays a sum or product of floats may reach, whatever is split."""
    found: set[str] = set()
    while True:
        more = {
            to.array
            for nest, _ in nests
            for to, value, sums in _stores(nest)
            if arrays[to.array].kind != "i32"
            and to.array not in found
            and (sums or any(each in found for each in _read(value)))
        }
        if not more:
            return frozenset(found)
        found |= more


def _stores(nodes: Nest) -> Iterator[tuple[Element, Value, bool]]:
    """What is stored where, and whether that adds or multiplies onto what was there."""
    for node in nodes:
        if isinstance(node, Store):
            yield node.to, node.value, _accumulates(node.to, node.value)
        elif isinstance(node, If):
            yield from _stores(node.then)
            yield from _stores(node.otherwise)
        else:
            yield from _stores(node.body)
            if isinstance(node, For) and node.to is not None and node.sum is not None:
                yield node.to, node.sum, node.operation in ("addf", "mulf")


def _accumulates(to: Element, value: Value) -> bool:
    return isinstance(value, Binary) and to.array in _read(value)


def _read(value: Value) -> Iterator[str]:
    if isinstance(value, Element):
        yield value.array
    elif isinstance(value, Binary):
        yield from _read(value.left)
        yield from _read(value.right)
