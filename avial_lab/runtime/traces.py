"""What happened when, on one clock.

Manifest, Times of all ranks -> Trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np

from avial_lab.arrays import Storage
from avial_lab.binary import Manifest
from avial_lab.native.constants import EVENT_PARTIAL, RunEvent
from avial_lab.runtime.outcome import Outcome
from avial_lab.runtime.times import Times, aligned
from avial_lab.schedule import Step, StepKind
from avial_lab.trace import Event, EventKind, Total, Trace

_KIND = {
    StepKind.RUN: EventKind.TASK,
    StepKind.POST: EventKind.POST,
    StepKind.SEND: EventKind.SEND,
    StepKind.WAIT_RECEIVED: EventKind.WAIT,
    StepKind.WAIT_SENT: EventKind.WAIT,
    StepKind.BARRIER: EventKind.BARRIER,
}

_WORDS = {
    StepKind.POST: ("ready to receive {what} from rank {peer}", False),
    StepKind.SEND: ("send {what} to rank {peer}", True),
    StepKind.WAIT_RECEIVED: ("wait for {what} from rank {peer}", False),
    StepKind.WAIT_SENT: ("wait until {what} is sent to rank {peer}", True),
}
"""What a message's step is called, and whether this rank is its sender."""

_LOGGED = {
    RunEvent.RUN: EventKind.TASK,
    RunEvent.RECEIVED: EventKind.WAIT,
    RunEvent.SENT: EventKind.SEND,
    RunEvent.COLLECTIVE_RECEIVED: EventKind.WAIT,
    RunEvent.COLLECTIVE_SENT: EventKind.SEND,
    RunEvent.COPY: EventKind.COPY,
}
"""What the ownership runtime's events are in a trace."""


def trace_of(manifest: Manifest, outcomes: Iterable[Outcome]) -> Trace:
    """The steps of all ranks on the clock of rank 0, from the first of them."""
    ranks = [outcome for outcome in outcomes if outcome.times is not None]
    taken = {outcome.rank: outcome.times for outcome in ranks if outcome.times is not None}
    rows = _owned_rows(manifest, taken) if manifest.owned else _step_rows(manifest, taken)
    rows.sort(key=lambda row: (row.start_ns, row.end_ns, row.rank))
    origin = rows[0].start_ns if rows else 0
    moves = tuple(move for outcome in ranks for move in outcome.moves)
    dropped = tuple(taken[rank].dropped for rank in sorted(taken))
    # Devices called gpu… are emulated in this version, on every machine.
    emulated = any(name.startswith("gpu") for name in manifest.devices.values())
    return Trace(
        ranks=manifest.ranks,
        events=tuple(row.event(origin) for row in rows),
        label="measured, GPU emulated" if emulated else "measured",
        moves=moves,
        clock_error_s=_clock_error_s(taken.values()),
        around=tuple(row.event(origin) for row in _asides(taken)) if rows else (),
        totals=tuple(total for rank, times in taken.items() for total in _totals(rank, times)),
        dropped=dropped if any(dropped) else (),
        turns=next((times.turns for times in taken.values()), ()),
        ends_s=_ends_s(taken, origin) if any(dropped) else (),
        threads=tuple(outcome.team.count for outcome in ranks) if manifest.owned else (),
        note="; ".join(dict.fromkeys(o.team.note for o in ranks if o.team.note)),
        machine="; ".join(dict.fromkeys(t.machine for t in taken.values() if t.machine)),
    )


@dataclass(frozen=True, slots=True)
class _Row:
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


def _clock_error_s(taken: Iterable[Times]) -> float:
    """What two ranks' times may be wrong by against each other, at most."""
    errors = sorted(max(reading.error_ns for reading in times.readings) for times in taken)
    return sum(errors[-2:]) / 1e9


def _asides(taken: dict[int, Times]) -> Iterator[_Row]:
    for rank, times in sorted(taken.items()):
        for aside in times.around:
            ends = aligned(np.array([aside.start_ns, aside.end_ns]), times.readings).tolist()
            yield _Row(EventKind.COPY, aside.name, rank, *ends, nbytes=aside.nbytes)


def _ends_s(taken: dict[int, Times], origin_ns: int) -> tuple[float, ...]:
    return tuple(
        float(aligned(np.array([times.done_ns]), times.readings)[0] - origin_ns) / 1e9
        for _, times in sorted(taken.items())
    )


# Programs of tasks --------------------------------------------------------------------------------


def _step_rows(manifest: Manifest, taken: dict[int, Times]) -> list[_Row]:
    rows: list[_Row] = []
    for rank, times in taken.items():
        stamped = aligned(times.rows[:, 0] * 10**9 + times.rows[:, 1], times.readings)
        there = np.flatnonzero(times.rows[0::2].any(axis=1))
        starts = stamped[0::2][there].tolist()
        mids = np.where(times.rows[1::2].any(axis=1), stamped[1::2], 0)[there].tolist()
        # The last mark is no step's: it is the end.
        for k, start, end, mid in zip(there.tolist(), starts, starts[1:], mids, strict=False):
            rows += _step(manifest, rank, manifest.programs[rank][k], start, end, mid)
    return rows


