"""The client's side of the lines to engines on this machine: calls, and what comes back, which the
thread takes that waits for it. A thread for it would cost a change of threads, twice.
"""

from __future__ import annotations

import select
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from types import FrameType
from typing import Any

import numpy as np
from ipyparallel.error import EngineError, RemoteError

from avial_lab.runtime.rank.lines import Failed, Line, new_bytes, receive, sending, wait_on
from avial_lab.runtime.rank.residents import Residents


@dataclass(frozen=True)
class Lines:
    """By rank. passing: memory of answers that nobody keeps, which is used again."""

    ends: Mapping[int, Line]
    passing: Residents = field(default_factory=Residents)

    def ask(
        self,
        calls: Mapping[int, tuple[Any, ...]],
        *,
        look: Callable[[], None] = wait_on,
        kept: bool = True,
    ) -> Asked:
        """(call, *arguments) by rank; large arguments go to all of them at once. look: raises where
        a rank that takes or sends nothing more is not to be waited for. kept: else the next such
        call writes over the large arrays of the answers.
        """
        asked = Asked(
            self.ends, {rank: Future() for rank in calls}, new_bytes if kept else self._room()
        )
        on_the_way: dict[int, Iterator[None]] = {}
        for rank, (call, *arguments) in calls.items():
            self.ends[rank].look = look
            on_the_way[rank] = sending(self.ends[rank], (call, tuple(arguments)))
        while on_the_way:
            for rank, parts in list(on_the_way.items()):
                try:
                    next(parts)
                except StopIteration:
                    del on_the_way[rank]
                except (EOFError, OSError):
                    del on_the_way[rank]
                    asked.answers[rank].set_exception(_gone(rank))
        return asked

    def _room(self) -> Callable[[int], np.ndarray]:
        self.passing.drop(list(self.passing.arrays))
        numbers = count()
        return lambda nbytes: self.passing.memory(next(numbers), nbytes)

    def close(self) -> None:
        """Whatever is owed still is an error then."""
        for line in self.ends.values():
            line.close()


@dataclass
class Asked:
    """What has been asked of ranks, and their answers, which come while somebody waits here."""

    ends: Mapping[int, Line]
    answers: dict[int, Future[Any]]
    room: Callable[[int], np.ndarray] = new_bytes

    def wait(self, timeout_s: float) -> None:
        """Until one more has answered, or for that time; also after a KeyboardInterrupt."""
        lines = {self.ends[r].end.fileno(): r for r, a in self.answers.items() if not a.done()}
        for line in _readable(lines, timeout_s):
            rank = lines[line]
            with _uninterrupted():
                try:
                    _answer(self.answers[rank], receive(self.ends[rank], self.room))
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
