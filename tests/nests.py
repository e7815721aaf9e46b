"""Random functions of loops over arrays: as MLIR text, and what they compute in plain Python.

A function is a tree of loops, conditions and statements on a few small arrays. `text` writes it as
a front end would (affine, or scf with arithmetic on indices); `expected` runs the tree, so that no
compiler has touched the truth. All accesses are in bounds by construction: each array is made as
large as its subscripts, over all values that the loops around can have, ask for.

    function = draw(functions())
    function.text, function.arrays, function.scalars        what to compile and call
    function.expected()                                     what its arrays then hold
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

import numpy as np
from hypothesis import strategies as st

from tests.polyhedra.nests import Expression

MOST_STEPS = 6_000
"""Statements a function may execute: plain Python runs them one by one."""

SIZE = "n"
"""The one number a function is called with, an `index`."""

# -- the tree --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Element:
    """`array[subscripts]`; `through[d]`, where it is given, is a table that says which index the
    subscript d stands for.
    """

    array: str
    subscripts: tuple[Expression, ...]
    through: tuple[str | None, ...]


@dataclass(frozen=True)
class Constant:
    value: float


@dataclass(frozen=True)
class Counter:
    """The value of a loop's variable, or of an expression of several."""

    expression: Expression


@dataclass(frozen=True)
class Carried:
    """What the innermost loop with a carried value hands on, as it is in this iteration."""

    number: int


@dataclass(frozen=True)
class Binary:
    operation: str
    left: Value
    right: Value


Value = Element | Constant | Counter | Carried | Binary


@dataclass(frozen=True)
class Store:
    to: Element
    value: Value


@dataclass(frozen=True)
class If:
    """`then` where condition >= 0 (or == 0); or, with `data`, where that element is positive."""

    condition: Expression
    equal: bool
    data: Element | None
    then: Nest
    otherwise: Nest


@dataclass(frozen=True)
class For:
    """From the greatest of `lows`, below the least of `highs`.

    With `sum`, the loop carries a value of its own: it starts at `start`, becomes `operation` of
    itself and `sum` in each iteration, and is stored `to` an element behind the loop.
    """

    lows: tuple[Expression, ...]
    highs: tuple[Expression, ...]
    step: int
    body: Nest
    sum: Value | None = None
    operation: str = ""
    start: Constant | None = None
    to: Element | None = None
    parallel: bool = False


@dataclass(frozen=True)
class While:
    """At most `most` times, as long as an integer element is not above `limit`."""

    element: Element
    limit: int
    most: int
    body: Nest


Node = Store | If | For | While
Nest = tuple[Node, ...]


@dataclass
class Array:
    """`kind` is i32, f32 or f64. A `local` one is the function's own; a `table` holds indices below
    `below`, and is never written.
    """

    kind: str
    rank: int
    extents: list[int] = field(default_factory=list)
    local: bool = False
    table: bool = False
    below: int = 1
    dynamic: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.extents)

    @property
    def type(self) -> str:
        sizes = ["?" if self.dynamic and d == 0 else str(e) for d, e in enumerate(self.extents)]
        return f"memref<{'x'.join([*sizes, self.kind])}>"

    @property
    def dtype(self) -> np.dtype:
        return np.dtype({"i32": np.int32, "f32": np.float32, "f64": np.float64}[self.kind])


@dataclass
class RandomFunction:
    """`text` to compile; `arrays` and `scalars` to call it with.

    reordered: the arrays whose values may come out with other roundings, because a sum or product
    of floating-point numbers is among what makes them (or what makes what makes them, …).
    """

    text: str
    arrays: dict[str, np.ndarray]
    scalars: dict[str, int]
    reordered: frozenset[str]
    nests: tuple[Nest, ...] = field(repr=False)
    declared: dict[str, Array] = field(repr=False)

    def expected(self) -> dict[str, np.ndarray]:
        """The arrays after the function, computed on copies."""
        memory = {name: array.copy() for name, array in self.arrays.items()}
        for name, array in self.declared.items():
            if array.local:
                memory[name] = np.zeros(array.shape, array.dtype)
        run = _Run(memory, self.scalars[SIZE])
        with np.errstate(all="ignore"):
            for nest in self.nests:
                run.nodes(nest, (), ())
        return {name: memory[name] for name in self.arrays}


# -- running ---------------------------------------------------------------------------------------


def _wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


_INTEGER: dict[str, Callable[[int, int], int]] = {
    "addi": lambda x, y: x + y,
    "subi": lambda x, y: x - y,
    "muli": lambda x, y: x * y,
    "xori": lambda x, y: x ^ y,
    "minsi": min,
    "maxsi": max,
}
_FLOATING: dict[str, Callable[[np.floating, np.floating], np.floating]] = {
    "addf": lambda x, y: x + y,
    "subf": lambda x, y: x - y,
    "mulf": lambda x, y: x * y,
    "minimumf": np.minimum,
    "maximumf": np.maximum,
}

