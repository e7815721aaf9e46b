"""What NumPy has and the array API has not: names, arguments by position, functions.

Arrays -> arrays. Most is made of the array API's functions, and computes where the arrays are. What
stands in `ON_ONE` is NumPy's own code on rank 0, where its operands are brought to: the bytes are
counted, and the results are there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from avial_lab.ptensor.arrays import Array, diagonal_of
from avial_lab.ptensor.numpy_calls import HANDED_ON, as_ufunc
from avial_lab.runtime.rank import shards
from avial_lab.runtime.rank.holders import on_one

if TYPE_CHECKING:
    from avial_lab.ptensor.connection import Connection
    from avial_lab.ptensor.recording import Memory

ON_ONE: Mapping[str, int] = {
    "average": 1, "bincount": 1, "block": 1, "choose": 1, "convolve": 1, "corrcoef": 1,
    "correlate": 1, "cov": 1, "delete": 1, "diagflat": 1, "digitize": 1, "ediff1d": 1,
    "einsum": 1, "histogram": 2, "histogram2d": 3, "histogram_bin_edges": 1, "i0": 1,
    "insert": 1, "interp": 1, "intersect1d": 1, "isin": 1, "kron": 1, "lexsort": 1, "median": 1,
    "nan_to_num": 1, "nanargmax": 1, "nanargmin": 1, "nancumprod": 1, "nancumsum": 1, "nanmax": 1,
    "nanmean": 1, "nanmedian": 1, "nanmin": 1, "nanpercentile": 1, "nanprod": 1, "nanquantile": 1,
    "nanstd": 1, "nansum": 1, "nanvar": 1, "packbits": 1, "pad": 1, "partition": 1,
    "argpartition": 1, "percentile": 1, "poly": 1, "polyadd": 1, "polyder": 1, "polyfit": 1,
    "polyint": 1, "polymul": 1, "polysub": 1, "polyval": 1, "ptp": 1, "quantile": 1,
    "ravel_multi_index": 1, "real_if_close": 1, "resize": 1, "roots": 1,
    "select": 1, "setdiff1d": 1, "setxor1d": 1, "sinc": 1, "trapezoid": 1, "tri": 1,
    "trim_zeros": 1, "union1d": 1, "unpackbits": 1, "unwrap": 1, "vander": 1,
    "linalg.cond": 1, "linalg.eig": 2, "linalg.eigvals": 1, "linalg.lstsq": 4,
    "linalg.multi_dot": 1, "linalg.tensorinv": 1, "linalg.tensorsolve": 1,
}  # fmt: skip
"""NumPy's functions that rank 0 computes, and the number of their results."""

_HERE = ("apply_along_axis", "bartlett", "blackman", "diag_indices", "frombuffer", "fromfile",
         "fromfunction", "fromiter", "fromstring", "genfromtxt", "geomspace", "hamming", "hanning",
         "indices", "kaiser", "loadtxt", "logspace", "mask_indices", "tril_indices", "triu_indices",
         "unravel_index")  # fmt: skip
"""That make arrays of numbers, of files, or by a function of Python's, as NumPy does, here."""

_READ_HERE = ("array2string", "array_repr", "array_str", "ndenumerate", "savetxt", "savez",
              "savez_compressed")  # fmt: skip
"""That show all elements: the array is brought here, which `xp.report()` counts."""

_BY_POSITION: Mapping[str, tuple[int, tuple[str, ...]]] = {
    **dict.fromkeys(("sum", "prod", "mean"), (1, ("axis", "dtype", "out", "keepdims"))),
    **dict.fromkeys(("min", "max", "any", "all"), (1, ("axis", "out", "keepdims"))),
    **dict.fromkeys(("var", "std"), (1, ("axis", "dtype", "out", "ddof", "keepdims"))),
    **dict.fromkeys(("argmax", "argmin"), (1, ("axis", "out", "keepdims"))),
    **dict.fromkeys(("flip", "concat", "concatenate", "stack"), (1, ("axis", "out", "dtype"))),
    **dict.fromkeys(("sort", "argsort"), (1, ("axis", "kind", "order"))),
    **dict.fromkeys(("tril", "triu"), (1, ("k",))),
    **dict.fromkeys(("zeros", "ones", "empty", "asarray", "zeros_like", "ones_like", "empty_like"),
                    (1, ("dtype", "order"))),
    **dict.fromkeys(("full", "full_like"), (2, ("dtype", "order"))),
    **dict.fromkeys(("roll", "repeat", "take", "take_along_axis"), (2, ("axis",))),
    **dict.fromkeys(("amax", "amin"), (1, ("axis", "out", "keepdims"))),
    "count_nonzero": (1, ("axis",)),
    "linspace": (3, ("endpoint",)),
    "searchsorted": (2, ("side", "sorter")),
    "tensordot": (2, ("axes",)),
    "eye": (2, ("k", "dtype")),
    "diff": (1, ("n", "axis")),
}  # fmt: skip
"""Operands that are given by position, and what NumPy also takes so behind them."""

