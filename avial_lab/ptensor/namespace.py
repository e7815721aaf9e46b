"""The functions on arrays, by the names of the array API standard (2024.12) and NumPy's.

Arrays, numbers -> arrays that are recorded. dtypes are NumPy's own objects, and what a result's is
NumPy itself is asked; shapes are checked when an operation is recorded, at the caller's line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from avial_lab.core.array_functions import BINARY, UNARY
from avial_lab.core.device_arrays import device_array, is_on_device
from avial_lab.ptensor.algebra import Linalg
from avial_lab.ptensor.aliases import (
    Alias,
    Derive,
    Restore,
    link,
    reshaped_strides,
    through_ones,
)
from avial_lab.ptensor.arrays import MOST_DIMENSIONS, Array, refuse_dimensions
from avial_lab.ptensor.connection import Connection
from avial_lab.ptensor.devices import DEFAULT, DEVICES, GPU, MixedArrays, checked, follow
from avial_lab.ptensor.divisions import watched_division
from avial_lab.ptensor.elements import DTYPES, element_of, refuse_masked
from avial_lab.ptensor.fourier import Fft
from avial_lab.ptensor.library import Library
from avial_lab.ptensor.memory_use import MemoryUse
from avial_lab.ptensor.numpy_calls import as_ufunc
from avial_lab.ptensor.numpy_names import ON_ONE, NumpyNames, as_numpy_calls, by_position
from avial_lab.ptensor.random_numbers import Random
from avial_lab.ptensor.recording import Memory, Recording, Value, whole_part
from avial_lab.runtime.native.device_values import fetched

if TYPE_CHECKING:
    from avial_lab.program.reference_run import OneProcess
    from avial_lab.runtime.launch.cluster import Cluster
    from avial_lab.runtime.rank.own_ranks import OwnRanks

_LIBRARY = ("hypot", "logaddexp", "nextafter", "signbit", "fmax", "fmin", "cbrt", "exp2")
"""Elementwise functions that NumPy computes on each rank's part."""

_COMPARING = frozenset({"less", "less_equal", "greater", "greater_equal"})
_ORDERING = _COMPARING | {"maximum", "minimum"}
_LOGICAL = {"logical_and": "bitwise_and", "logical_or": "bitwise_or", "logical_xor": "bitwise_xor"}
_COMPLEX = frozenset(
    {"abs", "conj", "exp", "expm1", "log", "logical_not", "negative", "positive",
     "sqrt", "square", "tan", "tanh"}
)  # fmt: skip
_OF_BOTH_PARTS = {"isnan": "logical_or", "isinf": "logical_or", "isfinite": "logical_and"}
"""What is asked of complex numbers by their parts, and how the answers are joined."""


class NamespaceInfo:
    """What `__array_namespace_info__()` is asked for."""

    def capabilities(self) -> dict[str, Any]:
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": MOST_DIMENSIONS,
        }

    def default_device(self) -> str:
        return DEFAULT

    def devices(self) -> list[str]:
        return list(DEVICES)

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        checked(DEFAULT if device is None else device)
        kinds = {"real floating": "float64", "complex floating": "complex128"}
        kinds |= {"integral": "int64", "indexing": "int64"}
        return {name: np.dtype(kind) for name, kind in kinds.items()}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        checked(DEFAULT if device is None else device)
        standard = {name: np.dtype(name) for name in DTYPES if np.dtype(name) != np.float16}
        if kind is None:
            return standard
        return {name: dtype for name, dtype in standard.items() if np.isdtype(dtype, kind)}


@dataclass(frozen=True)
class FloatInfo:
    """NumPy's, whose numbers are Python's, as the standard wants them."""

    _numpys: np.finfo

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._numpys, name)
        return float(found) if isinstance(found, np.floating) else found

    def __repr__(self) -> str:
        return repr(self._numpys)


