"""Arrays in the memory of a GPU, as other libraries have them: CuPy, PyTorch, JAX, Numba.

What has `__cuda_array_interface__` or DLPack -> OnDevice, which stands for it where shape and
element type are asked for. Nothing is copied, and no driver is loaded.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, cast

import numpy as np

from avial_lab.core.errors import BindError
from avial_lab.core.stand_ins import OnRanks, StandIn
from avial_lab.core.words import brief

LEGACY_STREAM = 1
"""CUDA's default stream, as its driver takes it."""


@dataclass(frozen=True, repr=False)
class DeviceArray:
    """Contiguous elements at `address` of GPU `number` (-1: it does not say). They are ready once
    `stream` has done what it was given; 0: they are. owner: the array, which keeps the memory;
    held: what keeps it, too.
    """

    owner: object
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    address: int
    number: int = -1
    stream: int = 0
    read_only: bool = False
    held: object = None

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def __repr__(self) -> str:
        where = f"GPU {self.number}" if self.number >= 0 else "a GPU"
        extents = "x".join(map(str, self.shape))
        return brief(self, f"{extents or 'one'} of {self.dtype} on {where}")


class OnDevice(StandIn):
    """Stands for an array on a GPU."""

    given: DeviceArray
    where = "on the GPU"


def stand_ins(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays like these, each on the first GPU somewhere by itself: to compile for."""
    most = max((array.nbytes for array in arrays.values()), default=0)
    return {
        name: OnDevice.of(DeviceArray(None, array.shape, array.dtype, k * max(most, 1), 0))
        for k, (name, array) in enumerate(arrays.items())
    }


def is_on_device(value: object) -> bool:
    """Whether it says that it lies on a GPU."""
    if isinstance(value, np.ndarray):
        return False
    if getattr(value, "__cuda_array_interface__", None) is not None:
        return True
    asked = getattr(value, "__dlpack_device__", None)
    return asked is not None and asked()[0] in (CUDA, _CUDA_MANAGED)


def in_place(name: str, value: object) -> object:
    """What stands for an array on a GPU, or on ranks; other values as they are."""
    if is_on_device(value):
        return OnDevice.of(device_array(name, value))
    lent = getattr(value, "__avial_lent__", None)
    return value if lent is None else OnRanks.of(lent())


def device_array(name: str, value: object) -> DeviceArray:
    """Where it lies; BindError for what cannot be used in place."""
    interface = cast("Any", getattr(value, "__cuda_array_interface__", None))
    if interface is None or (_never_changes(value) and hasattr(value, "__dlpack__")):
        return _by_dlpack(name, value)  # JAX's interface tells no stream, and it has its own
    try:
        shape = tuple(int(extent) for extent in interface["shape"])
        dtype = np.dtype(interface["typestr"])
        address, read_only = interface["data"]
        strides, mask = interface.get("strides"), interface.get("mask")
    except (KeyError, TypeError, ValueError) as error:
        raise BindError(
            f"'{name}' has a __cuda_array_interface__ that cannot be read: {error!r}"
        ) from None
    if mask is not None:
        raise BindError(f"array '{name}' has a mask, which a program would ignore")
    _check_strides(name, shape, strides, dtype.itemsize)
    return DeviceArray(
        value, shape, dtype, int(address or 0), _number_of(value),
        _stream_of(value, interface), bool(read_only) or _never_changes(value),
    )  # fmt: skip


def refuse_overlap(arrays: Mapping[str, DeviceArray]) -> None:
    """Two that share memory: on a GPU that is not looked at."""
    ends = sorted((a.address, a.address + a.nbytes, name) for name, a in arrays.items())
    for (_, stop, name), (start, _, other) in pairwise(each for each in ends if each[0] < each[1]):
        if start < stop:
            raise BindError(
                f"arrays '{name}' and '{other}' share memory on a GPU",
                hint=f"pass a copy: {other}.copy(), or {other}.clone()",
            )


def _check_strides(
    name: str, shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int
) -> None:
    """strides: in bytes; None where they are those of a contiguous array."""
    if strides is None or 0 in shape:
        return
    wanted = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1 and stride != wanted:
            raise BindError(
                f"array '{name}' on a GPU has strides {tuple(strides)} in bytes: its elements do "
                "not lie one after the other",
                hint=f"pass a copy: cupy.ascontiguousarray({name}), or {name}.contiguous()",
            )
        wanted *= extent


def _number_of(value: object) -> int:
    asked = getattr(value, "__dlpack_device__", None)
    return int(asked()[1]) if asked is not None else -1


def _never_changes(value: object) -> bool:
    """JAX has values, not variables."""
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


def _stream_of(value: object, interface: dict[str, Any]) -> int:
    """The one that the array is ready on. PyTorch does not tell: its current one."""
    if "stream" in interface:
        return int(interface["stream"] or 0)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        stream = torch.cuda.current_stream(cast("Any", value).device).cuda_stream
        return int(stream) or LEGACY_STREAM
    return LEGACY_STREAM


# The other way -----------------------------------------------------------------------------------


def addresses_of(array: DeviceArray) -> np.ndarray:
    """As an array of NumPy's, whose values must not be asked for where it is on a real GPU."""
    return np.asarray(_Addresses(array)).view(array.dtype).reshape(array.shape)


@dataclass(frozen=True)
class _Addresses:
    array: DeviceArray

    @property
    def __array_interface__(self) -> dict[str, Any]:
        data = (self.array.address, self.array.read_only)
        return {"shape": (self.array.nbytes,), "typestr": "|u1", "data": data, "version": 3}


def interface_of(addresses: np.ndarray, stream: int) -> dict[str, Any]:
    """Its `__cuda_array_interface__`; stream: on which it is ready, 0: it is."""
    said = dict(addresses.__array_interface__)
    return {
        **{name: said[name] for name in ("shape", "typestr", "data", "strides")},
        "version": 3, "stream": stream or None,
    }  # fmt: skip


def capsule_of(addresses: np.ndarray, device: tuple[int, int]) -> object:
    """Its DLPack, on that device."""
    capsule = addresses.__dlpack__()
    tensor = _tensor_of(capsule)
    tensor.device_type, tensor.device_id = device
    return capsule


# DLPack ------------------------------------------------------------------------------------------

CPU, CUDA, _CUDA_MANAGED = 1, 2, 13
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c"}
"""`DLDataTypeCode`, but for booleans, which have 8 bits, and bfloat."""
_BFLOAT, _BOOL = 4, 6


class _Tensor(ctypes.Structure):
    """`DLTensor`, with which the capsule's `DLManagedTensor` begins."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def _tensor_of(capsule: object) -> _Tensor:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return _Tensor.from_address(pointer(capsule, b"dltensor"))


def _by_dlpack(name: str, value: object) -> DeviceArray:
    """The stream is CUDA's default one, which the array's library is asked to make wait."""
    capsule = cast("Any", value).__dlpack__(stream=LEGACY_STREAM)
    tensor = _tensor_of(capsule)
    shape = tuple(tensor.shape[d] for d in range(tensor.ndim))
    dtype = _dtype_of(name, tensor)
    strides = None
    if tensor.strides:
        strides = tuple(tensor.strides[d] * dtype.itemsize for d in range(tensor.ndim))
    _check_strides(name, shape, strides, dtype.itemsize)
    address = (tensor.data or 0) + tensor.byte_offset
    return DeviceArray(
        value, shape, dtype, address, tensor.device_id, LEGACY_STREAM,
        _never_changes(value), capsule,
    )  # fmt: skip


def _dtype_of(name: str, tensor: _Tensor) -> np.dtype[Any]:
    if tensor.code == _BFLOAT and tensor.bits == 16 and tensor.lanes == 1:
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    kind = _KINDS.get(tensor.code)
    if tensor.lanes != 1 or (kind is None and tensor.code != _BOOL):
        raise BindError(
            f"array '{name}' on a GPU has elements that no program has: DLPack's type "
            f"{tensor.code} of {tensor.bits} bits in {tensor.lanes} lanes"
        )
    return np.dtype(bool) if kind is None else np.dtype(f"{kind}{tensor.bits // 8}")
