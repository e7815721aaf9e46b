"""The client's side of the lines to engines on this machine: calls, and what comes back, which the
thread takes that waits for it. A thread for it would cost a change of threads, twice.
"""

from __future__ import annotations

import select
import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from ipyparallel.error import EngineError, RemoteError

from avial_lab.runtime.rank.lines import Failed, Line, receive, send


@dataclass(frozen=True)
class Lines:
    """By rank."""

    ends: Mapping[int, Line]

    def ask(self, calls: Mapping[int, tuple[Any, ...]]) -> Asked:
        """(call, *arguments) by rank."""
        asked = Asked(self.ends, {rank: Future() for rank in calls})
        for rank, (call, *arguments) in calls.items():
            try:
                send(self.ends[rank], (call, tuple(arguments)))
            except (EOFError, OSError):
                asked.answers[rank].set_exception(_gone(rank))
        return asked

    def close(self) -> None:
        """Whatever is owed still is an error then."""
        for line in self.ends.values():
            line.close()


@dataclass
class Asked:
    """What has been asked of ranks, and their answers, which come while somebody waits here."""

    ends: Mapping[int, Line]
    answers: dict[int, Future[Any]]

    def wait(self, timeout_s: float) -> None:
        """Until one more has answered, or for that time; also after a KeyboardInterrupt."""
        lines = {self.ends[r].end.fileno(): r for r, a in self.answers.items() if not a.done()}
        for line in _readable(lines, timeout_s):
            rank = lines[line]
            with _uninterrupted():
                try:
                    _answer(self.answers[rank], receive(self.ends[rank]))
                except (EOFError, OSError):
                    self.answers[rank].set_exception(_gone(rank))


def _answer(future: Future[Any], answer: object) -> None:
    if isinstance(answer, Failed):
        failed = RemoteError(answer.name, answer.message, answer.traceback)
        future.set_exception(failed)
    else:
        future.set_result(answer)


def _gone(rank: int) -> EngineError:
    return EngineError(f"rank {rank} has gone")


def _readable(lines: Mapping[int, int], timeout_s: float | None) -> list[int]:
    """Those of these descriptors that have something to say, within that time."""
    poll = select.poll()
    for line in lines:
        poll.register(line, select.POLLIN)
    return [line for line, _ in poll.poll(None if timeout_s is None else timeout_s * 1000)]


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """A Ctrl-C comes afterwards: half an answer read would be the end of the line. The second one
    comes at once.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came: list[FrameType | None] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(frame)
        if len(came) > 1:
            before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if len(came) == 1:
        before(signal.SIGINT, came[0])
