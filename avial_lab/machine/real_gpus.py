"""The GPUs of this machine, by their driver's own word.

Nothing -> Gpus, in the driver's order; why there are none.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from functools import cache

from avial_lab.core.words import brief, format_bytes
from avial_lab.machine.devices.cuda import OLDEST_CHIP, chip_named

LIBRARY = "libcuda.so.1"

_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and …_MINOR."""

_EMPTY = (
    f".version 6.0\n.target {OLDEST_CHIP}\n.address_size 64\n.visible .entry k()\n{{\nret;\n}}\n"
)


@dataclass(frozen=True)
class RealGpu:
    name: str
    chip: str
    memory_bytes: int

    def __str__(self) -> str:
        return f"{self.name} ({self.chip}, {format_bytes(self.memory_bytes)})"

    def __repr__(self) -> str:
        return brief(self, str(self))


@dataclass(frozen=True)
class Gpus:
    """cuda: the CUDA that the driver is of, 13000 for 13.0; 0 without one. missing: why there are
    none.
    """

    cuda: int = 0
    gpus: tuple[RealGpu, ...] = ()
    missing: str = ""

    def __str__(self) -> str:
        """`NVIDIA H200 (sm_90, 140 GiB); driver for CUDA 13.0`, or why there is none."""
        if not self.gpus:
            return self.missing
        version = f"{self.cuda // 1000}.{self.cuda % 1000 // 10}"
        return f"{', '.join(map(str, self.gpus))}; driver for CUDA {version}"

    def __repr__(self) -> str:
        return brief(self, str(self))


@cache
def gpus_here() -> Gpus:
    try:
        cuda = ctypes.CDLL(LIBRARY)
    except OSError as error:
        return Gpus(missing=f"there is no NVIDIA driver ({error})")
    version, count = ctypes.c_int(), ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    error = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    if error:
        return Gpus(
            version.value, (), f"the NVIDIA driver has no GPU: {_said(cuda, error)}{_seen()}"
        )
    if not count.value:
        return Gpus(version.value, (), f"the NVIDIA driver has no GPU{_seen()}")
    return Gpus(version.value, tuple(_gpu(cuda, k) for k in range(count.value)))


def chips_here() -> tuple[str, ...]:
    """Their architectures (`sm_90`); empty where there is no driver, or it drives nothing."""
    return tuple(gpu.chip for gpu in gpus_here().gpus)


def why_no_kernel() -> str:
    """What the driver says against a kernel of ours on the first GPU; empty where it loads."""
    cuda = ctypes.CDLL(LIBRARY)
    context, module = ctypes.c_void_p(), ctypes.c_void_p()
    error = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    if error:
        return _said(cuda, error)
    error = cuda.cuCtxSetCurrent(context) or cuda.cuModuleLoadDataEx(
        ctypes.byref(module), _EMPTY.encode(), 0, None, None
    )
    cuda.cuDevicePrimaryCtxRelease_v2(0)
    return _said(cuda, error) if error else ""


def _said(cuda: ctypes.CDLL, error: int) -> str:
    words = ctypes.c_char_p()
    cuda.cuGetErrorString(error, ctypes.byref(words))
    return f"{(words.value or b'unknown error').decode(errors='replace')} (CUDA error {error})"


def _seen() -> str:
    """What hides GPUs from a process."""
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "" if seen is None else f"; CUDA_VISIBLE_DEVICES is '{seen}'"


def _gpu(cuda: ctypes.CDLL, number: int) -> RealGpu:
    device, digits = ctypes.c_int(), [ctypes.c_int(), ctypes.c_int()]
    name, memory = ctypes.create_string_buffer(256), ctypes.c_size_t()
    cuda.cuDeviceGet(ctypes.byref(device), number)
    cuda.cuDeviceGetName(name, len(name), device)
    cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    for digit, attribute in zip(digits, (_MAJOR, _MINOR), strict=True):
        cuda.cuDeviceGetAttribute(ctypes.byref(digit), attribute, device)
    chip = chip_named("".join(str(digit.value) for digit in digits))
    return RealGpu(name.value.decode(errors="replace"), chip, memory.value)
