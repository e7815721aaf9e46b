"""Reductions of arrays along axes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from avial_lab.compiler.frontends.python.arithmetic import affine, constant
from avial_lab.compiler.frontends.python.arrays import sum_kind
from avial_lab.compiler.frontends.python.elementwise import Elementwise
from avial_lab.compiler.frontends.python.kinds import (
    FLOAT,
    FLOAT64,
    INT64,
    NP_BOOL,
    Kind,
)
from avial_lab.compiler.frontends.python.library import counting
from avial_lab.compiler.frontends.python.linear import least, number
from avial_lab.compiler.frontends.python.values import (
    Array,
    Fixed,
    Lazy,
    Number,
    Value,
)

if TYPE_CHECKING:
    pass


class Reductions(Elementwise):
    """Reductions of arrays along axes."""

    def reduce(
        self,
        name: str,
        x: Value,
        axis: Value | None = None,
        keepdims: Value | None = None,
        dtype: Value | None = None,
    ) -> Value:
        x = self._scalar(x)
        if isinstance(x, Number):
            return x
        axes = self._axes(axis, len(x.shape))
        keep = bool(keepdims is not None and getattr(keepdims, "known", False))
        if x.kind.is_complex and name in ("max", "min"):
            raise self.t.refused("complex numbers have no order here", "reduce their abs()")
        if name in ("max", "min"):
            if isinstance(x, Lazy) and x.mask is not None:
                x, axes = self.t.arrays.compacted(x), [0]
            words = f"zero-size array to reduction operation {name}imum which has no identity"
            self.refuse_empty(x, axes, words)
            source = x if isinstance(x, Array) or x.cost < 4 else self.t.arrays.materialised(x)
            lazy = self.t.arrays.lazy(source)
            word = "max" if name == "max" else "min"
            return self.t.arrays.reduced(
                source,
                x.kind,
                lambda at: lazy.element(at),
                lambda a, b: self._number(self.extreme(word, a, b)),
                axes=axes,
                keep=keep,
            )
        if name == "mean":
            return self._mean(x, axes, keep, dtype)
        kind = NP_BOOL if name in ("any", "all") else sum_kind(x.kind)
        if dtype is not None:
            kind = self.dtype(dtype)
        first = {"sum": 0, "prod": 1, "any": False, "all": True}[name]
        steps: Mapping[str, Callable[[Number, Number], Number]] = {
            "sum": lambda a, b: self.t.a.binary(ast.Add(), a, b),
            "prod": lambda a, b: self.t.a.binary(ast.Mult(), a, b),
            "any": lambda a, b: self.t.a.binary(ast.BitOr(), a, b),
            "all": lambda a, b: self.t.a.binary(ast.BitAnd(), a, b),
        }
        return self.t.arrays.reduced(
            x,
            kind,
            lambda _: self.t.a.cast(constant(first), kind),
            steps[name],
            axes=axes,
            keep=keep,
        )

    def refuse_empty(self, x: Array | Lazy, axes: Sequence[int], words: str) -> None:
        """Raises ValueError, when it runs where only that knows."""
        if any(x.shape[d].known == 0 for d in axes):
            raise self.t.refused(words, "", ValueError)
        for extent in (x.shape[d] for d in axes):
            low = least(extent, self.t.e.ranges)
            if low is None or low < 1:
                zero = self.t.e.value("arith.constant 0 : index")
                size = self.t.e.index(extent)
                ok = self.t.e.value(f"arith.cmpi sgt, {size}, {zero} : index")
                self.t.a.raise_unless(ok, "ValueError", words)

    def _number(self, value: Value) -> Number:
        assert isinstance(value, Number)
        return value

    def _mean(
        self, x: Array | Lazy, axes: Sequence[int], keep: bool, dtype: Value | None = None
    ) -> Value:
        kind = self.dtype(dtype, x.kind if x.kind.is_float or x.kind.is_complex else FLOAT64)
        total = self.t.arrays.reduced(
            x,
            Kind(kind.dtype),
            lambda _: self.t.a.cast(constant(0), kind),
            lambda a, b: self.t.a.binary(ast.Add(), a, b),
            axes=axes,
            keep=keep,
        )
        if isinstance(x, Lazy) and x.mask is not None:
            return self.t.binary(ast.Div(), total, self._count(x, axes, Kind(kind.dtype)))
        count = affine(number(1))
        for d in axes:
            count = self.t.a.binary(ast.Mult(), count, affine(x.shape[d]))
        by = self.t.a.cast(self.t.a.cast(count, FLOAT), Kind(kind.dtype))
        return self.t.binary(ast.Div(), total, by)

    def _count(self, x: Lazy, axes: Sequence[int], kind: Kind) -> Number | Array:
        """Elements under the mask."""
        ones = replace(x, kind=kind, element=lambda _: self.t.a.cast(constant(1), kind))
        zero = self.t.a.cast(constant(0), kind)
        return self.t.arrays.reduced(
            ones, kind, lambda _: zero, lambda a, b: self.t.a.binary(ast.Add(), a, b), axes=axes
        )

    def variance(
        self,
        x: Value,
        axis: Value | None = None,
        ddof: Value | None = None,
        keepdims: Value | None = None,
    ) -> Value:
        x = self.t.arrays.in_memory(self._array(x))
        axes = self._axes(axis, len(x.shape))
        mean = self._mean(x, axes, keep=True)
        apart = self.t.binary(ast.Sub(), x, mean)
        square = self.t.binary(ast.Mult(), apart, apart)
        keep = bool(keepdims is not None and getattr(keepdims, "known", False))
        total = self.reduce("sum", square, self._as_axes(axes), constant(keep))
        count = affine(number(1))
        for d in axes:
            count = self.t.a.binary(ast.Mult(), count, affine(x.shape[d]))
        if ddof is not None:
            count = self.t.a.binary(ast.Sub(), count, self.t.number(ddof, ast.Pass()))
        return self.t.binary(ast.Div(), total, self.t.a.cast(count, FLOAT))

    def deviation(self, x: Value, **named: Value) -> Value:
        return self._unary(np.sqrt, "sqrt", self.variance(x, **named))

    def _as_axes(self, axes: Sequence[int]) -> Value:
        return tuple(constant(d) for d in axes)

    def _axes(self, axis: Value | None, rank: int) -> list[int]:
        if axis is None or (isinstance(axis, Fixed) and axis.value is None):
            return list(range(rank))
        given = axis if isinstance(axis, tuple) else (axis,)
        found: list[int] = []
        for each in given:
            known = each.known if isinstance(each, Number) else None
            if not isinstance(known, int):
                raise self.t.refused("an axis is a number that is known here", "")
            if not -rank <= known < rank:
                raise self.t.refused(
                    f"axis {known} is out of bounds for array of dimension {rank}",
                    "",
                    ValueError,
                )
            found.append(known % rank)
        return sorted(found)

    def position(self, larger: bool, x: Value, axis: Value | None = None) -> Value:
        """argmax and argmin of one dimension: the first of equals."""
        array = self._array(x)
        if len(array.shape) != 1:
            return self._positions(larger, array, axis)
        axes = self._axes(axis, 1)
        words = f"attempt to get arg{'max' if larger else 'min'} of an empty sequence"
        self.refuse_empty(array, axes, words)
        best = self.t.arrays.cell(
            Kind(array.kind.dtype), self.t.arrays.lazy(array).element([number(0)])
        )
        where = self.t.arrays.cell(INT64, constant(0))
        lazy = self.t.arrays.lazy(array)
        op = ast.Gt() if larger else ast.Lt()
        with self.t.arrays.nest(array.shape) as at:
            value = lazy.element(at)
            better = self.t.a.compared(op, value, self.t.arrays.load(best, []))
            with self.t.e.block(f"scf.if {better.ssa} {{"):
                self.t.arrays.store(value, best, [])
                self.t.arrays.store(affine(at[0]), where, [])
        found = self.t.arrays.load(where, [])
        return found if not array.kind.is_float else self._first_nan(array, found)

    def _first_nan(self, array: Array | Lazy, otherwise: Number) -> Number:
        """Where it is; in NumPy it is beyond all others."""
        extent = self.t.a.cast(affine(array.shape[0]), INT64)
        first, lazy = self.t.arrays.cell(INT64, extent), self.t.arrays.lazy(array)
        with self.t.arrays.nest(array.shape) as at:
            value = lazy.element(at)
            nan = self.t.a.compared(ast.NotEq(), value, value)
            here = self.t.a.select(nan, self.t.a.cast(affine(at[0]), INT64), extent)
            best = self._number(self.extreme("min", self.t.arrays.load(first, []), here))
            self.t.arrays.store(best, first, [])
        found = self.t.arrays.load(first, [])
        return self.t.a.select(self.t.a.compared(ast.Lt(), found, extent), found, otherwise)

    def _positions(self, larger: bool, array: Array | Lazy, axis: Value | None) -> Value:
        """Of two dimensions, along one; of all elements, by their number."""
        kept = self.t.arrays.in_memory(array)
        if len(kept.shape) != 2:
            raise self.t.refused("argmax and argmin take two dimensions here", "write the loops")
        function = counting.positions if axis is not None else counting.position
        given = {"a": kept, "greatest": constant(larger)}
        if axis is not None:
            given["axis"] = constant(self._axes(axis, 2)[0])
        return self.t.written(function, given, self.node)
