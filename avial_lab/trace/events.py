"""Events on ranks and devices -> Trace. Times are seconds from the start of the run, on the clock
of rank 0.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np

from avial_lab.core.table import PRINTED_ROWS
from avial_lab.core.words import brief, count, format_bytes, format_seconds
from avial_lab.machine.devices import DeviceKind, guessed_kind, kind_named

SIMULATED = "simulated"
"""How the label of a trace begins that no run has made."""


class EventKind(enum.Enum):
    TASK = "task"
    SEND = "send"
    POST = "post"
    WAIT = "wait"
    COPY = "copy"
    BARRIER = "barrier"


@dataclass(frozen=True, slots=True)
class Event:
    """One step of one rank: a task that ran, a copy, or a moment in the life of a message.

    `peer` is the rank at the other end of a message, where the event is of one alone and is known.
    `message` is the same number at both ends of a message (a collective has one sender or several,
    and several receivers). what: the memory that is moved, `c[0:20]`; empty where it is not known.
    turn: which time it is that the phase of a program of loops runs, from 1; the ranks divide a
    phase into pieces, and such a piece is a TASK event with a turn.
    """

    kind: EventKind
    name: str
    rank: int
    device: str
    start_s: float
    end_s: float
    nbytes: int = 0
    peer: int | None = None
    message: int | None = None
    what: str = ""
    turn: int = 0

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s

    def __repr__(self) -> str:
        turn = f", time {self.turn:,}" if self.turn else ""
        where = f"rank {self.rank}" + f" ({self.device})" * bool(self.device)
        size = f", {format_bytes(self.nbytes)}" if self.nbytes else ""
        took = f"{format_seconds(self.duration_s)} from {format_seconds(self.start_s)}"
        return brief(self, f"{self.name}{turn} on {where}: {took}{size}")


EVENT_KINDS = tuple(EventKind)


class Described(NamedTuple):
    """What an Event has beside its kind, rank, times and bytes: mostly words."""

    name: str
    device: str = ""
    peer: int | None = None
    message: int | None = None
    what: str = ""
    turn: int = 0


class EventColumns(Sequence[Event]):
    """Events in arrays of n, which are made into objects once somebody looks at one: a simulation
    has times for thousands of events of which most are only added up.

    kind: numbers of `EVENT_KINDS`. described: the rest of the k-th event.
    """

    def __init__(
        self,
        kind: np.ndarray,
        rank: np.ndarray,
        start_s: np.ndarray,
        end_s: np.ndarray,
        nbytes: np.ndarray,
        described: Callable[[int], Described],
    ) -> None:
        self.kind, self.rank, self.nbytes = kind, rank, nbytes
        self.start_s, self.end_s = start_s, end_s
        self._described = described

    @cached_property
    def _events(self) -> tuple[Event, ...]:
        columns = (self.kind, self.rank, self.start_s, self.end_s, self.nbytes)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return tuple(self._event(k, *row) for k, row in enumerate(rows))

    def _event(self, k: int, kind: int, rank: int, start: float, end: float, size: int) -> Event:
        name, device, peer, message, what, turn = self._described(k)
        told = EVENT_KINDS[kind]
        return Event(told, name, rank, device, start, end, size, peer, message, what, turn)

    def __len__(self) -> int:
        return self.kind.size

    @overload
    def __getitem__(self, k: int) -> Event: ...

    @overload
    def __getitem__(self, k: slice) -> tuple[Event, ...]: ...

    def __getitem__(self, k: int | slice) -> Event | tuple[Event, ...]:
        return self._events[k]

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __eq__(self, other: object) -> bool:
        return self._events == (other._events if isinstance(other, EventColumns) else other)

    def __hash__(self) -> int:
        return hash(self._events)

    def __repr__(self) -> str:
        return repr(self._events)

    def __reduce__(self) -> tuple[type[tuple[Event, ...]], tuple[tuple[Event, ...]]]:
        """Stored and sent as what it stands for."""
        return tuple, (self._events,)


@dataclass(frozen=True)
class Move:
    """What went from one rank to another for a phase, over all the times the phase was begun.

    devices: between whose memories, where it was from a GPU to a GPU (`gpu1 → gpu0`).
    """

    phase: str
    source: int
    dest: int
    messages: int
    nbytes: int
    devices: str = ""

    @property
    def consumer(self) -> str:
        """Who needs it: the phase."""
        return self.phase

    def __repr__(self) -> str:
        amount = f"{count(self.messages, 'message')}, {format_bytes(self.nbytes)}"
        ends = f"rank {self.source} → {self.dest}{self.devices and f' ({self.devices})'}"
        return brief(self, f"for {self.phase}: {ends}, {amount}")


@dataclass(frozen=True)
class Copy:
    """What was copied between two memories of one rank, its own and its devices', for a phase, over
    all its times; they are named as the devices that work in them (`cpu0`, `gpu1`). Without a phase
    it is what goes back to the host at the end.
    """

    phase: str
    source: str
    dest: str
    copies: int
    nbytes: int

    def __repr__(self) -> str:
        amount = f"{self.copies:,} cop{'y' if self.copies == 1 else 'ies'}"
        what = f"for {self.phase}" if self.phase else "of the results"
        where = f"{self.source} → {self.dest}"
        return brief(self, f"{what}: {where}, {amount}, {format_bytes(self.nbytes)}")


@dataclass(frozen=True)
class Total:
    """All events of one kind of one rank for one phase: exact also where single events were
    dropped.
    """

    rank: int
    phase: str
    kind: EventKind
    events: int
    seconds: float
    nbytes: int

    def __repr__(self) -> str:
        what = count(self.events, f"{self.kind.value} event")
        took = f"{format_seconds(self.seconds)}, {format_bytes(self.nbytes)}"
        return brief(self, f"of rank {self.rank} for {self.phase}: {what}, {took}")


@dataclass(frozen=True)
class Trace:
    """All events of one run, by start time; `label` says how the times came about (`measured`,
    `emulated GPU`).

    moves: counted by the ranks, in a program of loops also where no events were taken; copies:
    likewise, to devices and from them; taken_bytes: the most memory that each device had taken at
    once, of those that had. totals: likewise. turns: the phases of such a program, and how often
    each ran. dropped: by rank, the later events that were not kept; where there are any, ends_s is
    when each rank was done. around: giving the ranks their inputs and taking the results, before
    and after the run and no part of it. clock_error_s: times of two ranks are comparable to within
    this. `ranks` is 0 where no rank ran: a reference run, which has neither events nor moves.
    threads: how many each rank had; `note` says why they were fewer than asked for, and which
    arrays they read from files. held_bytes: of each rank, the most that its arrays took of its
    memory: as predicted, or in whole pages, those that were touched. kinds: of the devices that
    tasks were placed on, by their names.
    """

    ranks: int
    events: Sequence[Event]
    label: str = "measured"
    moves: tuple[Move, ...] = ()
    clock_error_s: float = 0.0
    around: tuple[Event, ...] = ()
    totals: tuple[Total, ...] = ()
    dropped: tuple[int, ...] = ()
    turns: tuple[tuple[str, int], ...] = ()
    ends_s: tuple[float, ...] = ()
    machine: str = ""
    threads: tuple[int, ...] = ()
    note: str = ""
    kinds: tuple[tuple[str, str], ...] = ()
    copies: tuple[Copy, ...] = ()
    taken_bytes: tuple[tuple[str, int], ...] = ()
    held_bytes: tuple[int, ...] = ()

    @property
    def simulated(self) -> bool:
        """Whether no run has made it."""
        return self.label.startswith(SIMULATED)

    def kind_of(self, device: str) -> DeviceKind:
        """What kind of device that is."""
        known = dict(self.kinds).get(device)
        return guessed_kind(device, self.label) if known is None else kind_named(known)

    @cached_property
    def begin_s(self) -> float:
        """The first start; 0 for an empty trace."""
        if isinstance(self.events, EventColumns):
            return float(self.events.start_s.min()) if self.events else 0.0
        return min((event.start_s for event in self.events), default=0.0)

    @cached_property
    def makespan_s(self) -> float:
        """From the first start to the last end; 0 for an empty trace."""
        if not self.events:
            return 0.0
        if isinstance(self.events, EventColumns):
            return max([*self.ends_s, float(self.events.end_s.max())]) - self.begin_s
        return max([*self.ends_s, *(event.end_s for event in self.events)]) - self.begin_s

    @property
    def counted(self) -> tuple[Move, ...] | None:
        """What the ranks counted; None where there were none to count."""
        return self.moves if self.ranks else None

    @property
    def bytes_sent(self) -> int:
        """Bytes that crossed between ranks."""
        if self.totals:
            return sum(total.nbytes for total in self.totals if total.kind is EventKind.SEND)
        return sum(event.nbytes for event in self.events if event.kind is EventKind.SEND)

    def __str__(self) -> str:
        from avial_lab.trace.run_facts import trace_text

        return trace_text(self, most=PRINTED_ROWS)

    def __repr__(self) -> str:
        from avial_lab.trace.run_facts import trace_summary

        if not self.ranks:
            return brief(self, f"without times: {self.label}")
        events = f"; {count(len(self.events), 'event')}" if self.events else ""
        return brief(self, f"of a run, {trace_summary(self)}{events}")

    def save(self, path: str | Path) -> Path:
        """Write it as Chrome trace events (JSON), which Perfetto opens: all of it or nothing."""
        from avial_lab.trace.chrome import save_trace  # which is about traces, and so above us

        return save_trace(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> Trace:
        """What `save` wrote."""
        from avial_lab.trace.chrome import load_trace

        return load_trace(Path(path))
