"""What compiled code writes down while it runs, read as rows of a trace.

A rank's raw log (numbers) -> Rows: what it was, when, how much, between whom. There are two forms
of a log: one slot a step where the steps are known when the program is compiled, one record an
event where the ownership runtime derives the messages as it runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from avial_lab.core.buffers import Storage
from avial_lab.core.runtime_constants import EVENT_PARTIAL, RunEvent
from avial_lab.machine.devices import place_name
from avial_lab.planning.message_steps import (
    copy_words,
    message_step,
    part_words,
    phase_words,
)
from avial_lab.planning.schedule import DeviceCopy, RankProgram, Step, StepKind, Transfer
from avial_lab.trace import Event, EventKind

Clock = Callable[[int, np.ndarray], np.ndarray]
"""A rank and times by its own clock, in nanoseconds -> by that of rank 0."""

LOGGED = {
    RunEvent.RUN: EventKind.TASK,
    RunEvent.RECEIVED: EventKind.WAIT,
    RunEvent.SENT: EventKind.SEND,
    RunEvent.COLLECTIVE_RECEIVED: EventKind.WAIT,
    RunEvent.COLLECTIVE_SENT: EventKind.SEND,
    RunEvent.COPY: EventKind.COPY,
    RunEvent.BARRIER: EventKind.BARRIER,
}
"""What the ownership runtime's events are in a trace."""


@dataclass(frozen=True, slots=True)
class Row:
    """An event before it is known when the run began."""

    kind: EventKind
    name: str
    rank: int
    start_ns: int
    end_ns: int
    device: str = ""
    nbytes: int = 0
    peer: int | None = None
    message: int | None = None
    what: str = ""
    turn: int = 0

    def event(self, origin_ns: int) -> Event:
        return Event(
            self.kind, self.name, self.rank, self.device,
            (self.start_ns - origin_ns) / 1e9, (self.end_ns - origin_ns) / 1e9,
            self.nbytes, self.peer, self.message, self.what, self.turn,
        )  # fmt: skip


# One slot a step ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepLog:
    """Reads what steps leave: int64 (2 * steps + 2, 2), seconds and nanoseconds. Of step k row 2k
    is its start and 2k + 1 where a copy and its message meet (0 for no copy); after the last step
    its end. Where devices run tasks a row for each step follows: when its launch ran, in
    nanoseconds (0: it has none).
    """

    programs: Sequence[RankProgram]
    transfers: Sequence[Transfer]
    devices: Mapping[str, str]
    copies: Sequence[DeviceCopy] = ()

    def rows(self, logs: Mapping[int, np.ndarray], clock: Clock) -> Iterator[Row]:
        for rank, whole in logs.items():
            log = whole[: 2 * len(self.programs[rank]) + 2]
            launches = whole[len(log) :]
            stamped = clock(rank, log[:, 0] * 10**9 + log[:, 1])
            there = np.flatnonzero(log[0::2].any(axis=1))
            starts = stamped[0::2][there].tolist()
            mids = np.where(log[1::2].any(axis=1), stamped[1::2], 0)[there].tolist()
            # The last mark is no step's: it is the end.
            for k, start, end, mid in zip(there.tolist(), starts, starts[1:], mids, strict=False):
                if len(launches) and launches[k, 0]:
                    start, end = clock(rank, launches[k]).tolist()
                yield from self._step(rank, self.programs[rank][k], start, end, mid)

    def _step(self, rank: int, step: Step, start: int, end: int, mid: int) -> Iterator[Row]:
        kind = step.kind.event
        if step.kind is StepKind.RUN:
            yield Row(kind, step.task, rank, start, end, self.devices[step.task])
            return
        if step.kind is StepKind.COPY:
            copied = self.copies[step.copy]
            name, what = copy_words(copied, len(self.programs))
            yield Row(kind, name, rank, start, end, "", copied.nbytes, None, None, what)
            return
        if step.transfer < 0:
            yield Row(kind, str(step), rank, start, end)
            return
        transfer = self.transfers[step.transfer]
        told = message_step(step, transfer)
        what, peer = told.what, told.peer
        message = partial(
            Row, kind, told.name, rank,
            nbytes=told.nbytes, peer=peer, message=told.number, what=what,
        )  # fmt: skip
        copy = partial(Row, EventKind.COPY, rank=rank, nbytes=told.nbytes, what=what)
        if not mid:
            yield message(start_ns=start, end_ns=end)
        elif step.kind is StepKind.SEND:
            yield copy(name=f"pack {what} for rank {peer}", start_ns=start, end_ns=mid)
            yield message(start_ns=mid, end_ns=end)
        else:
            yield message(start_ns=start, end_ns=mid)
            yield copy(name=f"unpack {what} from rank {peer}", start_ns=mid, end_ns=end)