Number = int | np.floating
_I32 = np.dtype(np.int32)
Point = tuple[int, ...]


class TooLong(Exception):
    """More than MOST_STEPS statements."""


class _Run:
    def __init__(self, memory: dict[str, np.ndarray], n: int) -> None:
        self.memory, self.n, self.steps = memory, n, 0

    def nodes(self, nodes: Nest, at: Point, carried: tuple[Number, ...]) -> None:
        for node in nodes:
            self.node(node, at, carried)

    def node(self, node: Node, at: Point, carried: tuple[Number, ...]) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooLong
        if isinstance(node, Store):
            kind = self.memory[node.to.array].dtype
            self.store(node.to, self.value(node.value, kind, at, carried), at)
        elif isinstance(node, If):
            self.nodes(node.then if self.holds(node, at) else node.otherwise, at, carried)
        elif isinstance(node, While):
            for _ in range(node.most):
                if int(self.value(node.element, _I32, at, ())) > node.limit:
                    break
                self.nodes(node.body, at, carried)
        else:
            self.loop(node, at, carried)

    def loop(self, node: For, at: Point, carried: tuple[Number, ...]) -> None:
        low = max(e.value(at, self.n) for e in node.lows)
        high = min(e.value(at, self.n) for e in node.highs)
        if node.sum is None:
            for k in range(low, high, node.step):
                self.nodes(node.body, (*at, k), carried)
            return
        assert node.start is not None
        assert node.to is not None
        kind = self.memory[node.to.array].dtype
        total = self.typed(node.start.value, kind)
        for k in range(low, high, node.step):
            inside = (*carried, total)
            self.nodes(node.body, (*at, k), inside)
            term = self.value(node.sum, kind, (*at, k), inside)
            total = self.combined(node.operation, total, term)
        self.store(node.to, total, at)

    def holds(self, node: If, at: Point) -> bool:
        if node.data is not None:
            return int(self.value(node.data, _I32, at, ())) > 0
        value = node.condition.value(at, self.n)
        return value == 0 if node.equal else value >= 0

    def place(self, element: Element, at: Point) -> Point:
        return tuple(
            value if table is None else int(self.memory[table][value])
            for value, table in zip(
                (e.value(at, self.n) for e in element.subscripts), element.through, strict=True
            )
        )

    def store(self, to: Element, value: Number, at: Point) -> None:
        array = self.memory[to.array]
        place = self.place(to, at)
        assert all(0 <= k < size for k, size in zip(place, array.shape, strict=True)), to
        array[place] = self.typed(value, array.dtype)

    def value(self, value: Value, kind: np.dtype, at: Point, carried: tuple[Number, ...]) -> Number:
        if isinstance(value, Element):
            place = self.place(value, at)
            array = self.memory[value.array]
            assert all(0 <= k < size for k, size in zip(place, array.shape, strict=True)), value
            found = array[place]
            return int(found) if array.dtype.kind == "i" else found
        if isinstance(value, Constant):
            return self.typed(value.value, kind)
        if isinstance(value, Counter):
            return _wrapped(value.expression.value(at, self.n))
        if isinstance(value, Carried):
            return carried[value.number]
        left, right = (self.value(side, kind, at, carried) for side in (value.left, value.right))
        return self.combined(value.operation, left, right)

    def combined(self, operation: str, left: Number, right: Number) -> Number:
        if operation in _INTEGER:
            return _wrapped(_INTEGER[operation](int(left), int(right)))
        assert isinstance(left, np.floating)
        assert isinstance(right, np.floating)
        return _FLOATING[operation](left, right)

    @staticmethod
    def typed(value: Number | float, kind: np.dtype) -> Number:
        return _wrapped(int(value)) if kind.kind == "i" else kind.type(value)


# -- writing ---------------------------------------------------------------------------------------


