"""What expressions are while a function is translated: numbers, arrays, and what is computed of
arrays element by element.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from avial_lab.compiler.frontends.python.kinds import Kind
from avial_lab.compiler.frontends.python.linear import Linear, number

Plain = bool | int | float | complex


@dataclass(frozen=True)
class Number:
    """One of: a constant; an integer that is affine in loop variables; an SSA value."""

    kind: Kind
    ssa: str | None = None
    linear: Linear | None = None
    constant: Plain | None = None

    @property
    def known(self) -> Plain | None:
        """Its value, where the text alone says it."""
        if self.constant is None and self.linear is not None:
            return self.linear.known
        return self.constant


Shape = tuple[Linear, ...]


@dataclass(frozen=True)
class Axis:
    """Where a dimension of memory is in a view: `offset + step * index` of the view's `dim`; -1:
    the view has one element of it.
    """

    offset: Linear
    dim: int
    step: int


@dataclass(frozen=True)
class Array:
    """A view of memory. `own`: of memory that the program allocates, and nobody else names.
    `copied`: of elements that NumPy has in the place that they were copied from.
    """

    memory: str
    kind: Kind
    extents: Shape
    shape: Shape
    axes: tuple[Axis, ...]
    own: bool = False
    copied: bool = False

    @property
    def type(self) -> str:
        """Of the memory."""
        return memref(self.extents, self.kind)

    @property
    def is_whole(self) -> bool:
        """All of its memory, as it lies."""
        plain = tuple(Axis(Linear(), d, 1) for d in range(len(self.extents)))
        return self.axes == plain and self.shape == self.extents

    def place(self, index: Sequence[Linear]) -> list[Linear]:
        """Where the view's element is in memory."""
        return [
            axis.offset + index[axis.dim].scaled(axis.step) if axis.dim >= 0 else axis.offset
            for axis in self.axes
        ]


@dataclass(frozen=True)
class Lazy:
    """Values not computed yet: `element` writes what computes the one at an index. `reads`: the
    arrays that it looks at. cost: operations of an element. mask: of what it is only there where
    that holds, in the order of the elements; values with one `mask_key` have the same.
    """

    kind: Kind
    shape: Shape
    element: Callable[[Sequence[Linear]], Number]
    reads: tuple[Array, ...]
    cost: int = 1
    mask: Callable[[Sequence[Linear]], Number] | None = None
    mask_key: object = None


@dataclass(frozen=True)
class Fixed:
    """A Python object that is part of the program: a function, a module, a dtype, None."""

    value: object


@dataclass(frozen=True)
class Held:
    """In a `Fixed`: a number that the caller hands over, read where it is used."""

    memory: Array
    kind: Kind


@dataclass(frozen=True)
class Method:
    """Of an array, not called yet."""

    of: Array | Lazy | Number
    name: str


@dataclass(frozen=True, eq=False)
class Closure:
    """A function that is defined within, of the frame that it is defined in."""

    node: ast.FunctionDef | ast.Lambda
    frame: Any
    defaults: Mapping[str, Any]


@dataclass(frozen=True)
class Listed:
    """A Python list of numbers, in memory."""

    array: Array
    kind: Kind


Operand = Number | Array | Lazy
Value = Number | Array | Lazy | Fixed | Method | Closure | Listed | tuple[Any, ...]


def memref(extents: Sequence[int | Linear], kind: Kind) -> str:
    """
    >>> from avial_lab.compiler.frontends.python.kinds import FLOAT
    >>> memref((2, 3), FLOAT), memref((), FLOAT), memref((Linear({"%n": 1}), 3), FLOAT)
    ('memref<2x3xf64>', 'memref<f64>', 'memref<?x3xf64>')
    """
    known = [each if isinstance(each, int) else each.known for each in extents]
    return f"memref<{''.join('?x' if n is None else f'{n}x' for n in known)}{kind.mlir}>"


def whole(memory: str, kind: Kind, extents: Sequence[int | Linear], *, own: bool = False) -> Array:
    """An array that is all of its memory."""
    axes = tuple(Axis(Linear(), d, 1) for d in range(len(extents)))
    shape = tuple(number(each) if isinstance(each, int) else each for each in extents)
    return Array(memory, kind, shape, shape, axes, own)
