"""Schedule: which device runs which task, in which order, and every byte that has to move for it.

TaskGraph, Topology -> Schedule. Placement, transfers and the steps of every rank are decided here,
once; what comes later translates them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from avial_lab.core.errors import ScheduleError
from avial_lab.core.regions import Box
from avial_lab.core.table import PRINTED_ROWS
from avial_lab.core.words import MOST_ROWS, brief, count, format_bytes, listed
from avial_lab.machine.devices import devices_between, place_name
from avial_lab.machine.topology import Topology
from avial_lab.planning.graph_facts import graph_summary, graph_text
from avial_lab.planning.policies import Policy
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.trace import Copy, EventKind, Move


class Sync(enum.Enum):
    """`edges`: a rank waits for the messages it reads. `levels`: and for everyone, after each
    level of tasks; of phases, in a loop after each level of its body, every iteration.
    """

    EDGES = "edges"
    LEVELS = "levels"


@dataclass(frozen=True)
class Placement:
    """Where a task runs, and why there."""

    task: str
    device: str
    rank: int
    level: int
    reason: str

    def __repr__(self) -> str:
        where = f"{self.device} (rank {self.rank}), level {self.level}"
        return brief(self, f"of {self.task} on {where}: {self.reason}")


@dataclass(frozen=True)
class Transfer:
    """`box` of `storage` goes from rank `source` to rank `dest`: `producer` wrote it, `consumer`
    needs it.

    `index` numbers the transfers of a schedule from 0 and serves as the message's tag (modulo MPI's
    tag limit). places: where it goes from the device that wrote it to the one that needs it.
    """

    index: int
    storage: str
    box: Box
    source: int
    dest: int
    producer: str
    consumer: str
    nbytes: int
    places: tuple[int, int] | None = None

    @cached_property
    def what(self) -> str:
        """`c[0:20]`: named in every event of the message."""
        return f"{self.storage}{self.box}"

    @property
    def messages(self) -> int:
        """As of a `Move`, which sums up several."""
        return 1

    def devices(self, ranks: int) -> str:
        """Between whose memories it goes, as of a `Move`."""
        return devices_between(*self.places, ranks) if self.places else ""

    def __repr__(self) -> str:
        what = f"{self.storage}{self.box} ({format_bytes(self.nbytes)})"
        ranks = f"rank {self.source} → {self.dest}"
        tasks = f"{self.producer} wrote it, {self.consumer} needs it"
        return brief(self, f"{self.index}: {what} {ranks}; {tasks}")


ALL_TASKS = "all tasks"
"""In place of a phase, of sums over a program of tasks."""


@dataclass(frozen=True)
class DeviceCopy:
    """`box` of `storage` goes between two memories of one rank, `source` and `dest`: places, of
    which the first are the ranks' own (`Topology.place_of`). `task` needs it; empty: a result.
    """

    index: int
    storage: str
    box: Box
    source: int
    dest: int
    task: str
    nbytes: int

    def __repr__(self) -> str:
        what = f"{self.storage}{self.box} ({format_bytes(self.nbytes)})"
        why = f"for {self.task}" if self.task else "a result"
        return brief(self, f"{self.index}: {what} place {self.source} → {self.dest}, {why}")


Message = Transfer | Move
"""What goes from a rank to another: both say `source`, `dest`, `consumer`, `messages`, `nbytes`."""


class StepKind(enum.Enum):
    RUN = "run"  # compute: the task or phase called `task`
    POST = "post"  # start receiving message `transfer`
    SEND = "send"  # start sending it
    WAIT_RECEIVED = "received"  # wait until it has arrived
    WAIT_SENT = "sent"  # wait until its memory may be overwritten
    BARRIER = "barrier"  # wait for every rank
    COPY = "copy"  # to a device or from one: `copy`

    @property
    def event(self) -> EventKind:
        """What it is in a trace, which has a time for it."""
        return _EVENT_OF[self]


_EVENT_OF = {
    StepKind.RUN: EventKind.TASK,
    StepKind.POST: EventKind.POST,
    StepKind.SEND: EventKind.SEND,
    StepKind.WAIT_RECEIVED: EventKind.WAIT,
    StepKind.WAIT_SENT: EventKind.WAIT,
    StepKind.BARRIER: EventKind.BARRIER,
    StepKind.COPY: EventKind.COPY,
}


class Step(NamedTuple):
    """An event of a rank before it has a time: `task` for RUN, `transfer` for the four message
    steps, `copy` for COPY.

    `transfer` indexes the messages of the program: `Schedule.transfers` where they are known when
    it is compiled, `Schedule.moves` where the ownership runtime derives them. There a step is
    for all the `times` that the phase is begun (0: only the run knows).
    """

    kind: StepKind
    task: str = ""
    transfer: int = -1
    times: int = 1
    copy: int = -1

    def __str__(self) -> str:
        if self.kind is StepKind.COPY:
            return f"{self.kind.value} {self.copy}"
        return (
            f"{self.kind.value} {self.task or self.transfer}"
            if self.kind is not StepKind.BARRIER
            else "barrier"
        )

    def __repr__(self) -> str:
        return brief(self, str(self))


RankProgram = tuple[Step, ...]
"""What one rank does, step by step."""


@dataclass(frozen=True)
class PhaseRun:
    """How often a phase of a structured program will be begun, and how often all ranks then wait
    for each other; `times` is 0 where only the run knows.
    """

    name: str
    times: int
    barriers: int = 0

    def __repr__(self) -> str:
        times = count(self.times, "time") if self.times else "a number of times known at run time"
        waits = f", then {count(self.barriers, 'barrier')}" if self.barriers else ""
        return brief(self, f"{self.name}: {times}{waits}")


@dataclass(frozen=True)
class Piece:
    """`box` of `storage` on rank `rank`: given to it before the run, or taken from it after."""

    rank: int
    storage: str
    box: Box

    def __repr__(self) -> str:
        return brief(self, f"{self.storage}{self.box} on rank {self.rank}")


@dataclass(frozen=True)
class Schedule:
    """Everything decided about a run.

    placements are in execution order: any that respects the graph. `inputs` are the pieces of the
    caller's arrays each rank gets, `results` the written pieces that go back, each from one rank
    that holds its last version.

    Where all messages are known when the program is compiled they are `transfers`, and
    `programs[r]` is what rank r does; a rank without work has an empty one. Where the ownership
    runtime derives them as it runs they are foreseen as `moves`, sums over a run of `phases`. Of
    either, `sent` is what goes from rank to rank, and `program` what a rank does. `copies` are what
    ranks then copy to their devices and from them.
    """

    graph: TaskGraph
    topology: Topology
    policy: Policy
    sync: Sync
    placements: tuple[Placement, ...]
    transfers: tuple[Transfer, ...]
    programs: tuple[RankProgram, ...]
    inputs: tuple[Piece, ...]
    results: tuple[Piece, ...]
    moves: tuple[Move, ...] = ()
    phases: tuple[PhaseRun, ...] = ()
    copies: tuple[DeviceCopy, ...] = ()

    def program(self, rank: int) -> RankProgram:
        """What that rank does, event by event.

        A phase is one event for all its rounds, and so are its messages from one rank. (What a
        reduction brings together is sent after its phase, which the sums do not show.)
        """
        return self.programs[rank] or tuple(
            step for phase in self.phases for step in _phase_steps(phase, self.moves, rank)
        )

    @cached_property
    def placement_of(self) -> dict[str, Placement]:
        return {placement.task: placement for placement in self.placements}

    @property
    def device_kinds(self) -> dict[str, str]:
        """The names of the kinds of the devices that tasks are placed on, by the devices' names."""
        placed = dict.fromkeys(placement.device for placement in self.placements)
        return {name: self.topology.device(name).kind.name for name in placed}

    @property
    def sent(self) -> tuple[Message, ...]:
        """All that goes from a rank to another."""
        return (*self.transfers, *self.moves)

    @property
    def drivers(self) -> tuple[int, ...]:
        """Which ranks drive each device with memory of its own; none where no task is on any."""
        topology = self.topology
        on = (topology.place_of(placed.device) for placed in self.placements)
        return topology.drivers if any(place >= topology.ranks for place in on) else ()

    @property
    def copied(self) -> tuple[Copy, ...]:
        """The sums of `copies`, memory by memory."""
        sums: dict[tuple[str, str], tuple[int, int]] = {}
        for each in self.copies:
            ends = (each.source, each.dest)
            source, dest = (place_name(place, self.topology.ranks) for place in ends)
            number, nbytes = sums.get((source, dest), (0, 0))
            sums[source, dest] = number + 1, nbytes + each.nbytes
        return tuple(Copy(ALL_TASKS, *ends, *amounts) for ends, amounts in sums.items())

    @cached_property
    def bytes_moved(self) -> int:
        """Bytes that cross between ranks during the run."""
        return sum(message.nbytes for message in self.sent)

    @property
    def messages(self) -> int:
        """Messages that cross between ranks during the run."""
        return sum(message.messages for message in self.sent)

    def __str__(self) -> str:
        return graph_text(self.graph, self, most=PRINTED_ROWS)

    def __repr__(self) -> str:
        """A line for each of the first devices: what runs there, in order."""
        devices = self.topology.devices
        there = {device.name: list[str]() for device in devices[:MOST_ROWS]}
        for placement in self.placements:
            if placement.device in there:
                there[placement.device].append(placement.task)
        rows = (
            f"{device.name} (rank {device.rank}): {listed(there[device.name], most=6) or 'nothing'}"
            for device in devices[:MOST_ROWS]
        )
        return brief(self, f"of {graph_summary(self.graph, self)}", rows, len(devices))