# One record an event ------------------------------------------------------------------------------


@dataclass
class _Numbers:
    """Messages between two ranks keep their order, and collectives theirs: the k-th sent is the
    k-th received.
    """

    seen: Counter[tuple[bool, int, int]] = field(default_factory=Counter[tuple[bool, int, int]])
    numbers: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])

    def of_pair(self, sends: bool, source: int, dest: int) -> int:
        k = self.seen[sends, source, dest]
        self.seen[sends, source, dest] += 1
        return self._number(source, dest, k)

    def of_collective(self, number: int) -> int:
        return self._number(number)

    def _number(self, *key: int) -> int:
        return self.numbers.setdefault(key, len(self.numbers))


@dataclass(frozen=True)
class EventLog:
    """Reads what the ownership runtime leaves: int64 (events, EVENT_WORDS), by `EVENT_FIELDS`. What
    ran on a device has its place as `peer`.
    """

    phases: Sequence[str]
    storages: Sequence[Storage]
    ranks: int = 0

    def rows(self, logs: Mapping[int, np.ndarray], clock: Clock) -> Iterator[Row]:
        numbers = _Numbers()
        for rank, raw in logs.items():
            log = raw.copy()
            for column in (3, 4, 5):
                there = log[:, column] != 0
                log[there, column] = clock(rank, log[there, column])
            for row in log.tolist():
                yield from self._event(numbers, rank, row)

    def _event(self, numbers: _Numbers, rank: int, row: Sequence[int]) -> Iterator[Row]:
        (k, turn, code, start, mid, end, nbytes, peer, array, count, low, high, number) = row
        phase = self.phases[k]
        logged = RunEvent(code % EVENT_PARTIAL)
        kind, shared = LOGGED[logged], logged.collective
        if kind is EventKind.TASK:
            device = place_name(peer if peer >= 0 else rank, self.ranks)
            yield Row(kind, phase, rank, start, end, device, turn=turn)
            return
        if kind is EventKind.BARRIER:
            yield Row(kind, f"barrier after {phase}", rank, start, end, turn=turn)
            return
        storage = self.storages[array] if array >= 0 and count > 0 else None
        what = "" if storage is None else part_words(storage, count, low, high)
        array_name = "" if storage is None else storage.name
        name, copied = phase_words(phase, kind, code >= EVENT_PARTIAL, peer, array_name)
        if kind is EventKind.COPY:
            yield Row(kind, copied, rank, start, end, "", nbytes, None, None, what, turn)
            return
        sends = kind is EventKind.SEND
        if shared:
            message = numbers.of_collective(number)
        else:
            message = numbers.of_pair(sends, rank if sends else peer, peer if sends else rank)
        # A copy comes before the sending, or after the waiting.
        first, last = (mid, end) if mid and sends else (start, mid or end)
        if mid and sends:
            yield Row(EventKind.COPY, copied, rank, start, mid, "", nbytes, None, None, what, turn)
        other = peer if peer >= 0 else None
        yield Row(kind, name, rank, first, last, "", nbytes, other, message, what, turn)
        if mid and not sends:
            yield Row(EventKind.COPY, copied, rank, mid, end, "", nbytes, None, None, what, turn)
