"""How messages between GPUs go: MPI is given their memory as it is where a self-test says so.

Driver of the devices -> Way, found out by two processes and remembered for this MPI and driver.

    rank ──► mpiexec -n 2 python -m … DRIVER        rank 0 ⇄ rank 1, from device to device
         ◄── what came there, or how it ended

An MPI that claims to take such memory and does not sends wrong bytes, ends its process or never
returns; here nobody misses it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from avial_lab.core.cache import Cache, digest
from avial_lab.core.errors import AvialError
from avial_lab.core.files import cache_folder
from avial_lab.core.toolchain import tool
from avial_lab.core.words import count
from avial_lab.machine.real_gpus import LIBRARY, gpus_here

VARIABLE = "AVIAL_GPU_MESSAGES"
"""In the environment: `direct` or `host`, whatever the self-test would say."""

LIMIT_S = 60.0
"""For the two processes to come to their end."""

SIZES = (1, 8, 4096, 65537, (1 << 20) + 3, 5 << 20)
"""Bytes of messages: those that MPI sends at once, and those that it announces first."""

_MARK = "avial: "
_LAUNCHERS = ("PMI", "HYDI", "HYDRA_", "MPI_LOCAL", "OMPI_", "PRTE_", "SLURM_", "PBS_", "LSB_")
"""What says in the environment that a process is a rank already, or where others would start."""


@dataclass(frozen=True)
class Way:
    """direct: MPI reads and writes the memory of devices; else that of the hosts, where boxes are
    brought first. why: what decided it.
    """

    direct: bool
    why: str

    def __str__(self) -> str:
        how = "straight from their memory" if self.direct else "through the memory of their hosts"
        return f"messages between GPUs go {how}: {self.why}"


@cache
def way_between(ranks: int, driver: str) -> Way:
    """Of the first so many ranks; all of them ask together, and one finds out."""
    from mpi4py import MPI

    from avial_lab.runtime.rank.world import communicator

    comm = communicator(ranks).comm
    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    hosts = here.size < comm.size
    here.Free()
    if hosts:
        return Way(False, "the ranks are on several hosts, and the self-test is of one")
    return comm.bcast(way_here(driver) if comm.rank == 0 else None)


def way_here(driver: str) -> Way:
    """Of ranks on this machine: as it was found before, or now. It loads MPI."""
    from mpi4py import MPI

    wanted = os.environ.get(VARIABLE, "")
    if wanted:
        return Way(wanted == "direct", f"{VARIABLE} is {wanted}")
    version = MPI.Get_library_version().strip()
    known, key = Cache(cache_folder() / "device-messages"), _key(version, driver)
    stored = known.get(key)
    if stored is not None:
        return Way(**json.loads(stored))
    way = _judged(driver, _name(version))
    known.put(key, json.dumps(asdict(way)).encode())
    return way


def _name(version: str) -> str:
    r"""Of what an MPI says of itself: the first line, up to a comma.

    >>> _name("MPICH Version:      5.0.2\nMPICH Release date: …")
    'MPICH 5.0.2'
    """
    return " ".join(version.splitlines()[0].replace("Version:", "").partition(",")[0].split())


def _key(version: str, driver: str) -> str:
    with suppress(OSError):
        version += Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
    return digest("1", version, driver, str(gpus_here()) if driver == "cuda" else "")


def _judged(driver: str, mpi: str) -> Way:
    try:
        wrong = _self_test(driver)
    except AvialError as error:
        wrong = f"could not begin ({error.message})"
    except OSError as error:
        wrong = f"could not begin ({error})"
    if wrong:
        return Way(False, f"the self-test of {mpi} {wrong}")
    return Way(True, f"the self-test of {mpi} found all bytes right, both ways")


def _self_test(driver: str) -> str:
    """Runs it in processes of their own; empty where all was right, else what was not."""
    command = [str(tool("mpiexec")), "-n", "2", sys.executable, "-m", __name__, driver]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(os.environ),
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            return f"did not end within {LIMIT_S:.0f} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    text = printed.decode(errors="replace")
    said = [json.loads(line.partition(_MARK)[2]) for line in text.splitlines() if _MARK in line]
    wrong = next((each["wrong"] for each in said if each["wrong"]), "")
    if wrong or len(said) == 2:
        return wrong
    code = process.returncode
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"ended its processes ({how})"


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    """For an mpiexec on this machine, whoever started this process."""
    kept = {name: ours[name] for name in ours if not name.startswith(_LAUNCHERS)}
    return {**kept, "HYDRA_LAUNCHER": "fork", "HYDRA_RMK": "user", "HYDRA_IFACE": "lo"}


# One of the two ----------------------------------------------------------------------------------


class _Memory(Protocol):
    """Of a device, by addresses that MPI is given."""

    def take(self, nbytes: int) -> int: ...

    def write(self, address: int, data: np.ndarray) -> None: ...

    def read(self, address: int, nbytes: int) -> np.ndarray: ...


class _Emulated:
    """In the memory of this process, as emulated devices have it."""

    def __init__(self) -> None:
        self._held: list[np.ndarray] = []

    def take(self, nbytes: int) -> int:
        self._held.append(np.zeros(nbytes, np.uint8))
        return self._held[-1].ctypes.data

    def write(self, address: int, data: np.ndarray) -> None:
        ctypes.memmove(address, data.ctypes.data, data.nbytes)

    def read(self, address: int, nbytes: int) -> np.ndarray:
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address)).copy()


class _Cuda:
    """Of an NVIDIA GPU: plain memory in its primary context, which MPI finds current."""

    def __init__(self, rank: int) -> None:
        self._cuda = ctypes.CDLL(LIBRARY)
        count, context = ctypes.c_int(), ctypes.c_void_p()
        self._do("cuInit", 0)
        self._do("cuDeviceGetCount", ctypes.byref(count))
        self._do("cuDevicePrimaryCtxRetain", ctypes.byref(context), rank % max(count.value, 1))
        self._do("cuCtxSetCurrent", context)

    def take(self, nbytes: int) -> int:
        address = ctypes.c_uint64()
        self._do("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(nbytes))
        return address.value

    def write(self, address: int, data: np.ndarray) -> None:
        device, host = ctypes.c_uint64(address), ctypes.c_void_p(data.ctypes.data)
        self._do("cuMemcpyHtoD_v2", device, host, ctypes.c_size_t(data.nbytes))
        self._do("cuCtxSynchronize")

    def read(self, address: int, nbytes: int) -> np.ndarray:
        data = np.zeros(nbytes, np.uint8)
        device, host = ctypes.c_uint64(address), ctypes.c_void_p(data.ctypes.data)
        self._do("cuMemcpyDtoH_v2", host, device, ctypes.c_size_t(nbytes))
        return data

    def _do(self, name: str, *arguments: object) -> None:
        error = self._cuda[name](*arguments)
        if error:
            raise AvialError(f"{name} failed (CUDA error {error})")


def _content(rank: int, nbytes: int, turn: int) -> np.ndarray:
    """What that rank sends in that turn: other bytes than in any other."""
    draws = np.random.default_rng((rank, nbytes, turn))
    return draws.integers(0, 256, nbytes, np.uint8)


def _exchange(comm: Any, memory: _Memory, nbytes: int, turn: int) -> str:  # noqa: ANN401
    """Both ways at once, or one after the other; what was wrong with what came."""
    from mpi4py import MPI

    rank, peer = comm.rank, 1 - comm.rank
    ends = memory.take(nbytes), memory.take(nbytes)
    memory.write(ends[0], _content(rank, nbytes, turn))
    memory.write(ends[1], np.full(nbytes, 0xA5, np.uint8))
    out, into = ([MPI.memory.fromaddress(end, nbytes), MPI.BYTE] for end in ends)
    if turn == 0:
        MPI.Request.Waitall([comm.Irecv(into, peer), comm.Isend(out, peer)])
    else:
        for sender in (0, 1):
            if rank == sender:
                comm.Send(out, peer)
            else:
                comm.Recv(into, peer)
    wrong = int((memory.read(ends[1], nbytes) != _content(peer, nbytes, turn)).sum())
    return f"brought {wrong:,} wrong of {count(nbytes, 'byte')}" if wrong else ""


def _tried(driver: str) -> str:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.size != 2:
        return f"began with {count(comm.size, 'rank')} in place of 2"
    memory: _Memory = _Cuda(comm.rank) if driver == "cuda" else _Emulated()
    found = [_exchange(comm, memory, nbytes, turn) for nbytes in SIZES for turn in (0, 1)]
    return next(filter(None, found), "")


def main() -> None:
    try:
        wrong = _tried(sys.argv[1])
    except (AvialError, OSError) as error:
        wrong = f"found no memory to send ({error})"
    sys.stdout.write(f"{_MARK}{json.dumps({'wrong': wrong})}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
