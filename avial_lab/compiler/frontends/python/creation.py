"""New arrays, and other views of old ones."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from avial_lab.compiler.frontends.python.arithmetic import affine, constant
from avial_lab.compiler.frontends.python.exceptions import HangsOnTheIteration
from avial_lab.compiler.frontends.python.kinds import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    INT64,
    Kind,
    promoted,
)
from avial_lab.compiler.frontends.python.linear import Linear, number
from avial_lab.compiler.frontends.python.reductions import Reductions
from avial_lab.compiler.frontends.python.values import (
    Array,
    Fixed,
    Lazy,
    Number,
    Value,
)

if TYPE_CHECKING:
    pass


FEW_SAMPLES = "Number of samples must be non-negative."


class Creation(Reductions):
    """New arrays, and other views of old ones."""

    def filled(self, shape: Value, fill: Number | None, kind: Kind) -> Array:
        made = self._fresh(kind, shape)
        self.t.arrays.assign(made, fill if fill is not None else constant(0))
        return made

    def zeros(self, shape: Value, dtype: Value | None = None, order: Value | None = None) -> Value:
        return self.filled(shape, constant(0), self.dtype(dtype))

    def empty(self, shape: Value, dtype: Value | None = None, order: Value | None = None) -> Value:
        return self._fresh(self.dtype(dtype), shape)

    def _fresh(self, kind: Kind, shape: Value) -> Array:
        extents = self.shape(shape)
        if any(each.known is not None and each.known < 0 for each in extents):
            raise self.t.refused("negative dimensions are not allowed", "", ValueError)
        return self.t.arrays.fresh(kind, extents)

    def ones(self, shape: Value, dtype: Value | None = None, order: Value | None = None) -> Value:
        return self.filled(shape, constant(1), self.dtype(dtype))

    def full(self, shape: Value, fill_value: Value, dtype: Value | None = None) -> Value:
        fill = self.t.number(fill_value, ast.Pass())
        return self.filled(shape, fill, self.dtype(dtype, fill.kind))

    def _like(self, x: Value) -> tuple[Value, Kind]:
        array = self._array(x)
        return tuple(affine(extent) for extent in array.shape), array.kind

    def zeros_like(self, a: Value, dtype: Value | None = None) -> Value:
        shape, kind = self._like(a)
        return self.filled(shape, constant(0), self.dtype(dtype, kind))

    def ones_like(self, a: Value, dtype: Value | None = None) -> Value:
        shape, kind = self._like(a)
        return self.filled(shape, constant(1), self.dtype(dtype, kind))

    def empty_like(self, a: Value, dtype: Value | None = None) -> Value:
        shape, kind = self._like(a)
        return self.t.arrays.fresh(self.dtype(dtype, kind), self.shape(shape))

    def full_like(self, a: Value, fill_value: Value, dtype: Value | None = None) -> Value:
        shape, kind = self._like(a)
        fill = self.t.number(fill_value, ast.Pass())
        return self.filled(shape, fill, self.dtype(dtype, kind))

    def eye(
        self,
        N: Value,  # noqa: N803 - as NumPy calls it
        M: Value | None = None,  # noqa: N803
        k: Value | None = None,
        dtype: Value | None = None,
    ) -> Value:
        rows = self.shape(N)[0]
        columns = rows if M is None else self.shape(M)[0]
        made = self.filled((affine(rows), affine(columns)), constant(0), self.dtype(dtype))
        line = self.diagonal(made, constant(0) if k is None else k)
        self.t.arrays.assign(self.t.arrays.in_memory(self._array(line)), constant(1))
        return made

    def diagonal(self, a: Value, offset: Value | None = None) -> Value:
        """np.diagonal of two dimensions: a view, as NumPy's."""
        array = self.t.arrays.in_memory(self._array(a))
        by = 0 if offset is None else self.t.number(offset, ast.Pass()).known
        if len(array.shape) != 2 or not isinstance(by, int):
            raise self.t.refused("the diagonal of two dimensions is there, at a known offset", "")
        part = self.t.arrays.view(
            array,
            [slice(affine(number(max(n, 0))), None) for n in (-by, by)],
        )
        rows, columns = part.shape
        apart = rows - columns
        if apart.known is None and rows.known != columns.known:
            raise self.t.refused(
                "the diagonal of an array that may not be square", "a[:n, :n] of known n"
            )
        count = rows if apart.known is not None and apart.known <= 0 else columns
        axes = tuple(replace(axis, dim=min(axis.dim, 0)) for axis in part.axes)
        return replace(part, shape=(count,), axes=axes)

    def axis_moved(self, a: Value, source: Value, destination: Value) -> Value:
        """np.moveaxis of one axis."""
        array = self.t.arrays.in_memory(self._array(a))
        rank = len(array.shape)
        old, new = (self._axes(each, rank)[0] for each in (source, destination))
        order = [d for d in range(rank) if d != old]
        order.insert(new, old)
        return self.t.arrays.transposed(array, order)

    def split(self, ary: Value, parts: Value, axis: Value | None = None) -> Value:
        """np.split into equal parts."""
        array = self.t.arrays.in_memory(self._array(ary))
        d = 0 if axis is None else self._axes(axis, len(array.shape))[0]
        count = self.t.number(parts, ast.Pass()).known
        extent = array.shape[d].known
        if not isinstance(count, int) or extent is None:
            raise self.t.refused(
                "np.split takes sizes that are known here", "a[:n], a[n:]", HangsOnTheIteration
            )
        if count < 1 or extent % count:
            raise self.t.refused("array split does not result in an equal division", "", ValueError)
        each = extent // count
        whole_part: list[slice] = [slice(None)] * len(array.shape)
        found: list[Value] = []
        for k in range(count):
            index = list(whole_part)
            index[d] = slice(affine(number(k * each)), affine(number((k + 1) * each)))
            found.append(self.t.arrays.view(array, index))
        return tuple(found)

    def product_of(self, x: Value) -> Value:
        """math.prod."""
        if not isinstance(x, tuple):
            return self.reduce("prod", x)
        found: Value = constant(1)
        for each in x:
            found = self.t.binary(ast.Mult(), found, each)
        return found

    def arange(self, *ends: Value, dtype: Value | None = None) -> Value:
        numbers = [self.t.number(each, ast.Pass()) for each in ends]
        low = numbers[0] if len(numbers) > 1 else constant(0)
        high = numbers[1] if len(numbers) > 1 else numbers[0]
        step = numbers[2] if len(numbers) > 2 else constant(1)
        kind = promoted(promoted(low.kind, high.kind), step.kind)
        if kind.is_int and isinstance(step.known, int) and step.known:
            count = self._stretched(low, high, step.known)
        elif all(each.known is not None for each in (low, high, step)):
            made = np.arange(low.known, high.known, step.known)  # type: ignore[arg-type]
            count = number(len(made))
        else:
            raise self.t.refused(
                "np.arange of floats has ends that are known here, and integers a known step",
                "use np.linspace",
            )
        kind = self.dtype(dtype, kind)

        def element(at: Sequence[Linear]) -> Number:
            k = affine(at[0])
            # As NumPy: the first, and the difference of the first two, times k.
            if low.kind.is_float or step.kind.is_float:
                begin = self.t.a.cast(low, FLOAT)
                second = self.t.a.binary(ast.Add(), begin, self.t.a.cast(step, FLOAT))
                by = self.t.a.binary(ast.Sub(), second, begin)
                product = self.t.a.binary(ast.Mult(), self.t.a.cast(k, FLOAT), by)
                return self.t.a.cast(self.t.a.binary(ast.Add(), begin, product), kind)
            product = self.t.a.binary(ast.Mult(), k, step)
            return self.t.a.cast(self.t.a.binary(ast.Add(), low, product), kind)

        return Lazy(kind, (count,), element, (), 2)

    def _stretched(self, low: Number, high: Number, step: int) -> Linear:
        """How many integers there are from `low` to before `high`."""
        ends = [low.known, high.known]
        if all(isinstance(each, int) for each in ends):
            return number(len(range(*ends, step)))  # type: ignore[arg-type]
        first, last = self.index(low), self.index(high)
        count = last - first if step > 0 else first - last
        return self.t.arrays.not_negative(self.t.rounded_up(count, abs(step)))

    def linspace(
        self, start: Value, stop: Value, num: Value | None = None, dtype: Value | None = None
    ) -> Value:
        first, last = (
            self.t.a.cast(self.t.number(each, ast.Pass()), FLOAT) for each in (start, stop)
        )
        count = self.shape(num)[0] if num is not None else number(50)
        kind = self.dtype(dtype)
        if count.known is None:
            self._check_count(count)
            count = self.t.arrays.not_negative(count)
        elif count.known < 0:
            raise self.t.refused(FEW_SAMPLES, "", ValueError)
        end = affine(count - number(1))  # of a single point, which is the first, no step is taken
        several = self.t.a.compared(ast.Gt(), end, constant(0))
        parts = self.t.a.select(several, end, constant(1))

        def element(at: Sequence[Linear]) -> Number:
            k = self.t.a.cast(affine(at[0]), FLOAT)
            delta = self.t.a.binary(ast.Sub(), last, first)
            step = self.t.a.binary(ast.Div(), delta, self.t.a.cast(parts, FLOAT))
            value = self.t.a.binary(ast.Add(), self.t.a.binary(ast.Mult(), k, step), first)
            if count.known != 1:
                at_end = self.t.a.compared(ast.Eq(), affine(at[0]), end)
                at_end = self.t.a.binary(ast.BitAnd(), at_end, several)
                value = self.t.a.select(at_end, last, value)
            return self.t.a.cast(value, kind)

        return Lazy(kind, (count,), element, (), 4)

    def _check_count(self, count: Linear) -> None:
        zero, index = self.t.e.index(number(0)), self.t.e.index(count)
        ok = self.t.e.value(f"arith.cmpi sge, {index}, {zero} : index")
        self.t.a.raise_unless(ok, "ValueError", FEW_SAMPLES)

    def grid(self, node: ast.expr) -> Value:
        """np.mgrid[0:n, 0:m]."""
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        ends: list[tuple[Linear, Linear]] = []
        for part in parts:
            if not isinstance(part, ast.Slice) or part.upper is None or part.step is not None:
                raise self.t.refused("np.mgrid takes stretches of step 1 here", "use np.arange")
            low = number(0) if part.lower is None else self._end_of(part.lower)
            ends.append((low, self._end_of(part.upper)))
        shape = tuple(high - low for low, high in ends)
        made = [
            Lazy(
                INT64, shape, lambda at, d=d, low=low: self.t.a.cast(affine(at[d] + low), INT64), ()
            )
            for d, (low, _) in enumerate(ends)
        ]
        return tuple(made) if len(made) > 1 else made[0]

    def _end_of(self, node: ast.expr) -> Linear:
        return self.index(self.t.number(self.t.expression(node), node))

    def joined(self, arrays: Value, axis: Value | None = None) -> Value:
        """np.concatenate."""
        parts = [self._array(each) for each in arrays] if isinstance(arrays, tuple) else []
        if not parts:
            raise self.t.refused("arrays are concatenated", "np.concatenate((a, b))", TypeError)
        known = 0 if axis is None else self._axes(axis, len(parts[0].shape))[0]
        kind = parts[0].kind
        total = number(0)
        for part in parts:
            kind = promoted(kind, part.kind)
            total = total + part.shape[known]
        shape = list(parts[0].shape)
        shape[known] = total
        made = self.t.arrays.fresh(Kind(kind.dtype), tuple(shape))
        begin = number(0)
        for part in parts:
            end = begin + part.shape[known]
            stretch: list[slice] = [slice(None)] * len(shape)
            stretch[known] = slice(affine(begin), affine(end))
            self.t.arrays.assign(self.t.arrays.view(made, stretch), part)
            begin = end
        return made

    def stacked(self, arrays: Value, axis: Value | None = None) -> Value:
        """np.stack: along a new dimension."""
        parts = [self._array(each) for each in arrays] if isinstance(arrays, tuple) else []
        if not parts:
            raise self.t.refused("arrays are stacked", "np.stack((a, b))", TypeError)
        rank = len(parts[0].shape)
        at = 0 if axis is None else self._axes(axis, rank + 1)[0]
        new: list[slice | None] = [slice(None)] * rank
        new.insert(at, None)
        views = tuple(self.t.arrays.view(self.t.arrays.in_memory(each), new) for each in parts)
        return self.joined(views, constant(at))

    def squeezed(self, a: Value, axis: Value | None = None) -> Value:
        """np.squeeze: without the dimensions of size 1."""
        array = self.t.arrays.in_memory(self._array(a))
        chosen = range(len(array.shape)) if axis is None else self._axes(axis, len(array.shape))
        if any(array.shape[d].known is None for d in chosen):
            raise self.t.refused("np.squeeze takes sizes that are known here", "a[:, 0]")
        gone = [d for d in chosen if array.shape[d].known == 1]
        if axis is not None and len(gone) < len(chosen):
            raise self.t.refused(
                "cannot select an axis to squeeze out which has size not equal to one",
                "",
                ValueError,
            )
        index = [constant(0) if d in gone else slice(None) for d in range(len(array.shape))]
        return self.t.arrays.view(array, index)

    def flat(self, x: Value, *_: Value) -> Value:
        array = self._array(x)
        return self.t.arrays.materialised(self.reshape(array, constant(-1)))

    def ravelled(self, x: Value, *_: Value) -> Value:
        """The same memory where it lies in that order."""
        array = self._array(x)
        return array if len(array.shape) == 1 else self.reshape(array, constant(-1))

    def repeated(self, a: Value, repeats: Value, axis: Value | None = None) -> Value:
        """np.repeat, each element equally often."""
        array = self._array(a)
        if axis is None:
            array = self._array(self.flat(array))
        d = 0 if axis is None else self._axes(axis, len(array.shape))[0]
        times = self.t.number(repeats, ast.Pass()).known
        if not isinstance(times, int) or times < 1:
            raise self.t.refused("np.repeat repeats a known number of times here", "")
        source = self.t.arrays.lazy(array)
        shape = list(source.shape)
        shape[d] = shape[d].scaled(times)

        def element(at: Sequence[Linear]) -> Number:
            where = self.t.a.binary(ast.FloorDiv(), affine(at[d]), constant(times))
            return source.element([*at[:d], self.index(where), *at[d + 1 :]])

        return replace(source, shape=tuple(shape), element=element)

    def beside(self, tup: Value) -> Value:
        """np.hstack."""
        parts = tup if isinstance(tup, tuple) else ()
        flat = bool(parts) and len(self._array(parts[0]).shape) == 1
        return self.joined(tup, constant(0 if flat else 1))

    def triangle(self, lower: bool, m: Value, k: Value | None = None) -> Value:
        """np.tril and np.triu."""
        source = self.t.arrays.lazy(self._array(m))
        by = constant(0) if k is None else self.t.number(k, ast.Pass())
        op = ast.LtE() if lower else ast.GtE()

        def element(at: Sequence[Linear]) -> Number:
            end = self.t.a.binary(ast.Add(), affine(at[-2]), by)
            holds = self.t.a.compared(op, affine(at[-1]), end)
            zero = self.t.a.cast(constant(0), source.kind)
            return self.t.a.select(holds, source.element(at), zero)

        return replace(source, element=element, cost=source.cost + 2)

    def clip(self, a: Value, a_min: Value, a_max: Value) -> Value:
        found = self.t.operand(a)
        for which, bound in (("max", a_min), ("min", a_max)):
            if bound != Fixed(None) and not _is_beyond(bound, found.kind, which):
                found = self.t.operand(self.extreme(which, found, bound))
        return found

    def all_pairs(self, op: ast.operator, a: Value, b: Value) -> Value:
        """np.add.outer and the like."""
        left, right = (self.t.arrays.in_memory(self._array(each)) for each in (a, b))
        column = self.t.arrays.view(
            left, [*[slice(None)] * len(left.shape), *[None] * len(right.shape)]
        )
        return self.t.binary(op, column, right)

    def copy(self, a: Value, order: Value | None = None) -> Value:
        return self.t.arrays.materialised(self._array(a))

    def array_of(self, value: tuple[Any, ...]) -> Array:
        """A tuple or a list of numbers, or of such, as an array."""
        parts = [
            self.array_of(each) if isinstance(each, tuple) else self.t.operand(each)
            for each in value
        ]
        if not parts:
            raise self.t.refused("an empty list has no kind of numbers", "np.zeros(0)")
        # Beside NumPy's numbers Python's are of their own kinds, not of theirs.
        kind = reduce(promoted, (Kind(part.kind.dtype) for part in parts))
        inner = () if isinstance(parts[0], Number) else parts[0].shape
        made = self.t.arrays.fresh(Kind(kind.dtype), (number(len(parts)), *inner))
        for k, part in enumerate(parts):
            target = self.t.arrays.view(made, [affine(number(k))])
            self.t.arrays.assign(target, part)
        return made

    def as_array(self, a: Value, dtype: Value | None = None) -> Value:
        found = self.array_of(a) if isinstance(a, tuple) else self.t.operand(a)
        if dtype is not None or found.kind.weak:
            found = self.t.operand(self._as_kind(found, self.dtype(dtype, found.kind)))
        return found if isinstance(found, Number) else self.t.arrays.materialised(found)

    def same_array(self, a: Value, dtype: Value | None = None) -> Value:
        """np.asarray: no copy of an array of that kind."""
        if isinstance(a, Array) and (dtype is None or self.dtype(dtype).dtype == a.kind.dtype):
            return a
        return self.as_array(a, dtype)

    def contiguous(self, a: Value, dtype: Value | None = None) -> Value:
        """np.ascontiguousarray: no copy of one that lies row by row."""
        found = self.same_array(a, dtype)
        if isinstance(found, Array) and not found.is_whole:  # of which NumPy may hand back the part
            return replace(self.t.arrays.materialised(found), copied=True)
        return found

    def dot(self, a: Value, b: Value) -> Value:
        left, right = self.t.operand(a), self.t.operand(b)
        if isinstance(left, Number) or isinstance(right, Number):
            return self.t.binary(ast.Mult(), left, right)
        return self.t.arrays.product(left, right)

    def outer(self, a: Value, b: Value) -> Value:
        left = self.t.arrays.in_memory(self._array(a))
        right = self.t.arrays.in_memory(self._array(b))
        column = self.t.arrays.view(left, [slice(None), None])
        return self.t.binary(ast.Mult(), column, right)

    def transpose(self, a: Value, axes: Value | None = None, *more: Value) -> Value:
        """more: of `a.transpose(2, 0, 1)`."""
        array = self.t.arrays.in_memory(self._array(a))
        ndim = len(array.shape)
        order = range(ndim)[::-1]
        if isinstance(axes, tuple) or more:
            given = axes if isinstance(axes, tuple) else (axes, *more)
            order = [int(each.known) % ndim for each in given]  # type: ignore[union-attr, arg-type]
        return self.t.arrays.transposed(array, order)

    def flip(self, a: Value, axis: Value | None = None) -> Value:
        array = self.t.arrays.in_memory(self._array(a))
        axes = self._axes(axis, len(array.shape))
        back = slice(None, None, constant(-1))
        return self.t.arrays.view(
            array, [back if d in axes else slice(None) for d in range(len(array.shape))]
        )

    def reshape(self, a: Value, *shape: Value) -> Array:
        array = self._array(a)
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        wanted = [self.t.number(each, ast.Pass()).known for each in given]
        old = [extent.known for extent in array.shape]
        if None in wanted or None in old:
            raise self.t.refused("reshape takes sizes that are known here", "", HangsOnTheIteration)
        total = math.prod(each or 0 for each in old)
        sizes = [int(each.real) for each in wanted if each is not None]
        if -1 in sizes:
            rest = math.prod(each for each in sizes if each != -1)
            sizes[sizes.index(-1)] = total // rest if rest else 0
        if math.prod(sizes) != total:
            raise self.t.refused(
                f"cannot reshape array of size {total} into shape {tuple(sizes)}", "", ValueError
            )
        named = array if isinstance(array, Array) and self.t.is_named(array) else None
        if named and named.is_whole and self.t.e.plain and total and old and sizes:
            return self.t.arrays.seen_as(named, sizes)
        source = self.t.arrays.in_memory(array)
        flat = self.t.arrays.fresh(array.kind, tuple(number(each) for each in sizes))
        strides = [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]
        with self.t.arrays.nest(flat.shape) as at:
            place = number(0)
            for index, stride in zip(at, strides, strict=True):
                place = place + index.scaled(stride)
            where: list[Linear] = []
            for d in range(len(old)):
                inner = math.prod(each or 0 for each in old[d + 1 :])
                part = self.t.a.binary(ast.FloorDiv(), affine(place), constant(max(inner, 1)))
                if d:
                    part = self.t.a.binary(ast.Mod(), part, constant(max(old[d] or 1, 1)))
                where.append(self.index(part))
            self.t.arrays.store(self.t.arrays.load(source, where), flat, at)
        return replace(flat, copied=named is not None and not named.is_whole)

    def length(self, x: Value) -> Value:
        if isinstance(x, tuple):
            return constant(len(x))
        array = self._array(x)
        if not array.shape:
            raise self.t.refused("len() of unsized object", "", TypeError)
        return affine(array.shape[0])

    def as_int(self, x: Value | None = None) -> Value:
        value = self.t.number(x, ast.Pass())
        if value.known is not None:
            return constant(int(value.known.real))
        return value if value.kind == INT else self.t.a.cast(value, INT)

    def as_float(self, x: Value | None = None) -> Value:
        return self.t.a.cast(self.t.number(x, ast.Pass()), FLOAT)

    def as_complex(self, x: Value, y: Value | None = None) -> Value:
        real = self.t.a.cast(self.t.number(x, ast.Pass()), FLOAT)
        if y is None:
            return self.t.a.cast(self.t.number(x, ast.Pass()), COMPLEX)
        imaginary = self.t.a.cast(self.t.number(y, ast.Pass()), FLOAT)
        r, i = self.t.a.value(real), self.t.a.value(imaginary)
        return Number(COMPLEX, ssa=self.t.e.value(f"complex.create {r}, {i} : complex<f64>"))

    def as_bool(self, x: Value | None = None) -> Value:
        return replace(self.t.a.truth(self.t.number(x, ast.Pass())), kind=BOOL)

    def total(self, x: Value, start: Value | None = None) -> Value:
        """Python's sum."""
        parts = x if isinstance(x, tuple) else None
        if parts is None:  # its first dimension, and no wider than what is added
            array = self._array(x)
            kind = INT64 if array.kind.is_bool else array.kind
            found = self.reduce("sum", array, constant(0), dtype=Fixed(kind.dtype))
            return found if start is None else self.t.binary(ast.Add(), start, found)
        found = start if start is not None else constant(0)
        for each in parts:
            found = self.t.binary(ast.Add(), found, each)
        return found


def _is_beyond(bound: Value, kind: Kind, which: str) -> bool:
    """Whether no integer of that kind needs to be clipped at Python's number."""
    if not (isinstance(bound, Number) and bound.kind == INT and bound.known is not None):
        return False
    if kind.weak or not kind.is_int:
        return False
    ends = np.iinfo(kind.dtype)
    value = bound.known.real
    return value < ends.min if which == "max" else value > ends.max
