"""What a rank was doing: a small file each rank keeps current, readable after its death.

A rank's state and step -> `RANK.journal` (four 64-bit words, mapped into the rank's memory, so that compiled code
updates it with one store), and `RANK.fault`, where the interpreter writes the signal that kills it.
"""

from __future__ import annotations

import enum
import faulthandler
import mmap
import re
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

WORDS = struct.Struct("=4q")
_FAULT = re.compile(r"Fatal Python error: ([^\n]+)")
_SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Floating point exception": "SIGFPE",
    "Floating-point exception": "SIGFPE",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Illegal instruction": "SIGILL",
}


class RankState(enum.IntEnum):
    IDLE = 0
    RUNNING = 1
    FINISHED = 2


@dataclass(frozen=True)
class Entry:
    """What a journal says: `step` indexes the rank's program (-1 before the first), `run` counts from 1."""

    state: RankState
    step: int
    pid: int
    run: int


class Journal:
    """One rank's own journal, and where faults of this process are written from now on."""

    def __init__(self, directory: Path, rank: int, *, pid: int) -> None:
        path = _journal_path(directory, rank)
        path.write_bytes(WORDS.pack(RankState.IDLE, -1, pid, 0))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), WORDS.size)
        self._words = np.frombuffer(self._map, np.int64)
        self._fault = _fault_path(directory, rank).open("w")
        # Only here, and after MPI's start: MPI libraries bring handlers of their own (UCX prints a page of them).
        faulthandler.enable(self._fault, all_threads=False)

    @property
    def step_address(self) -> int:
        """Where compiled code stores the index of the step it enters."""
        return self._words.ctypes.data + self._words.itemsize

    def begin(self, run: int) -> None:
        self._words[1] = -1
        self._words[3] = run
        self._words[0] = RankState.RUNNING

    def finish(self) -> None:
        self._words[0] = RankState.FINISHED


def read_journal(directory: Path, rank: int) -> Entry | None:
    """The last entry of that rank; None where it has written none (or writes on another machine)."""
    try:
        state, step, pid, run = WORDS.unpack(_journal_path(directory, rank).read_bytes())
    except (FileNotFoundError, struct.error):
        return None
    return Entry(RankState(state), step, pid, run)


def read_fault(directory: Path, rank: int) -> str | None:
    """The signal that rank died of (`SIGSEGV`), as far as it could still write it down."""
    try:
        found = _FAULT.search(_fault_path(directory, rank).read_text(errors="replace"))
    except FileNotFoundError:
        return None
    return _SIGNALS.get(found.group(1).strip(), found.group(1).strip()) if found else None


def _journal_path(directory: Path, rank: int) -> Path:
    return directory / f"{rank}.journal"


def _fault_path(directory: Path, rank: int) -> Path:
    return directory / f"{rank}.fault"
