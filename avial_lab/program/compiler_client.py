"""The compiler as the caller sees it: a process that may die without taking anything along.

Questions -> answers, through a pipe to a warm worker (`avial_lab.compiler.worker.main`). MLIR's
wheels are assertion builds: what aborts there is reported here with a reproducer on disk, and a
new worker is started.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import IO, overload

from avial_lab.artifact.stages import Inside
from avial_lab.compiler.options import command_line
from avial_lab.compiler.requests import (
    Analyse,
    Analysis,
    Answer,
    Build,
    Built,
    Explore,
    Explored,
    Export,
    Exported,
    Foresee,
    Look,
    LoopTimes,
    PrintBack,
    Printed,
    Proposal,
    Propose,
    Question,
    Referenced,
    Resume,
    RunReference,
    Simulate,
    Simulated,
    Source,
    TaskTimes,
    TimeLoops,
    TimeTasks,
    Walk,
    Weigh,
    Weighed,
    WeighLayers,
)
from avial_lab.core.errors import AvialError, CompilerCrash, CompilerTimeout
from avial_lab.core.files import cache_folder
from avial_lab.core.toolchain import ToolError, install_hint
from avial_lab.core.underway import told_in
from avial_lab.planning.foreseen import Foreseen
from avial_lab.planning.model_costs import ModelCosts
from avial_lab.planning.turns import Turns
from avial_lab.runtime.launch.guardian import Guardian
from avial_lab.runtime.launch.processes import private_folder

TIME_LIMIT_S = 120.0
"""How long one question may take unless the caller says otherwise; of a long text longer."""

LONG_TEXT, CHARACTERS_PER_S = 16 << 10, 512
"""From so many characters on, each second's worth of them adds one: imported models are long."""

MEMORY_LIMIT_BYTES = 8 << 30
"""Address space of the worker; a compile that needs more ends as a report, not as a swapping
machine.
"""


QUIET_S = 0.5
"""Before it is first told what the compiler is at."""

PERIOD_S = 0.2
"""And from then on."""

MOST_WORKERS = 4
"""Of one process, however many cores there are: each holds MLIR in memory."""


def _time_limit_s(question: Question) -> float:
    source = getattr(question, "source", None)
    length = len(source.text) if isinstance(source, Source) else 0
    return TIME_LIMIT_S + max(length - LONG_TEXT, 0) / CHARACTERS_PER_S


