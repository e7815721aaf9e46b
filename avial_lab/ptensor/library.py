"""What arrays do by NumPy's own code on their parts: order, subscripts, sums up to each element.

Arrays -> arrays. A step of library code runs at once, where the array is divided along a dimension
that it treats row by row; `runtime.rank.shards` has what the ranks tell each other.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from avial_lab.ptensor.arrays import Array
from avial_lab.ptensor.elements import element_of
from avial_lab.ptensor.layouts import DEFAULT
from avial_lab.runtime.rank import shards, stores
from avial_lab.runtime.rank.holders import (
    Wanted,
    blocks,
    everywhere,
    on_one,
    rows,
    rows_of_chunks,
)

if TYPE_CHECKING:
    from avial_lab.ptensor.connection import Connection
    from avial_lab.ptensor.recording import Memory


class UniqueAll(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    values: Array
    inverse_indices: Array


class Library:
    """The part of a namespace that is library code."""

    if TYPE_CHECKING:
        connection: Connection
        _around: Callable[[Memory], Array]

        def __getattr__(self, name: str) -> Any: ...

    # -- steps -------------------------------------------------------------------------------------

    def whole(self, x: Any) -> Memory:
        """Its elements in a memory of their own."""
        array: Array = self.asarray(x)
        return (array if array._is_whole() else self.asarray(array, copy=True))._memory

    def mapped(
        self,
        function: str,
        operands: Sequence[Any],
        *,
        along: Sequence[int],
        places: Sequence[int | None] = (0,),
        options: Mapping[str, Any] | None = None,
        named: Sequence[str] = (),
    ) -> tuple[Array, ...]:
        """NumPy's `function` on operands of one shape, which treats each row along the dimensions
        `along` by itself: divided along the first other one, or on rank 0 where there is none. A
        result keeps the operand's dimensions at that place; `places` are by how many those in
        front of it become more (None: it has none of `along`, which were in front or behind). The
        last operands are those arguments that are `named`, and may end before `along`.
        """
        memories = [self.whole(x) for x in operands]
        first = memories[0]
        free = [d for d in range(len(first.shape)) if d not in along]
        # A dimension that has a row for each rank, if there is one.
        free.sort(key=lambda d: (first.shape[d] < self.connection.ranks, d))
        given = {"function": function, "options": dict(options or {}), "named": tuple(named)}
        if not free:
            made = self.connection.step(
                shards.on_first, [(m, on_one) for m in memories], len(places), **given
            )
            return tuple(self._around(memory) for memory in made)
        divided = free[0]
        gone = sum(1 for d in along if d < divided)
        found = [divided - gone if place is None else divided + place for place in places]
        made = self.connection.step(
            shards.mapped,
            [(memory, blocks(divided)) for memory in memories],
            len(places),
            divided=divided,
            places=tuple(found),
            **given,
        )
        return tuple(self._around(memory) for memory in made)

    def _stepped(
        self,
        function: shards.ShardFunction,
        operands: Sequence[tuple[Any, Wanted]],
        results: int = 1,
        /,
        **parameters: Any,
    ) -> tuple[Array, ...]:
        given = [(self.whole(x), wanted) for x, wanted in operands]
        made = self.connection.step(function, given, results, **parameters)
        return tuple(self._around(memory) for memory in made)

    def elementwise(self, function: str, *operands: Any) -> Array:
        """A function of NumPy's that is not compiled, element by element."""
        kind = np.result_type(*(x.dtype if isinstance(x, Array) else x for x in operands))
        arrays = [x if isinstance(x, Array) else self.asarray(x, dtype=kind) for x in operands]
        shape = np.broadcast_shapes(*(x.shape for x in arrays))
        (made,) = self.mapped(
            function, [self.broadcast_to(x, shape) for x in arrays], along=(), places=(0,)
        )
        return made

    # -- order -------------------------------------------------------------------------------------

    def sort(
        self, x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True
    ) -> Array:
        del stable  # it always is
        return self._in_order(x, axis, descending, order=False)

    def argsort(
        self, x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True
    ) -> Array:
        del stable
        return self._in_order(x, axis, descending, order=True)

    def _in_order(self, x: Array, axis: int, descending: bool, *, order: bool) -> Array:
        at = _axis(axis, x.ndim)
        if x.ndim == 1:
            (made,) = self._stepped(
                shards.sorted_flat, [(x, rows)], descending=descending, order=order
            )
            return made
        # Of equal elements the first stays the first: so it is sorted from behind.
        given = self.flip(x, axis=at) if descending else x
        (made,) = self.mapped(
            "argsort" if order else "sort", [given], along=(at,),
            options={"axis": at, "stable": True},
        )  # fmt: skip
        if not descending:
            return made
        turned = self.flip(made, axis=at)
        return self.subtract(x.shape[at] - 1, turned) if order else turned

    def searchsorted(
        self, x1: Array, x2: Any, /, *, side: str = "left", sorter: Array | None = None
    ) -> Array:
        if x1.ndim != 1:
            raise ValueError("searchsorted: the first array must be one-dimensional")
        if sorter is not None:
            x1 = self.take(x1, sorter)
        wanted = self.asarray(x2)
        flat = self.reshape(wanted, (-1,))
        (made,) = self._stepped(shards.looked_up, [(x1, everywhere), (flat, rows)], side=side)
        return self.reshape(made, wanted.shape)

    def unique_values(self, x: Array, /) -> Array:
        return self.unique_counts(x).values

    def unique_counts(self, x: Array, /) -> UniqueCounts:
        flat = self.reshape(x, (-1,))
        return UniqueCounts(*self._stepped(shards.unique_flat, [(flat, rows)], 2))

    def unique_inverse(self, x: Array, /) -> UniqueInverse:
        """By rank 0, which all elements are brought to."""
        values, _, inverse, _ = self.unique_all(x)
        return UniqueInverse(values, inverse)

    def unique_all(self, x: Array, /) -> UniqueAll:
        """By rank 0, which all elements are brought to."""
        flat = self.reshape(x, (-1,))
        values, first, inverse, counts = self._stepped(
            shards.on_first, [(flat, on_one)], 4, function="unique",
            options={"return_index": True, "return_inverse": True, "return_counts": True,
                     "equal_nan": False},
        )  # fmt: skip
        return UniqueAll(values, first, self.reshape(inverse, x.shape), counts)

    def argmax(self, x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
        return self._extreme_place("argmax", x, axis, keepdims)

    def argmin(self, x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
        return self._extreme_place("argmin", x, axis, keepdims)

    def _extreme_place(self, function: str, x: Array, axis: int | None, keepdims: bool) -> Array:
        at = 0 if axis is None else _axis(axis, x.ndim)
        extent = x.size if axis is None else x.shape[at]
        if not extent:
            raise ValueError(f"attempt to get {function} of an empty sequence")
        if not x.ndim:
            made = self.zeros((), dtype=np.int64)
        elif axis is not None and self._is_along_rows(x, at):
            shape, place = (*x.shape[:at], *x.shape[at + 1 :]), np.dtype(np.int64)
            recording = self.connection.record()
            made = self._of(
                recording.operation(
                    "reduce", [x.value()], shape, place, function=function, axes=(at,)
                )
            )
        elif axis is not None and x.ndim > 1:
            (made,) = self.mapped(function, [x], along=(at,), places=(None,), options={"axis": at})
        else:
            (made,) = self._stepped(
                shards.extreme_place, [(x, rows)], function=function, flat=axis is None
            )
        if not keepdims:
            return made
        return self.reshape(
            made, tuple(1 if axis is None or d == at else n for d, n in enumerate(x.shape))
        )

    def _is_along_rows(self, x: Array, axis: int) -> bool:
        """Whether what lies along that dimension is compiled, and lies with one rank."""
        if x.dtype.kind not in "iuf" or x.dtype == np.float16:
            return False
        return axis > 0 and x.value().dist == DEFAULT

    def nonzero(self, x: Array, /) -> tuple[Array, ...]:
        if not x.ndim:
            raise ValueError("nonzero needs a dimension: use atleast_1d")
        return self._stepped(shards.nonzero, [(x, rows)], x.ndim)

    def count_nonzero(self, x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
        flags = self.astype(x, bool, copy=False)
        return self.sum(flags, axis=axis, dtype=np.int64, keepdims=keepdims)

    # -- sums up to each element -------------------------------------------------------------------

    def cumulative_sum(
        self, x: Array, /, *, axis: int | None = None, dtype: Any = None,
        include_initial: bool = False,
    ) -> Array:  # fmt: skip
        return self._cumulated("add", x, axis, dtype, include_initial)

    def cumulative_prod(
        self, x: Array, /, *, axis: int | None = None, dtype: Any = None,
        include_initial: bool = False,
    ) -> Array:  # fmt: skip
        return self._cumulated("multiply", x, axis, dtype, include_initial)

    def cumsum(self, x: Array, axis: int | None = None, dtype: Any = None) -> Array:
        return self._numpy_cumulated("add", x, axis, dtype)

    def cumprod(self, x: Array, axis: int | None = None, dtype: Any = None) -> Array:
        return self._numpy_cumulated("multiply", x, axis, dtype)

    def _numpy_cumulated(self, function: str, x: Array, axis: int | None, dtype: Any) -> Array:
        given = self.reshape(x, (-1,)) if axis is None else x
        return self._cumulated(function, given, 0 if axis is None else axis, dtype, False)

    def _cumulated(
        self, function: str, x: Array, axis: int | None, dtype: Any, include_initial: bool
    ) -> Array:
        if axis is None and x.ndim != 1:
            raise ValueError("the axis has to be given for an array of more than one dimension")
        at = 0 if axis is None else _axis(axis, x.ndim)
        kind = np.dtype(dtype) if dtype is not None else np.zeros(0, x.dtype).sum().dtype
        if x.ndim == 1:
            (made,) = self._stepped(shards.cumulated, [(x, rows)], function=function, dtype=kind)
        else:
            (made,) = self.mapped(
                f"{function}.accumulate", [x], along=(at,), options={"axis": at, "dtype": kind}
            )
        if not include_initial:
            return made
        first = (*x.shape[:at], 1, *x.shape[at + 1 :])
        neutral = 0 if function == "add" else 1
        return self.concat([self.full(first, neutral, dtype=kind), made], axis=at)

    def diff(
        self, x: Array, /, *, axis: int = -1, n: int = 1, prepend: Array | None = None,
        append: Array | None = None,
    ) -> Array:  # fmt: skip
        at = _axis(axis, x.ndim)
        parts = [part for part in (prepend, x, append) if part is not None]
        made = self.concat(parts, axis=at) if len(parts) > 1 else x
        before = (slice(None),) * at
        for _ in range(n):
            later, earlier = made[(*before, slice(1, None))], made[(*before, slice(None, -1))]
            made = (
                self.not_equal(later, earlier)
                if made.dtype.kind == "b"
                else self.subtract(later, earlier)
            )
        return made

    # -- subscripts --------------------------------------------------------------------------------

    def take(self, x: Array, indices: Any, /, *, axis: int | None = None) -> Array:
        if axis is None and x.ndim > 1:
            raise ValueError("the axis has to be given for an array of more than one dimension")
        at = 0 if axis is None else _axis(axis, x.ndim)
        numbers: Array = self.asarray(indices)
        if numbers.dtype.kind not in "iu" and numbers.size:
            raise IndexError("arrays used as indices must be of integer type")
        flat = self.reshape(self.astype(numbers, np.int64, copy=False), (-1,))
        first = self.moveaxis(x, at, 0) if at else x
        (made,) = self._stepped(shards.taken_rows, [(first, rows), (flat, everywhere)])
        made = self.reshape(made, (*numbers.shape, *first.shape[1:]))
        if not at:
            return made
        places = tuple(range(numbers.ndim))
        return self.moveaxis(made, places, tuple(at + k for k in places))

    def take_along_axis(self, x: Array, indices: Array, /, *, axis: int = -1) -> Array:
        at = _axis(axis, x.ndim)
        if x.ndim == 1:
            return self.take(x, indices)
        others = np.broadcast_shapes(
            *((*a.shape[:at], 1, *a.shape[at + 1 :]) for a in (x, indices))
        )
        both = [
            self.broadcast_to(a, (*others[:at], a.shape[at], *others[at + 1 :]))
            for a in (x, indices)
        ]
        (made,) = self.mapped("take_along_axis", both, along=(at,), options={"axis": at})
        return made

    def compress(self, mask: Array, x: Array) -> Array:
        """`x[mask]`: where it is true, in order; every rank's stay where they are."""
        shape = x.shape[: mask.ndim]
        if mask.shape != shape:
            d = next(d for d, (a, b) in enumerate(zip(mask.shape, shape, strict=True)) if a != b)
            raise IndexError(
                f"boolean index did not match indexed array along axis {d}; size of axis is "
                f"{shape[d]} but size of corresponding boolean axis is {mask.shape[d]}"
            )
        (made,) = self._stepped(shards.compressed, [(x, rows), (mask, rows)])
        return made

    def at_subscripts(self, x: Array, key: tuple[Any, ...]) -> Array:
        """`x[key]`, where some of the subscripts are arrays. Asks for a truth value."""
        if len(key) == 1 and _is_truth(key[0]):
            return x[None] if bool(key[0]) else self.zeros((0, *x.shape), dtype=x.dtype)
        if len(key) == 1 and _is_mask(key[0]) and 0 < _ndim(key[0]) <= x.ndim:
            return self.compress(self.asarray(key[0]), x)
        found = _Subscripts.of(self, x, key)
        (made,) = self._stepped(
            shards.taken_rows, [(found.rows, rows), (found.numbers, everywhere)]
        )
        return found.placed(made)

    def set_at_subscripts(self, x: Array, key: tuple[Any, ...], value: Any) -> None:
        """`x[key] = value`, where some of the subscripts are arrays. Asks for a truth value."""
        if len(key) == 1 and _is_truth(key[0]):
            if bool(key[0]):
                x[...] = value
            return
        # OverflowError as NumPy's for a number of Python's that does not fit.
        given = value if isinstance(value, Array) else self.asarray(np.asarray(value, x.dtype))
        values = self.astype(given, x.dtype, copy=False)
        if len(key) == 1 and _is_mask(key[0]) and _ndim(key[0]) and not values.ndim:
            mask: Array = self.asarray(key[0])
            if mask.shape != x.shape[: mask.ndim]:
                self.compress(mask, x)  # says so
            mask = self.reshape(mask, (*mask.shape, *(1,) * (x.ndim - mask.ndim)))
            x[...] = self.where(mask, values, x)
            return
        found = _Subscripts.of(self, x, key)
        shape = found.shape()
        lost = values.ndim - len(shape)
        if lost > 0 and all(n == 1 for n in values.shape[:lost]):
            values = self.reshape(values, values.shape[lost:])
        try:
            values = self.broadcast_to(values, shape)
        except ValueError:
            raise ValueError(
                f"shape mismatch: value array of shape {values.shape} could not be broadcast to "
                f"indexing result of shape {shape}"
            ) from None
        (made,) = self._stepped(
            shards.put_rows,
            [(found.rows, rows), (found.numbers, everywhere), (found.flat(values), everywhere)],
        )
        found.back(made, x)

    # -- shapes ------------------------------------------------------------------------------------

    def moveaxis(self, x: Array, source: Any, destination: Any, /) -> Array:
        first = [_axis(a, x.ndim) for a in (source if isinstance(source, tuple) else (source,))]
        last = [
            _axis(a, x.ndim)
            for a in (destination if isinstance(destination, tuple) else (destination,))
        ]
        if len(first) != len(last):
            raise ValueError("source and destination must have the same number of elements")
        order = [d for d in range(x.ndim) if d not in first]
        for at, d in sorted(zip(last, first, strict=True)):
            order.insert(at, d)
        return self.permute_dims(x, tuple(order))

    def repeat(self, x: Array, repeats: Any, /, *, axis: int | None = None) -> Array:
        given = self.reshape(x, (-1,)) if axis is None else x
        at = 0 if axis is None else _axis(axis, x.ndim)
        times = np.asarray(repeats)
        return self.take(given, np.repeat(np.arange(given.shape[at]), times), axis=at)

    def tile(self, x: Array, repetitions: int | Sequence[int], /) -> Array:
        given = (repetitions,) if isinstance(repetitions, int) else tuple(repetitions)
        x = self.asarray(x)
        times = (1,) * (x.ndim - len(given)) + given
        shape = (1,) * (len(times) - x.ndim) + x.shape
        apart = self.reshape(x, tuple(n for extent in shape for n in (1, extent)))
        spread = self.broadcast_to(
            apart, tuple(n for t, extent in zip(times, shape, strict=True) for n in (t, extent))
        )
        return self.reshape(
            spread, tuple(t * extent for t, extent in zip(times, shape, strict=True)), copy=True
        )

    def meshgrid(self, *arrays: Array, indexing: str = "xy") -> list[Array]:
        if indexing not in ("xy", "ij"):
            raise ValueError("indexing is 'xy' or 'ij'")
        sizes = [a.size for a in arrays]
        order = list(range(len(arrays)))
        if indexing == "xy" and len(arrays) > 1:
            order[:2] = [1, 0]
        shape = tuple(sizes[k] for k in order)
        made: list[Array] = []
        for k, array in enumerate(arrays):
            at = order.index(k)
            line = tuple(array.size if d == at else 1 for d in range(len(arrays)))
            made.append(self.broadcast_to(self.reshape(array, line), shape).copy())
        return made

    # -- files -------------------------------------------------------------------------------------

    def load(self, path: str | os.PathLike[str], name: str = "") -> Array:
        """An array in a file, of which every rank reads its rows: .npy, or Zarr and HDF5 (".zarr",
        ".h5", ".hdf5") where their packages are there, of these the array of that name or the only
        one. Numbers of the other byte order are turned round.
        """
        place = _absolute(path)
        with stores.opened(place, name) as head:
            kind, shape = np.dtype(head.dtype).newbyteorder("="), tuple(head.shape)
            element_of(kind)
            if not shape:
                return self.asarray(np.array(head[()], kind))
        (made,) = self._stepped(shards.loaded, [], path=place, name=name, shape=shape, dtype=kind)
        return made

    def save(self, path: str | os.PathLike[str], x: Array, name: str = "", **options: Any) -> None:
        """To a file, of which every rank writes its rows. A .npy file is there when it is whole; as
        with NumPy's, a name without an ending that is known gets it. Zarr and HDF5, by their
        endings, get an array `name` ("data"), with the options of their functions (chunks, …).
        """
        place = _absolute(path)
        if stores.format_of(place) != stores.NPY:
            in_hdf5 = stores.format_of(place) == stores.HDF5
            self._write(place, x, name or ("data" if in_hdf5 else ""), options)
            return
        if name or options:
            raise TypeError("a .npy file is one array without a name or options")
        place += "" if place.endswith(".npy") else ".npy"
        folder, file = os.path.split(place)
        once = self.connection.once
        begun = once(lambda: tempfile.mkdtemp(prefix=f".{file}-", dir=folder))
        try:
            made = os.path.join(begun, file)
            self._write(made, x, "", options)
            once(lambda: os.replace(made, place))
        finally:
            once(lambda: shutil.rmtree(begun))

    def _write(self, place: str, x: Array, name: str, options: Mapping[str, Any]) -> None:
        """Of what is written at once, a chunk, no rank has a part."""
        once = self.connection.once
        at_once = once(lambda: stores.create(place, name, x.shape, x.dtype, options))
        if x.ndim:
            wanted = rows_of_chunks(at_once)
            self._stepped(shards.saved, [(x, wanted)], 0, path=place, name=name)
            return
        value = np.asarray(x)

        def write() -> None:
            with stores.opened(place, name, to_write=True) as whole:
                whole[()] = value

        once(write)


def _absolute(path: str | os.PathLike[str]) -> str:
    return os.path.abspath(os.fspath(path))


def _axis(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


def _is_mask(key: Any) -> bool:
    given = np.asarray(key) if isinstance(key, list | tuple) else key
    return getattr(given, "dtype", None) == np.dtype(bool)


def _is_truth(key: Any) -> bool:
    return isinstance(key, bool | np.bool_) or (_is_mask(key) and not _ndim(key))


def _ndim(key: Any) -> int:
    return key.ndim if isinstance(key, Array) else np.ndim(key)


class _Subscripts(NamedTuple):
    """A subscript with arrays in it, as numbers of rows: of the array with the dimensions that
    arrays subscript in front, and joined.

    rows: that array. numbers: which of its rows, flat. among: the shape of the arrays together; at:
    where their dimensions come to be. order: the dimensions of the part that basic subscripts take,
    in front of joining.
    """

    xp: Any
    part: Array
    order: tuple[int, ...]
    rows: Array
    numbers: Array
    among: tuple[int, ...]
    at: int

    @staticmethod
    def of(xp: Any, x: Array, key: tuple[Any, ...]) -> _Subscripts:
        keys: list[Any] = []
        for each in key:
            listed = isinstance(each, list | tuple)
            given = np.asarray(each, None if each else np.int64) if listed else each
            if _is_truth(given):
                raise IndexError("a truth value as a subscript is not supported: use xp.where")
            keys.extend(xp.nonzero(xp.asarray(given)) if _is_mask(given) else [given])
        taken = sum(1 for each in keys if each is not None and each is not Ellipsis)
        if taken > x.ndim:
            raise IndexError(
                f"too many indices for array: array is {x.ndim}-dimensional, but {taken} were "
                "indexed"
            )
        if not any(each is Ellipsis for each in keys):
            keys.append(Ellipsis)
        k = next(k for k, each in enumerate(keys) if each is Ellipsis)
        keys[k : k + 1] = [slice(None)] * (x.ndim - taken)
        advanced = [
            k for k, each in enumerate(keys) if each is not None and not isinstance(each, slice)
        ]
        part = x[tuple(slice(None) if k in advanced else each for k, each in enumerate(keys))]
        numbers = [_integers(keys[k]) for k in advanced]
        among = np.broadcast_shapes(*(each.shape for each in numbers))
        rest = [d for d in range(part.ndim) if d not in advanced]
        order = (*advanced, *rest)
        extents = [part.shape[d] for d in advanced]
        axes = [sum(each is not None for each in keys[:k]) for k in advanced]
        flat = xp.asarray(_joined(xp, numbers, extents, axes, among))
        joined = xp.reshape(
            xp.permute_dims(part, order), (math.prod(extents), *(part.shape[d] for d in rest))
        )
        adjacent = advanced == list(range(advanced[0], advanced[0] + len(advanced)))
        return _Subscripts(xp, part, order, joined, flat, among, advanced[0] if adjacent else 0)

    def shape(self) -> tuple[int, ...]:
        rest = self.rows.shape[1:]
        return (*rest[: self.at], *self.among, *rest[self.at :])

    def placed(self, made: Array) -> Array:
        """What was taken, with the arrays' dimensions where they come to be."""
        made = self.xp.reshape(made, (*self.among, *self.rows.shape[1:]))
        places = tuple(range(len(self.among)))
        if not self.at:
            return made
        return self.xp.moveaxis(made, places, tuple(self.at + k for k in places))

    def flat(self, values: Array) -> Array:
        """The other way round."""
        places = tuple(range(len(self.among)))
        if self.at:
            values = self.xp.moveaxis(values, tuple(self.at + k for k in places), places)
        return self.xp.reshape(values, (math.prod(self.among), *self.rows.shape[1:]))

    def back(self, made: Array, x: Array) -> None:
        """The rows to where they come from."""
        shape = tuple(self.part.shape[d] for d in self.order)
        inverse = tuple(int(d) for d in np.argsort(self.order))
        self.part[...] = self.xp.permute_dims(self.xp.reshape(made, shape), inverse)


def _integers(key: Any) -> Array | np.ndarray:
    """A subscript as an array of integers: where it is, or here."""
    given = key if isinstance(key, Array) else np.asarray(key)
    if given.dtype.kind not in "iu" and given.size:
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    return given if isinstance(given, Array) else given.astype(np.int64)


def _joined(
    xp: Any,
    numbers: Sequence[Any],
    extents: Sequence[int],
    axes: Sequence[int],
    shape: tuple[int, ...],
) -> Array | np.ndarray:
    """Subscripts of several dimensions as flat numbers of the elements of those, in C order. Those
    that are here stay here. axes: what the dimensions are called in an error.
    """
    here = all(isinstance(each, np.ndarray) for each in numbers)
    lib: Any = np if here else xp
    arrays = numbers if here else [xp.astype(xp.asarray(each), np.int64) for each in numbers]
    # All bounds are asked for before one is looked at: one run tells them.
    ends = [(lib.min(each), lib.max(each)) if each.size else (0, 0) for each in arrays]
    for (low, high), extent, axis, each in zip(ends, extents, axes, arrays, strict=True):
        for number in (int(low), int(high)):
            if each.size and not -extent <= number < extent:
                raise IndexError(
                    f"index {number} is out of bounds for axis {axis} with size {extent}"
                )
    flat: Any = None
    for each, extent in zip(arrays, extents, strict=True):
        positive = lib.where(lib.less(each, 0), lib.add(each, extent), each)
        flat = positive if flat is None else lib.add(lib.multiply(flat, extent), positive)
    return lib.reshape(lib.broadcast_to(flat, shape), (-1,))