class _Writer:
    """One nest as lines of text, `affine` or not."""

    def __init__(self, arrays: Mapping[str, Array], *, affine: bool, start: int) -> None:
        self.arrays, self.affine = arrays, affine
        self.lines: list[str] = []
        self.count = start

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def op(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    # indices

    def index(self, e: Expression) -> str:
        """An index value."""
        if self.affine:
            depth = len(e.factors)
            return self.op(f"affine.apply affine_map<{_inputs(depth)} -> ({e.affine()})>"
                           f"{_operands(depth)}")  # fmt: skip
        total = self.op(f"arith.constant {e.constant} : index")
        scaled = [(f"%i{k}", f) for k, f in enumerate(e.factors)] + [(f"%{SIZE}", e.of_n)]
        for name, factor in scaled:
            if factor:
                by = self.op(f"arith.constant {factor} : index")
                term = self.op(f"arith.muli {name}, {by} : index")
                total = self.op(f"arith.addi {total}, {term} : index")
        if e.then:
            by = self.op(f"arith.constant {e.divisor} : index")
            whole = self.op(f"arith.floordivsi {total}, {by} : index")
            if e.then == "floordiv":
                return whole
            back = self.op(f"arith.muli {whole}, {by} : index")
            return self.op(f"arith.subi {total}, {back} : index")
        return total

    def places(self, element: Element) -> tuple[bool, str]:
        """Whether all subscripts are affine as they stand, and their text."""
        if self.affine and not any(element.through):
            return True, ", ".join(_inline(e) for e in element.subscripts)
        found = []
        for e, table in zip(element.subscripts, element.through, strict=True):
            place = self.index(e)
            if table is not None:
                loaded = self.op(f"memref.load %{table}[{place}] : {self.arrays[table].type}")
                place = self.op(f"arith.index_cast {loaded} : i32 to index")
            found.append(place)
        return False, ", ".join(found)

    # values

    def value(self, value: Value, kind: str, carried: Sequence[str]) -> str:
        if isinstance(value, Element):
            plain, places = self.places(value)
            dialect = "affine" if plain else "memref"
            return self.op(
                f"{dialect}.load %{value.array}[{places}] : {self.arrays[value.array].type}"
            )
        if isinstance(value, Constant):
            text = str(int(value.value)) if kind == "i32" else repr(float(value.value))
            return self.op(f"arith.constant {text} : {kind}")
        if isinstance(value, Counter):
            return self.op(f"arith.index_cast {self.index(value.expression)} : index to i32")
        if isinstance(value, Carried):
            return carried[value.number]
        left, right = (self.value(side, kind, carried) for side in (value.left, value.right))
        return self.op(f"arith.{value.operation} {left}, {right} : {kind}")

    # nodes

    def nodes(self, nodes: Nest, depth: int, carried: Sequence[str]) -> None:
        for node in nodes:
            if isinstance(node, Store):
                kind = self.arrays[node.to.array].kind
                self.store(node.to, self.value(node.value, kind, carried))
            elif isinstance(node, If):
                self.branch(node, depth, carried)
            elif isinstance(node, While):
                self.repeat(node, depth, carried)
            else:
                self.loop(node, depth, carried)

    def store(self, to: Element, value: str) -> None:
        plain, places = self.places(to)
        dialect = "affine" if plain else "memref"
        self.lines.append(f"{dialect}.store {value}, %{to.array}[{places}] : "
                          f"{self.arrays[to.array].type}")  # fmt: skip

    def branch(self, node: If, depth: int, carried: Sequence[str]) -> None:
        if node.data is not None:
            data = self.value(node.data, "i32", ())
            zero = self.op("arith.constant 0 : i32")
            self.lines.append(f"scf.if {self.op(f'arith.cmpi sgt, {data}, {zero} : i32')} {{")
        elif self.affine:
            relation = "==" if node.equal else ">="
            self.lines.append(
                f"affine.if affine_set<{_inputs(depth)} : ({node.condition.affine()} {relation} 0)>"
                f"{_operands(depth)} {{"
            )
        else:
            left, zero = self.index(node.condition), self.op("arith.constant 0 : index")
            how = "eq" if node.equal else "sge"
            self.lines.append(f"scf.if {self.op(f'arith.cmpi {how}, {left}, {zero} : index')} {{")
        self.nodes(node.then, depth, carried)
        if node.otherwise:
            self.lines.append("} else {")
            self.nodes(node.otherwise, depth, carried)
        self.lines.append("}")

    def repeat(self, node: While, depth: int, carried: Sequence[str]) -> None:
        zero = self.op("arith.constant 0 : i32")
        count, again, result = self.name(), self.name(), self.name()
        self.lines.append(f"{result} = scf.while ({count} = {zero}) : (i32) -> i32 {{")
        most = self.op(f"arith.constant {node.most} : i32")
        limit = self.op(f"arith.constant {node.limit} : i32")
        room = self.op(f"arith.cmpi slt, {count}, {most} : i32")
        value = self.value(node.element, "i32", ())
        small = self.op(f"arith.cmpi sle, {value}, {limit} : i32")
        both = self.op(f"arith.andi {room}, {small} : i1")
        self.lines += [f"scf.condition({both}) {count} : i32", "} do {", f"^bb0({again}: i32):"]
        self.nodes(node.body, depth, carried)
        one = self.op("arith.constant 1 : i32")
        more = self.op(f"arith.addi {again}, {one} : i32")
        self.lines += [f"scf.yield {more} : i32", "}"]

    def loop(self, node: For, depth: int, carried: Sequence[str]) -> None:
        kind = self.arrays[node.to.array].kind if node.to is not None else ""
        hand_on, result, start = "", "", ""
        if node.sum is not None and node.start is not None:
            start = self.value(node.start, kind, ())
            result, hand_on = self.name(), self.name()
        arguments = f" iter_args({hand_on} = {start}) -> ({kind})" if result else ""
        head = f"{result} = " if result else ""
        if self.affine:
            lows, highs = (
                f"{name} affine_map<{_inputs(depth)} -> ({', '.join(e.affine() for e in each)})>"
                f"{_operands(depth)}"
                for name, each in (("max", node.lows), ("min", node.highs))
            )
            if node.parallel:
                self.lines.append(f"affine.parallel (%i{depth}) = "
                                  f"({_inline(node.lows[0])}) to ({_inline(node.highs[0])}) "
                                  f"step ({node.step}) {{")  # fmt: skip
            else:
                self.lines.append(
                    f"{head}affine.for %i{depth} = {lows} to {highs} step {node.step}{arguments} {{"
                )
        else:
            low = self.extreme(node.lows, "maxsi")
            high = self.extreme(node.highs, "minsi")
            step = self.op(f"arith.constant {node.step} : index")
            if node.parallel:
                self.lines.append(
                    f"scf.parallel (%i{depth}) = ({low}) to ({high}) step ({step}) {{"
                )
            else:
                self.lines.append(
                    f"{head}scf.for %i{depth} = {low} to {high} step {step}{arguments} {{"
                )
        inside = [*carried, hand_on] if result else carried
        self.nodes(node.body, depth + 1, inside)
        if node.sum is not None and node.to is not None:
            term = self.value(node.sum, kind, inside)
            new = self.op(f"arith.{node.operation} {hand_on}, {term} : {kind}")
            self.lines.append(f"{'affine' if self.affine else 'scf'}.yield {new} : {kind}")
        self.lines.append("}")
        if node.to is not None:
            self.store(node.to, result)

    def extreme(self, each: Sequence[Expression], operation: str) -> str:
        found = self.index(each[0])
        for e in each[1:]:
            found = self.op(f"arith.{operation} {found}, {self.index(e)} : index")
        return found


def _inputs(depth: int) -> str:
    return f"({', '.join(f'd{k}' for k in range(depth))})[s0]"


def _operands(depth: int) -> str:
    return f"({', '.join(f'%i{k}' for k in range(depth))})[%{SIZE}]"


def _inline(e: Expression) -> str:
    text = e.affine().replace("s0", f"symbol(%{SIZE})")
    for k in range(len(e.factors)):
        text = text.replace(f"d{k} ", f"%i{k} ")
    return text


def _text(nests: Sequence[tuple[Nest, bool]], arrays: Mapping[str, Array]) -> str:
    given = [f"%{name}: {array.type}" for name, array in arrays.items() if not array.local]
    lines = [f"func.func @random({', '.join([*given, f'%{SIZE}: index'])}) {{"]
    for name, array in arrays.items():
        if array.local:
            lines.append(f"%{name} = memref.alloca() : {array.type}")
            zero = "0" if array.kind == "i32" else "0.0"
            lines.append(f"%{name}_zero = arith.constant {zero} : {array.kind}")
            places = [f"%{name}_{k}" for k in range(max(array.extents, default=0))]
            lines += [f"{p} = arith.constant {k} : index" for k, p in enumerate(places)]
            for point in product(*map(range, array.extents)):
                index = ", ".join(places[k] for k in point)
                lines.append(f"memref.store %{name}_zero, %{name}[{index}] : {array.type}")
    count = 0
    for nest, affine in nests:
        writer = _Writer(arrays, affine=affine, start=count)
        writer.nodes(nest, 0, ())
        lines += writer.lines
        count = writer.count
    return "\n".join([*lines, "return", "}", ""])


# -- drawing ---------------------------------------------------------------------------------------

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
            if not each.table and (kind is None or each.kind == kind)
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
        table = _INTEGER if kind == "i32" else _FLOATING
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
            chosen = self.draw(st.sampled_from(choices))
            if chosen == "store":
                found.append(self.store(ranges, carried))
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
    used = _text(nests, drawer.arrays)
    function = RandomFunction(
        used, arrays, {SIZE: drawer.n}, _reordered(nests, drawer.arrays),
        tuple(nest for nest, _ in nests), drawer.arrays,
    )  # fmt: skip
    _assume_short(function)
    return function


def _assume_short(function: RandomFunction) -> None:
    from hypothesis import assume

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


def total_elements(function: RandomFunction) -> int:
    return sum(prod(array.shape) for array in function.arrays.values())