def _step(
    manifest: Manifest, rank: int, step: Step, start: int, end: int, mid: int
) -> Iterator[_Row]:
    kind = _KIND[step.kind]
    if step.kind is StepKind.RUN:
        yield _Row(kind, step.task, rank, start, end, manifest.devices[step.task])
        return
    if step.transfer < 0:
        yield _Row(kind, str(step), rank, start, end)
        return
    transfer = manifest.transfers[step.transfer]
    what = f"{transfer.storage}{transfer.box}"
    words, mine = _WORDS[step.kind]
    peer = transfer.dest if mine else transfer.source
    name = words.format(what=what, peer=peer)
    # A message is one between its send and the end of the wait for it.
    number = step.transfer if step.kind in (StepKind.SEND, StepKind.WAIT_RECEIVED) else None
    message = partial(
        _Row, kind, name, rank, nbytes=transfer.nbytes, peer=peer, message=number, what=what
    )
    copy = partial(_Row, EventKind.COPY, rank=rank, nbytes=transfer.nbytes, what=what)
    if not mid:
        yield message(start_ns=start, end_ns=end)
    elif step.kind is StepKind.SEND:
        yield copy(name=f"pack {what} for rank {peer}", start_ns=start, end_ns=mid)
        yield message(start_ns=mid, end_ns=end)
    else:
        yield message(start_ns=start, end_ns=mid)
        yield copy(name=f"unpack {what} from rank {peer}", start_ns=mid, end_ns=end)


# Programs of loops --------------------------------------------------------------------------------


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


def _owned_rows(manifest: Manifest, taken: dict[int, Times]) -> list[_Row]:
    numbers = _Numbers()
    rows: list[_Row] = []
    for rank, times in taken.items():
        log = times.rows.copy()
        for column in (3, 4, 5):
            there = log[:, column] != 0
            log[there, column] = aligned(log[there, column], times.readings)
        for row in log.tolist():
            rows += _logged(manifest, numbers, rank, row)
    return rows


def _logged(manifest: Manifest, numbers: _Numbers, rank: int, row: Sequence[int]) -> Iterator[_Row]:
    phase_number, turn, code, start, mid, end, nbytes, peer, array, count, low, high, number = row
    phase = manifest.phases[phase_number]
    logged = RunEvent(code % EVENT_PARTIAL)
    kind, shared = _LOGGED[logged], logged.collective
    if kind is EventKind.TASK:
        yield _Row(kind, phase, rank, start, end, f"cpu{rank}", turn=turn)
        return
    storage = manifest.storages[array] if array >= 0 and count > 0 else None
    what = "" if storage is None else _part(storage, count, low, high)
    name, copied = _words(phase, code, peer, "" if storage is None else storage.name)
    if kind is EventKind.COPY:
        yield _Row(kind, copied, rank, start, end, "", nbytes, None, None, what, turn)
        return
    sends = kind is EventKind.SEND
    if shared:
        message = numbers.of_collective(number)
    else:
        message = numbers.of_pair(sends, rank if sends else peer, peer if sends else rank)
    # A copy comes before the sending, or after the waiting.
    first, last = (mid, end) if mid and sends else (start, mid or end)
    if mid and sends:
        yield _Row(EventKind.COPY, copied, rank, start, mid, "", nbytes, None, None, what, turn)
    other = peer if peer >= 0 else None
    yield _Row(kind, name, rank, first, last, "", nbytes, other, message, what, turn)
    if mid and not sends:
        yield _Row(EventKind.COPY, copied, rank, mid, end, "", nbytes, None, None, what, turn)


@lru_cache(maxsize=4096)
def _words(phase: str, code: int, peer: int, storage: str) -> tuple[str, str]:
    """What an event is called, and the copy that is part of it."""
    combining, kind = code >= EVENT_PARTIAL, _LOGGED[RunEvent(code % EVENT_PARTIAL)]
    part = "partial " * combining + (f"{storage} " if storage else "")
    other = f"rank {peer}" if peer >= 0 else "all ranks"
    if kind is EventKind.COPY:
        return "", f"copy {part}for {phase}"
    if kind is EventKind.SEND:
        return f"send {part}to {other} for {phase}", f"pack {part}for {phase}"
    verb = "combine" if combining else "unpack"
    wait = f"wait for {part}from {other}, for {phase}"
    return wait, f"{verb} {part}for {phase}"


def _part(storage: Storage, count: int, low: int, high: int) -> str:
    """What a message carries: `A`, and as far as it is told `A[49:50, …]`."""
    more = f" and {count - 1} more" if count > 1 else ""
    if high < low:
        return f"{storage.name}{more}"
    rest = ", …" if len(storage.shape) > 1 else ""
    return f"{storage.name}[{low}:{high}{rest}]{more}"


def _totals(rank: int, times: Times) -> Iterator[Total]:
    """A copy that is part of a message's event counts as a copy."""
    copies: dict[str, np.ndarray] = {}
    for total in times.totals:
        kind, events = (
            _LOGGED[RunEvent(total.kind)],
            np.array([total.events, total.ns, total.nbytes]),
        )
        parts = np.array([total.copies, total.copies_ns, total.copies_nbytes])
        if kind is EventKind.COPY:
            parts = events
        else:
            seconds = (total.ns - total.copies_ns) / 1e9
            yield Total(rank, total.phase, kind, total.events, seconds, total.nbytes)
        copies[total.phase] = copies.get(total.phase, 0) + parts
    for phase, (events, ns, nbytes) in copies.items():
        if events:
            yield Total(rank, phase, EventKind.COPY, int(events), float(ns) / 1e9, int(nbytes))
