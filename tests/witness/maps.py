"""Affine maps and sets, read from how MLIR prints them.

`affine_map<(d0)[s0] -> (d0 floordiv 2 + s0, 3)>` -> a function of the dimensions' and symbols'
values. Numbers are those of mathematics; what leaves 64 bits on the way has no value, as in the
lowering, which adds and multiplies without wrap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from tests.witness.values import Undefined

Expression = Callable[[Sequence[int]], int]
"""Of the values of d0, d1, … and then s0, s1, …"""

_TOKEN = re.compile(r"\s*(floordiv|ceildiv|mod|==|>=|->|\w+|[-+*(),:\[\]])")


@dataclass(frozen=True)
class Map:
    """Of `inputs` values: the dimensions', and then the symbols'."""

    inputs: int
    results: tuple[Expression, ...]
    positions: tuple[int | None, ...]
    """For each result the dimension that it is, None where it is none by itself."""

    def __call__(self, values: Sequence[int]) -> list[int]:
        return [result(values) for result in self.results]


@dataclass(frozen=True)
class Set:
    equalities: tuple[Expression, ...]
    inequalities: tuple[Expression, ...]

    def __call__(self, values: Sequence[int]) -> bool:
        return all(e(values) == 0 for e in self.equalities) and all(
            e(values) >= 0 for e in self.inequalities
        )


@cache
def affine_map(text: str) -> Map:
    reader = _Reader(text.removeprefix("affine_map"))
    inputs = reader.head()
    reader.take("->")
    starts: list[int] = []
    results = reader.listed(starts)
    texts = [reader.between(k) for k in starts]
    positions = tuple(int(t[1:]) if re.fullmatch(r"d\d+", t) else None for t in texts)
    return Map(inputs, tuple(results), positions)


@cache
def affine_set(text: str) -> Set:
    reader = _Reader(text.removeprefix("affine_set"))
    reader.head()
    reader.take(":")
    reader.take("(")
    kinds: dict[str, list[Expression]] = {"==": [], ">=": []}
    while not reader.taken(")"):
        expression = reader.sum()
        kinds[reader.next()].append(expression)
        reader.take("0")
        reader.taken(",")
    return Set(tuple(kinds["=="]), tuple(kinds[">="]))


def _bounded(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise Undefined("affine arithmetic leaves 64 bits")
    return value


def _modulus(value: int) -> int:
    if value <= 0:
        raise Undefined(f"an affine division by {value}")
    return value


_BINARY: dict[str, Callable[[int, int], int]] = {
    "+": lambda x, y: _bounded(x + y),
    "-": lambda x, y: _bounded(x - y),
    "*": lambda x, y: _bounded(x * y),
    "floordiv": lambda x, y: x // _modulus(y),
    "ceildiv": lambda x, y: -(-x // _modulus(y)),
    "mod": lambda x, y: x % _modulus(y),
}


class _Reader:
    """Recursive descent; `*`, floordiv, ceildiv and mod bind tighter than + and -."""

    def __init__(self, text: str):
        self._tokens = [m[1] for m in _TOKEN.finditer(text.strip()[1:-1])]
        self._at = 0
        self._names: dict[str, int] = {}

    def next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def taken(self, token: str) -> bool:
        found = self._at < len(self._tokens) and self._tokens[self._at] == token
        self._at += found
        return found

    def take(self, token: str) -> None:
        if not self.taken(token):
            raise AssertionError(f"{token} expected in {self._tokens}")

    def between(self, start: int) -> str:
        """The token at `start`, with what follows up to a comma or the end."""
        end = start
        while self._tokens[end] not in (",", ")"):
            end += 1
        return "".join(self._tokens[start:end])

    def head(self) -> int:
        """`(d0, d1)[s0]`; how many names."""
        for opened, closed in (("(", ")"), ("[", "]")):
            if not self.taken(opened):
                continue
            while not self.taken(closed):
                name = self.next()
                if name != ",":
                    self._names[name] = len(self._names)
        return len(self._names)

    def listed(self, starts: list[int]) -> list[Expression]:
        self.take("(")
        found: list[Expression] = []
        while not self.taken(")"):
            starts.append(self._at)
            found.append(self.sum())
            self.taken(",")
        return found

    def sum(self) -> Expression:
        return self._chain(("+", "-"), self._product)

    def _product(self) -> Expression:
        return self._chain(("*", "floordiv", "ceildiv", "mod"), self._factor)

    def _chain(self, operators: Sequence[str], part: Callable[[], Expression]) -> Expression:
        left = part()
        while self._at < len(self._tokens) and self._tokens[self._at] in operators:
            left = _binary(_BINARY[self.next()], left, part())
        return left

    def _factor(self) -> Expression:
        token = self.next()
        if token == "(":
            inner = self.sum()
            self.take(")")
            return inner
        if token == "-":
            following = self._factor()
            return lambda values: _bounded(-following(values))
        if token in self._names:
            position = self._names[token]
            return lambda values: values[position]
        number = int(token)
        return lambda values: number


def _binary(compute: Callable[[int, int], int], left: Expression, right: Expression) -> Expression:
    return lambda values: compute(left(values), right(values))
