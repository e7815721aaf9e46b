"""Several binaries of one program, run in turn on copies of its arrays, in a process of its own.

Arrays, Binaries for one rank -> seconds of each run, and the arrays that a run left. Nothing of the
caller's changes; a crash ends the trials and not the caller.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.core.buffers import Storage
from avial_lab.core.errors import AvialError
from avial_lab.runtime.launch.worker_process import AskedProcess, answer_all
from avial_lab.runtime.native.loader import LoadedProgram, digest
from avial_lab.runtime.rank import engine
from avial_lab.runtime.rank.exchange import caller_arrays
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.journal import Journal
from avial_lab.runtime.rank.outcome import results_of
from avial_lab.runtime.rank.parcels import aligned_copy
from avial_lab.runtime.rank.threads import Threads
from avial_lab.runtime.rank.traces import trace_of

LIMIT_S = 120.0
"""That one run may take."""


@dataclass(frozen=True)
class Add:
    """Load one more; they are counted from 0. Answered by nothing."""

    binary: Binary = field(repr=False)


@dataclass(frozen=True)
class Run:
    """Answered by seconds, without launch and copies."""

    number: int


@dataclass(frozen=True)
class Left:
    """Answered by the arrays that the last run left."""


class Trials:
    """The caller's end; a context manager, whose process is gone on the way out."""

    def __init__(self, arrays: Mapping[str, np.ndarray], threads: Threads) -> None:
        program = "from avial_lab.runtime.launch import trials; trials.main()"
        self._count = 0
        self._process = AskedProcess(program, limit_s=LIMIT_S)
        self._process.ask((dict(arrays), threads))

    def add(self, binary: Binary) -> int:
        """The number that it is run by."""
        self._process.ask(Add(binary))
        self._count += 1
        return self._count - 1

    def run(self, number: int) -> float:
        """Seconds of one run on the arrays as they were given."""
        seconds = self._process.ask(Run(number))
        assert isinstance(seconds, float)
        return seconds

    def left(self) -> dict[str, np.ndarray]:
        """What the last run left in the arrays."""
        arrays = self._process.ask(Left())
        assert isinstance(arrays, dict)
        return arrays

    def close(self) -> None:
        self._process.close()


# -- the process's own end -------------------------------------------------------------------------


class _Bench:
    """The arrays as given, those that runs work on, and what is loaded."""

    def __init__(self, arrays: Mapping[str, np.ndarray], threads: Threads) -> None:
        self.given, self.now = arrays, {name: aligned_copy(array) for name, array in arrays.items()}
        self.options = Options(threads=threads)
        self.loaded: list[tuple[Binary, LoadedProgram]] = []
        self.runs = 0
        self.storages: tuple[Storage, ...] = ()
        self.kept: dict[str, np.ndarray] = {}
        with tempfile.TemporaryDirectory(prefix="avial-trials-") as folder:
            # Nobody reads it: its files are gone, its memory stays.
            self.journal = Journal(Path(folder), 0, pid=os.getpid())

    def add(self, binary: Binary) -> None:
        shared = binary.shared_object
        self.loaded.append((binary, engine.load(shared, digest(shared), binary.manifest)))

    def run(self, number: int) -> float:
        binary, program = self.loaded[number]
        for name, array in self.given.items():
            np.copyto(self.now[name], array)
        caller = caller_arrays(binary.manifest, self.now)
        if binary.manifest.storages != self.storages:
            self.storages, self.kept = binary.manifest.storages, {}
        self.runs += 1
        outcome = engine.run(
            program,
            binary.manifest,
            0,
            caller.inputs_of(0),
            journal=self.journal,
            options=self.options,
            number=self.runs,
            kept=self.kept,
        )
        if outcome.failure is not None:
            raise AvialError(outcome.failure.message, hint=outcome.failure.hint)
        caller.write_results(results_of([outcome]))
        return trace_of(binary.manifest, [outcome]).makespan_s


def main() -> None:
    answer_all(_begin)


def _begin(
    question: tuple[Mapping[str, np.ndarray], Threads],
) -> tuple[None, Callable[[Add | Run | Left], object]]:
    bench = _Bench(*question)

    def answer(question: Add | Run | Left) -> object:
        match question:
            case Add(binary):
                return bench.add(binary)
            case Run(number):
                return bench.run(number)
            case Left():
                return bench.now

    return None, answer
