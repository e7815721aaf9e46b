"""How MPI ranks are started on this machine, and how they are ended.

A number of ranks -> the command and the environment; processes -> none.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

import psutil

import avial_lab
from avial_lab.core.errors import ClusterError
from avial_lab.core.toolchain import tool
from avial_lab.core.words import count, format_bytes
from avial_lab.machine.cpu import allowed
from avial_lab.runtime.rank.copies import copies

_SHM_BYTES = 1 << 20
"""What MPICH takes of /dev/shm for each rank, about."""

_RANK_BYTES = 100 << 20
"""What a rank takes of memory with Python, NumPy, MPI and, in a cluster, IPython."""

_FILES_BYTES = 1 << 20
"""What the files of a run without data take, and some room."""

_LONGEST_PARENT = 60
"""Characters of a folder's parent: a socket's address has room for about a hundred."""

_KILL_S = 10.0
"""How long a killed process may take to go; it has to come out of the system call it is in."""


def crowding(ranks: int, cores: int, node: str) -> str:
    """What to say of more ranks than cores on a machine."""
    on = f"{count(ranks, 'rank')} share {count(cores, 'core')} on {node}"
    return f"{on}: runs take longer than with one core per rank"


def crowd_warning(ranks: int) -> str:
    """What to say before so many ranks start here; "" for up to two on a core, as in lessons."""
    cores = len(allowed())
    if ranks <= 2 * cores:
        return ""
    memory = format_bytes(ranks * _RANK_BYTES)
    return f"{crowding(ranks, cores, 'this machine')}, and take about {memory} of memory"


@cache
def mpiexec_options() -> tuple[str, ...]:
    """What this machine's mpiexec is asked for, besides the number of ranks.

    Hydra (MPICH's) stays off the network: on one machine it does not matter whether the host's name
    resolves, or which VPNs and firewalls there are. And it starts them itself: inside Slurm, PBS
    and their like it would ask the manager, for other nodes, which cannot connect to this one's
    loopback.
    """
    version = subprocess.run(
        [tool("mpiexec"), "--version"], capture_output=True, encoding="utf-8", check=False
    )
    if "HYDRA" not in version.stdout.upper():
        return ()
    loopback = _loopback()
    return ("-launcher", "fork", "-rmk", "user", *(("-iface", loopback) if loopback else ()))


def _loopback() -> str:
    """The interface that leads nowhere but here; empty where there is none."""
    return next((name for _, name in socket.if_nameindex() if name in ("lo", "lo0")), "")


def stopped_among(processes: Mapping[int, psutil.Process], ranks: Iterable[int]) -> list[int]:
    """The ranks whose processes, as far as they are on this machine, are suspended (SIGSTOP, or a
    debugger).
    """
    found: list[int] = []
    for rank in ranks:
        with contextlib.suppress(KeyError, psutil.Error):
            if processes[rank].status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP):
                found.append(rank)
    return found


MANAGERS = {"SLURM_JOB_ID": "Slurm", "PBS_JOBID": "PBS", "LSB_JOBID": "LSF"}
"""What says, in the environment, that a manager of a cluster started us; and its name."""


def local_note() -> str:
    """That ranks started without a word about where are on this machine, in a manager's job; empty
    outside of any.
    """
    job = manager()
    return f"inside {job}: the ranks are on this machine alone" if job else ""


def manager() -> str:
    """Of the job that this process is part of: `Slurm job 12`; empty outside of any."""
    found = ((name, os.environ.get(variable)) for variable, name in MANAGERS.items())
    return next((f"{name} job {job}" for name, job in found if job), "")


def refuse_copies() -> None:
    """ClusterError where mpiexec or srun started this program several times: each copy would start
    all ranks.
    """
    number, variable = copies()
    if number > 1:
        raise ClusterError(
            f"this program was started {number} times ({variable}={number}), and each would "
            "start all ranks",
            hint="start it once, without mpiexec or srun: it starts its ranks itself "
            "(-n; --hosts or --slurm for those on other machines)",
        )


def environment(ranks: int, *, here: bool = True) -> dict[str, str]:
    """What ranks get on top of the caller's environment; `here`: on this machine."""
    package_root = str(Path(avial_lab.__file__).parent.parent)
    paths = [path for path in (os.environ.get("PYTHONPATH"), package_root) if path]
    changes = {
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUTF8": "1",  # our own files are, whatever the locale
        "UCX_HANDLE_ERRORS": "none",  # a crash is reported by us, not in a page of C frames
        "UCX_LOG_LEVEL": "fatal",
        # One thread of a rank talks to MPI; the locks of MPI_THREAD_MULTIPLE, mpi4py's default,
        # cost a fifth of a small message.
        "MPI4PY_RC_THREAD_LEVEL": "funneled",
    }
    if not here:
        return changes
    if loopback := _loopback():
        changes["UCX_NET_DEVICES"] = loopback  # UCX would listen on the network's address too
    if ranks > len(allowed()):
        # MPICH waits in a busy loop, and even its yielding keeps cores from ranks that compute.
        # Sleeping instead costs 0.1 ms a message while cores are free, and saves 1 ms when not.
        changes |= {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "10"}
    return changes


def refuse_crowd(ranks: int) -> None:
    """ClusterError for more ranks than this machine has room for; trying would stall it."""
    room = max(psutil.virtual_memory().total // _RANK_BYTES, 1)
    if ranks > room:
        raise ClusterError(
            f"{ranks} ranks do not fit on this machine: its memory suffices for about {room}",
            hint="use fewer ranks, or several machines: --hosts node1,node2",
        )


def start_hint(ranks: int) -> str:
    """What to do when ranks do not come up."""
    folder = tempfile.gettempdir()
    if shutil.disk_usage(folder).free < _FILES_BYTES:
        return f"{folder} is full: free some space there, or set TMPDIR to another folder"
    try:
        free = shutil.disk_usage("/dev/shm").free
    except FileNotFoundError:
        free = None
    if free is not None and free < _SHM_BYTES * (ranks + 1):
        return (
            f"/dev/shm has {free / 2**20:.1f} MiB left, and MPI shares memory through it: make it "
            "larger (docker run --shm-size=256m), or remove what is in it"
        )
    return "run `avial-lab doctor`; it tries MPI with two ranks and reports what is missing"


def private_folder(prefix: str) -> Path:
    """A new folder of this user alone (0700), with a path short enough for a socket's address."""
    long = len(tempfile.gettempdir()) > _LONGEST_PARENT
    return Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp" if long else None))


def last_lines(text: str, *, count: int = 20) -> str:
    """The end of what a program printed."""
    return "\n".join(text.splitlines()[-count:]) or "(no output)"


def memory_kills() -> int:
    """How often the system has killed a process of this machine because memory had run out; 0 where
    it does not say.
    """
    try:
        counters = Path("/proc/vmstat").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0  # not Linux
    return next((int(line.split()[1]) for line in counters if line.startswith("oom_kill ")), 0)


def recent_memory_kills() -> int:
    """The same of this second: to read it takes as long as a short run."""
    return _memory_kills_of(int(time.monotonic()))


@lru_cache(1)
def _memory_kills_of(second: int) -> int:
    del second  # another one is another reading
    return memory_kills()


def is_alive(process: psutil.Process) -> bool:
    """Whether it still runs; a zombie, which only waits to be collected, does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Ends:
    """Of processes that are asked about before every run: which of them have ended. One system call
    tells it where the kernel hands out descriptors of processes.
    """

    def __init__(self, processes: Sequence[psutil.Process]) -> None:
        self.processes = processes
        self._poll: select.poll | None = None
        self._asked = threading.Lock()  # a poll object serves one thread at a time
        opened: list[int] = []
        weakref.finalize(self, _close_all, opened)
        poll = select.poll()
        try:
            for process in processes:
                opened.append(os.pidfd_open(process.pid))
                poll.register(opened[-1], select.POLLIN)
        except (AttributeError, OSError):
            return  # one has ended, or this is no such system
        if all(map(is_alive, processes)):  # a number may be another process's by now
            self._poll = poll

    def any(self) -> bool:
        if self._poll is None:
            return not all(map(is_alive, self.processes))
        with self._asked:
            return bool(self._poll.poll(0))


def _close_all(descriptors: list[int]) -> None:
    for each in descriptors:
        os.close(each)


def kill_all(processes: Sequence[psutil.Process]) -> None:
    """SIGKILL for the processes and all they started; returns when they are gone.

    A rank blocked in MPI heeds nothing less.
    """
    family = [member for process in processes for member in _family(process)]
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    deadline = time.monotonic() + _KILL_S
    while any(map(is_alive, family)):
        if time.monotonic() > deadline:
            pids = [process.pid for process in family if is_alive(process)]
            raise ClusterError(
                f"the processes {pids} cannot be ended, not even by SIGKILL",
                hint="restart this machine",
            )
        time.sleep(0.005)


def _family(process: psutil.Process) -> list[psutil.Process]:
    """The process and its descendants; only itself where it is gone."""
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
