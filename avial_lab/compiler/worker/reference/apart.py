"""Machine code in a process of its own: however that ends, the one that asked for it goes on.

A call -> how the process that made it ended; what it wrote into shared memory is there.
"""

from __future__ import annotations

import ctypes
import faulthandler
import math
import mmap
import os
import signal
import sys
import warnings
from collections.abc import Callable

import numpy as np

_PR_SET_PDEATHSIG = 1


def shared_zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array whose memory processes that are forked off share; it is freed with the array."""
    nbytes = math.prod(shape) * dtype.itemsize
    return (
        np.ndarray(shape, dtype, buffer=mmap.mmap(-1, nbytes)) if nbytes else np.zeros(shape, dtype)
    )


def call_apart(call: Callable[[], object]) -> str:
    """Make the call in a copy of this process; "" once it is back, else what ended the copy:
    `killed by SIGFPE`.
    """
    parent = os.getpid()
    with warnings.catch_warnings():  # of threads that the copy does not have: it needs none
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _call_and_end(call, parent)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}" if code else ""


def _call_and_end(call: Callable[[], object], parent: int) -> None:
    """Nothing of Python's end is done: open files, threads and handlers are the parent's."""
    code = 1
    try:
        faulthandler.disable()  # how it ended is the parent's to tell
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            call()
            code = 0
    finally:
        os._exit(code)
