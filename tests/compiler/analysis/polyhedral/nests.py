"""Random affine nests: as MLIR text, in two spellings, and as the list of what they touch when run.

A nest is a tree of loops, conditions and accesses over the variables of the loops around; `n` is a
parameter. `trace(nest, n)` runs it in plain Python; `affine_text` and `scf_text` write it as MLIR.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from hypothesis import strategies as st

RANKS = {"A": 1, "B": 2}


@dataclass(frozen=True)
class Expression:
    """Σ factor × variable + factor × n + constant, then perhaps floordiv or mod by a constant."""

    factors: tuple[int, ...]
    of_n: int
    constant: int
    then: str = ""
    divisor: int = 1

    def value(self, variables: tuple[int, ...], n: int) -> int:
        plain = sum(f * v for f, v in zip(self.factors, variables, strict=True))
        plain += self.of_n * n + self.constant
        if self.then == "floordiv":
            return plain // self.divisor
        return plain % self.divisor if self.then == "mod" else plain

    def affine(self) -> str:
        parts = [f"d{k} * {f}" for k, f in enumerate(self.factors)]
        plain = " + ".join([*parts, f"s0 * {self.of_n}", str(self.constant)])
        return f"({plain}) {self.then} {self.divisor}" if self.then else plain


@dataclass(frozen=True)
class Access:
    array: str
    writes: bool
    subscripts: tuple[Expression, ...]


@dataclass(frozen=True)
class If:
    """`then` where condition >= 0 (or == 0)."""

    condition: Expression
    equal: bool
    then: Nest
    otherwise: Nest

    def holds(self, variables: tuple[int, ...], n: int) -> bool:
        value = self.condition.value(variables, n)
        return value == 0 if self.equal else value >= 0


@dataclass(frozen=True)
class For:
    """From the greatest of `lows`, below the least of `highs`."""

    lows: tuple[Expression, ...]
    highs: tuple[Expression, ...]
    step: int
    body: Nest


Node = Access | If | For
Nest = tuple[Node, ...]


# -- random nests


def expressions(depth: int) -> st.SearchStrategy[Expression]:
    factors = st.tuples(*[st.integers(-2, 2)] * depth)
    return st.builds(Expression, factors, st.sampled_from([0, 0, 0, 1]), st.integers(-2, 3))


def subscripts(depth: int) -> st.SearchStrategy[Expression]:
    factors = st.tuples(*[st.integers(-2, 2)] * depth)
    divided = st.builds(
        Expression, factors, st.just(0), st.integers(-2, 3),
        st.sampled_from(["floordiv", "mod"]), st.integers(2, 3),
    )  # fmt: skip
    plain = expressions(depth)
    return st.one_of(plain, plain, plain, divided)


def bounds(depth: int, *, upper: bool) -> st.SearchStrategy[tuple[Expression, ...]]:
    factors = st.tuples(*[st.sampled_from([0, 0, 0, 1, -1])] * depth)
    constant = st.integers(1, 4) if upper else st.integers(-2, 2)
    one = st.builds(Expression, factors, st.sampled_from([0, 1] if upper else [0]), constant)
    return st.lists(one, min_size=1, max_size=2).map(tuple)


def accesses(depth: int) -> st.SearchStrategy[Node]:
    return st.sampled_from(sorted(RANKS)).flatmap(
        lambda array: st.builds(
            Access, st.just(array), st.booleans(), st.tuples(*[subscripts(depth)] * RANKS[array])
        )
    )


def bodies(depth: int, deepest: int) -> st.SearchStrategy[Nest]:
    kinds = [accesses(depth), accesses(depth), conditions(depth)]
    if depth < deepest:
        kinds += [loops(depth, deepest), loops(depth, deepest)]
    return st.lists(st.one_of(*kinds), min_size=1, max_size=3).map(tuple)


def conditions(depth: int) -> st.SearchStrategy[Node]:
    return st.builds(
        If, expressions(depth), st.booleans(),
        st.lists(accesses(depth), min_size=1, max_size=2).map(tuple),
        st.lists(accesses(depth), max_size=1).map(tuple),
    )  # fmt: skip


def loops(depth: int, deepest: int) -> st.SearchStrategy[Node]:
    lows, highs = bounds(depth, upper=False), bounds(depth, upper=True)
    steps = st.sampled_from([1, 1, 1, 2, 3])
    return st.builds(For, lows, highs, steps, bodies(depth + 1, deepest))


nests: st.SearchStrategy[Nest] = st.lists(loops(0, 3), min_size=1, max_size=2).map(tuple)


# -- random nests of neighbours


def _nearby(depth: int) -> st.SearchStrategy[Expression]:
    """A variable of a loop around, or none, and a step to the side."""
    units = [tuple(int(k == chosen) for k in range(depth)) for chosen in range(-1, depth)]
    return st.builds(
        Expression, st.sampled_from(units), st.just(0), st.sampled_from([-1, 0, 0, 0, 1])
    )


def _near_read(depth: int) -> st.SearchStrategy[Access]:
    return st.sampled_from("AB").flatmap(lambda array: _near_access(depth, array, writes=False))


def _near_access(depth: int, array: str, *, writes: bool) -> st.SearchStrategy[Access]:
    subscripts = st.tuples(*[_nearby(depth)] * RANKS[array])
    return st.builds(Access, st.just(array), st.just(writes), subscripts)


def _near_accesses(depth: int) -> st.SearchStrategy[tuple[Access, ...]]:
    """A read and a write, or only one of them, of nearby elements."""

    reads = st.lists(_near_read(depth), max_size=2)
    written = st.sampled_from("AB").flatmap(lambda a: _near_access(depth, a, writes=True))
    writes = st.lists(written, max_size=1)
    return st.tuples(writes, reads, writes).map(lambda parts: tuple(chain(*parts)))


def _near_loops(depth: int) -> st.SearchStrategy[tuple[For, ...]]:
    """One or two loops from 0 to n, or up to the variable around."""
    zero = (0,) * depth
    ends = [Expression(zero, 1, 0)]
    ends += [Expression((*zero[1:], 1), 0, 1)] if depth else []
    bodies = _near_accesses(depth + 1)
    if depth < 2:
        inner = st.tuples(bodies, st.none() | _near_loops(depth + 1), bodies)
        bodies = inner.map(lambda parts: (*parts[0], *(parts[1] or ()), *parts[2]))
    loop = st.builds(
        For, st.just((Expression(zero, 0, 0),)), st.sampled_from(ends).map(lambda e: (e,)),
        st.just(1), bodies.filter(bool),
    )  # fmt: skip
    return st.lists(loop, min_size=1, max_size=2).map(tuple)


near_nests: st.SearchStrategy[Nest] = _near_loops(0)
"""Loops over all of their arrays, with dependences between neighbours or none."""


def _three_loops(body: Sequence[Access]) -> Nest:
    nest: Nest = tuple(body)
    for depth in (2, 1, 0):
        low, high = (Expression((0,) * depth, of_n, 0) for of_n in (0, 1))
        nest = (For((low,), (high,), 1, nest),)
    return nest


_ELEMENT = Access("B", True, (Expression((0, 1, 0), 0, 0), Expression((0, 0, 1), 0, 0)))

plane_sums: st.SearchStrategy[Nest] = st.lists(
    st.sampled_from([replace(_ELEMENT, writes=False), *[None] * 3]).flatmap(
        lambda own: st.just(own) if own else _near_read(3)
    ),
    min_size=1, max_size=3,
).map(lambda reads: _three_loops([*reads, _ELEMENT]))  # fmt: skip
"""All of B written in each iteration of the outermost loop, from its elements and neighbours."""


# -- running


@dataclass(frozen=True)
class Event:
    """One execution of access `number`, in textual order, in `iteration` of `loops`, by number."""

    number: int
    loops: tuple[int, ...]
    iteration: tuple[int, ...]
    element: tuple[str, tuple[int, ...]]
    writes: bool


@dataclass(frozen=True)
class _Place:
    """Numbers of the next access and loop in the text, and the loops around."""

    access: int = 0
    loop: int = 0
    loops: tuple[int, ...] = ()


def trace(nest: Nest, n: int) -> list[Event]:
    """What the nest touches, in program order."""
    return list(_run(nest, _Place(), (), n))


def _run(nodes: Nest, place: _Place, variables: tuple[int, ...], n: int) -> Iterator[Event]:
    for node in nodes:
        if isinstance(node, Access):
            index = tuple(s.value(variables, n) for s in node.subscripts)
            element = (node.array, index)
            yield Event(place.access, place.loops, variables, element, node.writes)
        elif isinstance(node, If):
            if node.holds(variables, n):
                yield from _run(node.then, place, variables, n)
            else:
                yield from _run(node.otherwise, _after(node.then, place), variables, n)
        else:
            low = max(e.value(variables, n) for e in node.lows)
            high = min(e.value(variables, n) for e in node.highs)
            inner = _Place(place.access, place.loop + 1, (*place.loops, place.loop))
            for value in range(low, high, node.step):
                yield from _run(node.body, inner, (*variables, value), n)
        place = _after((node,), place)


def _after(nodes: Nest, place: _Place) -> _Place:
    """The place behind `nodes`."""
    for node in nodes:
        if isinstance(node, Access):
            place = _Place(place.access + 1, place.loop, place.loops)
        elif isinstance(node, If):
            place = _after(node.otherwise, _after(node.then, place))
        else:
            inside = _after(node.body, _Place(place.access, place.loop + 1))
            place = _Place(inside.access, inside.loop, place.loops)
    return place


# -- writing


HEADER = "func.func @nest(%A: memref<?xf32>, %B: memref<?x?xf32>, %n: index, %x: f32)"


def affine_text(nest: Nest) -> str:
    return f"{HEADER} {{\n{_affine(nest, 0)}\nreturn }}"


def computing_text(nest: Nest, kind: str = "i64", operation: str = "arith.addi") -> str:
    """The nest with values: each write stores a sum of what was read before it at its place, and
    of a number of its own; subscripts are one greater, so that -1 is in the arrays.

    `near_nests` stay within A of n + 2 and B of n + 2 in both dimensions.
    """
    writer = _Computing(kind, operation)
    writer.nodes(nest, 0, "%x")
    body = "\n".join(writer.lines)
    header = HEADER.replace("f32", kind)
    return f"{header} {{\n%three = arith.constant 3 : {kind}\n{body}\nreturn }}"


class _Computing:
    def __init__(self, kind: str, operation: str) -> None:
        self.kind, self.operation = kind, operation
        self.lines: list[str] = []
        self.count = 0

    def value(self, operation: str) -> str:
        self.count += 1
        self.lines.append(f"%v{self.count} = {operation}")
        return f"%v{self.count}"

    def nodes(self, nodes: Nest, depth: int, value: str) -> None:
        for node in nodes:
            if isinstance(node, For):
                loop, _, rest = _affine_node(For(node.lows, node.highs, node.step, ()),
                                             depth).partition("{")  # fmt: skip
                self.lines.append(loop + "{")
                self.nodes(node.body, depth + 1, value)
                self.lines.append(rest)
            elif isinstance(node, Access):
                value = self.access(node, value)

    def access(self, node: Access, value: str) -> str:
        """The value that later writes add up, after that access."""
        shape = "x".join("?" * RANKS[node.array])
        indices = ", ".join(f"{_inline(e)} + 1" for e in node.subscripts)
        place = f"%{node.array}[{indices}] : memref<{shape}x{self.kind}>"
        if not node.writes:
            read = self.value(f"affine.load {place}")
            return self.value(f"{self.operation} {value}, {read} : {self.kind}")
        more = self.value(f"{self.operation} {value}, %three : {self.kind}")
        self.lines.append(f"affine.store {more}, {place}")
        return value


def _operands(depth: int) -> str:
    return f"({', '.join(f'%i{k}' for k in range(depth))})[%n]"


def _inputs(depth: int) -> str:
    return f"({', '.join(f'd{k}' for k in range(depth))})[s0]"


def _affine(nodes: Nest, depth: int) -> str:
    return "\n".join(_affine_node(node, depth) for node in nodes)


def _affine_node(node: Node, depth: int) -> str:
    if isinstance(node, Access):
        indices = ", ".join(_inline(e) for e in node.subscripts)
        kind = "x".join("?" * RANKS[node.array])
        if node.writes:
            return f"affine.store %x, %{node.array}[{indices}] : memref<{kind}xf32>"
        return f"affine.load %{node.array}[{indices}] : memref<{kind}xf32>"
    if isinstance(node, If):
        relation = "==" if node.equal else ">="
        condition = f"affine_set<{_inputs(depth)} : ({node.condition.affine()} {relation} 0)>"
        otherwise = f" else {{\n{_affine(node.otherwise, depth)}\n}}" if node.otherwise else ""
        body = _affine(node.then, depth)
        return f"affine.if {condition}{_operands(depth)} {{\n{body}\n}}{otherwise}"
    lows, highs = (
        f"{name} affine_map<{_inputs(depth)} -> ({', '.join(e.affine() for e in each)})>"
        f"{_operands(depth)}"
        for name, each in (("max", node.lows), ("min", node.highs))
    )
    body = _affine(node.body, depth + 1)
    return f"affine.for %i{depth} = {lows} to {highs} step {node.step} {{\n{body}\n}}"


def _inline(e: Expression) -> str:
    text = e.affine().replace("s0", "symbol(%n)")
    for k in range(len(e.factors)):
        text = text.replace(f"d{k} ", f"%i{k} ")
    return text


def scf_text(nest: Nest) -> str:
    """The same with scf loops, memref accesses and index arithmetic by single operations."""
    lines: list[str] = []
    _Scf(lines).nodes(nest, 0)
    return f"{HEADER} {{\n" + "\n".join(lines) + "\nreturn }"


class _Scf:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.count = 0

    def value(self, operation: str) -> str:
        self.count += 1
        self.lines.append(f"%v{self.count} = {operation} : index")
        return f"%v{self.count}"

    def expression(self, e: Expression) -> str:
        total = self.value(f"arith.constant {e.constant}")
        scaled = [(f"%i{k}", f) for k, f in enumerate(e.factors)] + [("%n", e.of_n)]
        for name, factor in scaled:
            if factor:
                constant = self.value(f"arith.constant {factor}")
                term = self.value(f"arith.muli {name}, {constant}")
                total = self.value(f"arith.addi {total}, {term}")
        if e.then == "floordiv":
            divisor = self.value(f"arith.constant {e.divisor}")
            return self.value(f"arith.floordivsi {total}, {divisor}")
        if e.then == "mod":
            divisor = self.value(f"arith.constant {e.divisor}")
            quotient = self.value(f"arith.floordivsi {total}, {divisor}")
            whole = self.value(f"arith.muli {quotient}, {divisor}")
            return self.value(f"arith.subi {total}, {whole}")
        return total

    def extreme(self, each: tuple[Expression, ...], operation: str) -> str:
        found = self.expression(each[0])
        for e in each[1:]:
            found = self.value(f"{operation} {found}, {self.expression(e)}")
        return found

    def nodes(self, nodes: Nest, depth: int) -> None:
        for node in nodes:
            self.node(node, depth)

    def node(self, node: Node, depth: int) -> None:
        if isinstance(node, Access):
            indices = ", ".join(self.expression(e) for e in node.subscripts)
            kind = "x".join("?" * RANKS[node.array])
            what = "memref.store %x," if node.writes else "memref.load"
            self.lines.append(f"{what} %{node.array}[{indices}] : memref<{kind}xf32>")
        elif isinstance(node, If):
            left = self.expression(node.condition)
            zero = self.value("arith.constant 0")
            name = self.value(f"arith.cmpi {'eq' if node.equal else 'sge'}, {left}, {zero}")
            self.lines.append(f"scf.if {name} {{")
            self.nodes(node.then, depth)
            if node.otherwise:
                self.lines.append("} else {")
                self.nodes(node.otherwise, depth)
            self.lines.append("}")
        else:
            low = self.extreme(node.lows, "arith.maxsi")
            high = self.extreme(node.highs, "arith.minsi")
            step = self.value(f"arith.constant {node.step}")
            self.lines.append(f"scf.for %i{depth} = {low} to {high} step {step} {{")
            self.nodes(node.body, depth + 1)
            self.lines.append("}")
