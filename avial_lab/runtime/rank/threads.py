"""Threads of a rank: how many, on which cores, and the OpenMP runtime they come from.

A loaded program, a number of threads -> the program set up to run on as many. Without the library
it is one thread, and a note that says so.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import re
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from avial_lab.core.errors import ClusterError
from avial_lab.machine.constants import ADDITIONS_WORTH_THREADS
from avial_lab.machine.cpu import Core, allowed, cores_of, in_turn
from avial_lab.runtime.native.loader import LoadedProgram, mapped_files
from avial_lab.runtime.rank.blas import products

ENTRIES = (
    "fork_call",
    "global_thread_num",
    "push_num_threads",
    "barrier",
    "for_static_init_8u",
    "for_static_fini",
    "dispatch_init_8u",
    "dispatch_next_8u",
)
"""Of libomp, what programs call: `__kmpc_…`, handed to them as `avial_omp_…` (`threads.c`)."""

MOST = 512
"""Threads of one rank, also where more than the cores are asked for."""

BLOCKTIME = "10"
"""Milliseconds that a thread without work keeps its core, then it sleeps. The next phase finds it
awake, also where the scheduler has put the main thread off for one of its slices (some ms).
"""

THREADS = "threads of each rank; default: the machine's cores divided by the ranks on it"
OVERSUBSCRIBE = "allow more threads than hardware threads"
"""For those who ask on a command line."""

_DISTRIBUTIONS = ("cmeel-libomp", "intel-openmp")
_LIBRARIES = re.compile(r"/(libomp|libiomp5)\.(so|dylib)$")


Masks = Sequence[tuple[Core, ...]]
"""Of the ranks on one machine, the cores each may use."""


@dataclass(frozen=True)
class Threads:
    """How many each rank of a run is to have; None: as many as its share of the cores. With
    `oversubscribe` they may be more than those. worth: operations on elements, from which on a nest
    is divided.
    """

    count: int | None = None
    oversubscribe: bool = False
    worth: int = ADDITIONS_WORTH_THREADS

    def on(self, masks: Masks, place: int) -> int:
        """For the rank at `place` of those on a machine; raises ClusterError for a number that
        makes no sense there.

        By default one for each core: a second one there would share its vector units and caches.

        >>> two = ((0, 2), (1, 3))
        >>> Threads().on([two], 0), Threads().on([two] * 3, 2), Threads(4).on([two], 0)
        (2, 1, 4)
        """
        share = share_of(masks, place)
        if self.count is None:
            return len(share)
        most = MOST if self.oversubscribe else sum(map(len, share))
        if 1 <= self.count <= most:
            return self.count
        ranks = f"{len(masks)} ranks on " if len(masks) > 1 else ""
        more = "" if self.oversubscribe else f"; up to {MOST} with oversubscribe"
        raise ClusterError(
            f"{self.count} threads for a rank is an invalid value: {ranks}{_number(masks[place])}",
            hint=f"expected 1 to {most}{more}",
        )


def _number(cores: Sequence[Core]) -> str:
    threads = sum(map(len, cores))
    text = f"{len(cores)} core{'s' * (len(cores) != 1)}"
    return text if threads == len(cores) else f"{text} ({threads} hardware threads)"


def cores() -> tuple[Core, ...]:
    """The cores that this process may use; as many of them as its control group may keep busy."""
    own = cores_of(allowed())
    return own[: max(1, _quota(len(own)))]


@cache
def _quota(most: int) -> int:
    """Whole cores' worth of time that the control group has, if it has a limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return most  # not Linux, or an older kind of groups
    return most if quota == "max" else min(most, -(-int(quota) // int(period)))


def share_of(masks: Masks, place: int) -> tuple[Core, ...]:
    """The cores of the rank at `place` among those of its machine, which may use `masks`.

    Where all may use the same they are divided; where whoever started them has done so already
    they stay with what they have.

    >>> a, b, c, d = (0, 4), (1, 5), (2, 6), (3, 7)
    >>> share_of([(a, b, c, d)] * 2, 1), share_of([(a, b), (c, d)], 1), share_of([(a,)] * 2, 1)
    (((2, 6), (3, 7)), ((2, 6), (3, 7)), ((0, 4),))
    """
    mine = masks[place]
    if any(mask != mine for mask in masks):
        return mine
    each = len(mine) // len(masks)
    return mine[place * each : (place + 1) * each] if each else (mine[place % len(mine)],)


@dataclass(frozen=True)
class Team:
    """The threads that a rank has got; the note says where they are fewer than asked for."""

    count: int = 1
    note: str = ""


MISSING = "one thread a rank: the OpenMP runtime is missing (pip install cmeel-libomp)"


@contextmanager
def team(
    program: LoadedProgram, wanted: Threads, masks: Masks, place: int, *, at_first_use: bool = False
) -> Generator[Team]:
    """Let `program` run on the threads that are wanted, on this rank's cores as long as this lasts.

    A run is on the thread that enters here, and others that wait for its loops, from the beginning
    or `at_first_use`. A BLAS that it calls has as many of its own.
    """
    count = wanted.on(masks, place)
    bound = _bound_at_first_use if at_first_use else _bound
    with (
        products(program, count),
        _on_threads(program, wanted, count, share_of(masks, place), bound) as hands,
    ):
        yield hands


@contextmanager
def _on_threads(
    program: LoadedProgram,
    wanted: Threads,
    count: int,
    share: tuple[Core, ...],
    bound: Callable[[LoadedProgram, int, tuple[Core, ...]], AbstractContextManager[None]],
) -> Generator[Team]:
    if not program.exports("avial_omp_bind"):  # it has no loop to divide
        yield Team(count)
        return
    library = openmp() if count > 1 else None
    program.set_globals({"avial_threads": 1 if library is None else count})
    if library is None:
        yield Team(1, MISSING if count > 1 else "")
        return
    program.set_globals({"avial_worth": wanted.worth})
    program.set_globals(_entries(library))
    with bound(program, count, share):
        yield Team(count)


_GUARDED = ("fork_call", "for_static_init_8u", "dispatch_init_8u", "dispatch_next_8u")
"""Of these, those that a program calls through functions of its own in a run in the caller's
process (`native/ownership/stopping.c`).
"""


def threads_here(program: LoadedProgram) -> int:
    """Set `program` up for its runs in the caller's process, with a thread for each of its cores;
    how many there are. They stay where the system puts them: others use them, too.
    """
    if not program.exports("avial_omp_bind"):
        return 1
    count = len(cores())
    library = openmp() if count > 1 else None
    program.set_globals({"avial_threads": 1 if library is None else count})
    if library is None:
        return 1
    entries = _entries(library)
    program.set_globals({"avial_worth": Threads().worth, **entries})
    for name in _GUARDED:
        own = _address(program.library, f"avial_{name}_here")
        theirs = entries[f"avial_omp_{name}"]
        program.set_globals({f"avial_here_{name}": theirs, f"avial_omp_{name}": own})
    return count


@contextmanager
def _bound(program: LoadedProgram, count: int, share: tuple[Core, ...]) -> Generator[None]:
    """The team stays on these cores; afterwards this thread, which others use too, may go where it
    could before.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    places = in_turn(share)
    program.library.avial_omp_bind(count, len(places), (ctypes.c_int32 * len(places))(*places))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def _bound_at_first_use(
    program: LoadedProgram, count: int, share: tuple[Core, ...]
) -> Generator[None]:
    """The same for a run that may divide no loop: then it stays where it is."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    places = in_turn(share)
    cores = (ctypes.c_int32 * len(places))(*places)
    program.library.avial_omp_bind_later(count, len(places), cores)
    try:
        yield
    finally:
        if program.library.avial_omp_bind_later(0, 0, None):
            os.sched_setaffinity(0, before)


@cache
def openmp() -> ctypes.CDLL | None:
    """The library, in this process; None where there is none.

    One that is here already is the one to use: two of them in a process end it.
    """
    for path in (*mapped_files(_LIBRARIES), *_installed()):
        try:
            library = ctypes.CDLL(str(path))
            library.kmp_set_defaults(f"KMP_BLOCKTIME={BLOCKTIME}".encode())
        except (OSError, AttributeError):
            continue
        return library
    return None


def _installed() -> list[Path]:
    """Where it would be: in the wheels that have it, and in the environment."""
    found: list[Path] = []
    for name in _DISTRIBUTIONS:
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        places = [Path(str(file.locate())) for file in files]
        found += [place for place in places if _LIBRARIES.search(str(place))]
    # conda's environments have it in a folder of their own.
    found += [Path(sys.prefix) / "lib" / f"libomp.{end}" for end in ("so", "dylib")]
    return sorted(found, key=lambda place: "libiomp5" in place.name)  # there under both names


@cache
def _entries(library: ctypes.CDLL) -> dict[str, int]:
    """What programs call of it, by their globals."""
    return {f"avial_omp_{name}": _address(library, f"__kmpc_{name}") for name in ENTRIES}


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(library[name], ctypes.c_void_p).value or 0
