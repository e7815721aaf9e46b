"""A random function as a tree: loops, conditions and statements on a few small arrays."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.compiler.analysis.polyhedral.nests import Expression

SIZE = "n"
"""The one number a function is called with, an `index`."""


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


@dataclass(frozen=True)
class Scratch:
    """Memory that comes into being here, holds `starts`, and is gone behind `body`."""

    array: str
    starts: tuple[float, ...]
    body: Nest


Node = Store | If | For | While | Scratch
Nest = tuple[Node, ...]


@dataclass
class Array:
    """`kind` is i32, f32 or f64. A `local` one is the function's own, a `scratch` one a part's; a
    `table` holds indices below `below`, and is never written.
    """

    kind: str
    rank: int
    extents: list[int] = field(default_factory=list)
    local: bool = False
    scratch: bool = False
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
