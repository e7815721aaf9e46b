"""MPI as an engine needs it: communicators of the first n ranks, handles as integers, clocks.

A number of ranks -> Communicator. MPI is started by mpi4py; compiled code calls the very library
mpi4py loaded.
"""

from __future__ import annotations

import ctypes
import platform
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from mpi4py import MPI

from avial_lab.core.errors import ClusterError
from avial_lab.core.regions import Box
from avial_lab.runtime.rank.clock import Reading
from avial_lab.runtime.rank.threads import Masks, cores

_STATUS_BYTES = 256
_MOST_BYTES = 1 << 30
"""Of a message: MPI counts in ints."""
_ROUNDS = 32
_RESOLUTION_NS = max(1.0, time.get_clock_info("monotonic").resolution * 1e9)


@dataclass(frozen=True)
class Communicator:
    """Exactly the first `comm.size` ranks of the world, apart from all other messages."""

    comm: MPI.Intracomm
    one_clock: bool

    def read_clock(self) -> Reading:
        """How this rank's clock relates to rank 0's; all ranks ask together."""
        if self.one_clock:
            return Reading(time.monotonic_ns(), 0.0, _RESOLUTION_NS)
        return compared(self.comm)


@cache
def communicator(ranks: int) -> Communicator:
    """The communicator of ranks 0 … ranks - 1; made once, by all of them together."""
    world = MPI.COMM_WORLD
    if ranks > world.size:
        raise ClusterError(
            f"the program needs {ranks} ranks, and MPI_COMM_WORLD has {world.size}",
            hint=f"start a cluster of {ranks} engines, or compile for fewer ranks",
        )
    comm = world.Create_group(world.group.Incl(list(range(ranks))), tag=ranks)
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    return Communicator(comm, _same_clock(comm))


@cache
def neighbours(ranks: int) -> tuple[Masks, int]:
    """Of the first `ranks` ranks those on this machine: the cores each may use, and which of them
    this one is. All of them call it.
    """
    here = communicator(ranks).comm.Split_type(MPI.COMM_TYPE_SHARED)
    masks = here.allgather(cores())
    place = here.rank
    here.Free()
    return masks, place


CROWD = 4
"""Ranks on a core from which those that wait in MPI's busy loop keep the others from coming."""

_PAUSE_S = 1e-4
"""For each rank on a core, while it waits."""


def all_here(comm: MPI.Intracomm, *, on_a_core: float) -> None:
    """Returns once every rank has come; `on_a_core`: how many of them share one. In a crowd those
    that wait sleep: they would take the time in which the others are called.
    """
    if on_a_core <= CROWD:
        comm.Barrier()
        return
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(_PAUSE_S * on_a_core)


def exchange(
    comm: MPI.Intracomm,
    elements: np.ndarray,
    sends: Sequence[tuple[int, Box]],
    receives: Sequence[tuple[int, Box]],
) -> None:
    """Boxes of an array to other ranks and from them, into their places. Both sides name the boxes
    between two ranks in the same order; messages of more than 2 GiB are several.
    """
    taken = [np.empty(box.shape, elements.dtype) for _, box in receives]
    given = [np.ascontiguousarray(elements[box.slices]) for _, box in sends]
    waiting: list[MPI.Request] = []
    for (rank, _), part in zip(receives, taken, strict=True):
        waiting += [comm.Irecv([each, MPI.BYTE], rank) for each in _messages(part)]
    for (rank, _), part in zip(sends, given, strict=True):
        waiting += [comm.Isend([each, MPI.BYTE], rank) for each in _messages(part)]
    MPI.Request.Waitall(waiting)
    for (_, box), part in zip(receives, taken, strict=True):
        elements[box.slices] = part


def _messages(part: np.ndarray) -> list[np.ndarray]:
    flat = part.reshape(-1).view(np.uint8)
    return [flat[low : low + _MOST_BYTES] for low in range(0, flat.nbytes, _MOST_BYTES)]


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
        raise ClusterError("mpi4py's MPI library does not export its symbols to compiled programs")


def release_shared_memory() -> None:
    """Take the names of MPICH's shared segments away, as soon as every rank has mapped them.

    Otherwise a world that is killed leaves some megabytes in /dev/shm each time. All ranks call it.
    """
    MPI.COMM_WORLD.Barrier()
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
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


def _same_clock(comm: MPI.Intracomm) -> bool:
    """Whether all ranks read the very same clock: one machine since one boot, in one name space."""
    here = [platform.node()]
    with suppress(OSError):  # not Linux, or an old one
        here.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8"))
        here.append(str(Path("/proc/self/ns/time").readlink()))
    return len(set(comm.allgather(tuple(here)))) == 1


def compared(comm: MPI.Intracomm, *, clock_ns: Callable[[], int] = time.monotonic_ns) -> Reading:
    """This rank's clock against rank 0's, by messages alone; all ranks do it together.

    Of `_ROUNDS` questions the one that was answered fastest is the most exact: rank 0 said its time
    between the question and the answer, so the middle of the two is right to half of what lies
    between them, however unlike the ways there and back are.

        rank 0   ────────told────────►           offset = told - (asked + answered) / 2
                        ↗    ↘
        this     ──asked──────answered──►        error <= (answered - asked) / 2
    """
    word, best = np.zeros(1, np.int64), Reading(clock_ns())
    for peer in range(1, comm.size):
        for _ in range(_ROUNDS if comm.rank in (0, peer) else 0):
            if comm.rank == 0:
                comm.Recv(word, source=peer)
                word[0] = clock_ns()
                comm.Send(word, dest=peer)
                continue
            asked = clock_ns()
            comm.Send(word, dest=0)
            comm.Recv(word, source=0)
            answered = clock_ns()
            error = (answered - asked) / 2 + _RESOLUTION_NS
            if best.error_ns == 0 or error < best.error_ns:
                best = Reading(answered, int(word[0]) - (asked + answered) / 2, error)
    return best
