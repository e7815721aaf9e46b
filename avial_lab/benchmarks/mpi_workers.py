"""A contestant on several ranks: one mpiexec per round, whose ranks run on request.

GroupEntry, arguments, ranks, threads -> seconds for each run, and the arrays the last run left.

Each rank has a socket to the parent and sleeps in it between two runs: in MPI it would keep a core
busy, which another contestant needs.

    parent ──socket──► rank 0     ask, run, answer: all ranks at once
           ──socket──► rank 1
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import shutil
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BufferedRWPair
from typing import Any

import numpy as np
import psutil

from avial_lab.benchmarks.mpi_builders import Comm, GroupEntry
from avial_lab.benchmarks.worker import LIMIT_S, Ask, Built, worker_environment
from avial_lab.core.errors import AvialError
from avial_lab.core.toolchain import tool
from avial_lab.machine.host import pinned_environment, pins
from avial_lab.runtime.launch.processes import (
    environment,
    kill_all,
    last_lines,
    mpiexec_options,
    private_folder,
)
from avial_lab.runtime.launch.worker_process import Refusal

_START_S = 60.0
_POLL_S = 0.05


@dataclass(frozen=True)
class Rank:
    """The way to one rank."""

    pid: int
    connection: socket.socket
    file: BufferedRWPair


class MpiGroup:
    """The parent's end; a context manager, whose ranks are gone on the way out."""

    def __init__(
        self,
        entry: GroupEntry,
        arguments: Mapping[str, Any],
        *,
        ranks: int,
        threads: int,
        places: Sequence[str],
        limit_s: float = LIMIT_S,
    ) -> None:
        """As a BenchmarkWorker; `threads` are of each rank."""
        self.entry, self.arguments, self.limit_s = entry, arguments, limit_s
        self.folder = private_folder("avial-group-")
        self.log = self.folder / "log"
        self.process: subprocess.Popen[bytes] | None = None
        self.ranks: list[Rank] = []
        try:
            self._start(ranks, threads, places)
            built: list[Built] = self._ask([(entry, dict(arguments))] * ranks)
        except BaseException:
            self.close()
            raise
        self.compile_s = max(each.compile_s for each in built)
        self.note = "; ".join(dict.fromkeys(each.note for each in built if each.note))

    def run(self) -> float:
        """Seconds of one run, from all ranks' beginning to the last one's end."""
        return self.entry.seconds(self._ask([Ask.RUN] * len(self.ranks)))

    def arrays(self) -> dict[str, np.ndarray]:
        """What the last run left in the arrays, put together."""
        return self.entry.merged(self._ask([Ask.ARRAYS] * len(self.ranks)), self.arguments)

    def close(self) -> None:
        found = [rank.pid for rank in self.ranks]
        for rank in self.ranks:
            with contextlib.suppress(OSError):  # what it did not take is not flushed any more
                rank.file.close()
            rank.connection.close()
        self.ranks = []
        if self.process is not None:
            if self.process.poll() is None:
                kill_all([psutil.Process(self.process.pid)])
            self.process.wait()
            self.process = None
        with contextlib.suppress(psutil.NoSuchProcess):
            kill_all([psutil.Process(pid) for pid in found if psutil.pid_exists(pid)])
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, ranks: int, threads: int, places: Sequence[str]) -> None:
        door = str(self.folder / "door")
        with socket.socket(socket.AF_UNIX) as listening, self.log.open("wb") as log:
            listening.bind(door)
            listening.listen(ranks)
            listening.settimeout(_POLL_S)
            self.process = subprocess.Popen(
                [
                    *(str(tool("mpiexec")), "-n", str(ranks), *mpiexec_options()),
                    *(sys.executable, "-c", _rank_program(ranks, threads, door)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=worker_environment(threads, (), places) | environment_of(ranks, places),
                start_new_session=True,
            )
            self.ranks = self._met(listening, ranks)

    def _met(self, listening: socket.socket, ranks: int) -> list[Rank]:
        """The ranks in order, once all have come."""
        assert self.process is not None
        came: dict[int, Rank] = {}
        deadline = time.monotonic() + _START_S
        while len(came) < ranks:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AvialError(f"mpiexec could not start {ranks} ranks: {self._said()}")
            with contextlib.suppress(TimeoutError):
                connection, _ = listening.accept()
                connection.settimeout(self.limit_s)
                file = connection.makefile("rwb")
                rank, pid = pickle.load(file)
                came[rank] = Rank(pid, connection, file)
        return [came[rank] for rank in sorted(came)]

    def _ask(self, questions: Sequence[object]) -> list[Any]:
        """Every rank's answer to its question."""
        try:
            for rank, question in zip(self.ranks, questions, strict=True):
                pickle.dump(question, rank.file)
                rank.file.flush()
            return self._answers()
        except (EOFError, ConnectionError):
            said = self._said()
            self.close()
            raise AvialError(f"a rank ended: {said}") from None
        except BaseException:
            self.close()
            raise

    def _answers(self) -> list[Any]:
        """One of every rank, as they come; a rank that waits in MPI for a failed one gives none."""
        answers: dict[int, Any] = {}
        deadline = time.monotonic() + self.limit_s
        with selectors.DefaultSelector() as waiting:
            for number, rank in enumerate(self.ranks):
                waiting.register(rank.connection, selectors.EVENT_READ, number)
            while len(answers) < len(self.ranks):
                ready = waiting.select(max(deadline - time.monotonic(), 0))
                if not ready:
                    raise AvialError(f"no answer in {self.limit_s:g} s")
                for key, _ in ready:
                    waiting.unregister(key.fileobj)
                    answer = pickle.load(self.ranks[key.data].file)
                    if isinstance(answer, Refusal):
                        raise AvialError(answer.message)
                    answers[key.data] = answer
        return [answers[number] for number in sorted(answers)]

    def _said(self) -> str:
        return last_lines(self.log.read_text(errors="replace", encoding="utf-8"), count=5)


def environment_of(ranks: int, places: Sequence[str]) -> dict[str, str]:
    """As avial_lab's ranks have it, and what `places` add to sys.path."""
    found = environment(ranks)
    return found | {"PYTHONPATH": os.pathsep.join([*places, found["PYTHONPATH"]])}


def _rank_program(ranks: int, threads: int, door: str) -> str:
    """What Python runs on every rank: each is pinned to cores of its own, as far as there are so
    many, before any library counts cores.
    """
    cores = pins(ranks * threads)
    shares = [cores[rank * threads : (rank + 1) * threads] for rank in range(ranks)]
    pin = ""
    if len(cores) == ranks * threads:
        bound = [pinned_environment(share) for share in shares]
        pin = f"os.sched_setaffinity(0, {shares}[rank]); os.environ.update({bound}[rank]); "
    return (
        "import os; rank = int(os.environ.get('PMI_RANK', os.environ.get('OMPI_COMM_WORLD_RANK', "
        f"0))); {pin}from avial_lab.benchmarks import mpi_workers; mpi_workers.main({door!r})"
    )


# -- on a rank -------------------------------------------------------------------------------------


def main(door: str) -> None:
    """Answer until nobody asks any more."""
    from mpi4py import MPI

    from avial_lab.runtime.rank.world import release_shared_memory

    np.seterr(all="ignore")
    release_shared_memory()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(door)
        with connection.makefile("rwb") as file:
            _send(file, (MPI.COMM_WORLD.rank, os.getpid()))
            try:
                _serve(file, MPI.COMM_WORLD)
            except EOFError:
                pass  # the parent has closed the connection
            except Exception as error:  # the boundary of the process: it travels as data
                if not isinstance(error, AvialError):
                    traceback.print_exc()
                _send(file, Refusal(str(error)))
                # The others may wait for this rank in MPI: it is the parent who ends them.
                file.read(1)


def _serve(file: BufferedRWPair, comm: Comm) -> None:
    entry, arguments = pickle.load(file)
    start = time.perf_counter()
    rank_runner = entry.rank_runner(arguments, comm)
    compile_s = time.perf_counter() - start
    rank_runner.run()
    _send(file, Built(compile_s, rank_runner.note))
    while True:
        question = pickle.load(file)
        _send(file, rank_runner.run() if question is Ask.RUN else rank_runner.left())


def _send(file: BufferedRWPair, answer: object) -> None:
    pickle.dump(answer, file)
    file.flush()
