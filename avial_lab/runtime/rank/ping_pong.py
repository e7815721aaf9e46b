"""How long messages take from rank to rank: a ping-pong of two ranks, over sizes.

Nothing -> one line of JSON from rank 0: [bytes, seconds one way] each, the median of many.

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


def ping_pong(comm: MPI.Intracomm) -> list[tuple[int, float]]:
    """Both ranks of `comm` call it; what rank 0 found."""
    return [(nbytes, _one_way_s(comm, nbytes)) for nbytes in SIZES]


def _one_way_s(comm: MPI.Intracomm, nbytes: int) -> float:
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


if __name__ == "__main__":
    found = ping_pong(MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        os.write(1, json.dumps(found).encode() + b"\n")