class Namespace(NumpyNames, Library):
    """`xp`: the array API on the engines of one cluster.

    Arrays are divided over all ranks in blocks of the first dimension, where creators are not told
    otherwise (`dist`). A function runs where its operands' elements are; what it makes lies as an
    operand of the same shape where it is not compiled, else in rows.
    """

    pi, e, inf, nan, newaxis = math.pi, math.e, math.inf, math.nan, None
    __array_api_version__ = "2024.12"
    __name__ = "avial_lab.ptensor"

    def __init__(self, cluster: Cluster | OneProcess | OwnRanks) -> None:
        self._set_up(Connection(cluster))

    def _set_up(self, connection: Connection, family: dict[str, Namespace] | None = None) -> None:
        """family: the namespaces of this place, by their devices."""
        self.connection = connection
        self.device = connection.device
        self.family = {} if family is None else family
        self.family[self.device] = self
        self.plain: dict[str, Callable[..., Array]] = {}
        """Functions of two operands that are this namespace's arrays, or numbers."""
        for name in DTYPES:
            setattr(self, name, np.dtype(name).type)  # they are called, too: np.uint8(250)
        for name in (*UNARY, *BINARY, *_LIBRARY):
            setattr(self, name, self._ufunc(name))
        self.linalg, self.fft, self.random = Linalg(self), Fft(self), Random(self)
        for name in ON_ONE:
            where, _, last = name.rpartition(".")
            if where:
                setattr(getattr(self, where), last, self.numpys(name))
        self.rint, self.round = self.round, partial(_rounded, self.round)
        for name in by_position():
            setattr(self, name, as_numpy_calls(self, name, getattr(self, name)))
        self.array = self.asarray
        for path in ("linalg", "fft"):
            follow(self, getattr(self, path), path, ())
        follow(self, self, "", _INNER)
        self.absolute, self.power, self.mod = self.abs, self.pow, self.remainder

    def at(self, device: str) -> Namespace:
        """The same of another device of this place."""
        if checked(device) not in self.family:
            made = Namespace.__new__(Namespace)
            made._set_up(Connection(self.connection.cluster, device=device), self.family)
        return self.family[device]

    def __repr__(self) -> str:
        return f"<arrays: {self.connection.place}>"

    @property
    def ranks(self) -> int:
        return self.connection.ranks

    def sync(self) -> None:
        """Run what is recorded."""
        for each in self.family.values():
            each.connection.run()

    def report(self) -> dict[str, int]:
        """How often what was recorded has been run, of these without compiling it, and compiled;
        steps of library code, how often an array was brought here, and how many bytes; messages and
        bytes between ranks, as the runs counted them; bytes copied to GPUs and from them.
        """
        known = [each.connection for each in self.family.values()]
        names = (
            "runs", "interpreted", "compiled", "steps", "gathers", "gathered_bytes", "messages",
            "bytes_moved", "copied_bytes",
        )  # fmt: skip
        return {name: sum(getattr(each, name) for each in known) for name in names}

    def memory(self) -> MemoryUse:
        """What arrays take of each rank's memory, now and at most; runs what is recorded."""
        self.sync()
        known = [each.connection for each in self.family.values()]
        self.connection.meet("asks for memory")
        return MemoryUse.of([each.held for each in known], self.connection.residence.taken_bytes())

    # -- creation ----------------------------------------------------------------------------------

    def asarray(
        self,
        obj: Any,
        /,
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        dist: Any = None,
    ) -> Array:
        """The array with its elements on the ranks; one that is there already is itself. What
        another library has on a GPU (CuPy, PyTorch, JAX, Numba) is used where it lies, on device
        "cuda:0", where that and the only rank are this process's; else it is copied, once it is
        ready. What is recorded of it reads it when it runs: `sync()` before it changes.
        """
        if isinstance(obj, Array) and obj._xp is not self:
            obj, copy = self._brought(obj), False
        if isinstance(obj, Array):
            made = obj if dtype is None else self.astype(obj, dtype, copy=False)
            if copy and made is obj:
                made = self._of(made.value())
            return self._placed(made, dist)
        if is_on_device(obj):
            given = device_array("obj", obj)
            there = self.at(DEFAULT if device == DEFAULT else GPU)
            same = dtype is None or np.dtype(dtype) == given.dtype
            if there.connection.adopts(given) and (same or copy is not False):
                element_of(given.dtype)
                made = there._around(there.connection.adopt(given, copy=bool(copy)))
                return made if same else there.astype(made, dtype)
            if copy is not False:
                obj = fetched(given)
        if copy is False:
            raise ValueError("what is here has to be copied to the ranks")
        if isinstance(obj, list | tuple) and _holds_arrays(obj):
            made = self.stack([self.asarray(each) for each in obj])
            return self.asarray(made, dtype=dtype, dist=dist)
        refuse_masked(obj)
        array = np.asarray(obj, dtype=dtype)
        element_of(array.dtype)
        refuse_dimensions(array.ndim)
        made = self._around(self.connection.put(np.ascontiguousarray(array).reshape(array.shape)))
        return self._placed(made, dist)

    @staticmethod
    def _placed(made: Array, dist: Any) -> Array:
        return made if dist is None else made.redistribute(dist)

    def from_local(self, part: Any, /) -> Array:
        """Of a script under mpiexec: what each rank has, one behind the other along the first
        dimension; nothing moves.
        """
        array = np.asarray(part)
        element_of(array.dtype)
        return self._around(self.connection.join(array))

    def full(
        self,
        shape: Any,
        fill_value: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        dist: Any = None,
    ) -> Array:
        del device  # `follow` has gone to it
        kind = np.dtype(dtype) if dtype is not None else np.asarray(fill_value).dtype
        return self._placed(self._filled(_shape(shape), fill_value, kind), dist)

    def zeros(
        self, shape: Any, *, dtype: Any = None, device: Any = None, dist: Any = None
    ) -> Array:
        del device  # `follow` has gone to it
        return self._placed(self._filled(_shape(shape), 0, np.dtype(dtype or np.float64)), dist)

    def ones(self, shape: Any, *, dtype: Any = None, device: Any = None, dist: Any = None) -> Array:
        del device  # `follow` has gone to it
        return self._placed(self._filled(_shape(shape), 1, np.dtype(dtype or np.float64)), dist)

    def empty(
        self, shape: Any, *, dtype: Any = None, device: Any = None, dist: Any = None
    ) -> Array:
        """Zeros: what is undefined could differ from rank to rank."""
        del device  # `follow` has gone to it
        return self.zeros(shape, dtype=dtype, dist=dist)

    def full_like(
        self, x: Array, /, fill_value: Any, *, dtype: Any = None, device: Any = None
    ) -> Array:
        del device  # `follow` has gone to it
        return self._filled(x.shape, fill_value, np.dtype(dtype or x.dtype))

    def zeros_like(self, x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
        del device  # `follow` has gone to it
        return self.full_like(x, 0, dtype=dtype)

    def ones_like(self, x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
        del device  # `follow` has gone to it
        return self.full_like(x, 1, dtype=dtype)

    def empty_like(self, x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
        del device  # `follow` has gone to it
        return self.zeros_like(x, dtype=dtype)

    def arange(
        self,
        start: float,
        /,
        stop: float | None = None,
        step: float = 1,
        *,
        dtype: Any = None,
        device: Any = None,
        dist: Any = None,
    ) -> Array:
        """`start + k * step`, as NumPy computes it."""
        del device  # `follow` has gone to it
        if dtype is not None:
            element_of(np.dtype(dtype))
        start, stop, step = _number(start), _number(stop), _number(step)
        first, end = (0, start) if stop is None else (start, stop)
        kind = (
            np.dtype(dtype)
            if dtype is not None
            else np.result_type(np.asarray(first), np.asarray(end), np.asarray(step))
        )
        count = max(math.ceil((end - first) / step), 0)
        # NumPy takes the difference of the first two elements in the array's type for the step.
        exact = (
            np.arange(first, end, step, dtype=kind)[:2]
            if count < 1 << 20
            else np.array([first, first + step], kind)
        )
        origin = exact[0] if len(exact) else kind.type(0)
        delta = exact[1] - exact[0] if len(exact) > 1 else kind.type(0)
        recording = self.connection.record()
        place = recording.cast(self._index((count,), 0), kind)
        made = self._arithmetic("add", self._arithmetic("multiply", place, delta), origin)
        return self._placed(self._of(made), dist)

    def linspace(
        self, start: float, stop: float, /, num: int = 50, *, dtype: Any = None, device: Any = None,
        endpoint: bool = True, dist: Any = None,
    ) -> Array:  # fmt: skip
        """`start + k * step`, the last one exactly `stop`, as NumPy computes it."""
        start, stop = _number(start), _number(stop)
        del device  # `follow` has gone to it
        parts = num - 1 if endpoint else num
        kind = np.dtype(dtype or np.result_type(float, np.asarray(start), np.asarray(stop)))
        step = (stop - start) / parts if parts > 0 else math.nan
        place = self.connection.record().cast(self._index((num,), 0), np.dtype(np.float64))
        if parts > 0:
            moved = self._arithmetic("multiply", place, float(step))
        else:
            moved = self._arithmetic("multiply", place, float(stop - start))
        points = self._of(self._arithmetic("add", moved, float(start)))
        if endpoint and num > 1:
            points[-1] = float(stop)
        return self._placed(self.astype(points, kind, copy=False), dist)

    def eye(
        self,
        n_rows: int,
        n_cols: int | None = None,
        /,
        *,
        k: int = 0,
        dtype: Any = None,
        device: Any = None,
        dist: Any = None,
    ) -> Array:
        del device  # `follow` has gone to it
        shape = (n_rows, n_rows if n_cols is None else n_cols)
        moved = self._arithmetic("add", self._index(shape, 0), k)
        same = self.connection.record().operation(
            "binary", [moved, self._index(shape, 1)], shape, np.dtype(bool), function="equal"
        )
        made = self._of(self.connection.record().cast(same, np.dtype(dtype or np.float64)))
        return self._placed(made, dist)

    def tril(self, x: Array, /, *, k: int = 0) -> Array:
        return self._triangle(x, k, "less_equal")

    def triu(self, x: Array, /, *, k: int = 0) -> Array:
        return self._triangle(x, k, "greater_equal")

    # -- types -------------------------------------------------------------------------------------

    def astype(self, x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
        del device  # `follow` has gone to it
        kind = np.dtype(dtype)
        element_of(kind)
        if not isinstance(x, Array):
            x = self.asarray(x)  # of code that got it of NumPy's functions
        x = x if x._xp is self else self._brought(x)
        if kind == x.dtype:
            return self._of(x.value()) if copy else x
        if x.dtype.kind == "c" and kind.kind != "c":
            raise TypeError(f"casting {x.dtype} to {kind} loses the imaginary part: use xp.real(x)")
        return self._of(self.connection.record().cast(x.value(), kind))

    def result_type(self, *arrays_and_dtypes: Any) -> np.dtype:
        return np.result_type(*(a.dtype if isinstance(a, Array) else a for a in arrays_and_dtypes))

    def can_cast(self, from_: Any, to: Any, /) -> bool:
        return np.can_cast(from_.dtype if isinstance(from_, Array) else from_, to)

    def isdtype(self, dtype: Any, kind: Any) -> bool:
        return np.isdtype(np.dtype(dtype), kind)

    def finfo(self, type: Any, /) -> FloatInfo:
        return FloatInfo(np.finfo(type.dtype if isinstance(type, Array) else type))

    def iinfo(self, type: Any, /) -> np.iinfo:
        return np.iinfo(type.dtype if isinstance(type, Array) else type)

    # -- elementwise -------------------------------------------------------------------------------

    def where(self, condition: Any, x1: Any = None, x2: Any = None, /) -> Any:
        if x1 is None and x2 is None:
            return self.nonzero(self.asarray(condition))
        x1, x2 = (self.asarray(x) if isinstance(x, list | tuple) else x for x in (x1, x2))
        kind = np.result_type(*(_weak(each) for each in (x1, x2)))
        left, right = (self.value_of(each, kind) for each in (x1, x2))
        recording = self.connection.record()
        flag = recording.cast(self.value_of(condition, np.dtype(bool)), np.dtype(bool))
        shape = np.broadcast_shapes(flag.shape, left.shape, right.shape)
        operands = [flag, recording.cast(left, kind), recording.cast(right, kind)]
        return self._of(recording.operation("where", operands, shape, kind))

    def clip(self, x: Array, /, min: Any = None, max: Any = None) -> Array:
        found = x if min is None else self.maximum(x, min)
        found = found if max is None else self.minimum(found, max)
        return self.astype(found, x.dtype, copy=False)

    def real(self, x: Array, /) -> Array:
        """A view."""
        if x.dtype.kind != "c":
            return x
        return self._complex_part(x, "real", lambda after, other: (after, other), "imag")

    def imag(self, x: Array, /) -> Array:
        """A view; of real numbers zeros, which nobody writes to."""
        if x.dtype.kind == "c":
            return self._complex_part(x, "imag", lambda after, other: (other, after), "real")
        made = self.zeros_like(x)
        made._is_fixed = True
        return made

    # -- reductions --------------------------------------------------------------------------------

    def sum(
        self, x: Array, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False
    ) -> Array:
        kind = np.dtype(dtype) if dtype is not None else _summed(x.dtype)
        return self._reduced("sum", x, axis, kind, keepdims)

    def prod(
        self, x: Array, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False
    ) -> Array:
        kind = np.dtype(dtype) if dtype is not None else _summed(x.dtype)
        return self._reduced("prod", x, axis, kind, keepdims)

    def min(self, x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
        return self._extreme("min", x, axis, keepdims)

    def max(self, x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
        return self._extreme("max", x, axis, keepdims)

    def any(self, x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
        return self._reduced("any", x, axis, np.dtype(bool), keepdims)

    def all(self, x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
        return self._reduced("all", x, axis, np.dtype(bool), keepdims)

    def mean(self, x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
        kind = x.dtype if x.dtype.kind in "fc" else np.dtype(np.float64)
        wide = np.dtype(np.float32) if kind == np.float16 else kind
        total = self._reduced("sum", x, axis, wide, keepdims)
        terms = math.prod(x.shape[a] for a in _axes(axis, x.ndim))
        return self.astype(self.divide(total, float(terms)), kind, copy=False)

    def var(
        self, x: Array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
    ) -> Array:
        """The mean of the squares of the distances from the mean (two passes)."""
        kind = x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)
        if x.dtype.kind == "c":
            raise TypeError("var of complex numbers is not supported")
        wide = np.dtype(np.float32) if kind == np.float16 else kind
        given = self.astype(x, wide, copy=False)
        apart = self.subtract(given, self.mean(given, axis=axis, keepdims=True))
        total = self._reduced("sum", self.square(apart), axis, wide, keepdims)
        terms = math.prod(x.shape[a] for a in _axes(axis, x.ndim))
        return self.astype(
            self.divide(total, max(float(terms - correction), 0.0)), kind, copy=False
        )

    def std(
        self, x: Array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
    ) -> Array:
        return self.sqrt(self.var(x, axis=axis, correction=correction, keepdims=keepdims))

    # -- linear algebra ----------------------------------------------------------------------------

    def matmul(self, x1: Array, x2: Array, /) -> Array:
        left, right = (self.value_of(each, None) for each in (x1, x2))
        if not left.shape or not right.shape:
            raise ValueError("matmul: an operand has no dimension; use multiply")
        inner, other = left.shape[-1], right.shape[-2 if len(right.shape) > 1 else 0]
        if inner != other:
            raise ValueError(
                f"matmul: the last dimension of {left.shape} is {inner}, and {right.shape} has "
                f"{other} rows"
            )
        stack = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        shape = (*stack, *left.shape[-2:-1], *(right.shape[-1:] if len(right.shape) > 1 else ()))
        kind = np.result_type(left.dtype, right.dtype)
        recording = self.connection.record()
        operands = [recording.cast(each, kind) for each in (left, right)]
        return self._of(recording.operation("matmul", operands, shape, kind))

    def vecdot(self, x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
        return self.sum(
            self.multiply(self.conj(x1), x2), axis=axis, dtype=np.result_type(x1.dtype, x2.dtype)
        )

    def matrix_transpose(self, x: Array, /) -> Array:
        return x.mT

    def tensordot(self, x1: Array, x2: Array, /, *, axes: Any = 2) -> Array:
        if isinstance(axes, int):
            first, second = tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
        else:
            first, second = (_axes(each, x.ndim) for each, x in zip(axes, (x1, x2), strict=True))
        if tuple(x1.shape[a] for a in first) != tuple(x2.shape[a] for a in second):
            raise ValueError(f"tensordot: {x1.shape} and {x2.shape} differ along {axes}")
        rows = [d for d in range(x1.ndim) if d not in first]
        columns = [d for d in range(x2.ndim) if d not in second]
        terms = math.prod(x1.shape[a] for a in first)
        left = self.reshape(
            self.permute_dims(x1, (*rows, *first)), (math.prod(x1.shape[d] for d in rows), terms)
        )
        right = self.reshape(
            self.permute_dims(x2, (*second, *columns)),
            (terms, math.prod(x2.shape[d] for d in columns)),
        )
        shape = (*(x1.shape[d] for d in rows), *(x2.shape[d] for d in columns))
        return self.reshape(self.matmul(left, right), shape)

    # -- shapes ------------------------------------------------------------------------------------

    def permute_dims(self, x: Array, /, axes: Sequence[int]) -> Array:
        x = self.asarray(x)
        order = tuple(axes)
        if sorted(a % max(x.ndim, 1) for a in order) != list(range(x.ndim)):
            raise ValueError(f"axes {order} do not name each of {x.ndim} dimensions once")
        where = {a % max(x.ndim, 1): d for d, a in enumerate(order)}
        part = tuple(
            (offset, where[dim] if dim >= 0 else -1, step) for offset, dim, step in x._part
        )
        return x._view(part, tuple(x.shape[a] for a in order))

    def transpose(self, x: Array, /, axes: Sequence[int] | None = None) -> Array:
        return x.T if axes is None else self.permute_dims(x, axes)

    def expand_dims(self, x: Array, /, axis: int = 0) -> Array:
        if not -x.ndim - 1 <= axis <= x.ndim:
            raise IndexError(f"axis {axis} is out of bounds for array of dimension {x.ndim + 1}")
        at = axis % (x.ndim + 1)
        return x[(slice(None),) * at + (None,)]

    def squeeze(self, x: Array, /, axis: Any = None) -> Array:
        gone = [d for d, n in enumerate(x.shape) if n == 1] if axis is None else _axes(axis, x.ndim)
        if any(x.shape[d] != 1 for d in gone):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
        if not gone:
            return x
        return x[tuple(0 if d in gone else slice(None) for d in range(x.ndim))]

    def flip(self, x: Array, /, *, axis: Any = None) -> Array:
        turned = range(x.ndim) if axis is None else _axes(axis, x.ndim)
        back = slice(None, None, -1)
        return x[tuple(back if d in turned else slice(None) for d in range(x.ndim))]

    def reshape(
        self, x: Array, /, shape: Any, *, order: str = "C", copy: bool | None = None
    ) -> Array:
        """A view, where NumPy gives one: writes to one of the two are seen in the other."""
        x = self.asarray(x)
        wanted = _reshaped(x.size, _shape(shape), x.shape)
        if order == "F":
            return self.reshape(x.T, wanted[::-1], copy=copy).T
        part = None if copy or x._is_element else through_ones(x._part, x.shape, wanted)
        if part is not None:
            return x._view(part, wanted)
        before = x.shape
        strides = reshaped_strides(before, x._steps(), wanted) if x.size else ()
        if copy is False and strides is None:
            raise ValueError("Unable to avoid creating a copy while creating an array as requested")
        made = self._of(self._reshaped_value(x.value(), wanted))
        if x.size and strides is not None and not copy and not x._is_element:
            self._alias(
                x, made, strides,
                lambda recording, part: recording.reshape(part, wanted),
                lambda recording, _, after: recording.reshape(after, before),
            )  # fmt: skip
        return made

    @staticmethod
    def _alias(
        x: Array,
        made: Array,
        strides: tuple[int, ...],
        derive: Derive,
        restore: Restore,
        why_fixed: str = "",
    ) -> None:
        """From now on they look at the same elements. strides: NumPy's of the one that was made."""
        source, memory = x._memory, made._memory
        memory.strides, made._is_fixed = strides, x._is_fixed
        part, shape = x._part, x.shape
        alias = Alias(ref(source), part, shape, ref(memory), derive, restore, why_fixed)
        link(source, memory, alias)

    def bits_of(self, x: Array, dtype: Any = None) -> Array:
        """As `Array.view`."""
        kind = x.dtype if dtype is None else np.dtype(dtype)
        if kind == x.dtype:
            return x._view(x._part, x.shape)
        element_of(kind)
        if kind.itemsize != x.dtype.itemsize or {kind.kind, x.dtype.kind} & {"b", "c"}:
            raise TypeError(
                f"a view of {x.dtype} as {kind} is not supported: of another kind of bits"
            )
        before, shape = x.dtype, x.shape

        def there(recording: Recording, value: Value) -> Value:
            return recording.operation("unary", [value], shape, kind, function="bits")

        def back(recording: Recording, _: Value, after: Value) -> Value:
            return recording.operation("unary", [after], shape, before, function="bits")

        made = self._of(there(self.connection.record(), x.value()))
        if x.size:
            self._alias(x, made, x._steps(), there, back)
        return made

    def _looked_at(self, x: Array, made: Array, why_fixed: str) -> Array:
        """A view in NumPy, which here sees no later write: so nobody writes to either while both
        are there.
        """
        self._alias(x, made, x._steps(), _never, _never, why_fixed)
        return made

    def broadcast_to(self, x: Array, /, shape: Any) -> Array:
        """A view that nobody writes to."""
        given, wanted = self.asarray(x), _shape(shape)
        if np.broadcast_shapes(given.shape, wanted) != wanted:
            raise ValueError(f"cannot broadcast {given.shape} to {wanted}")
        lost = len(wanted) - given.ndim
        part = tuple(
            (offset, -1, 0)
            if dim < 0 or given.shape[dim] != wanted[lost + dim]
            else (offset, lost + dim, step)
            for offset, dim, step in given._part
        )
        made = given._view(part, wanted)
        made._is_fixed = True
        return made

    def broadcast_arrays(self, *arrays: Array) -> list[Array]:
        shape = np.broadcast_shapes(*(each.shape for each in arrays))
        return [self.broadcast_to(each, shape) for each in arrays]

    def concat(self, arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
        parts = [self.asarray(each) for each in arrays]
        if not parts:
            raise ValueError("need at least one array to concatenate")
        if axis is None:
            return self.concat([self.reshape(each, (-1,)) for each in parts], axis=0)
        (at,) = _axes(axis, parts[0].ndim)
        rest = {(*each.shape[:at], *each.shape[at + 1 :]) for each in parts}
        if len(rest) != 1:
            shapes = ", ".join(str(each.shape) for each in parts)
            raise ValueError(f"concat: {shapes} differ in more than dimension {at}")
        length = sum(each.shape[at] for each in parts)
        shape = (*parts[0].shape[:at], length, *parts[0].shape[at + 1 :])
        made = self._around(Memory(shape, np.result_type(*(each.dtype for each in parts))))
        low = 0
        for each in parts:
            high = low + each.shape[at]
            made[(slice(None),) * at + (slice(low, high),)] = each
            low = high
        return made

    concatenate = concat

    def stack(self, arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
        parts = [self.asarray(each) for each in arrays]
        if len({each.shape for each in parts}) != 1:
            raise ValueError("stack: all input arrays must have the same shape")
        return self.concat([self.expand_dims(each, axis=axis) for each in parts], axis=axis)

    def roll(self, x: Array, /, shift: Any, *, axis: Any = None) -> Array:
        if axis is None:
            return self.reshape(self.roll(self.reshape(x, (-1,)), shift, axis=0), x.shape)
        shifts = shift if isinstance(shift, tuple) else (shift,)
        axes = axis if isinstance(axis, tuple) else (axis,) * len(shifts)
        for by, a in zip(shifts * (len(axes) // len(shifts)), axes, strict=True):
            (at,) = _axes(a, x.ndim)
            cut = (-by) % x.shape[at] if x.shape[at] else 0
            if cut:
                before = (slice(None),) * at
                x = self.concat([x[(*before, slice(cut, None))], x[(*before, slice(cut))]], axis=at)
        return x

    def unstack(self, x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
        (at,) = _axes(axis, x.ndim)
        return tuple(x[(slice(None),) * at + (k,)] for k in range(x.shape[at]))

    def from_dlpack(self, x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
        """A copy, but of what another library has on a GPU, as of `asarray`."""
        if isinstance(x, Array):
            return self.asarray(x, device=self.device, copy=copy)
        if is_on_device(x):
            return self.asarray(x, device=device, copy=copy)
        if copy is False:
            raise BufferError("what is elsewhere has to be copied to the ranks")
        return self.asarray(np.from_dlpack(x))

    # -- what other code asks ----------------------------------------------------------------------

    def __array_namespace_info__(self) -> NamespaceInfo:
        return NamespaceInfo()

    # -- values ------------------------------------------------------------------------------------

    def _brought(self, x: Array) -> Array:
        """An array of another device of this place; `follow` has seen that it is meant."""
        if x._xp.family is not self.family:
            raise MixedArrays(self.zeros(0), x)
        if not x._xp.connection.lies_with(self.connection):
            return self._around(self.connection.put(np.asarray(x)))
        copied = x._xp._of(x.value())
        x._xp.connection.run()
        made = copied._memory
        return self._around(Memory(made.shape, made.dtype, made.resident, line=made.line))

    def value_of(self, x: Any, kind: np.dtype | None) -> Value:
        """An operand as a value; a number of Python's takes the type `kind`."""
        if isinstance(x, Array):
            if x._xp is not self:
                raise MixedArrays(self.zeros(0), x)
            return x.value()
        if type(x) is float and kind is not None:
            return self.connection.recording.number(x, kind)
        refuse_masked(x)
        if isinstance(x, np.ndarray) and x.ndim:
            return self.asarray(x).value()
        if isinstance(x, np.ndarray | np.generic):
            return self.connection.record().number(x.item(), x.dtype)
        if not isinstance(x, bool | int | float | complex):
            return self.asarray(x).value()
        wanted = np.asarray(x).dtype if kind is None else kind
        if isinstance(x, int) and not isinstance(x, bool) and wanted.kind in "iu":
            np.array(x, wanted)  # OverflowError where it does not fit
        return self.connection.record().number(x, wanted)

    def broadcast_value(self, value: Value, shape: tuple[int, ...]) -> Value:
        if value.shape == shape:
            return value
        lost = len(shape) - len(value.shape)
        part = tuple(
            (0, -1, 1) if extent == 1 and shape[lost + d] != 1 else (0, lost + d, 1)
            for d, extent in enumerate(value.shape)
        )
        return self.connection.record().view(value, shape, part)

    def _of(self, value: Value) -> Array:
        made = self._around(self.connection.record().holding(value))
        self.connection.run_if_full()
        return made

    def _around(self, memory: Memory) -> Array:
        return Array(self, memory, whole_part(len(memory.shape)), memory.shape)

    def _filled(self, shape: tuple[int, ...], number: Any, kind: np.dtype) -> Array:
        element_of(kind)
        if any(extent < 0 for extent in shape):
            raise ValueError("negative dimensions are not allowed")
        value = self.value_of(number, kind)
        recording = self.connection.record()
        return self._of(self.broadcast_value(recording.cast(value, kind), shape))

    def _index(self, shape: tuple[int, ...], dim: int) -> Value:
        return self.connection.record().operation(
            "index", [], shape, np.dtype(np.int64), axes=(dim,)
        )

    def _arithmetic(self, name: str, value: Value, number: Any) -> Value:
        recording = self.connection.record()
        other = recording.number(number, value.dtype)
        return recording.operation(
            "binary", [value, other], value.shape, value.dtype, function=name
        )

    def _triangle(self, x: Array, k: int, name: str) -> Array:
        if x.ndim < 2:
            raise ValueError("a triangle is one of a matrix: the array has fewer than 2 dimensions")
        rows, columns = (self._index(x.shape, x.ndim - n) for n in (2, 1))
        kept = self.connection.record().operation(
            "binary", [columns, self._arithmetic("add", rows, k)], x.shape, np.dtype(bool),
            function=name,
        )  # fmt: skip
        return self.where(self._of(kept), x, np.zeros((), x.dtype)[()])

    def _reshaped_value(self, value: Value, shape: tuple[int, ...]) -> Value:
        if math.prod(shape) == 0:
            return self.broadcast_value(self.connection.record().number(0, value.dtype), shape)
        return self.connection.record().reshape(value, shape)

    def _complex_part(
        self, x: Array, name: str, parts: Callable[[Value, Value], tuple[Value, Value]], other: str
    ) -> Array:
        """parts: after a write to it, with the other part that was there: real, imaginary."""
        shape, whole = x.shape, x.dtype
        kind = np.zeros((), whole).real.dtype

        def part(name: str, recording: Recording, value: Value) -> Value:
            return recording.operation("unary", [value], shape, kind, function=name)

        def restore(recording: Recording, before: Value, after: Value) -> Value:
            return recording.complex_of(*parts(after, part(other, recording, before)), whole)

        made = self._of(part(name, self.connection.record(), x.value()))
        if x.size:
            steps = tuple(2 * step for step in x._steps())
            self._alias(x, made, steps, partial(part, name), restore)
        return made

    # -- families of functions ---------------------------------------------------------------------

    def _ufunc(self, name: str) -> Callable[..., Array]:
        """A function of elements, with the arguments and the functions of NumPy's."""
        ufunc: np.ufunc = getattr(np, {**UNARY, **BINARY}.get(name, name))
        make = (
            self._unary_function
            if name in UNARY
            else self._binary_function
            if name in BINARY
            else self._library_function
        )
        function: Callable[..., Array] = make(name)
        if name in ("floor_divide", "remainder"):
            function = watched_division(self, name, function)
        if name in BINARY:
            self.plain[name] = function
        made = as_ufunc(self, _named(function, name, ufunc), ufunc, name)
        return self._with_methods(made, name, ufunc) if name in BINARY else made

    def _unary_function(self, name: str) -> Callable[[Array], Array]:
        ufunc: np.ufunc = getattr(np, UNARY[name])

        def function(x: Array, /) -> Array:
            given = self.asarray(x)
            computed, result = _types(ufunc, given.dtype)
            if name == "logical_not":
                computed = np.dtype(bool)
            if name == "reciprocal" and computed.kind not in "f":
                return self.elementwise(UNARY[name], given)
            if name == "positive" or (name == "conj" and given.dtype.kind != "c"):
                return self._of(given.value())
            if given.dtype.kind == "c":
                if name in _OF_BOTH_PARTS:
                    parts = (function(part(given)) for part in (self.real, self.imag))
                    return getattr(self, _OF_BOTH_PARTS[name])(*parts)
                if name not in _COMPLEX:
                    return self.elementwise(UNARY[name], given)
            recording = self.connection.record()
            value = recording.cast(given.value(), computed)
            made = self._of(
                recording.operation("unary", [value], given.shape, result, function=name)
            )
            return made if given.dtype.kind != "c" else self._far_out(name, given, made)

        return function

    def _far_out(self, name: str, x: Array, found: Array) -> Array:
        """What the standard (and Annex G of C) says of complex numbers one part of which is
        infinite or NaN, where the compiled code has NaN.
        """
        if name not in ("exp", "expm1", "log", "tanh"):
            return found
        real, imag = self.real(x), self.imag(x)
        nan = complex(math.inf, math.nan)
        if name == "log":
            either = self.logical_or(self.isinf(real), self.isinf(imag))
            among = self.logical_or(self.isnan(real), self.isnan(imag))
            return self.where(self.logical_and(either, among), nan, found)
        odd = self.logical_not(self.isfinite(imag))
        if name == "tanh":
            at_zero = self.logical_and(odd, self.equal(real, 0))
            found = self.where(at_zero, self.add(real, complex(0, math.nan)), found)
            one, zero = self.copysign(1.0, real).value(), self.copysign(0.0, imag).value()
            limit = self._of(self.connection.record().complex_of(one, zero, x.dtype))
            ends = self.logical_and(self.isinf(real), self.isfinite(imag))
            return self.where(ends, limit, found)
        limit = self.where(self.greater(real, 0), nan, 0j if name == "exp" else -1 + 0j)
        return self.where(self.logical_and(odd, self.isinf(real)), limit, found)

    def _binary_function(self, name: str) -> Callable[[Any, Any], Array]:
        ufunc: np.ufunc = getattr(np, BINARY[name])
        op = _LOGICAL.get(name, name)
        known: dict[Any, tuple[np.dtype, np.dtype, tuple[int, ...]]] = {}

        def function(x1: Any, x2: Any, /) -> Array:
            form = _form(x1), _form(x2)
            if form in known:
                kind, result, shape = known[form]
                recording = self.connection.record()
                left = recording.cast(self.value_of(x1, kind), kind)
                right = recording.cast(self.value_of(x2, kind), kind)
                return self._of(
                    recording.operation("binary", [left, right], shape, result, function=op)
                )
            if name == "pow" and (simple := self._simple_power(x1, x2)) is not None:
                return simple
            *kinds, result = _types(ufunc, *(_weak_type(each) for each in (x1, x2)))
            recording = self.connection.record()
            kind = np.result_type(*kinds)
            if name in _LOGICAL:
                kind = np.dtype(bool)
            left, right = (recording.cast(self.value_of(each, kind), kind) for each in (x1, x2))
            shape = _broadcast(left.shape, right.shape)
            if kind.kind == "c" and name in _COMPARING:
                return self._complex_order(name, *(self.asarray(x, dtype=kind) for x in (x1, x2)))
            if kind.kind == "c" and name in _ORDERING:
                raise TypeError(f"{name}: complex numbers have no order")
            if name == "pow" and kind.kind not in "f":
                return self.elementwise("power", x1, x2)
            if name != "pow" and None not in form and len(known) < _MOST_FORMS:
                known[form] = kind, result, shape
            return self._of(
                recording.operation("binary", [left, right], shape, result, function=op)
            )

        return function

    def _complex_order(self, name: str, a: Array, b: Array) -> Array:
        """By the real parts, and where these are equal by the imaginary ones, as NumPy has it."""
        strictly = self.greater if name.startswith("greater") else self.less
        real, imag = ((part(a), part(b)) for part in (self.real, self.imag))
        no_nan = self.logical_not(self.logical_or(*map(self.isnan, imag)))
        before = self.logical_and(strictly(*real), no_nan)
        return self.logical_or(
            before, self.logical_and(self.equal(*real), getattr(self, name)(*imag))
        )

    def _library_function(self, name: str) -> Callable[..., Array]:
        ufunc: np.ufunc = getattr(np, name)

        def of_one(x: Any, /) -> Array:
            return self.elementwise(name, x)

        def of_two(x1: Any, x2: Any, /) -> Array:
            return self.elementwise(name, x1, x2)

        return of_one if ufunc.nin == 1 else of_two

    def _simple_power(self, x: Any, exponent: Any) -> Array | None:
        """What NumPy computes without pow: squares, roots; whole powers of integers."""
        if not isinstance(x, Array) or not isinstance(exponent, int | float):
            return None
        if x.dtype.kind in "fc" and exponent == 2:
            return self.square(x)
        if x.dtype.kind == "f" and exponent == 0.5:
            return self.sqrt(x)
        if x.dtype.kind in "iu" and isinstance(exponent, int):
            if exponent < 0:
                raise ValueError("Integers to negative integer powers are not allowed.")
            made, factor = self.ones_like(x), x
            while exponent:
                if exponent & 1:
                    made = self.multiply(made, factor)
                exponent >>= 1
                if exponent:
                    factor = self.multiply(factor, factor)
            return made
        return None

    def _reduced(self, name: str, x: Array, axis: Any, kind: np.dtype, keepdims: bool) -> Array:
        given = self.asarray(x)
        axes = _axes(axis, given.ndim)
        wide = np.dtype(np.float32) if kind == np.float16 else kind
        recording = self.connection.record()
        value = recording.cast(given.value(), wide)
        shape = tuple(n for d, n in enumerate(given.shape) if d not in axes)
        made = recording.operation("reduce", [value], shape, wide, function=name, axes=axes)
        made = recording.cast(made, kind)
        if keepdims:
            kept = tuple(1 if d in axes else n for d, n in enumerate(given.shape))
            part = tuple((0, d, 1) for d in range(given.ndim) if d not in axes)
            made = recording.view(made, kept, part)
        return self._of(made)

    def _extreme(self, name: str, x: Array, axis: Any, keepdims: bool) -> Array:
        given = self.asarray(x)
        if any(given.shape[a] == 0 for a in _axes(axis, given.ndim)):
            raise ValueError(
                f"zero-size array to reduction operation {name}imum which has no identity"
            )
        if given.dtype.kind == "c":
            raise TypeError("complex numbers have no order")
        return self._reduced(name, given, axis, given.dtype, keepdims)


_INNER = ("at", "value_of", "broadcast_value", "whole", "sync", "report", "memory")
"""That take no operands of a user's, or are of the operand's namespace already."""


def _number(x: Any) -> Any:
    """An array without dimensions as NumPy's number, before anything is recorded."""
    return np.asarray(x)[()] if isinstance(x, Array) else x


def _never(*given: Any) -> Value:
    """In place of what no view gets to."""
    raise AssertionError(f"nobody writes to {given}")


def _named(function: Callable[..., Array], name: str, ufunc: np.ufunc) -> Callable[..., Array]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As numpy.{ufunc.__name__}, element by element."
    return function


def _broadcast(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of both; ValueError in NumPy's words."""
    try:
        return np.broadcast_shapes(x, y)
    except ValueError:
        shapes = " ".join(str(shape).replace(" ", "") for shape in (x, y))
        raise ValueError(f"operands could not be broadcast together with shapes {shapes}") from None


_MOST_FORMS = 4096
"""Of operands, that each function keeps the types of its result for."""


def _rounded(rint: Callable[[Any], Array], x: Any, decimals: int = 0, /) -> Array:
    """To so many decimals, as NumPy computes it; integers stay integers."""
    if isinstance(x, Array) and x.dtype.kind in "iu":
        return x if decimals >= 0 else (rint(x / 10.0**-decimals) * 10.0**-decimals).astype(x.dtype)
    if not decimals:
        return rint(x)
    return rint(x * 10.0**decimals) / 10.0**decimals


def _holds_arrays(parts: Sequence[Any]) -> bool:
    return any(
        isinstance(each, Array) or (isinstance(each, list | tuple) and _holds_arrays(each))
        for each in parts
    )


def _form(x: Any) -> Any:
    """What decides on the types and the shape of an operation on it; None for what is rare."""
    if type(x) is Array:
        return x.shape, x.dtype
    return type(x) if type(x) in (int, float, bool) else None


def _types(ufunc: np.ufunc, *kinds: Any) -> tuple[np.dtype, ...]:
    """The types that the ufunc computes in, and that of its result; TypeError as NumPy's."""
    return ufunc.resolve_dtypes((*kinds, None))


def _weak_type(x: Any) -> Any:
    """A number of Python's has no type of its own."""
    if isinstance(x, bool):
        return np.dtype(bool)
    if isinstance(x, int | float | complex) and not isinstance(x, np.generic):
        return type(x)
    return x.dtype if isinstance(x, Array | np.ndarray | np.generic) else np.asarray(x).dtype


def _weak(x: Any) -> Any:
    """The same for numpy.result_type."""
    return x if isinstance(x, bool | int | float | complex) else x.dtype


def _summed(kind: np.dtype) -> np.dtype:
    """What NumPy adds numbers of that type in."""
    return np.zeros(0, kind).sum().dtype


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Sorted, each once; numpy.exceptions.AxisError where there is no such."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple | list) else (axis,)
    for each in given:
        if not -ndim <= each < ndim:
            raise np.exceptions.AxisError(each, ndim)
    found = [each % ndim for each in given]
    if len(set(found)) != len(found):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(found))


def _shape(shape: Any) -> tuple[int, ...]:
    given = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if any(not isinstance(n, int | np.integer) for n in given):
        raise TypeError(f"a shape is of integers, not {shape!r}")
    refuse_dimensions(len(given))
    return tuple(int(n) for n in given)


def _reshaped(size: int, shape: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
    """With what -1 stands for."""
    if shape.count(-1) == 1:
        rest = -math.prod(shape)
        if rest and size % rest == 0:
            shape = tuple(size // rest if n == -1 else n for n in shape)
    if math.prod(shape) != size or any(n < 0 for n in shape):
        raise ValueError(f"cannot reshape array of size {size} and shape {before} into {shape}")
    return shape
