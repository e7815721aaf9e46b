"""How long short messages take among ranks that share cores: ping-pongs of all pairs at once.

Nothing -> one line of JSON from rank 0, {"one_way_s": seconds}: the mean, as now and then one waits
for another's turn on the core.

    mpiexec -n 8 python -m avial_lab.runtime.rank.crowded
"""

from __future__ import annotations

import json
import os
import time

import numpy as np
from mpi4py import MPI

from avial_lab.runtime.rank.meeting import meet

_SECONDS = 0.4
_BYTES = 512


def one_way_s(comm: MPI.Comm) -> float:
    """All ranks of `comm`, an even number, call it; what rank 0 found: the mean of all pairs."""
    data, on = np.zeros(_BYTES, np.uint8), np.ones(1, np.uint8)
    peer, turns = comm.rank ^ 1, 0
    meet(comm)
    begun = time.perf_counter()
    while on[0]:
        if comm.rank < peer:
            on[0] = time.perf_counter() - begun < _SECONDS
            comm.Send([on, MPI.BYTE], peer)
            comm.Send([data, MPI.BYTE], peer)
            comm.Recv([data, MPI.BYTE], peer)
        else:
            comm.Recv([on, MPI.BYTE], peer)
            comm.Recv([data, MPI.BYTE], peer)
            comm.Send([data, MPI.BYTE], peer)
        turns += 1
    took = (time.perf_counter() - begun) / (2 * turns)
    meet(comm)
    return float(comm.allreduce(took) / comm.size)


if __name__ == "__main__":
    found = one_way_s(MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        os.write(1, json.dumps({"one_way_s": found}).encode() + b"\n")
