"""The GPUs of this machine, by their driver's own word.

Nothing -> their architectures (`sm_90`), in the driver's order.
"""

from __future__ import annotations

import ctypes
from functools import cache

from avial_lab.machine.devices.cuda import chip_named

LIBRARY = "libcuda.so.1"

_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and …_MINOR."""


@cache
def chips_here() -> tuple[str, ...]:
    """Empty where there is no driver, or it drives nothing."""
    try:
        cuda = ctypes.CDLL(LIBRARY)
    except OSError:
        return ()
    count = ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return ()
    return tuple(_chip(cuda, k) for k in range(count.value))


def _chip(cuda: ctypes.CDLL, number: int) -> str:
    device, digits = ctypes.c_int(), [ctypes.c_int(), ctypes.c_int()]
    cuda.cuDeviceGet(ctypes.byref(device), number)
    for digit, attribute in zip(digits, (_MAJOR, _MINOR), strict=True):
        cuda.cuDeviceGetAttribute(ctypes.byref(digit), attribute, device)
    return chip_named("".join(str(digit.value) for digit in digits))
