"""What happened when: the one trace type for measured and simulated runs.

Events on ranks and devices -> Trace. Times are seconds from the start of the run.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class EventKind(enum.Enum):
    TASK = "task"
    SEND = "send"
    POST = "post"
    WAIT = "wait"
    BARRIER = "barrier"


@dataclass(frozen=True)
class Event:
    """One step of one rank: a task that ran, or a moment in the life of a message.

    `peer` is the rank at the other end of a message, where the event is of one alone and is known.
    """

    kind: EventKind
    name: str
    rank: int
    device: str
    start_s: float
    end_s: float
    nbytes: int = 0
    peer: int | None = None

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Move:
    """What went from one rank to another for a phase, over all the times the phase was begun."""

    phase: str
    source: int
    dest: int
    messages: int
    nbytes: int


@dataclass(frozen=True)
class Trace:
    """All events of one run, by start time; `label` says how the times came about (`measured`,
    `emulated GPU`).

    `moves` are counted by the ranks of a structured program, also where no events were taken.
    `ranks` is 0 where no rank ran: a reference run, which has neither events nor moves.
    """

    ranks: int
    events: tuple[Event, ...]
    label: str = "measured"
    moves: tuple[Move, ...] = ()

    @property
    def makespan_s(self) -> float:
        """From the first start to the last end; 0 for an empty trace."""
        if not self.events:
            return 0.0
        return max(e.end_s for e in self.events) - min(e.start_s for e in self.events)

    @property
    def counted(self) -> tuple[Move, ...] | None:
        """What the ranks counted; None where there were none to count."""
        return self.moves if self.ranks else None

    @property
    def bytes_sent(self) -> int:
        """Bytes that crossed between ranks."""
        return sum(event.nbytes for event in self.events if event.kind is EventKind.SEND)