class Compiler:
    """One worker process and the pipe to it; one question at a time.

    What threads ask meanwhile goes to workers beside it, `spares` at the most, which are started
    when they are first needed; then questions wait.
    """

    def __init__(self, *, memory_limit_bytes: int = MEMORY_LIMIT_BYTES, spares: int = 0) -> None:
        self._lock = threading.Lock()
        self._memory_limit_bytes = memory_limit_bytes
        self._spares = spares
        self._beside: Compiler | None = None
        self._growing = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._stderr: IO[bytes] | None = None
        self._folder: Path | None = None
        self._guardian: Guardian | None = None

    def start(self) -> None:
        """Start the worker if none is running; it warms up while the caller goes on."""
        if self._is_well():
            return
        self._end()
        # Not the kernel's parent-death signal: that one comes already when the thread that started
        # the worker ends, and it does not reach the worker's own children (llc).
        # What it is in the middle of leaves its temporary files behind when it is ended.
        self._folder = private_folder("avial-worker-")
        self._guardian = Guardian(self._folder)
        self._pipe, theirs = Pipe()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        command = [sys.executable, "-m", "avial_lab.compiler.worker.main", str(theirs.fileno())]
        self._process = subprocess.Popen(
            [*command, str(self._memory_limit_bytes)],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=self._stderr,
            stderr=self._stderr,
            # UTF-8, whatever the locale: our own files are.
            env={**os.environ, "TMPDIR": str(self._folder), "PYTHONUTF8": "1"},
            start_new_session=True,  # Ctrl-C in a terminal is ours to answer
        )
        self._guardian.watch(self._process.pid)
        theirs.close()

    def _is_well(self) -> bool:
        """Whether the worker is there. One that somebody killed closes its pipe before it is gone;
        between questions nothing else can be read from it.
        """
        if self._process is None or self._pipe is None:
            return False
        return self._process.poll() is None and not self._pipe.poll(0)

    def stop(self) -> None:
        """End the worker, those beside it, and what they started."""
        if self._beside is not None:
            self._beside.stop()
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            if self._process.poll() is None:  # once it is collected its number may be another's
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._guardian is not None:
            if self._process is not None:
                self._guardian.release(self._process.pid)
            self._guardian.close()
        if self._pipe is not None:
            self._pipe.close()
        if self._stderr is not None:
            self._stderr.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._process = self._pipe = self._stderr = self._folder = self._guardian = None

    @property
    def pid(self) -> int | None:
        """The worker's process id; None while there is none."""
        return self._process.pid if self._process is not None else None

    @overload
    def ask(self, question: Analyse, *, timeout_s: float | None = None) -> Analysis: ...
    @overload
    def ask(
        self,
        question: Build,
        *,
        timeout_s: float | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Built: ...
    @overload
    def ask(self, question: Explore, *, timeout_s: float | None = None) -> Explored: ...
    @overload
    def ask(self, question: Export, *, timeout_s: float | None = None) -> Exported: ...
    @overload
    def ask(self, question: Look, *, timeout_s: float | None = None) -> Inside: ...
    @overload
    def ask(self, question: PrintBack, *, timeout_s: float | None = None) -> Printed: ...
    @overload
    def ask(self, question: Propose, *, timeout_s: float | None = None) -> Proposal: ...
    @overload
    def ask(self, question: Resume, *, timeout_s: float | None = None) -> Built: ...
    @overload
    def ask(self, question: TimeLoops, *, timeout_s: float | None = None) -> LoopTimes: ...
    @overload
    def ask(self, question: TimeTasks, *, timeout_s: float | None = None) -> TaskTimes: ...
    @overload
    def ask(self, question: Walk, *, timeout_s: float | None = None) -> Turns: ...
    @overload
    def ask(self, question: WeighLayers, *, timeout_s: float | None = None) -> ModelCosts: ...
    @overload
    def ask(self, question: Foresee, *, timeout_s: float | None = None) -> Foreseen: ...
    @overload
    def ask(self, question: Simulate, *, timeout_s: float | None = None) -> Simulated: ...
    @overload
    def ask(self, question: Weigh, *, timeout_s: float | None = None) -> Weighed: ...
    @overload
    def ask(self, question: RunReference, *, timeout_s: float | None = None) -> Referenced: ...

    def ask(
        self,
        question: Question,
        *,
        timeout_s: float | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Answer:
        """The worker's answer; `progress` is called with what it is at, from half a second on.

        Raises the AvialError the worker met, or CompilerCrash where the worker died, ran out of
        memory or took longer than `timeout_s`.
        """
        limit_s = _time_limit_s(question) if timeout_s is None else timeout_s
        answer = self._answer(question, limit_s, progress)
        if isinstance(answer, AvialError):
            raise answer
        return answer

    def _answer(
        self, question: Question, limit_s: float, progress: Callable[[str], None] | None
    ) -> Answer | AvialError:
        if not self._lock.acquire(blocking=self._spares == 0):
            return self._one_beside()._answer(question, limit_s, progress)
        try:
            self.start()
            return self._exchange(question, limit_s, progress)
        except BaseException:
            # Also on Ctrl-C: a worker that still owes an answer is of no use any more.
            self._end()
            self.start()
            raise
        finally:
            self._lock.release()

    def _one_beside(self) -> Compiler:
        with self._growing:
            if self._beside is None:
                limit = self._memory_limit_bytes
                self._beside = Compiler(memory_limit_bytes=limit, spares=self._spares - 1)
            return self._beside

    def _wait(self, limit_s: float, progress: Callable[[str], None] | None) -> bool:
        """Whether there is an answer within so many seconds."""
        assert self._pipe is not None
        assert self._folder is not None
        if progress is None:
            return self._pipe.poll(limit_s)
        began, period_s = time.monotonic(), QUIET_S
        while (left_s := limit_s - (time.monotonic() - began)) > 0:
            if self._pipe.poll(min(period_s, left_s)):
                return True
            progress(told_in(self._folder))
            period_s = PERIOD_S
        return self._pipe.poll(0)

    def _exchange(
        self, question: Question, limit_s: float, progress: Callable[[str], None] | None
    ) -> Answer | AvialError:
        assert self._pipe is not None
        assert self._process is not None
        try:
            self._pipe.send(question)
            if not self._wait(limit_s, progress):
                what = f"the compiler took longer than {limit_s:g} s and was stopped"
                raise self._crash(question, what, CompilerTimeout)
            # A large graph is a million objects without a cycle among them.
            gc.disable()
            try:
                return self._pipe.recv()
            finally:
                gc.enable()
        except (EOFError, OSError):  # OSError: it died in the middle of its answer
            raise self._crash(question, _cause_of_death(self._process)) from None

    def _crash(
        self, question: Question, what: str, kind: type[CompilerCrash] = CompilerCrash
    ) -> AvialError:
        assert self._stderr is not None
        self._stderr.seek(0)
        output = self._stderr.read().decode(errors="replace")
        last = next((line for line in reversed(output.splitlines()) if line.strip()), "")
        if last.startswith("ModuleNotFoundError: No module named 'mlir"):
            return ToolError(f"the compiler cannot start: {last}", hint=install_hint("mlir-opt"))
        where = save_reproducer(question, what, output)
        message = f"{what}: {last.strip()}" if last and kind is CompilerCrash else what
        saved = f"a reproducer is in {where}; " if where is not None else ""
        return kind(
            message, hint=f"{saved}your variables are untouched, and the compiler was restarted"
        )


def _cause_of_death(process: subprocess.Popen[bytes]) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)
    code = process.returncode
    if code is None:
        return "the compiler's process closed its pipe"
    if code < 0:
        return f"the compiler's process was killed by {signal.Signals(-code).name}"
    return f"the compiler's process ended with exit code {code}"


def save_reproducer(question: Question, what: str, output: str) -> Path | None:
    """Write the program and what became of it where the user can find it; None where the disk does
    not take it.
    """
    source = question.source
    try:
        crashes = cache_folder() / "crashes"
        crashes.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=crashes, prefix=time.strftime("%Y%m%d-%H%M%S-")))
        (folder / "program.avial").write_text(source.text, encoding="utf-8")
        types = "\n".join(
            f"{buffer.name}: {buffer.element} {buffer.shape}"
            for buffer in (source.binding.buffers if source.binding is not None else ())
        )
        asked = type(question).__name__
        if isinstance(question, Build):
            asked = shlex.join([asked, *command_line(question.options)])
        report = f"{what}\n\nasked: {asked}\ncell: {source.cell}\n{types}\n\n{output}"
        (folder / "report.txt").write_text(report, encoding="utf-8")
    except OSError:
        return None
    return folder


def _stop_at_exit(compiler: Compiler, pid: int) -> None:
    """Not in a child that was forked off: it inherits what is registered here, not the worker."""
    if os.getpid() == pid:
        compiler.stop()


_shared: Compiler | None = None
_shared_lock = threading.Lock()


def shared_compiler() -> Compiler:
    """The compiler of this process, started (and warming up) on the first call; its own after a
    fork.
    """
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = Compiler(spares=min(os.cpu_count() or 1, MOST_WORKERS) - 1)
            atexit.register(_stop_at_exit, _shared, os.getpid())
        _shared.start()
        return _shared


def _forget_after_fork() -> None:
    """The worker is the parent's; a thread of the parent's may hold the lock for ever."""
    global _shared, _shared_lock
    _shared, _shared_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)
