"""When the devices of pipelines have done their last pass, for many pipelines at once.

Seconds of passes and messages by stage -> seconds by device, by `pipelines.c`.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache

import numpy as np
from numpy.typing import NDArray

from avial_lab.core.errors import AvialError, InternalError
from avial_lab.planning.simulator.native import native

Array = NDArray[np.float64]


class Order(enum.IntEnum):
    """In which a device does its passes; those of `task_order.py`, interleaved ones alternate. The
    numbers are those of `pipelines.c`.
    """

    FORWARD = 0
    GPIPE = 1
    ALTERNATING = 2
    ZERO_BUBBLE = 3


@dataclass(frozen=True)
class PassTimes:
    """Seconds, (rows, stages) each. late: of gradients of weights, where these are apart. A message
    to the next stage takes its latency, then `there` on a way that those before it have left; one
    to the stage before `back`.
    """

    forward: Array
    backward: Array
    late: Array
    there_latency: Array
    there: Array
    back_latency: Array
    back: Array


def ends_s(devices: int, turns: NDArray[np.int64], order: NDArray[np.int32], times: PassTimes
           ) -> Array:  # fmt: skip
    """(rows, devices). Stage s is on device s % devices; every row has its micro-batches (`turns`)
    and its `order`. O(stages x turns) a row.
    """
    rows, stages = times.forward.shape
    given = [np.ascontiguousarray(getattr(times, each.name), np.float64) for each in fields(times)]
    found = np.zeros((rows, devices))
    arrays = (np.ascontiguousarray(turns, np.int64), np.ascontiguousarray(order, np.int32), *given)
    places = (each.ctypes.data for each in (*arrays, found))
    stuck = _pipelines()(rows, devices, stages // devices, *places)
    if stuck < 0:
        raise AvialError(f"out of memory for pipelines of {int(turns.max()):,} micro-batches")
    if stuck:
        row = int(np.flatnonzero(found[:, 0] < 0)[0])
        raise InternalError(f"the order of {stages} stages, {turns[row]} turns has no end")
    return found


@cache
def _pipelines() -> Callable[..., int]:
    function = native("pipelines.c").avial_pipelines
    function.restype = ctypes.c_int64
    function.argtypes = [ctypes.c_int64] * 3 + [ctypes.c_void_p] * 10
    return function
