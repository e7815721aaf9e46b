"""What a run is doing while it runs: read from the ranks' journals, which costs the ranks nothing.

Journals, Manifest -> RunState, passed to a callback at most five times a second.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from avial_lab.artifact.manifest import Manifest, Standing
from avial_lab.core.words import brief, rough_seconds
from avial_lab.runtime.launch.processes import memory_kills, recent_memory_kills
from avial_lab.runtime.rank.journal import Entry, RankState
from avial_lab.runtime.rank.outcome import MEMORY, describe_step
from avial_lab.runtime.rank.output import Output, Printed

PERIOD_S = 0.2
"""Between two updates, at the least."""

_REPEATED = 4
"""Phases that every rank has done before it is told how long the rest takes."""

MOST_SHARE = 0.03
"""Of a run's time that may go into telling of it."""


class TaskState(enum.Enum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"  # it was running when the run was ended


@dataclass(frozen=True)
class TaskNow:
    """A task or phase, on those `ranks` now; begun so often, of `planned` (0: nobody can know)."""

    name: str
    state: TaskState
    ranks: tuple[int, ...] = ()
    begun: int = 0
    planned: int = 1


@dataclass(frozen=True)
class RankNow:
    """`doing` follows a verb (`in task 'mul' on cpu1`). `step` of `steps` are over (`Standing`);
    of 0 where nobody knows of how many.
    """

    rank: int
    doing: str
    step: int
    steps: int
    sent_bytes: int = 0
    finished: bool = False


@dataclass(frozen=True)
class RunState:
    """A run at a moment. Where `unknown` says why, there are neither tasks nor ranks.

    waiting: what it waits for before it begins. ended: how it did, in a line; "" while it runs.
    planned_bytes is None where control depends on data.
    """

    elapsed_s: float
    tasks: tuple[TaskNow, ...] = ()
    ranks: tuple[RankNow, ...] = ()
    sent_bytes: int = 0
    planned_bytes: int | None = None
    printed: Printed = field(default_factory=Printed)
    unknown: str = ""
    waiting: str = ""
    ended: str = ""
    failed: bool = False

    @property
    def share(self) -> float | None:
        """How far it is, of what is planned; None where that is not known."""
        steps = sum(rank.steps for rank in self.ranks)
        if not steps or any(not rank.steps for rank in self.ranks):
            return None
        return sum(rank.step for rank in self.ranks) / steps

    @property
    def left_s(self) -> float | None:
        """Seconds that remain, where phases are repeated often enough to know; else None."""
        repeated = any(task.planned > 1 for task in self.tasks)
        over, share = min((rank.step for rank in self.ranks), default=0), self.share
        if not repeated or self.ended or over < _REPEATED or not share or share == 1:
            return None
        return self.elapsed_s * (1 - share) / share

    def count(self, state: TaskState) -> int:
        return sum(task.state is state for task in self.tasks)

    def __str__(self) -> str:
        """One line: `3.2 s: 4 of 12 tasks done, 2 running (mul on [0-1]), 1,024 bytes sent`."""
        words = f"{self.elapsed_s:.1f} s: "
        if self.waiting:
            return f"{words}waiting for {self.waiting}"
        if self.ended and not self.tasks:
            return words + self.ended
        if self.unknown:
            return f"{words}running; {self.unknown}"
        parts = [f"{self.count(TaskState.DONE)} of {len(self.tasks)} tasks done"]
        for state in (TaskState.RUNNING, TaskState.FAILED, TaskState.STOPPED):
            those = [task for task in self.tasks if task.state is state]
            if those:
                more = f" and {len(those) - 3} more" if len(those) > 3 else ""
                parts.append(f"{state.value}: {', '.join(map(_task_words, those[:3]))}{more}")
        if self.sent_bytes or self.planned_bytes:
            of = f" of {self.planned_bytes:,}" if self.planned_bytes else ""
            parts.append(f"{self.sent_bytes:,}{of} bytes sent")
        if self.left_s is not None:
            parts.append(f"about {rough_seconds(self.left_s)} left")
        return words + "; ".join([*parts, *([self.ended] if self.ended else [])])

    def __repr__(self) -> str:
        return brief(self, str(self))


Progress = Callable[[RunState], None]
"""Called with the state of a run while it goes on, and once at its end."""


def _task_words(task: TaskNow) -> str:
    if task.planned == 1:
        return task.name
    of = f" of {task.planned}" if task.planned else ""
    return f"{task.name} (iteration {task.begun}{of})"


class ProgressReporter:
    """Reads journals for one run and calls `progress`, which may be None: then only what is printed
    is kept, for `printed`.

    It waits `PERIOD_S` before the first time, so that short runs cost nothing, and longer the more
    time `progress` takes.
    """

    def __init__(self, manifest: Manifest, progress: Progress | None = None) -> None:
        self._manifest, self._progress = manifest, progress
        self._began = time.monotonic()
        self._next = self._began + PERIOD_S
        self._reported = False
        self._output: Output | None = None
        self._entries: Callable[[int], Entry | None] | None = None
        self.failed: dict[int, int] = {}
        """The step at which ranks failed."""
        self._memory_kills = recent_memory_kills()
        self.printed = Printed()
        """What the ranks had printed when the run ended."""
        self.inputs: Sequence[str] = ()
        """What they read from files themselves, and what not."""

    def wait_for(self, what: str) -> None:
        """The run cannot begin yet."""
        self._report(lambda: RunState(self.elapsed_s, waiting=what))

    def begin(self, folder: Path, entries: Callable[[int], Entry | None] | None) -> None:
        """The run begins: `entries` are its ranks' journals, None where they are out of reach."""
        self._began = time.monotonic()
        self._next = self._began + PERIOD_S
        self._output = Output(folder, self._manifest.ranks)
        self._entries = entries

    def poll_carrying(self, what: str) -> None:
        """Report that arrays are on their way, if it is time to."""
        if time.monotonic() >= self._next:
            self.wait_for(what)

    def poll(self) -> None:
        """Report the run's state, if it is time to."""
        if time.monotonic() < self._next or self._output is None:
            return
        if self._progress is None:
            self._output.printed()  # it is to be short
            self._next = time.monotonic() + PERIOD_S
            return
        self._report(self._state)

    def end(self, error: BaseException | None = None) -> None:
        """Report how the run ended. As long as the journals are there."""
        if self._output is not None:
            self.printed = self._output.printed()
        self._report(lambda: self._state(_ending(error), over=True, failed=error is not None))

    def cause(self, death: str | None) -> str | None:
        """Of a rank's death; a SIGKILL while the system killed for memory was one of those."""
        ran_out = death == "SIGKILL" and memory_kills() > self._memory_kills
        return MEMORY if ran_out else death

    def _report(self, state: Callable[[], RunState]) -> None:
        if self._progress is None:
            return
        began = time.monotonic()
        self._progress(state())
        ended = time.monotonic()
        # The first time sets things up (a widget, say), which is not to silence it for seconds.
        cost = ended - began if self._reported else 0.0
        self._reported = True
        self._next = ended + max(PERIOD_S, cost / MOST_SHARE)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began

    def _state(self, ended: str = "", *, over: bool = False, failed: bool = False) -> RunState:
        printed = self._output.printed() if self._output else Printed()
        elapsed = self.elapsed_s
        if self._entries is None:
            unknown = "no live state: the ranks' journals are on other machines"
            return RunState(elapsed, printed=printed, unknown=unknown, ended=ended, failed=failed)
        entries = [self._entries(rank) for rank in range(self._manifest.ranks)]
        if not over and all(e is None or e.state is RankState.IDLE for e in entries):
            return RunState(elapsed, printed=printed, waiting="its ranks to start")
        if over and not failed:
            entries = [_finished(entry) for entry in entries]
        stood = [_standing(self._manifest, rank, entry) for rank, entry in enumerate(entries)]
        tasks = list(_tasks(self._manifest, entries, stood))
        ranks = [
            _rank(self._manifest, rank, entry, standing)
            for rank, (entry, standing) in enumerate(zip(entries, stood, strict=True))
        ]
        if failed:
            at_fault = {_task_at(self._manifest, r, step) for r, step in self.failed.items()}
            tasks = [_stopped(task, task.name in at_fault) for task in tasks]
        sent = sum(rank.sent_bytes for rank in ranks)
        return RunState(
            elapsed, tuple(tasks), tuple(ranks), sent, self._manifest.planned_bytes,
            printed, ended=ended, failed=failed,
        )  # fmt: skip


def _ending(error: BaseException | None) -> str:
    if error is None:
        return "done"
    return str(error).partition("\n")[0] or type(error).__name__


def _finished(entry: Entry | None) -> Entry | None:
    """Every rank has answered: what its journal says next is of the next run."""
    return None if entry is None else replace(entry, state=RankState.FINISHED)


def _stopped(task: TaskNow, at_fault: bool) -> TaskNow:
    if at_fault:
        return replace(task, state=TaskState.FAILED)
    return replace(task, state=TaskState.STOPPED) if task.state is TaskState.RUNNING else task


def _task_at(manifest: Manifest, rank: int, step: int) -> str:
    """The task a rank is in at that step; empty between tasks."""
    here = manifest.at(rank, step)
    return "" if here is None else here.task


_OVER = 1 << 62
"""The mark of a rank that is through: behind every event."""


def _standing(manifest: Manifest, rank: int, entry: Entry | None) -> Standing:
    if entry is None:
        return manifest.standing(rank, -1, (), 0)
    mark = _OVER if entry.state is RankState.FINISHED else entry.step
    return manifest.standing(rank, mark, entry.begun, entry.sent_bytes)


def _rank(manifest: Manifest, rank: int, entry: Entry | None, standing: Standing) -> RankNow:
    over = entry is not None and entry.state is RankState.FINISHED
    mark = -1 if entry is None else entry.step
    doing = "finished" if over else describe_step(manifest, rank, mark)
    return RankNow(rank, doing, standing.step, standing.steps, standing.sent_bytes, over)


def _tasks(
    manifest: Manifest, entries: Sequence[Entry | None], stood: Sequence[Standing]
) -> Iterator[TaskNow]:
    """A task is done once all ranks are through, or it was begun as often as it will be."""
    going = any(entry is not None and entry.state is RankState.RUNNING for entry in entries)
    inside: dict[str, list[int]] = {}
    for rank, entry in enumerate(entries):
        if entry is not None and entry.state is RankState.RUNNING:
            inside.setdefault(_task_at(manifest, rank, entry.step), []).append(rank)
    most: dict[str, int] = {}
    for standing in stood:
        for name, begun in standing.begun.items():
            most[name] = max(begun, most.get(name, 0))
    for name, planned in manifest.tasks:
        ranks, begun = tuple(inside.get(name, ())), most.get(name, 0)
        state = TaskState.WAITING
        if ranks:
            state = TaskState.RUNNING
        elif begun and (not going or begun >= planned > 0):
            state = TaskState.DONE
        yield TaskNow(name, state, ranks, begun, planned)
