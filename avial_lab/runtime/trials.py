"""Several binaries of one program, run in turn on copies of its arrays, in a process of its own.

Arrays, Binaries for one rank -> seconds of each run, and the arrays that a run left. Nothing of the
caller's changes; a crash ends the trials and not the caller.
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from avial_lab.arrays import Storage
from avial_lab.binary import Binary
from avial_lab.errors import AvialError
from avial_lab.runtime import engine
from avial_lab.runtime.exchange import caller_arrays
from avial_lab.runtime.job import Options
from avial_lab.runtime.journal import Journal
from avial_lab.runtime.outcome import results_of
from avial_lab.runtime.parcels import aligned_empty
from avial_lab.runtime.threads import Threads
from avial_lab.runtime.traces import trace_of
from avial_lab.shared_object import LoadedProgram, digest

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


@dataclass(frozen=True)
class Failed:
    message: str
    hint: str | None = None


class Trials:
    """The caller's end; a context manager, whose process is gone on the way out."""

    def __init__(self, arrays: Mapping[str, np.ndarray], threads: Threads) -> None:
        program = "from avial_lab.runtime import trials; trials.main()"
        self._count = 0
        self._process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._ask((dict(arrays), threads))

    def add(self, binary: Binary) -> int:
        """The number that it is run by."""
        self._ask(Add(binary))
        self._count += 1
        return self._count - 1

    def run(self, number: int) -> float:
        """Seconds of one run on the arrays as they were given."""
        seconds = self._ask(Run(number))
        assert isinstance(seconds, float)
        return seconds

    def left(self) -> dict[str, np.ndarray]:
        """What the last run left in the arrays."""
        arrays = self._ask(Left())
        assert isinstance(arrays, dict)
        return arrays

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _ask(self, question: object) -> object:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump(question, self._process.stdin)
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], LIMIT_S)[0]:
                raise AvialError(f"a run took longer than {LIMIT_S:g} s")
            answer: object = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError):
            code = self._process.wait()
            self.close()
            raise AvialError(f"the process that was timed ended with code {code}") from None
        except BaseException:
            self.close()
            raise
        if isinstance(answer, Failed):
            self.close()
            raise AvialError(answer.message, hint=answer.hint)
        return answer


# -- the process's own end -------------------------------------------------------------------------


class _Bench:
    """The arrays as given, those that runs work on, and what is loaded."""

    def __init__(self, arrays: Mapping[str, np.ndarray], threads: Threads) -> None:
        self.given, self.now = arrays, {name: _owned(array) for name, array in arrays.items()}
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


def _owned(array: np.ndarray) -> np.ndarray:
    """Room for a copy that starts where every vector unit likes it."""
    return aligned_empty(array.nbytes).view(array.dtype).reshape(array.shape)


def _serve(questions: BinaryIO, answers: BinaryIO) -> None:
    bench = _Bench(*pickle.load(questions))
    _send(answers, None)
    while True:
        question = pickle.load(questions)
        answer: object = None
        if isinstance(question, Add):
            bench.add(question.binary)
        elif isinstance(question, Run):
            answer = bench.run(question.number)
        else:
            answer = bench.now
        _send(answers, answer)


def _send(answers: BinaryIO, answer: object) -> None:
    pickle.dump(answer, answers)
    answers.flush()


def main() -> None:
    """Answer until nobody asks any more."""
    # What a program prints goes to stderr, and not between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        _serve(sys.stdin.buffer, answers)
    except EOFError:
        return
    except AvialError as error:
        _send(answers, Failed(error.message, error.hint))
