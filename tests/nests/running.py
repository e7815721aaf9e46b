"""What a tree does, in plain Python: the truth no compiler has touched.

Nest, arrays -> the arrays afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from tests.fused import fma
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

MOST_STEPS = 6_000
"""Statements a function may execute: plain Python runs them one by one."""


def _wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


INTEGER: dict[str, Callable[[int, int], int]] = {
    "addi": lambda x, y: x + y,
    "subi": lambda x, y: x - y,
    "muli": lambda x, y: x * y,
    "xori": lambda x, y: x ^ y,
    "minsi": min,
    "maxsi": max,
}
FLOATING: dict[str, Callable[[np.floating, np.floating], np.floating]] = {
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


class Run:
    def __init__(
        self,
        memory: dict[str, np.ndarray],
        kinds: Mapping[str, np.dtype],
        n: int,
        *,
        fused: bool = False,
    ) -> None:
        self.memory, self.kinds, self.n, self.steps, self.fused = memory, kinds, n, 0, fused

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
        elif isinstance(node, Scratch):
            self.memory[node.array] = np.array(node.starts, self.kinds[node.array])
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
            if self.fused and node.operation == "addf" and _is_product(node.sum):
                total = self.product_and(node.sum, total, kind, (*at, k), inside, 1)
                continue
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
        if self.fused and value.operation in ("addf", "subf"):
            if _is_product(value.left):
                other = self.value(value.right, kind, at, carried)
                addend = -other if value.operation == "subf" else other
                return self.product_and(value.left, addend, kind, at, carried, 1)
            if _is_product(value.right):
                sign = -1 if value.operation == "subf" else 1
                other = self.value(value.left, kind, at, carried)
                return self.product_and(value.right, other, kind, at, carried, sign)
        left, right = (self.value(side, kind, at, carried) for side in (value.left, value.right))
        return self.combined(value.operation, left, right)

    def product_and(
        self, product: Binary, addend: Number, kind: np.dtype, at: Point,
        carried: tuple[Number, ...], sign: int,
    ) -> np.floating:  # fmt: skip
        """± product + addend, rounded once."""
        a, b = (self.value(side, kind, at, carried) for side in (product.left, product.right))
        return fma(a if sign > 0 else -a, b, addend)

    def combined(self, operation: str, left: Number, right: Number) -> Number:
        if operation in INTEGER:
            return _wrapped(INTEGER[operation](int(left), int(right)))
        assert isinstance(left, np.floating)
        assert isinstance(right, np.floating)
        return FLOATING[operation](left, right)

    @staticmethod
    def typed(value: Number | float, kind: np.dtype) -> Number:
        return _wrapped(int(value)) if kind.kind == "i" else kind.type(value)


def _is_product(value: Value) -> TypeGuard[Binary]:
    return isinstance(value, Binary) and value.operation == "mulf"


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
    nests: tuple[Nest, ...]
    declared: dict[str, Array]

    def __repr__(self) -> str:
        """Short, or hypothesis refuses to tell what failed; tests note the text and the arrays."""
        return f"<{len(self.text.splitlines())} lines of {', '.join(self.declared)}>"

    def expected(self, *, fused: bool = False) -> dict[str, np.ndarray]:
        """The arrays after the function, computed on copies; `fused`: a product that is only added
        is rounded together with the sum.
        """
        memory = {name: array.copy() for name, array in self.arrays.items()}
        for name, array in self.declared.items():
            if array.local and not array.scratch:
                memory[name] = np.zeros(array.shape, array.dtype)
        kinds = {name: array.dtype for name, array in self.declared.items()}
        run = Run(memory, kinds, self.scalars[SIZE], fused=fused)
        with np.errstate(all="ignore"):
            for nest in self.nests:
                run.nodes(nest, (), ())
        return {name: memory[name] for name in self.arrays}
