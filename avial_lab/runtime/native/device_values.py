"""The values of arrays on GPUs, copied to the host, for who has to look at them.

Arrays of the host and of GPUs -> arrays of the host.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import numpy as np

from avial_lab.core.device_arrays import DeviceArray, OnDevice
from avial_lab.core.errors import RunError
from avial_lab.machine.real_gpus import LIBRARY, chips_here


def on_host(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same arrays, those on a GPU as copies."""
    return {
        name: fetched(array.given) if isinstance(array, OnDevice) else array
        for name, array in arrays.items()
    }


def fetched(array: DeviceArray) -> np.ndarray:
    """Once all that the GPU was given is done. Where there is none, what is on it is emulated: in
    this process's memory.
    """
    values = np.empty(array.shape, array.dtype)
    if not values.nbytes:
        return values
    if not chips_here():
        ctypes.memmove(values.ctypes.data, array.address, values.nbytes)
        return values
    cuda = ctypes.CDLL(LIBRARY)
    number, context = max(array.number, 0), ctypes.c_void_p()
    to, source = ctypes.c_void_p(values.ctypes.data), ctypes.c_uint64(array.address)
    calls = (
        lambda: cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), number),
        lambda: cuda.cuCtxSetCurrent(context),
        lambda: cuda.cuCtxSynchronize(),
        lambda: cuda.cuMemcpyDtoH_v2(to, source, ctypes.c_size_t(values.nbytes)),
    )
    error = next((code for call in calls if (code := call())), 0)
    if context:
        cuda.cuDevicePrimaryCtxRelease_v2(number)
    if error:
        raise RunError(f"an array on GPU {number} cannot be read: CUDA error {error}")
    return values
