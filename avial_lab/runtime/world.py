"""MPI as an engine needs it: communicators of the first n ranks, handles as integers, clocks.

A number of ranks -> Communicator. MPI is started by mpi4py; compiled code calls the very library
mpi4py loaded.
"""

from __future__ import annotations

import ctypes
import re
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mpi4py import MPI

from avial_lab.errors import ClusterError

_STATUS_BYTES = 256
_ROUNDS = 16


@dataclass(frozen=True)
class Communicator:
    """Exactly the first `comm.size` ranks of the world, apart from all other messages.

    Adding `offset_s` to this rank's monotonic clock gives rank 0's.
    """

    comm: MPI.Intracomm
    offset_s: float


@cache
def communicator(ranks: int) -> Communicator:
    """The communicator of ranks 0 … ranks - 1; made once, by all of them together."""
    world = MPI.COMM_WORLD
    if ranks > world.size:
        raise ClusterError(
            f"the program needs {ranks} ranks, and this MPI world has {world.size}",
            hint=f"start a cluster of {ranks} engines, or compile for fewer ranks",
        )
    comm = world.Create_group(world.group.Incl(list(range(ranks))), tag=ranks)
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    return Communicator(comm, _clock_offset(comm))


@cache
def handles() -> dict[str, int]:
    """The globals of compiled code that are the same for every run (`avial_comm` is not among
    them).
    """
    make_symbols_global()
    return {
        "avial_byte": MPI._handleof(MPI.BYTE),
        "avial_status_ignore": ctypes.addressof(_status()),
    }


def handle(comm: MPI.Intracomm) -> int:
    return MPI._handleof(comm)


def error_string(code: int) -> str:
    return MPI.Get_error_string(code)


@cache
def make_symbols_global() -> None:
    """Let shared objects loaded from now on find `MPI_Isend` and its kin.

    Opening mpi4py's extension again with RTLD_GLOBAL also lifts the libmpi it was linked to,
    whichever that is, so compiled code and mpi4py share one MPI.
    """
    library = ctypes.CDLL(MPI.__file__, mode=ctypes.RTLD_GLOBAL)
    if not hasattr(library, "MPI_Isend"):
        raise ClusterError("mpi4py's MPI library does not show its symbols to compiled programs")


def release_shared_memory() -> None:
    """Take the names of MPICH's shared segments away, as soon as every rank has mapped them.

    Otherwise a world that is killed leaves some megabytes in /dev/shm each time. All ranks call it.
    """
    MPI.COMM_WORLD.Barrier()
    try:
        maps = Path("/proc/self/maps").read_text()
    except FileNotFoundError:
        return  # not Linux
    for path in set(re.findall(r"/dev/shm/mpich_shm_\S+$", maps, re.MULTILINE)):
        Path(path).unlink(missing_ok=True)  # a rank beside this one may have been first


@cache
def _status() -> ctypes.Array[ctypes.c_char]:
    """Room for one MPI_Status. A real one nobody reads needs no MPI's own value of
    MPI_STATUS_IGNORE.
    """
    return ctypes.create_string_buffer(_STATUS_BYTES)


def _clock_offset(comm: MPI.Intracomm) -> float:
    """Seconds to add to this rank's CLOCK_MONOTONIC to get rank 0's: of `_ROUNDS` round trips, the
    fastest's.

    Ranks on one machine read the same clock, so there it is 0.
    """
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    spread = comm.allreduce(int(node.size != comm.size))
    node.Free()
    return measured_offset(comm) if spread else 0.0


def measured_offset(comm: MPI.Intracomm) -> float:
    """As `_clock_offset`, by messages alone: right to half the fastest round trip."""
    offset = 0.0
    for peer in range(1, comm.size):
        if comm.rank == 0:
            for _ in range(_ROUNDS):
                comm.recv(source=peer)
                comm.send(time.monotonic(), dest=peer)
        elif comm.rank == peer:
            offset = min(_round_trip(comm) for _ in range(_ROUNDS))[1]
    return offset


def _round_trip(comm: MPI.Intracomm) -> tuple[float, float]:
    """How long a question to rank 0 took, and the offset it tells."""
    asked = time.monotonic()
    comm.send(None, dest=0)
    told = comm.recv(source=0)
    answered = time.monotonic()
    return answered - asked, told - (asked + answered) / 2
