"""How long messages take from rank to rank: a ping-pong of two ranks, over sizes; and up to which
size they are sent eagerly.

Nothing -> one line of JSON from rank 0, {"one_way": [[bytes, seconds], …], "eager_bytes": n}; times
are the median of many.

    mpiexec -n 2 python -m avial_lab.runtime.rank.ping_pong
"""

from __future__ import annotations

import json
import os
import time
from statistics import median

import numpy as np
from mpi4py import MPI

SIZES = tuple(1 << k for k in range(3, 23))
"""8 bytes to 4 MiB."""

_ENOUGH_S = 0.15
_MOST = 400


def ping_pong(comm: MPI.Comm) -> list[tuple[int, float]]:
    """Both ranks of `comm` call it; what rank 0 found."""
    return [(nbytes, _one_way_s(comm, nbytes)) for nbytes in SIZES]


def _one_way_s(comm: MPI.Comm, nbytes: int) -> float:
    data = np.zeros(nbytes, np.uint8)
    taken: list[float] = []
    for turn in range(_MOST + 10):
        started = time.perf_counter()
        if comm.rank == 0:
            comm.Send([data, MPI.BYTE], 1)
            comm.Recv([data, MPI.BYTE], 1)
        else:
            comm.Recv([data, MPI.BYTE], 0)
            comm.Send([data, MPI.BYTE], 0)
        if turn >= 10:  # the first ones set up what the others use
            taken.append((time.perf_counter() - started) / 2)
        done = np.array([sum(taken) > _ENOUGH_S / 2], np.uint8)
        if turn % 16 == 15:
            comm.Bcast([done, MPI.BYTE], 0)
            if done[0]:
                break
    return median(taken)


_LATE_S = 4e-3
_LEAST_EAGER, _MOST_EAGER, _EAGER_STEP = 1 << 10, 1 << 24, 1 << 10


def eager_bytes(comm: MPI.Comm) -> int:
    """The largest message, to 1 KiB, that is gone before its receiver is ready; 0 where not even
    that of 1 KiB is. Both ranks of `comm` call it; what rank 0 found.
    """
    if not _is_eager(comm, _LEAST_EAGER):
        return 0
    low, high = _LEAST_EAGER, _MOST_EAGER
    if _is_eager(comm, high):
        return high
    while high - low > _EAGER_STEP:
        middle = (low + high) // 2 // _EAGER_STEP * _EAGER_STEP
        low, high = (middle, high) if _is_eager(comm, middle) else (low, middle)
    return low


def _is_eager(comm: MPI.Comm, nbytes: int) -> bool:
    """Whether a send ends although its receiver comes late; a neighbour may delay one of three."""
    data, taken = np.zeros(nbytes, np.uint8), list[float]()
    for _ in range(3):
        comm.Barrier()
        if comm.rank == 0:
            started = time.perf_counter()
            comm.Send([data, MPI.BYTE], 1)
            taken.append(time.perf_counter() - started)
        else:
            time.sleep(_LATE_S)
            comm.Recv([data, MPI.BYTE], 0)
    return bool(comm.bcast(comm.rank == 0 and min(taken) < _LATE_S / 2))


if __name__ == "__main__":
    found = {
        "one_way": ping_pong(MPI.COMM_WORLD),
        "eager_bytes": eager_bytes(MPI.COMM_WORLD),
    }
    if MPI.COMM_WORLD.rank == 0:
        os.write(1, json.dumps(found).encode() + b"\n")
