"""The array that a user holds: a memory of the cluster, or a part of one."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from avial_lab.core.device_arrays import (
    DeviceArray,
    addresses_of,
    capsule_of,
    interface_of,
)
from avial_lab.core.regions import Box, union
from avial_lab.ptensor.layouts import Layout, Redistribution, picture
from avial_lab.ptensor.lent_arrays import LentArray
from avial_lab.ptensor.numpy_calls import call_function, call_ufunc
from avial_lab.ptensor.recording import Memory, Value, is_whole, whole_part
from avial_lab.runtime.native.device_values import device_of, finish
from avial_lab.runtime.rank.interpreter import Part, is_diagonal, looked_at

if TYPE_CHECKING:
    from avial_lab.artifact.explanation import Explanation
    from avial_lab.program.program import Program
    from avial_lab.ptensor.namespace import Namespace

MOST_DIMENSIONS = 32

_SHOWN = 1000
"""Elements from which on an array is shown by its description alone."""


def _is_plain(x: Array, name: str, other: Any) -> bool:
    """Whether nobody has to look at the usual operands again: every operation goes through here."""
    kind = type(other)
    usual = kind is float or kind is int or (kind is Array and other._xp is x._xp)
    return usual and name in x._xp.plain


def _operator(name: str) -> Callable[[Array, Any], Any]:
    def operate(self: Array, other: Any) -> Any:
        if _is_plain(self, name, other):
            return self._xp.plain[name](self, other)
        return self._with(name, self, other)

    return operate


def _reflected(name: str) -> Callable[[Array, Any], Any]:
    def operate(self: Array, other: Any) -> Any:
        if _is_plain(self, name, other):
            return self._xp.plain[name](other, self)
        return self._with(name, other, self)

    return operate


def _in_place(name: str) -> Callable[[Array, Any], Array]:
    def operate(self: Array, other: Any) -> Array:
        made = self._with(name, self, other)
        if made is NotImplemented or self._is_element:
            return made
        if made.shape != self.shape:
            raise ValueError(
                f"an array of shape {made.shape} does not fit into one of {self.shape}"
            )
        if not np.can_cast(made.dtype, self.dtype, "same_kind"):
            raise TypeError(
                f"Cannot cast ufunc '{name}' output from {made.dtype!r} to {self.dtype!r} with "
                "casting rule 'same_kind'"
            )
        self[...] = made
        return self

    return operate


class Array:
    """An array of the namespace's cluster, with NumPy's meaning: basic subscripts are views that
    write through, operators are recorded and run when a value is asked for.
    """

    __array_priority__ = 1000
    _is_element = False
    _is_fixed = False
    """Whether NumPy lets nobody write to it."""

    def __init__(self, xp: Namespace, memory: Memory, part: Part, shape: tuple[int, ...]) -> None:
        if len(shape) > MOST_DIMENSIONS:
            refuse_dimensions(len(shape))
        self._xp = xp
        self._memory = memory
        self._part = part
        self._shape = shape

    # -- what it is --------------------------------------------------------------------------------

    def _set_shape(self, shape: Any) -> None:
        """In place; AttributeError where NumPy would have to copy."""
        made = self.reshape(shape)
        if made._memory is not self._memory and not made._memory.aliases and self.size:
            raise AttributeError(
                "incompatible shape for in-place modification: use reshape(), which copies"
            )
        self._memory, self._part, self._shape = made._memory, made._part, made._shape

    shape: tuple[int, ...] = property(attrgetter("_shape"), _set_shape)  # type: ignore[assignment]

    @property
    def strides(self) -> tuple[int, ...]:
        """NumPy's of such an array, in bytes."""
        return tuple(step * self.dtype.itemsize for step in self._steps())

    def _steps(self) -> tuple[int, ...]:
        """The same in elements."""
        shape = self._memory.shape
        own = self._memory.strides or [math.prod(shape[d + 1 :]) for d in range(len(shape))]
        steps = [0] * self.ndim
        for (_, dim, step), stride in zip(self._part, own, strict=True):
            if dim >= 0:
                steps[dim] += step * stride
        return tuple(steps)

    @property
    def flags(self) -> Flags:
        return Flags(self)

    def setflags(self, write: bool | None = None) -> None:
        if write is not None:
            self.flags.writeable = write

    @property
    def dtype(self) -> np.dtype:
        return self._memory.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def device(self) -> str:
        return self._xp.device

    @property
    def layout(self) -> str:
        """Who holds what of its memory: runs what it depends on."""
        self._settled()
        resident = self._memory.resident
        if resident is None:
            return "nobody holds an element of it"
        boxes: dict[int, list[Box]] = {}
        for piece in resident.pieces:
            boxes.setdefault(piece.rank, []).append(piece.box)
        lines = [
            f"rank {rank}  {', '.join(str(box) for box in union(held))}"
            for rank, held in sorted(boxes.items())
        ]
        drawn = picture(self._memory.shape, resident.pieces) if len(boxes) > 1 else []
        return "\n".join([*lines, *drawn]) or "nobody holds an element of it"

    def redistribution(self, layout: Any) -> Redistribution:
        """The messages and bytes that `redistribute` would cost."""
        return self._xp.connection.redistribution(self._memory, self._laid_out(layout))

    def redistribute(self, layout: Any) -> Array:
        """Its memory to where the layout says, of `dist=`: "rows", "columns", "split 2",
        "replicated", "cyclic 4" (blocks of so many rows in turn), or (2, 3) parts. -> itself.
        """
        self._xp.connection.redistribute(self._memory, self._laid_out(layout))
        return self

    def _laid_out(self, layout: Any) -> Layout:
        return Layout.of(layout, self._xp.ranks)

    @property
    def local(self) -> np.ndarray:
        """Of a script under mpiexec: this rank's own part, as it lies in its memory, to be read."""
        return self._local()[0]

    @property
    def local_box(self) -> tuple[slice, ...]:
        """The place of `local` in the array."""
        return self._local()[1].slices

    def _local(self) -> tuple[np.ndarray, Box]:
        whole = self if self._is_whole() else self.copy()
        return self._xp.connection.local(whole._memory)

    @property
    def program(self) -> Program | None:
        """The program of the last run, which it may come from."""
        self._settled()
        return self._xp.connection.last

    def explain(self) -> Explanation | None:
        """What the last run divided, moved and why."""
        program = self.program
        return program.explain() if program is not None else None

    @property
    def T(self) -> Array:
        return self._xp.permute_dims(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> Array:
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return self._xp.permute_dims(self, (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(self.shape[0]))

    # -- values ------------------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All of it, here: a gather, which `xp.report()` counts."""
        if copy is False:
            raise ValueError("the elements are with the engines: what comes here is a copy")
        if is_diagonal(self._part):
            return np.asarray(self.copy(), dtype=dtype)
        box = looked_at(self._part, Box.whole(self.shape))
        within = self._xp.connection.take(self._memory, box)
        if not self.shape:
            return np.array(within.reshape(()), dtype=dtype)
        subscripts: list[Any] = []
        dims: list[int] = []
        for (start, dim, step), extent, first in zip(
            self._part, self._memory.shape, box.start, strict=True
        ):
            offset = start - first
            if dim < 0:
                subscripts.append(offset)
                continue
            count = self.shape[dim]
            stop: int | None = offset + step * count
            if stop is not None and (stop < 0 or count == 0):
                stop = None if count else offset
            subscripts.append(slice(offset, stop, step) if extent else slice(None))
            dims.append(dim)
        part = within[tuple(subscripts)]
        part = part.transpose(np.argsort(dims)) if dims else part
        array = np.broadcast_to(part.reshape(_with_ones(self.shape, dims)), self.shape)
        # What has come is nobody else's, but where one element stands for many.
        fresh = array.shape == within.shape and array.flags.c_contiguous
        made = part.reshape(self.shape) if fresh else array
        return np.array(made, dtype=dtype, copy=None if fresh else True)

    def __float__(self) -> float:
        return float(np.asarray(self))

    def __int__(self) -> int:
        return int(np.asarray(self))

    def __complex__(self) -> complex:
        return complex(np.asarray(self))

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __index__(self) -> int:
        return np.asarray(self).__index__()

    def item(self, *place: int) -> Any:
        return np.asarray(self).item(*place)

    def tolist(self) -> Any:
        return np.asarray(self).tolist()

    def __repr__(self) -> str:
        if self.size > _SHOWN:
            return f"Array(shape={self.shape}, dtype={self.dtype}, on {self._xp.ranks} ranks)"
        return repr(np.asarray(self)).replace("array(", "Array(", 1)

    def __str__(self) -> str:
        return repr(self) if self.size > _SHOWN else str(np.asarray(self))

    def __format__(self, spec: str) -> str:
        return format(np.asarray(self)[()], spec) if not self.shape else format(str(self), spec)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.item(), digits)

    # -- parts -------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Array:
        keys = key if isinstance(key, tuple) else (key,)
        if any(_is_fancy(each) for each in keys):
            return self._xp.at_subscripts(self, keys)
        part, shape = self._subscript(key)
        made = self._view(part, shape)
        if not shape and self.shape and not any(each is Ellipsis for each in keys):
            made._become_element()
        return made

    def _view(self, part: Part, shape: tuple[int, ...]) -> Array:
        """Of its memory."""
        made = Array(self._xp, self._memory, part, shape)
        if self._is_fixed:
            made._is_fixed = True
        return made

    def _become_element(self) -> None:
        """An element is a number, as NumPy's are: it stays what it is when the array changes."""
        elements, number = self._memory.elements, id(self)
        elements[number] = weakref.ref(self, lambda _: elements.pop(number, None))
        self._is_element = True

    def detach(self) -> None:
        """Another memory has it from now on."""
        recording = self._xp.connection.record()
        self._memory, self._part = recording.holding(self.value()), ()

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._is_fixed:
            raise ValueError("assignment destination is read-only")
        keys = key if isinstance(key, tuple) else (key,)
        if any(_is_fancy(each) for each in keys):
            self._xp.set_at_subscripts(self, keys, value)
            return
        if self._is_element:
            self.detach()
        part, shape = self._subscript(key)
        if isinstance(value, Array) and value._xp is not self._xp:
            self._xp.add(self, value)  # says where both are
        if type(value) is complex and self.dtype.kind != "c":
            self.dtype.type(value)  # says that it does not fit
        given = self._xp.value_of(value, self.dtype)
        if not np.can_cast(given.dtype, self.dtype, "unsafe"):
            raise TypeError(f"{given.dtype} cannot be cast to {self.dtype}")
        lost = len(given.shape) - len(shape)
        if lost > 0 and all(extent == 1 for extent in given.shape[:lost]):
            recording = self._xp.connection.record()
            part_of = ((0, -1, 1),) * lost + tuple((0, d, 1) for d in range(len(shape)))
            given = recording.view(given, given.shape[lost:], part_of)
        try:
            fits = np.broadcast_shapes(given.shape, shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                f"could not broadcast input array from shape {given.shape} into shape {shape}"
            )
        recording = self._xp.connection.record()
        given = recording.cast(given, self.dtype)
        recording.write(self._memory, part, self._xp.broadcast_value(given, shape))
        self._xp.connection.run_if_full()

    def _subscript(self, key: Any) -> tuple[Part, tuple[int, ...]]:
        """The part that a basic subscript names; IndexError and TypeError as NumPy raises them."""
        keys = list(key) if isinstance(key, tuple) else [key]
        if self._part == whole_part(len(self.shape)) and _are_places(keys, self.shape):
            places = (
                (each + n * (each < 0), -1, 0) for each, n in zip(keys, self.shape, strict=True)
            )
            return tuple(places), ()
        # NumPy says what is wrong with it, and what comes out, by an array that takes no memory.
        probe = np.broadcast_to(np.empty((), self.dtype), self.shape)
        shape = probe[key].shape
        taken = sum(1 for each in keys if each is not None and each is not Ellipsis)
        if not any(each is Ellipsis for each in keys):
            keys.append(Ellipsis)
        old, new = 0, 0
        of_dim: dict[int, tuple[int, int, int]] = {}
        for each in keys:
            if each is None:
                new += 1
            elif each is Ellipsis:
                for _ in range(self.ndim - taken):
                    of_dim[old] = (0, new, 1)
                    old, new = old + 1, new + 1
            elif isinstance(each, slice):
                start, _, step = each.indices(self.shape[old])
                of_dim[old] = (start, new, step)
                old, new = old + 1, new + 1
            else:
                position = int(each)
                of_dim[old] = (position + self.shape[old] * (position < 0), -1, 0)
                old += 1
        part = tuple(_through(place, of_dim) for place in self._part)
        return part, shape

    # -- recorded ----------------------------------------------------------------------------------

    def value(self) -> Value:
        """It in the recording, as it is now."""
        return self._xp.connection.record().part_of(self._memory, self._part, self.shape)

    def _is_whole(self) -> bool:
        return is_whole(self._memory, self._part, self._shape)

    def _settled(self) -> None:
        if self._memory.value is not None or self._memory.name is not None:
            self._xp.connection.run()

    def _with(self, name: str, left: Any, right: Any) -> Any:
        if not (isinstance(left, _OPERANDS) and isinstance(right, _OPERANDS)):
            return NotImplemented
        return getattr(self._xp, name)(left, right)

    __add__, __radd__, __iadd__ = _operator("add"), _reflected("add"), _in_place("add")
    __sub__, __rsub__ = _operator("subtract"), _reflected("subtract")
    __isub__ = _in_place("subtract")
    __mul__, __rmul__ = _operator("multiply"), _reflected("multiply")
    __imul__ = _in_place("multiply")
    __truediv__, __rtruediv__ = _operator("divide"), _reflected("divide")
    __itruediv__ = _in_place("divide")
    __floordiv__, __rfloordiv__ = _operator("floor_divide"), _reflected("floor_divide")
    __ifloordiv__ = _in_place("floor_divide")
    __mod__, __rmod__ = _operator("remainder"), _reflected("remainder")
    __imod__ = _in_place("remainder")
    __pow__, __rpow__, __ipow__ = _operator("pow"), _reflected("pow"), _in_place("pow")
    __matmul__, __rmatmul__ = _operator("matmul"), _reflected("matmul")
    __and__, __rand__ = _operator("bitwise_and"), _reflected("bitwise_and")
    __iand__ = _in_place("bitwise_and")
    __or__, __ror__ = _operator("bitwise_or"), _reflected("bitwise_or")
    __ior__ = _in_place("bitwise_or")
    __xor__, __rxor__ = _operator("bitwise_xor"), _reflected("bitwise_xor")
    __ixor__ = _in_place("bitwise_xor")
    __lshift__ = _operator("bitwise_left_shift")
    __rlshift__ = _reflected("bitwise_left_shift")
    __ilshift__ = _in_place("bitwise_left_shift")
    __rshift__ = _operator("bitwise_right_shift")
    __rrshift__ = _reflected("bitwise_right_shift")
    __irshift__ = _in_place("bitwise_right_shift")
    __eq__, __ne__ = _operator("equal"), _operator("not_equal")  # type: ignore[assignment]
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Array:
        return self._xp.negative(self)

    def __pos__(self) -> Array:
        return self._xp.positive(self)

    def __abs__(self) -> Array:
        return self._xp.abs(self)

    def __invert__(self) -> Array:
        return self._xp.bitwise_invert(self)

    # -- NumPy's methods ---------------------------------------------------------------------------

    def astype(self, dtype: Any, *, copy: bool = True) -> Array:
        return self._xp.astype(self, dtype, copy=copy)

    def copy(self) -> Array:
        return self._xp.asarray(self, copy=True)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Array:
        wanted = shape[0] if len(shape) == 1 else shape
        return self._xp.reshape(self, wanted, order=order, copy=copy)

    def view(self, dtype: Any = None) -> Array:
        """Of the same elements; of their bits as another type of that size."""
        return self._xp.bits_of(self, dtype)

    def transpose(self, *axes: Any) -> Array:
        if not axes:
            return self.T
        return self._xp.permute_dims(self, axes[0] if len(axes) == 1 else axes)

    def sum(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
        return self._xp.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def prod(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
        return self._xp.prod(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> Array:
        return self._xp.min(self, axis=axis, keepdims=keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Array:
        return self._xp.max(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, *, keepdims: bool = False) -> Array:
        return self._xp.mean(self, axis=axis, keepdims=keepdims)

    def var(self, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Array:
        return self._xp.var(self, axis=axis, correction=ddof, keepdims=keepdims)

    def std(self, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Array:
        return self._xp.std(self, axis=axis, correction=ddof, keepdims=keepdims)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Array:
        return self._xp.argmax(self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Array:
        return self._xp.argmin(self, axis=axis, keepdims=keepdims)

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Array:
        return self._xp.cumsum(self, axis, dtype)

    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Array:
        return self._xp.cumprod(self, axis, dtype)

    def argsort(self, axis: int = -1) -> Array:
        return self._xp.argsort(self, axis=axis)

    def nonzero(self) -> tuple[Array, ...]:
        return self._xp.nonzero(self)

    def take(self, indices: Any, axis: int | None = None) -> Array:
        given = self.ravel() if axis is None else self
        return self._xp.take(given, indices, axis=0 if axis is None else axis)

    def repeat(self, repeats: Any, axis: int | None = None) -> Array:
        return self._xp.repeat(self, repeats, axis=axis)

    def dot(self, b: Any) -> Array:
        return self._xp.dot(self, b)

    def sort(self, axis: int = -1) -> None:
        """In place."""
        self[...] = self._xp.sort(self, axis=axis)

    def clip(self, min: Any = None, max: Any = None) -> Array:
        return self._xp.clip(self, min, max)

    def round(self, decimals: int = 0) -> Array:
        return self._xp.round(self, decimals)

    def squeeze(self, axis: Any = None) -> Array:
        return self._xp.squeeze(self, axis)

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        return self._xp.swapaxes(self, axis1, axis2)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        return self._xp.trace(self, offset, axis1, axis2)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        return self._xp.diagonal(self, offset, axis1, axis2)

    def searchsorted(self, v: Any, side: str = "left") -> Array:
        return self._xp.searchsorted(self, v, side=side)

    def fill(self, value: Any) -> None:
        self[...] = value

    def conjugate(self) -> Array:
        return self._xp.conj(self)

    @property
    def flat(self) -> Flat:
        return Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        Flat(self)[:] = value

    def tobytes(self) -> bytes:
        """All of it, here: a gather."""
        return np.asarray(self).tobytes()

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def __contains__(self, value: Any) -> bool:
        return bool(self._xp.any(self._xp.equal(self, value)))

    def __reduce__(self) -> Any:
        raise TypeError(
            f"an array {self._xp.connection.place} cannot be pickled: numpy.asarray(x) brings it "
            "here, and xp.asarray takes it back"
        )

    def __copy__(self) -> Array:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Array:
        return self.copy()

    def __divmod__(self, other: Any) -> tuple[Array, Array]:
        return self // other, self % other

    def ravel(self, order: str = "C") -> Array:
        return self._xp.ravel(self, order)

    def flatten(self, order: str = "C") -> Array:
        return self._xp.reshape(self, (-1,), order=order, copy=True)

    def conj(self) -> Array:
        return self._xp.conj(self)

    @property
    def real(self) -> Array:
        return self._xp.real(self)

    @real.setter
    def real(self, value: Any) -> None:
        self._xp.real(self)[...] = value

    @property
    def imag(self) -> Array:
        return self._xp.imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self._xp.imag(self)[...] = value

    def any(self, axis: Any = None, *, keepdims: bool = False) -> Array:
        return self._xp.any(self, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, *, keepdims: bool = False) -> Array:
        return self._xp.all(self, axis=axis, keepdims=keepdims)

    # -- other people's code -----------------------------------------------------------------------

    def __array_namespace__(self, *, api_version: str | None = None) -> Namespace:
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise ValueError(f"version {api_version!r} of the array API is not known here")
        return self._xp

    def to_device(self, device: str, /, *, stream: Any = None) -> Array:
        if stream is not None:
            raise ValueError("the ranks have no streams that are told from here")
        return self if device == self.device else self._xp.at(device).asarray(self, device=device)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        """All of it, here: a gather, which `xp.report()` counts. copy: False asks for the memory of
        the only rank, where that is this process. What lies on a GPU of this process is handed over
        there, unless it is asked for elsewhere (`dl_device`).
        """
        lies = self.__dlpack_device__()
        if dl_device in (None, lies) and not copy and (there := self._on_gpu()) is not None:
            finish(there)
            return capsule_of(self._viewed(there), lies)
        if copy is not False:
            array = np.asarray(self)
        elif (found := self._xp.connection.all_here(self._memory)) is not None:
            array = self._within(found, writeable=not self._is_fixed)
        else:
            raise BufferError("the elements are with the engines: what comes here is a copy")
        return array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The memory of an emulated GPU is the processor's."""
        return device_of(self._xp.connection.gpu)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Where it lies on a GPU of this process, emulated ones too: nothing is copied; what was
        recorded has run.
        """
        there = self._on_gpu()
        if there is None:
            raise AttributeError("the array does not lie on a GPU of this process")
        return interface_of(self._viewed(there), there.stream)

    def __avial_lent__(self) -> LentArray:
        """For a program that is to work on it where it lies."""
        return LentArray(self)

    def _on_gpu(self) -> DeviceArray | None:
        return self._xp.connection.on_gpu(self._memory)

    def _viewed(self, there: DeviceArray) -> np.ndarray:
        """Its elements, of its memory on the GPU: an array whose values are not here."""
        return self._within(addresses_of(there), writeable=not there.read_only)

    def _within(self, whole: np.ndarray, *, writeable: bool) -> np.ndarray:
        """Its elements where the memory is."""
        strides = [0] * self.ndim
        for (_, dim, step), stride in zip(self._part, whole.strides, strict=True):
            if dim >= 0:
                strides[dim] += step * stride
        first = whole[tuple(slice(start, None) for start, _, _ in self._part)]
        return as_strided(first, self.shape, strides, writeable=writeable)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's function of that name here, where the arrays are; never a silent gather."""
        return call_ufunc(self._xp, ufunc, method, inputs, kwargs)

    def __array_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any, kwargs: Any
    ) -> Any:
        return call_function(self._xp, func, args, kwargs)


class Flat:
    """The elements of an array in their order, `x.flat`."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __len__(self) -> int:
        return self._array.size

    def __iter__(self) -> Iterator[Array]:
        return iter(self._array.ravel())

    def __getitem__(self, key: Any) -> Array:
        return self._array.ravel()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        changed = self._array.flatten()
        changed[key] = value
        self._array[...] = changed.reshape(self._array.shape)


class Flags:
    """What NumPy's flags say of such an array: `x.flags.writeable = False`."""

    def __init__(self, array: Array) -> None:
        self._array = array

    @property
    def writeable(self) -> bool:
        return not self._array._is_fixed

    @writeable.setter
    def writeable(self, value: bool) -> None:
        if value and self._array._is_fixed and not self._array._is_whole():
            raise ValueError("cannot set WRITEABLE flag to True of this array")
        self._array._is_fixed = not value

    @property
    def c_contiguous(self) -> bool:
        return _are_in_order(self._array.shape, self._array._steps())

    @property
    def f_contiguous(self) -> bool:
        return _are_in_order(self._array.shape[::-1], self._array._steps()[::-1])

    def __getitem__(self, name: str) -> bool:
        return getattr(self, name.lower())


_OPERANDS = (Array, bool, int, float, complex, np.generic, np.ndarray, list, tuple)


def refuse_dimensions(count: int) -> None:
    """ValueError for more than any array has."""
    if count > MOST_DIMENSIONS:
        raise ValueError(
            f"maximum supported dimension for an array on ranks is {MOST_DIMENSIONS}, found {count}"
        )


def _are_places(keys: Sequence[Any], shape: tuple[int, ...]) -> bool:
    """Whether they are an element's place, and in bounds."""
    return len(keys) == len(shape) and all(
        type(each) is int and -n <= each < n for each, n in zip(keys, shape, strict=True)
    )


def _are_in_order(shape: Sequence[int], steps: Sequence[int]) -> bool:
    """Whether the elements of an array with these strides lie one behind the other."""
    return 0 in shape or all(
        n == 1 or step == math.prod(shape[d + 1 :])
        for d, (n, step) in enumerate(zip(shape, steps, strict=True))
    )


def _is_fancy(key: Any) -> bool:
    if isinstance(key, bool | np.bool_ | list | tuple | np.ndarray):
        return True
    return isinstance(key, Array) and (key.ndim > 0 or key.dtype.kind == "b")


def _through(
    place: tuple[int, int, int], of_dim: dict[int, tuple[int, int, int]]
) -> tuple[int, int, int]:
    """A memory's subscript by the dimensions of a view, by those of a view of that."""
    offset, dim, step = place
    if dim < 0:
        return place
    start, inner, stride = of_dim[dim]
    return offset + step * start, inner, step * stride if inner >= 0 else 0


def diagonal_of(x: Array, offset: int, axis1: int, axis2: int) -> Array:
    """As a view: behind the other dimensions."""
    if x.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    first, second = (np.lib.array_utils.normalize_axis_index(a, x.ndim) for a in (axis1, axis2))
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    rest = [d for d in range(x.ndim) if d not in (first, second)]
    down, right = max(-offset, 0), max(offset, 0)
    count = max(min(x.shape[first] - down, x.shape[second] - right), 0)
    of_dim = {d: (0, k, 1) for k, d in enumerate(rest)}
    of_dim[first] = (down if count else 0), len(rest), 1
    of_dim[second] = (right if count else 0), len(rest), 1
    part = tuple(_through(place, of_dim) for place in x._part)
    return x._view(part, (*(x.shape[d] for d in rest), count))


def _with_ones(shape: tuple[int, ...], dims: Sequence[int]) -> tuple[int, ...]:
    """`shape` with extents of 1 but for those `dims`."""
    return tuple(extent if d in dims else 1 for d, extent in enumerate(shape))
