"""How long short messages take among ranks that share cores: turns in which each rank exchanges one
with both of its neighbours in a ring, as programs of loops do.

Nothing -> one line of JSON from rank 0, {"turn_s": seconds}: the mean, as now and then all wait for
one that waits for another's turn on its core. (Pairs of ranks on cores of their own would not: two
that run exchange hundreds of messages while the other two sleep.)

    mpiexec -n 8 python -m avial_lab.runtime.rank.crowded
"""

from __future__ import annotations

import json
import os
import time

import numpy as np
from mpi4py import MPI

from avial_lab.runtime.rank.meeting import meet

_SECONDS = 0.3
_FIRST_TURNS = 4
_BYTES = 512


def turn_s(comm: MPI.Comm) -> float:
    """All ranks of `comm` call it: the mean of so many turns as take some tenths of a second."""
    turns, took = _FIRST_TURNS, 0.0
    while took < _SECONDS / 2:
        meet(comm)
        begun = time.perf_counter()
        for _ in range(turns):
            _exchange(comm)
        took = float(comm.allreduce(time.perf_counter() - begun, MPI.MAX))
        turns *= 2
    return 2 * took / turns


def _exchange(comm: MPI.Comm) -> None:
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    data, room = np.zeros(_BYTES, np.uint8), np.zeros((2, _BYTES), np.uint8)
    MPI.Request.Waitall([
        comm.Irecv([room[0], MPI.BYTE], left, 0),
        comm.Irecv([room[1], MPI.BYTE], right, 1),
        comm.Isend([data, MPI.BYTE], right, 0),
        comm.Isend([data, MPI.BYTE], left, 1),
    ])  # fmt: skip


if __name__ == "__main__":
    found = turn_s(MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        os.write(1, json.dumps({"turn_s": found}).encode() + b"\n")