_OF_ARRAYS = frozenset(
    {"sum", "prod", "mean", "min", "max", "any", "all", "var", "std", "argmax", "argmin", "flip",
     "sort", "argsort", "tril", "triu", "zeros_like", "ones_like", "empty_like", "full_like",
     "roll", "repeat", "take", "take_along_axis", "amax", "amin", "count_nonzero", "searchsorted",
     "tensordot", "diff"}
)  # fmt: skip

_NOTHING = {"kind": None, "order": None, "subok": False, "where": np._NoValue, "like": None}
"""Arguments that ask for nothing where they are these."""

_REDUCED_BY = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
    "logical_or": "any",
}  # fmt: skip

ALIASES = {
    "amax": "max", "amin": "min", "around": "round", "conjugate": "conj",
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift", "invert": "bitwise_invert", "fabs": "abs",
    "bitwise_not": "bitwise_invert", "true_divide": "divide", "asanyarray": "asarray",
    "ascontiguousarray": "asarray", "asfortranarray": "asarray", "asarray_chkfinite": "asarray",
}  # fmt: skip


def as_numpy_calls(xp: Any, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with NumPy's arguments, too: by position, `out`, `ddof`; lists as operands."""
    operands, names = _BY_POSITION[name]

    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        if name in _OF_ARRAYS and not args and "a" in given:
            args = (given.pop("a"),)
        if name in _OF_ARRAYS and args and not isinstance(args[0], Array):
            args = (xp.asarray(args[0]), *args[1:])
        given.update(zip(names, args[operands:], strict=False))
        out = given.pop("out", None)
        for key, nothing in _NOTHING.items():
            if key in given and (
                given[key] is nothing or key == "kind" or given[key] in ("C", "K")
            ):
                del given[key]
        if "ddof" in given:
            given["correction"] = given.pop("ddof")
        if name in ("mean", "var", "std", "concat", "concatenate", "stack") and "dtype" in given:
            kind = given.pop("dtype")
            if kind is not None and name in ("mean", "var", "std"):
                args = (xp.astype(args[0], kind, copy=False), *args[1:])
        if name in ("take", "repeat") and given.get("axis") is None and args[0].ndim > 1:
            args = (xp.reshape(args[0], (-1,)), *args[1:])
        made = function(*args[:operands], **given)
        if out is None:
            return made
        out[...] = made
        return out

    return call


def by_position() -> tuple[str, ...]:
    """The functions that `as_numpy_calls` is for."""
    return tuple(_BY_POSITION)


class NumpyNames:
    """The part of a namespace that the array API does not have."""

    if TYPE_CHECKING:
        connection: Connection
        _around: Callable[[Memory], Array]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("connection", "family", "device"):
            raise AttributeError(name)
        found = self._numpys(name)
        if found is None:
            raise AttributeError(
                f"{name} is not supported for arrays on ranks"
                + ("; numpy.asarray(x) brings one here first" if hasattr(np, name) else "")
            )
        return found

    def _numpys(self, name: str) -> Any:
        if name in HANDED_ON and hasattr(np, name):
            return getattr(np, name)
        if name in ALIASES:
            return getattr(self, ALIASES[name])
        if name in ON_ONE:
            return self.numpys(name)
        if name in _HERE:
            return self._made_here(getattr(np, name))
        if name in _READ_HERE:
            return self._read_here(getattr(np, name))
        if isinstance(ufunc := getattr(np, name, None), np.ufunc):
            return self._elementwise(name, ufunc)
        return None

    def numpys(self, name: str, results: int = 1) -> Callable[..., Any]:
        """NumPy's function of that name, computed by rank 0."""

        def function(*args: Any, **given: Any) -> Any:
            operands: list[Array] = []
            placed = [_without(each, operands) for each in args]
            named = {key: _without(each, operands) for key, each in given.items()}
            made = self.connection.step(
                shards.called_on_first,
                [(self.whole(x), on_one) for x in operands],
                ON_ONE.get(name, results),
                function=name,
                args=placed,
                named=named,
            )
            arrays = [self._around(memory) for memory in made]
            return tuple(arrays) if len(arrays) > 1 else arrays[0]

        function.__name__ = name.rpartition(".")[2]
        return function

    def _read_here(self, numpys: Callable[..., Any]) -> Callable[..., Any]:
        def function(*args: Any, **given: Any) -> Any:
            here = [np.asarray(each) if isinstance(each, Array) else each for each in args]
            named = {k: np.asarray(v) if isinstance(v, Array) else v for k, v in given.items()}
            return numpys(*here, **named)

        return function

    def _made_here(self, numpys: Callable[..., Any]) -> Callable[..., Any]:
        def function(*args: Any, **given: Any) -> Any:
            made = self._read_here(numpys)(*args, **given)
            return made if isinstance(made, tuple) else self.asarray(made)

        return function

    def apply_over_axes(self, func: Callable[..., Any], a: Any, axes: Any) -> Array:
        x: Array = self.asarray(a)
        for axis in (axes,) if isinstance(axes, int) else axes:
            made = func(x, axis)
            x = made if made.ndim == x.ndim else self.expand_dims(made, axis=axis)
        return x

    def vectorize(self, pyfunc: Callable[..., Any], **given: Any) -> Callable[..., Any]:
        """A function of Python's that is called for each element, here."""
        return self._made_here(np.vectorize(pyfunc, **given))

    def piecewise(self, x: Any, condlist: Any, funclist: Any, *args: Any, **given: Any) -> Array:
        array: Array = self.asarray(x)
        several = isinstance(condlist, list | tuple) and not isinstance(condlist[0], bool)
        conditions = [self.asarray(c, dtype=bool) for c in (condlist if several else [condlist])]
        if len(funclist) == len(conditions) + 1:
            among = self.any(self.stack(conditions), axis=0)
            conditions.append(self.logical_not(among))
        if len(funclist) != len(conditions):
            raise ValueError(
                f"with {len(conditions)} condition(s), either {len(conditions)} or "
                f"{len(conditions) + 1} functions are expected"
            )
        made = self.zeros_like(array)
        for condition, function in zip(conditions, funclist, strict=True):
            value = function(array[condition], *args, **given) if callable(function) else function
            made[condition] = value
        return made

    def _elementwise(self, name: str, ufunc: np.ufunc) -> Callable[..., Any]:
        def function(*args: Any) -> Any:
            if len(args) != ufunc.nin:
                raise TypeError(f"{name} takes {ufunc.nin} operands, not {len(args)}")
            if ufunc.nout == 1:
                return self.elementwise(name, *map(self.asarray, args))
            made = self.mapped(name, [self.asarray(a) for a in args], along=(), places=(0, 0))
            return tuple(made)

        return as_ufunc(self, function, ufunc, name)  # type: ignore[arg-type]

    def _with_methods(self, function: Any, name: str, ufunc: np.ufunc) -> Any:
        """NumPy's functions of two operands have functions themselves."""

        def outer(a: Any, b: Any) -> Array:
            x, y = self.asarray(a), self.asarray(b)
            return getattr(self, name)(self.reshape(x, (*x.shape, *(1,) * y.ndim)), y)

        def accumulate(array: Any, axis: int = 0) -> Array:
            x: Array = self.asarray(array)
            if x.ndim < 2:
                return self.numpys(f"{ufunc.__name__}.accumulate")(x)
            given = {"axis": axis % x.ndim}
            along = (given["axis"],)
            (made,) = self.mapped(f"{ufunc.__name__}.accumulate", [x], along=along, options=given)
            return made

        def reduce(array: Any, axis: Any = 0, keepdims: bool = False) -> Array:
            found = _REDUCED_BY.get(name)
            if found is None:
                numpys = self.numpys(f"{ufunc.__name__}.reduce")
                return numpys(self.asarray(array), axis=axis, keepdims=keepdims)
            return getattr(self, found)(self.asarray(array), axis=axis, keepdims=keepdims)

        def at(a: Array, indices: Any, b: Any) -> None:
            a[...] = self.numpys(f"{ufunc.__name__}.at")(a, indices, b)

        def reduceat(array: Any, indices: Any, axis: int = 0) -> Array:
            return self.numpys(f"{ufunc.__name__}.reduceat")(self.asarray(array), indices, axis)

        function.outer, function.accumulate = outer, accumulate
        function.reduce, function.at, function.reduceat = reduce, at, reduceat
        return function

    # -- comparing ---------------------------------------------------------------------------------

    def isclose(
        self, a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
    ) -> Array:
        x, y = self.asarray(a), self.asarray(b)
        near = self.less_equal(self.abs(x - y), atol + rtol * self.abs(y))
        found = self.logical_or(self.equal(x, y), self.logical_and(near, self.isfinite(y)))
        if equal_nan:
            both = self.logical_and(self.not_equal(x, x), self.not_equal(y, y))
            found = self.logical_or(found, both)
        return found

    def allclose(
        self, a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
    ) -> bool:
        return bool(self.all(self.isclose(a, b, rtol, atol, equal_nan)))

    def array_equal(self, a1: Any, a2: Any) -> bool:
        x, y = self.asarray(a1), self.asarray(a2)
        return x.shape == y.shape and bool(self.all(self.equal(x, y)))

    # -- shapes ------------------------------------------------------------------------------------

    def ravel(self, a: Any, order: str = "C") -> Array:
        """A view of what lies in that order."""
        x: Array = self.asarray(a)
        there = x.flags.f_contiguous if order == "F" else x.flags.c_contiguous
        return self.reshape(x, (-1,), order=order, copy=None if there else True)

    def copy(self, a: Any) -> Array:
        return self.asarray(a, copy=True)

    def swapaxes(self, a: Array, axis1: int, axis2: int) -> Array:
        order = list(range(a.ndim))
        order[axis1], order[axis2] = order[axis2], order[axis1]
        return self.permute_dims(a, tuple(order))

    def atleast_1d(self, *arrays: Any) -> Any:
        return self._at_least(1, arrays)

    def atleast_2d(self, *arrays: Any) -> Any:
        return self._at_least(2, arrays)

    def atleast_3d(self, *arrays: Any) -> Any:
        return self._at_least(3, arrays)

    def _at_least(self, dims: int, arrays: Sequence[Any]) -> Any:
        found: list[Array] = []
        for each in arrays:
            x: Array = self.asarray(each)
            if x.ndim < dims:
                behind = dims == 3 and x.ndim > 0
                front = (1,) * (dims - x.ndim - behind)
                x = self.reshape(x, (*front, *x.shape, *(1,) * behind))
            found.append(x)
        return found[0] if len(found) == 1 else found

    def vstack(self, tup: Sequence[Any]) -> Array:
        return self.concat([self.atleast_2d(each) for each in tup], axis=0)

    row_stack = vstack

    def hstack(self, tup: Sequence[Any]) -> Array:
        parts = [self.atleast_1d(each) for each in tup]
        return self.concat(parts, axis=0 if parts[0].ndim == 1 else 1)

    def dstack(self, tup: Sequence[Any]) -> Array:
        return self.concat([self.atleast_3d(each) for each in tup], axis=2)

    def column_stack(self, tup: Sequence[Any]) -> Array:
        arrays = [self.asarray(each) for each in tup]
        return self.concat([x if x.ndim > 1 else self.reshape(x, (-1, 1)) for x in arrays], axis=1)

    def append(self, arr: Any, values: Any, axis: int | None = None) -> Array:
        return self.concat([self.asarray(arr), self.asarray(values)], axis=axis)

    def array_split(self, ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
        x: Array = self.asarray(ary)
        length = x.shape[axis]
        if isinstance(indices_or_sections, int):
            each, more = divmod(length, indices_or_sections)
            sizes = [each + (k < more) for k in range(indices_or_sections)]
            ends = np.cumsum(sizes)[:-1].tolist()
        else:
            ends = [int(n) for n in indices_or_sections]
        before = (slice(None),) * (axis % x.ndim)
        cuts = zip([0, *ends], [*ends, length], strict=True)
        return [x[(*before, slice(low, high))] for low, high in cuts]

    def split(self, ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
        x: Array = self.asarray(ary)
        if isinstance(indices_or_sections, int) and x.shape[axis] % indices_or_sections:
            raise ValueError("array split does not result in an equal division")
        return self.array_split(x, indices_or_sections, axis)

    def hsplit(self, ary: Any, indices_or_sections: Any) -> list[Array]:
        x: Array = self.asarray(ary)
        return self.split(x, indices_or_sections, 0 if x.ndim == 1 else 1)

    def vsplit(self, ary: Any, indices_or_sections: Any) -> list[Array]:
        return self.split(ary, indices_or_sections, 0)

    def fliplr(self, m: Any) -> Array:
        return self.flip(self.asarray(m), axis=1)

    def flipud(self, m: Any) -> Array:
        return self.flip(self.asarray(m), axis=0)

    # -- matrices ----------------------------------------------------------------------------------

    def identity(self, n: int, dtype: Any = None) -> Array:
        return self.eye(n, dtype=dtype)

    def diag(self, v: Any, k: int = 0) -> Array:
        x: Array = self.asarray(v)
        if x.ndim == 2:
            return self.diagonal(x, k)
        n = x.shape[0] + abs(k)
        line = self.concat([x, self.zeros(abs(k), dtype=x.dtype)]) if k else x
        spread = line[:, None] if k >= 0 else line[None, :]
        return self.where(self.eye(n, k=k, dtype=bool), spread, self.zeros((), dtype=x.dtype))

    def fill_diagonal(self, a: Array, val: Any) -> None:
        if a.ndim != 2:
            raise ValueError("fill_diagonal of arrays on ranks is for two dimensions")
        line = diagonal_of(a, 0, 0, 1)
        given: Array = self.asarray(val, dtype=a.dtype)
        line[...] = self.resize(given, line.shape) if given.ndim else given

    def diagonal(self, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """A view that nobody writes to."""
        made = diagonal_of(self.asarray(a), offset, axis1, axis2)
        made._is_fixed = True
        return made

    def trace(
        self, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None
    ) -> Array:
        return self.sum(self.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)

    def rot90(self, m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
        x, (first, second) = self.asarray(m), axes
        if not all(-x.ndim <= axis < x.ndim for axis in axes) or first % x.ndim == second % x.ndim:
            raise ValueError(f"Axes={axes} are not two of an array of ndim={x.ndim}")
        if k % 4 == 2:
            return self.flip(x, axis=axes)
        if k % 4 == 1:
            return self.swapaxes(self.flip(x, axis=second), first, second)
        return self.flip(self.swapaxes(x, first, second), axis=second) if k % 4 else x[...]

    def dot(self, a: Any, b: Any) -> Array:
        x, y = self.asarray(a), self.asarray(b)
        if not x.ndim or not y.ndim:
            return self.multiply(x, y)
        if y.ndim <= 2:
            return self.matmul(x, y)
        return self.tensordot(x, y, axes=((x.ndim - 1,), (y.ndim - 2,)))

    def inner(self, a: Any, b: Any) -> Array:
        x, y = self.asarray(a), self.asarray(b)
        if not x.ndim or not y.ndim:
            return self.multiply(x, y)
        return self.tensordot(x, y, axes=((x.ndim - 1,), (y.ndim - 1,)))

    def vdot(self, a: Any, b: Any) -> Array:
        return self.vecdot(self.ravel(a), self.ravel(b))

    def outer(self, a: Any, b: Any) -> Array:
        return self.multiply(self.ravel(a)[:, None], self.ravel(b)[None, :])

    def cross(self, a: Any, b: Any) -> Array:
        return self.linalg.cross(self.asarray(a), self.asarray(b))

    # -- numbers -----------------------------------------------------------------------------------

    def angle(self, z: Any) -> Array:
        x = self.asarray(z)
        return self.atan2(self.imag(x), self.real(x))

    def isneginf(self, x: Any) -> Array:
        return self.equal(self.asarray(x), -math.inf)

    def isposinf(self, x: Any) -> Array:
        return self.equal(self.asarray(x), math.inf)

    def iscomplex(self, x: Any) -> Array:
        return self.not_equal(self.imag(self.asarray(x)), 0)

    def isreal(self, x: Any) -> Array:
        return self.equal(self.imag(self.asarray(x)), 0)

    def gradient(self, f: Any, *varargs: Any, axis: Any = None) -> Any:
        """Central differences, one-sided at the ends; of points with a distance, or at places."""
        x: Array = self.asarray(f)
        given = axis if isinstance(axis, tuple) else (axis,)
        axes = tuple(range(x.ndim)) if axis is None else given
        steps = varargs or (1.0,)
        steps = steps * len(axes) if len(steps) == 1 else steps
        if len(steps) != len(axes):
            raise TypeError("invalid number of arguments")
        made = [self._slope(x, a, h) for a, h in zip(axes, steps, strict=True)]
        return made[0] if len(made) == 1 else tuple(made)

    def _slope(self, x: Array, axis: int, step: Any) -> Array:
        places = None
        if not isinstance(step, int | float | np.generic) and getattr(step, "ndim", 1):
            places = np.diff(np.asarray(step, np.float64))
            if places.shape != (x.shape[axis] - 1,):
                raise ValueError(
                    "when 1d, distances must match the length of the corresponding dimension"
                )
            if (places == places[0]).all():
                step, places = places[0], None
        wide = x if x.dtype.kind in "fc" else self.astype(x, np.float64)
        line = self.moveaxis(wide, axis, 0)
        made = self.zeros_like(line)
        if places is None:
            made[1:-1] = (line[2:] - line[:-2]) / (2.0 * float(step))
            first = last = step
        else:
            first, last = places[0], places[-1]
            before, after = (d.reshape(-1, *(1,) * (x.ndim - 1)) for d in (places[:-1], places[1:]))
            a = self.asarray(-after / (before * (before + after)))
            b = self.asarray((after - before) / (before * after))
            c = self.asarray(before / (after * (before + after)))
            made[1:-1] = a * line[:-2] + b * line[1:-1] + c * line[2:]
        made[0] = (line[1] - line[0]) / first
        made[-1] = (line[-1] - line[-2]) / last
        return self.moveaxis(made, 0, axis)

    # -- places ------------------------------------------------------------------------------------

    def flatnonzero(self, a: Any) -> Array:
        return self.nonzero(self.ravel(a))[0]

    def argwhere(self, a: Any) -> Array:
        return self.stack(self.nonzero(self.asarray(a)), axis=1)

    def extract(self, condition: Any, arr: Any) -> Array:
        return self.compress(self.ravel(condition), self.ravel(arr))

    def ix_(self, *args: Any) -> tuple[Any, ...]:
        lines = [each if isinstance(each, Array) else np.asarray(each) for each in args]
        count = len(lines)
        return tuple(
            line.reshape(tuple(-1 if d == k else 1 for d in range(count)))
            for k, line in enumerate(lines)
        )

    def unique(
        self, ar: Any, return_index: bool = False, return_inverse: bool = False,
        return_counts: bool = False, axis: int | None = None,
    ) -> Any:  # fmt: skip
        x: Array = self.asarray(ar)
        if axis is not None:
            asked = return_index, return_inverse, return_counts
            return self.numpys("unique", 1 + sum(asked))(x, *asked, axis=axis)
        if not return_index and not return_inverse:
            values, counts = self.unique_counts(x)
            return (values, counts) if return_counts else values
        values, first, inverse, counts = self.unique_all(x)
        more = zip(
            (return_index, return_inverse, return_counts), (first, inverse, counts), strict=True
        )
        return (values, *(each for asked, each in more if asked))

    # -- assignments -------------------------------------------------------------------------------

    def copyto(self, dst: Array, src: Any, casting: str = "same_kind", where: Any = True) -> None:
        given: Array = self.asarray(src)
        weak = not isinstance(src, Array | np.ndarray | np.generic)
        if not weak and not np.can_cast(given.dtype, dst.dtype, casting):  # type: ignore[arg-type]
            raise TypeError(
                f"Cannot cast array data from {given.dtype!r} to {dst.dtype!r} according to the "
                f"rule '{casting}'"
            )
        dst[...] = given if where is True else self.where(self.asarray(where), given, dst)

    def putmask(self, a: Array, mask: Any, values: Any) -> None:
        """As NumPy's, for values of the array's shape, or one."""
        given: Array = self.asarray(values)
        if given.shape not in ((), (1,), a.shape):
            raise TypeError("putmask takes one value, or as many as the array has")
        self.copyto(a, self.astype(given, a.dtype), where=self.asarray(mask))

    def put(self, a: Array, ind: Any, v: Any) -> None:
        a.flat[ind] = v

    @property
    def c_(self) -> _Columns:
        return _Columns(self)

    @property
    def r_(self) -> _Rows:
        return _Rows(self)

    @property
    def mgrid(self) -> _Grid:
        return _Grid(self)

    @property
    def lib(self) -> _Lib:
        return _Lib(self)

    @property
    def ogrid(self) -> _OpenGrid:
        return _OpenGrid(self)


class _Columns:
    """`xp.c_[a, b]`: beside each other."""

    def __init__(self, xp: Any) -> None:
        self._xp = xp

    def __getitem__(self, key: Any) -> Array:
        return self._xp.column_stack([_range(each) for each in _several(key)])


class _Rows(_Columns):
    """`xp.r_[a, b, 0:4]`: one behind the other."""

    def __getitem__(self, key: Any) -> Array:
        return self._xp.concat([self._xp.atleast_1d(_range(each)) for each in _several(key)])


class _Grid(_Columns):
    """`xp.mgrid[0:3, 0:4]`."""

    def __getitem__(self, key: Any) -> Array:
        return self._xp.asarray(np.mgrid[key])


class _OpenGrid(_Columns):
    """`xp.ogrid[0:3, 0:4]`: each along its own dimension."""

    def __getitem__(self, key: Any) -> Any:
        made = np.ogrid[key]
        if isinstance(made, np.ndarray):
            return self._xp.asarray(made)
        return tuple(map(self._xp.asarray, made))


class _Lib:
    """`xp.lib.stride_tricks.sliding_window_view`."""

    def __init__(self, xp: Any) -> None:
        self._xp = xp

    @property
    def stride_tricks(self) -> _Lib:
        return self

    def sliding_window_view(self, x: Any, window_shape: Any, axis: Any = None) -> Array:
        """As NumPy's: windows behind the places where they begin."""
        array = self._xp.asarray(x)
        sizes = window_shape if isinstance(window_shape, tuple | list) else (window_shape,)
        axes = range(array.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        if len(sizes) != len(axes):
            raise ValueError("window_shape and axis have to have as many entries")
        dims = array.ndim + len(sizes)

        def along(dim: int, extent: int) -> np.ndarray:
            return np.arange(extent).reshape([extent if d == dim else 1 for d in range(dims)])

        left = list(array.shape)
        inside: list[Any] = [0] * array.ndim
        for k, (size, at) in enumerate(zip(sizes, axes, strict=True)):
            left[at] -= size - 1
            if size < 0 or left[at] < 1:
                raise ValueError("window shape cannot be larger than input array shape")
            inside[at] = inside[at] + along(array.ndim + k, size)
        made = array[tuple(along(d, n) + inside[d] for d, n in enumerate(left))]
        made._is_fixed = True
        return self._xp._looked_at(array, made, "windows of the array are looked at: copy() them")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"lib.{name} is not supported for arrays on ranks")


def _several(key: Any) -> Sequence[Any]:
    return key if isinstance(key, tuple) else (key,)


def _range(part: Any) -> Any:
    return np.r_[part] if isinstance(part, slice) else part


def _without(given: Any, operands: list[Array]) -> Any:
    """An argument whose arrays are only named; they come behind the operands."""
    if isinstance(given, Array):
        operands.append(given)
        return shards.Place(len(operands) - 1)
    if isinstance(given, list | tuple):
        return type(given)([_without(each, operands) for each in given])
    return given