def _phase_steps(phase: PhaseRun, moves: Sequence[Move], rank: int) -> Iterator[Step]:
    """Of all rounds of a phase on one rank; the step of a message names one of `moves`."""
    known = phase.times > 0
    arriving, leaving = (
        [
            (k, move.messages if known else 0)
            for k, move in enumerate(moves)
            if move.phase == phase.name and rank == (move.source if sends else move.dest)
        ]
        for sends in (False, True)
    )
    yield from (Step(StepKind.POST, transfer=k, times=n) for k, n in arriving)
    yield from (Step(StepKind.SEND, transfer=k, times=n) for k, n in leaving)
    yield from (Step(StepKind.WAIT_RECEIVED, transfer=k, times=n) for k, n in arriving)
    yield Step(StepKind.RUN, phase.name, times=phase.times)
    yield from (Step(StepKind.WAIT_SENT, transfer=k, times=n) for k, n in leaving)
    if phase.barriers:
        yield Step(StepKind.BARRIER, times=phase.barriers if known else 0)


def phase_levels(graph: TaskGraph) -> dict[str, int]:
    """The level of every phase: those one after the other in the same loop, none of which depends
    on another of them, are one. They are numbered in program order.

        S0                       0        before the loop
        for t:  S1  S2  S3       1 1 2    S3 reads what S1 writes
    """
    waits: dict[str, set[str]] = {task.name: set() for task in graph.tasks}
    for edge in graph.dependencies:
        waits[edge.after].add(edge.before)
    levels: dict[str, int] = {}
    level, group = -1, None
    current: set[str] = set()
    for task in graph.tasks:
        if task.group != group or waits[task.name] & current:
            level += 1
            current = set()
        group = task.group
        current.add(task.name)
        levels[task.name] = level
    return levels


def check_no_policy(policy: Policy | None) -> None:
    """ScheduleError where a policy was asked for, of a program with loops."""
    if policy is not None:
        raise ScheduleError(
            f"policy '{policy.value}' places tasks, and this program has loops, "
            "which are divided over all ranks",
            hint="leave the policy out; `division` selects how loops are divided",
        )
