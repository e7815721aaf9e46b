"""A divided function before it runs: what its tasks would do when, and what ranks hold meanwhile.

Schedule, Trace, what tasks are of a pipeline -> Foreseen.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from avial_lab.core.words import brief, format_bytes, format_seconds
from avial_lab.planning.memory import HeldMemory
from avial_lab.planning.schedule import Schedule
from avial_lab.trace import EventKind, Trace

NOT_LOWERED = "tasks by the roofline, as they are not compiled (a built program's are)"
"""How long the tasks of a division take that is only looked at."""


class Way(enum.IntEnum):
    """Whether a task is of the way forth, the way back, or of both: the last stage turns round."""

    FORTH = 0
    BACK = 1
    BOTH = 2


class Turn(NamedTuple):
    """What a task is of a pipeline: its micro-batch, its stage, and its way."""

    number: int
    stage: int
    way: Way


class HeldFrom(NamedTuple):
    """Bytes that a rank holds from a time on, by what they are of."""

    start_s: float
    of: Mapping[str, int]

    @property
    def nbytes(self) -> int:
        return sum(self.of.values())


@dataclass(frozen=True)
class Foreseen:
    """`turns` by task, of those that are done once for each micro-batch; `told`: what moves and
    what devices hold, in words.
    """

    schedule: Schedule = field(repr=False)
    trace: Trace = field(repr=False)
    turns: Mapping[str, Turn] = field(default_factory=dict[str, Turn], repr=False)
    told: tuple[str, ...] = ()

    @cached_property
    def held(self) -> tuple[tuple[HeldFrom, ...], ...]:
        """Of each rank, from when to when it holds how much: what its tasks have touched so far."""
        graph, ranks = self.schedule.graph, self.schedule.topology.ranks
        memory = HeldMemory(graph, ranks)
        found: list[list[HeldFrom]] = [[] for _ in range(ranks)]
        for event in self.trace.events:  # in order of time
            if event.kind is not EventKind.TASK:
                continue
            memory.add(graph.by_name[event.name], event.rank)
            steps, nbytes = found[event.rank], memory.nbytes[event.rank]
            if not steps or nbytes != steps[-1].nbytes:
                of = {k: n for k, n in memory.by_storage(event.rank).items() if n}
                steps.append(HeldFrom(event.start_s, of))
        return tuple(map(tuple, found))

    @property
    def peaks(self) -> tuple[int, ...]:
        """The most that each rank holds."""
        return tuple(steps[-1].nbytes if steps else 0 for steps in self.held)

    @property
    def busy(self) -> float:
        """The part of the time that the ranks which have tasks compute."""
        events = self.trace.events
        tasks = sum(each.duration_s for each in events if each.kind is EventKind.TASK)
        whole = self.trace.makespan_s * sum(1 for peak in self.peaks if peak)
        return tasks / whole if whole else 0.0

    def __repr__(self) -> str:
        told = f"{format_seconds(self.trace.makespan_s)}, {format_bytes(max(self.peaks))} a rank"
        return brief(self, f"{told}; {NOT_LOWERED}")
