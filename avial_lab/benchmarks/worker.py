"""A process of its own for each contestant: it builds one entry and runs it when it is asked.

Entry, arguments, threads -> Built; then seconds for each run, and the arrays the last run left. A
contestant that crashes takes its worker down and not the race, and its threads meet no other's.
"""

from __future__ import annotations

import contextlib
import enum
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from avial_lab.benchmarks.builders import Entry
from avial_lab.machine.host import pinned_environment, pins
from avial_lab.runtime.launch.guardian import Guardian
from avial_lab.runtime.launch.worker_process import AskedProcess, answer_all

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


class BenchmarkWorker:
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
        # A stopped worker does not see that its parent has ended.
        self._guardian = Guardian()
        cores = pins(threads)
        self._asked = AskedProcess(
            worker_program(cores),
            limit_s=limit_s,
            environment=worker_environment(threads, cores, places),
            own_group=True,  # Ctrl-C comes to the race, which then ends its workers
        )
        self.process = self._asked.process
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
        self._asked.close()
        self._guardian.release(self.process.pid)
        self._guardian.close()

    def _ask(self, question: object) -> object:
        try:
            self._signal(signal.SIGCONT)
            answer = self._asked.ask(question)
            # Its threads may go on to wait in a busy loop, on the next contestant's cores.
            self._signal(signal.SIGSTOP)
        except BaseException:
            self.close()
            raise
        return answer

    def _signal(self, number: signal.Signals) -> None:
        """To the process and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


def worker_environment(threads: int, cores: Sequence[int], places: Sequence[str]) -> dict[str, str]:
    """The same number of threads for everybody, whatever library they come from, pinned alike.

    How threads wait is left as a user has it: spinning for some milliseconds, then asleep.
    """
    limits = dict.fromkeys(_THREADS, str(threads))
    path = os.pathsep.join(filter(None, [*places, os.environ.get("PYTHONPATH")]))
    # Numba warns where it finds no parallel loop; some kernels have none.
    others = {"OMP_DYNAMIC": "false", "NUMBA_DISABLE_PERFORMANCE_WARNINGS": "1"}
    return os.environ | limits | others | pinned_environment(cores) | {"PYTHONPATH": path}


def worker_program(cores: Sequence[int]) -> str:
    """What Python runs there; pinned before any library counts cores or starts a thread."""
    pin = f"import os; os.sched_setaffinity(0, {set(cores)}); " if cores else ""
    return f"{pin}from avial_lab.benchmarks import worker; worker.main()"


def main() -> None:
    """The worker's own end: build what comes first, then answer."""
    np.seterr(all="ignore")
    answer_all(_begin)


def _begin(question: tuple[Entry, Mapping[str, Any]]) -> tuple[Built, Callable[[Ask], object]]:
    entry, arguments = question
    start = time.perf_counter()
    runner = entry.runner(arguments)
    compile_s = time.perf_counter() - start
    first = runner.run()
    if entry.lazy:
        compile_s += max(first - runner.run(), 0.0)
    built = Built(compile_s, runner.note)
    return built, lambda ask: runner.run() if ask is Ask.RUN else runner.arrays
