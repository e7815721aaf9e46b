"""A process of its own for each contestant: it builds one entry and runs it when it is asked.

Entry, arguments, threads -> Built; then seconds for each run, and the arrays the last run left. A
contestant that crashes takes its booth down and not the race, and its threads meet no other's.
"""

from __future__ import annotations

import contextlib
import enum
import os
import pickle
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from avial_lab.errors import AvialError
from avial_lab.race.entry import Entry
from avial_lab.race.machine import pinned_environment, pins
from avial_lab.runtime.guardian import Guardian

_THREADS = (
    "OMP_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
"""Where OpenMP, Numba and every BLAS of NumPy and SciPy look for a number of threads."""


LIMIT_S = 900.0


class Ask(enum.Enum):
    RUN = "run"
    ARRAYS = "arrays"


@dataclass(frozen=True)
class Built:
    """compile_s: building and, of what is compiled at its first call, what that call took longer
    than the next. note: what is to be known of the runs.
    """

    compile_s: float
    note: str = ""


@dataclass(frozen=True)
class Refusal:
    """What went wrong in the booth, in one line."""

    message: str


class Booth:
    """The parent's end; a context manager, whose process is gone on the way out."""

    def __init__(
        self,
        entry: Entry,
        arguments: Mapping[str, Any],
        *,
        threads: int,
        places: Sequence[str],
        limit_s: float = LIMIT_S,
    ) -> None:
        """`places` are added to sys.path: where `kernels` is imported from. Building and one run
        may take `limit_s` each.
        """
        self.limit_s = limit_s
        # A booth that stands still does not see that nobody asks any more.
        self._guardian = Guardian()
        self.process = subprocess.Popen(
            [sys.executable, "-c", booth_program(cores := pins(threads))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=booth_environment(threads, cores, places),
            start_new_session=True,  # Ctrl-C comes to the race, which then ends its booths
        )
        self._guardian.watch(self.process.pid)
        built = self._ask((entry, dict(arguments)))
        assert isinstance(built, Built)
        self.compile_s, self.note = built.compile_s, built.note

    def run(self) -> float:
        """Seconds of one run."""
        seconds = self._ask(Ask.RUN)
        assert isinstance(seconds, float)
        return seconds

    def arrays(self) -> dict[str, np.ndarray]:
        """What the last run left in the arrays."""
        arrays = self._ask(Ask.ARRAYS)
        assert isinstance(arrays, dict)
        return arrays

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._guardian.release(self.process.pid)
        self._guardian.close()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _ask(self, question: object) -> object:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self._signal(signal.SIGCONT)
            pickle.dump(question, self.process.stdin)
            self.process.stdin.flush()
            # Nothing of the answer before this is left in the pipe: one is taken as it is asked.
            if not select.select([self.process.stdout], [], [], self.limit_s)[0]:
                raise AvialError(f"no answer in {self.limit_s:g} s")
            answer: object = pickle.load(self.process.stdout)
            # Its threads may go on to wait in a busy loop, on the next contestant's cores.
            self._signal(signal.SIGSTOP)
        except (EOFError, BrokenPipeError):
            ended = self.process.wait()
            self.close()
            raise AvialError(f"its process ended with {_ending(ended)}") from None
        except BaseException:
            self.close()
            raise
        if isinstance(answer, Refusal):
            self.close()
            raise AvialError(answer.message)
        return answer

    def _signal(self, number: signal.Signals) -> None:
        """To the process and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


def booth_environment(threads: int, cores: Sequence[int], places: Sequence[str]) -> dict[str, str]:
    """The same number of threads for everybody, whatever library they come from, pinned alike.

    How threads wait is left as a user has it: spinning for some milliseconds, then asleep.
    """
    limits = dict.fromkeys(_THREADS, str(threads))
    path = os.pathsep.join(filter(None, [*places, os.environ.get("PYTHONPATH")]))
    # Numba warns where it finds no parallel loop; some kernels have none.
    others = {"OMP_DYNAMIC": "false", "NUMBA_DISABLE_PERFORMANCE_WARNINGS": "1"}
    return os.environ | limits | others | pinned_environment(cores) | {"PYTHONPATH": path}


def booth_program(cores: Sequence[int]) -> str:
    """What Python runs there; pinned before any library counts cores or starts a thread.

    Not with -m: its classes would be those of __main__, and answers unknown to who asked.
    """
    pin = f"import os; os.sched_setaffinity(0, {set(cores)}); " if cores else ""
    return f"{pin}from avial_lab.race import booth; booth.main()"


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"code {code}"


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """The booth's own end: build what comes first, then answer until nobody asks any more."""
    try:
        entry, arguments = pickle.load(questions)
        start = time.perf_counter()
        runner = entry.runner(arguments)
        compile_s = time.perf_counter() - start
        first = runner.run()
        if entry.lazy:
            compile_s += max(first - runner.run(), 0.0)
        _send(answers, Built(compile_s, runner.note))
        while True:
            question = pickle.load(questions)
            _send(answers, runner.run() if question is Ask.RUN else runner.arrays)
    except EOFError:
        return
    except AvialError as error:
        _send(answers, Refusal(str(error)))
    except Exception as error:  # the boundary of the process: it travels as data
        traceback.print_exc()
        _send(answers, Refusal(f"{type(error).__name__}: {error}"))


def _send(answers: BinaryIO, answer: object) -> None:
    pickle.dump(answer, answers)
    answers.flush()


def main() -> None:
    # What a contestant prints goes to stderr, and not between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    np.seterr(all="ignore")
    serve(sys.stdin.buffer, answers)
