"""What a rank was doing: a small file each rank keeps current, readable after its death.

A rank's state and step -> files in a folder that the caller reads:

    RANK.journal  64-bit words, mapped into the rank's memory: compiled code needs one store a step
    RANK.out      what it printed (printed.py)
    RANK.exit     the status it ended with, written by its witness (see `witnessed`)
    RANK.fault    the signal that killed it, as the interpreter saw it; where there is no witness
"""

from __future__ import annotations

import enum
import faulthandler
import mmap
import re
import shlex
import signal
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

MOST_PHASES = 1000
"""Whose rounds a journal has room to count."""

WORDS = struct.Struct(f"={5 + MOST_PHASES}q")
"""state, step, pid, run, bytes sent, how often each phase was begun; the last two of a program of
loops alone.
"""

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
    """What a journal says: `step` indexes the rank's program (-1 before the first), `run` counts
    from 1.
    """

    state: RankState
    step: int
    pid: int
    run: int
    sent_bytes: int = 0
    begun: tuple[int, ...] = ()


class Journal:
    """One rank's own journal, and where faults of this process are written from now on."""

    def __init__(self, directory: Path, rank: int, *, pid: int, faults: bool = True) -> None:
        """faults: of this process are to be written there."""
        path = _journal_path(directory, rank)
        path.write_bytes(WORDS.pack(RankState.IDLE, -1, pid, *[0] * (WORDS.size // 8 - 3)))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), WORDS.size)
        self._words = np.frombuffer(self._map, np.int64)
        if not faults:
            return
        self._fault = _fault_path(directory, rank).open("w", encoding="utf-8")
        # Only here, and after MPI's start: MPI libraries bring handlers of their own (UCX prints a
        # page of them).
        faulthandler.enable(self._fault, all_threads=False)

    @property
    def step_address(self) -> int:
        """Where compiled code stores the index of the step it enters."""
        return self._words.ctypes.data + self._words.itemsize

    @property
    def step(self) -> int:
        """What stands there: the step that was entered last; -1 before the first."""
        return int(self._words[1])

    @property
    def counts_address(self) -> int:
        """Where compiled code counts: bytes sent, then a word for each of `MOST_PHASES` phases."""
        return self._words.ctypes.data + 4 * self._words.itemsize

    def begin(self, run: int) -> None:
        self._words[1] = -1
        self._words[4:] = 0
        self._words[3] = run
        self._words[0] = RankState.RUNNING

    def finish(self) -> None:
        self._words[0] = RankState.FINISHED


def read_journal(directory: Path, rank: int) -> Entry | None:
    """The last entry of that rank; None where it has written none here."""
    try:
        words = WORDS.unpack(_journal_path(directory, rank).read_bytes())
    except (FileNotFoundError, struct.error):
        return None
    state, step, pid, run, sent, *begun = words
    if state not in RankState.__members__.values():  # a program that left an array wrote over it
        return Entry(RankState.RUNNING, -1, 0, run)
    return Entry(RankState(state), step, pid, run, sent, tuple(begun))


def witnessed(program: Sequence[str], directory: Path) -> list[str]:
    """The command of a rank, under a shell that writes down what it prints, and how it ended.

    When one rank dies, mpiexec kills the others, and afterwards all look alike. It notices a death
    by the end of its own child, though, which is the shell; and the shell ends only once the status
    is on disk, while those of the other ranks are killed together with them. So exactly the rank
    that died by itself leaves a nonzero status.
    """
    name = f"{shlex.quote(str(directory))}/${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}"
    script = f'"$0" "$@" >>{name}.out 2>&1; status=$?; echo $status >{name}.exit; exit $status'
    return ["sh", "-c", script, *program]


def read_death(directory: Path, rank: int) -> str | None:
    """What that rank died of (`SIGSEGV`, `exit code 3`); None where it lives, ended well, or was
    killed after another.
    """
    return _read_status(directory, rank) or _read_fault(directory, rank)


def _read_status(directory: Path, rank: int) -> str | None:
    try:
        text = (directory / f"{rank}.exit").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    if not text.endswith("\n") or int(text) == 0:
        return None
    # A shell's 128 + n means signal n.
    return signal.Signals(int(text) - 128).name if int(text) > 128 else f"exit code {int(text)}"


def _read_fault(directory: Path, rank: int) -> str | None:
    try:
        found = _FAULT.search(
            _fault_path(directory, rank).read_text(errors="replace", encoding="utf-8")
        )
    except FileNotFoundError:
        return None
    return _SIGNALS.get(found.group(1).strip(), found.group(1).strip()) if found else None


def _journal_path(directory: Path, rank: int) -> Path:
    return directory / f"{rank}.journal"


def _fault_path(directory: Path, rank: int) -> Path:
    return directory / f"{rank}.fault"
