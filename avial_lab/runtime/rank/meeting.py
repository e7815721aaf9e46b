"""A barrier where who waits sleeps: MPI's own would take the core of who works meanwhile.

A communicator -> nothing, when all of its ranks are there.
"""

from __future__ import annotations

import time

from mpi4py import MPI

_LOOK_AGAIN_S = 1e-3


def meet(comm: MPI.Comm) -> None:
    """All ranks of `comm` call it."""
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(_LOOK_AGAIN_S)
