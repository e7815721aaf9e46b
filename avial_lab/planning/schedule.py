"""Schedule: which device runs which task, in which order, and every byte that has to move for it.

TaskGraph, Topology -> Schedule. Placement, transfers and the steps of every rank are decided here,
once; what comes later translates them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from avial_lab.core.errors import ScheduleError
from avial_lab.core.piece_map import PieceMap
from avial_lab.core.regions import Box, Region, union
from avial_lab.core.table import PRINTED_ROWS
from avial_lab.core.words import MOST_ROWS, brief, count, format_bytes, listed
from avial_lab.machine.topology import Device, Target, Topology
from avial_lab.planning.graph_facts import graph_summary, graph_text
from avial_lab.planning.task_graph import Access, Task, TaskGraph, TaskKind
from avial_lab.trace import EventKind, Move


class Policy(enum.Enum):
    """How tasks are placed: `levels` goes round-robin over the fitting devices in each level.

    A policy decides device and order of every task of a program of tasks alone. The iterations of
    loops are placed by their division (`planning/distribution.py`).
    """

    LEVELS = "levels"


class Sync(enum.Enum):
    """`edges`: a rank waits for the messages it reads. `levels`: and for everyone, after each
    level of tasks; of phases, in a loop after each level of its body, every iteration.
    """

    EDGES = "edges"
    LEVELS = "levels"


BY_HAND = "by hand"
"""The reason of a placement that no policy decided."""


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
    tag limit).
    """

    index: int
    storage: str
    box: Box
    source: int
    dest: int
    producer: str
    consumer: str
    nbytes: int

    @property
    def messages(self) -> int:
        """As of a `Move`, which stands for several."""
        return 1

    def __repr__(self) -> str:
        what = f"{self.storage}{self.box} ({format_bytes(self.nbytes)})"
        ranks = f"rank {self.source} → {self.dest}"
        tasks = f"{self.producer} wrote it, {self.consumer} needs it"
        return brief(self, f"{self.index}: {what} {ranks}; {tasks}")


Message = Transfer | Move
"""What goes from a rank to another: both say `source`, `dest`, `consumer`, `messages`, `nbytes`."""


class StepKind(enum.Enum):
    RUN = "run"  # compute: the task or phase called `task`
    POST = "post"  # start receiving message `transfer`
    SEND = "send"  # start sending it
    WAIT_RECEIVED = "received"  # wait until it has arrived
    WAIT_SENT = "sent"  # wait until its memory may be overwritten
    BARRIER = "barrier"  # wait for every rank

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
}


@dataclass(frozen=True)
class Step:
    """An event of a rank before it has a time: `task` for RUN, `transfer` for the four message
    steps.

    `transfer` indexes the messages of the program: `Schedule.transfers` where they are known when
    it is compiled, `Schedule.moves` where the ownership runtime derives them. There a step stands
    for all the `times` that the phase is begun (0: only the run knows).
    """

    kind: StepKind
    task: str = ""
    transfer: int = -1
    times: int = 1

    def __str__(self) -> str:
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
        times = count(self.times, "time") if self.times else "as often as the run decides"
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
    either, `sent` is what goes from rank to rank, and `program` what a rank does.
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

    def program(self, rank: int) -> RankProgram:
        """What that rank does, event by event.

        A phase is one event for all its rounds, and so are its messages from one rank. (What a
        reduction brings together is sent after its phase, which the sums do not tell.)
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


def schedule_tasks(
    graph: TaskGraph,
    topology: Topology,
    *,
    policy: Policy = Policy.LEVELS,
    sync: Sync = Sync.EDGES,
) -> Schedule:
    """Place the tasks of `graph` on the devices of `topology`, and derive what has to move.

    Raises ScheduleError for a target that no device satisfies.
    """
    placements = _PLACED_BY[policy](graph, topology)
    _check_order(graph, [placement.task for placement in placements])
    return _scheduled(graph, topology, placements, policy, sync)


def schedule_by_hand(
    graph: TaskGraph,
    topology: Topology,
    devices: Mapping[str, str],
    *,
    order: Sequence[str] | None = None,
    sync: Sync = Sync.EDGES,
) -> Schedule:
    """Every task on the device that `devices` names for it, in `order` (by default level by level);
    messages and steps follow from that.

    Raises ScheduleError for a device that is not there, or that the task's target forbids, and for
    an order in which a task comes before one that it depends on.
    """
    if order is None:
        order = [task.name for tasks in graph.levels for task in tasks]
    _check_order(graph, order)
    placements: list[Placement] = []
    for task in (graph.by_name[name] for name in order):
        fitting = _fitting_devices(task, topology)
        device = next((d for d in fitting if d.name == devices[task.name]), None)
        if device is None:
            raise ScheduleError(
                f"task '{task.name}' cannot run on '{devices[task.name]}'",
                span=task.span,
                hint=f"the devices for {task.target} are: {', '.join(d.name for d in fitting)}",
            )
        level = graph.level_of[task.name]
        placements.append(Placement(task.name, device.name, device.rank, level, BY_HAND))
    return _scheduled(graph, topology, tuple(placements), Policy.LEVELS, sync)


def _check_order(graph: TaskGraph, order: Sequence[str]) -> None:
    """ScheduleError where `order` does not name every task once, or goes against an edge."""
    position = {name: k for k, name in enumerate(order)}
    unknown = [name for name in position if name not in graph.by_name]
    missing = [task.name for task in graph.tasks if task.name not in position]
    twice = [name for k, name in enumerate(order) if position[name] != k]
    for names, what in ((unknown, "unknown"), (missing, "missing"), (twice, "named twice")):
        if names:
            raise ScheduleError(
                f"an order names every task once, and '{names[0]}' is {what} in this one"
            )
    for edge in graph.dependencies:
        if position[edge.before] > position[edge.after]:
            what = f" ({edge.hazard.value} of {edge.buffer})" if edge.buffer else ""
            raise ScheduleError(
                f"task '{edge.after}' comes before '{edge.before}' in the order, "
                f"and depends on it{what}",
                span=graph.by_name[edge.after].span,
                hint="order the tasks along the edges of the graph; program order always does",
            )


def _scheduled(
    graph: TaskGraph,
    topology: Topology,
    placements: tuple[Placement, ...],
    policy: Policy,
    sync: Sync,
) -> Schedule:
    """The schedule that follows from where every task runs, in the order of `placements`."""
    flow = _derive_transfers(graph, placements)
    programs = _rank_programs(graph, topology, placements, flow.transfers, sync)
    return Schedule(
        graph=graph,
        topology=topology,
        policy=policy,
        sync=sync,
        placements=placements,
        transfers=tuple(flow.transfers),
        programs=programs,
        inputs=tuple(flow.inputs()),
        results=tuple(flow.results()),
    )


def schedule_phases(
    graph: TaskGraph,
    topology: Topology,
    *,
    inputs: Sequence[Piece],
    results: Sequence[Piece],
    moves: Sequence[Move] = (),
    phases: Sequence[PhaseRun] = (),
    rank_of: Mapping[str, int] | None = None,
    sync: Sync = Sync.EDGES,
) -> Schedule:
    """The schedule of a structured program: a replicate is on every device that fits its target.

    What moves is found while it runs (`native/ownership`): `inputs`, `results`, `moves`, `phases`
    and the rank that a task runs on first (`rank_of`) are those of its plan.
    """
    first = rank_of or {}
    placements: list[Placement] = []
    for level, tasks in enumerate(graph.levels):
        for task in tasks:
            devices, reason = _fitting_devices(task, topology), "a part of its iterations"
            if task.kind is TaskKind.TASK:
                there = [d for d in devices if d.rank == first.get(task.name)] or devices
                devices, reason = there[:1], "the rank that has most of what it reads"
            placements += [
                Placement(task.name, device.name, device.rank, level, reason) for device in devices
            ]
    return Schedule(
        graph=graph,
        topology=topology,
        policy=Policy.LEVELS,
        sync=sync,
        placements=tuple(placements),
        transfers=(),
        programs=((),) * topology.ranks,
        inputs=tuple(inputs),
        results=tuple(results),
        moves=tuple(moves),
        phases=tuple(phases),
    )


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
            hint="leave the policy out; division says how loops are divided",
        )


# Placement ----------------------------------------------------------------------------------------


def _place_by_levels(graph: TaskGraph, topology: Topology) -> tuple[Placement, ...]:
    """Round-robin within each level over the devices that satisfy the target (Avial's slides,
    "Parallel Execution per Level"); tasks with different targets are counted apart, so that each
    kind of device is used evenly.
    """
    fitting: dict[Target, tuple[Device, ...]] = {}
    placements: list[Placement] = []
    for level, tasks in enumerate(graph.levels):
        turns: dict[tuple[Device, ...], int] = {}
        for task in tasks:
            if task.target not in fitting:
                fitting[task.target] = _fitting_devices(task, topology)
            devices = fitting[task.target]
            turn = turns.get(devices, 0)
            turns[devices] = turn + 1
            device = devices[turn % len(devices)]
            reason = _reason(task, level, turn, devices)
            placements.append(Placement(task.name, device.name, device.rank, level, reason))
    return tuple(placements)


_PLACED_BY = {Policy.LEVELS: _place_by_levels}
"""Device and order of every task, by policy."""


def _fitting_devices(task: Task, topology: Topology) -> tuple[Device, ...]:
    devices = topology.satisfying(task.target)
    if devices:
        return devices
    there = "; ".join(map(str, topology.devices)) or "none"
    hint, kind = f"the devices are: {there}", task.target.kind
    if kind.option and not any(device.kind.family == kind.family for device in topology.devices):
        hint += f". Ask for a {kind.noun} device ({kind.option})"
    raise ScheduleError(
        f"no device satisfies target %{task.target.name} ({task.target}) of task '{task.name}'",
        span=task.span,
        hint=hint,
    )


def _reason(task: Task, level: int, turn: int, devices: tuple[Device, ...]) -> str:
    if len(devices) == 1:
        return f"the only device for {task.target}"
    return f"turn {turn + 1} of level {level} over the {len(devices)} devices for {task.target}"


# What has to move ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Version:
    """Who wrote some elements last (None: the caller), and which ranks hold that version, the
    writer's first.
    """

    producer: str | None
    holders: tuple[int, ...]


@dataclass
class _Flow:
    """Walks the tasks in execution order and keeps, for every element, its last version and where
    it is.

    A rank that needs elements it does not hold gets them from the writer's rank, once; what no task
    has written yet comes from the caller before the run.
    """

    graph: TaskGraph
    rank_of: Mapping[str, int]
    transfers: list[Transfer] = field(default_factory=list[Transfer])
    versions: dict[str, PieceMap[_Version]] = field(default_factory=dict[str, PieceMap[_Version]])
    given: dict[tuple[int, str], list[Box]] = field(
        default_factory=dict[tuple[int, str], list[Box]]
    )

    def __post_init__(self) -> None:
        self._itemsize = {storage.name: storage.itemsize for storage in self.graph.storages}
        self._temporary = {b.storage for b in self.graph.buffers if b.temporary}
        for storage in self.graph.storages:
            self.versions[storage.name] = PieceMap(len(storage.shape))
            self.versions[storage.name].add(Box.whole(storage.shape), _Version(None, ()))

    def run(self, task: Task) -> None:
        rank = self.rank_of[task.name]
        for access in needed_accesses(task):
            for box in access.region:
                self._fetch(access.storage, box, rank, task.name)
        for access in task.writes:
            for box in access.region:
                versions = self.versions[access.storage]
                versions.remove(box)
                versions.add(box, _Version(task.name, (rank,)))

    def _fetch(self, storage: str, box: Box, rank: int, consumer: str) -> None:
        """See to it that `rank` holds the last version of `box`."""
        versions = self.versions[storage]
        missing: list[tuple[Box, _Version]] = []
        for part, version in versions.overlapping(box):
            if version.producer is None:
                self.given.setdefault((rank, storage), []).append(part)
            elif rank not in version.holders:
                missing.append((part, version))
        for (producer, holders), parts in _grouped(missing).items():
            for part in union(parts):
                nbytes = part.size * self._itemsize[storage]
                self.transfers.append(
                    Transfer(
                        len(self.transfers),
                        storage,
                        part,
                        holders[0],
                        rank,
                        producer,
                        consumer,
                        nbytes,
                    )
                )
        for part, version in missing:
            versions.remove(part)
            versions.add(part, _Version(version.producer, (*version.holders, rank)))

    def inputs(self) -> Iterable[Piece]:
        for (rank, storage), boxes in sorted(self.given.items(), key=lambda item: item[0]):
            if storage not in self._temporary:
                yield from (Piece(rank, storage, box) for box in union(boxes))

    def results(self) -> Iterable[Piece]:
        for storage, versions in self.versions.items():
            written: dict[int, list[Box]] = {}
            for box, version in versions:
                if version.producer is not None and storage not in self._temporary:
                    written.setdefault(version.holders[0], []).append(box)
            for rank, boxes in sorted(written.items()):
                yield from (Piece(rank, storage, box) for box in union(boxes))


def needed_accesses(task: Task) -> tuple[Access, ...]:
    """What has to be there before `task` runs: all it reads, and what it writes only in part.

    An element of an inexact write keeps its old value where the task does not write it after all.
    """
    return (*task.reads, *(access for access in task.writes if not access.exact))


def _grouped(
    pieces: Iterable[tuple[Box, _Version]],
) -> dict[tuple[str, tuple[int, ...]], list[Box]]:
    groups: dict[tuple[str, tuple[int, ...]], list[Box]] = {}
    for box, version in pieces:
        groups.setdefault((version.producer or "", version.holders), []).append(box)
    return groups


def _derive_transfers(graph: TaskGraph, placements: tuple[Placement, ...]) -> _Flow:
    flow = _Flow(graph, {placement.task: placement.rank for placement in placements})
    for placement in placements:
        flow.run(graph.by_name[placement.task])
    return flow


# What each rank does ------------------------------------------------------------------------------


def _rank_programs(
    graph: TaskGraph,
    topology: Topology,
    placements: tuple[Placement, ...],
    transfers: list[Transfer],
    sync: Sync,
) -> tuple[RankProgram, ...]:
    """The steps of every rank, deadlock-free by construction.

    Give each task its position in the order of `placements`: any that respects the graph. A rank at
    position p waits only for messages whose other side needs nothing later than p to do its part: a
    message is sent right after its producer, its receive is posted before its consumer at the
    latest, and the wait for a send to complete stands no earlier than that message's consumer. By
    induction over positions the least blocked rank can always go on. A barrier stands at the same
    position on every rank, wherever the level of the tasks changes.
    """
    position = {placement.task: k for k, placement in enumerate(placements)}
    level_ends = [
        k + 1
        for k, placement in enumerate(placements)
        if k + 1 == len(placements) or placements[k + 1].level != placement.level
    ]
    barriers = level_ends if sync is Sync.LEVELS and topology.ranks > 1 else []
    programs: list[_RankProgram] = [
        _RankProgram(graph, rank, position) for rank in range(topology.ranks)
    ]
    incoming: dict[str, list[Transfer]] = {}
    outgoing: dict[str, list[Transfer]] = {}
    for transfer in transfers:
        incoming.setdefault(transfer.consumer, []).append(transfer)
        outgoing.setdefault(transfer.producer, []).append(transfer)
    for k, placement in enumerate(placements):
        task = graph.by_name[placement.task]
        program = programs[placement.rank]
        program.run(task, incoming.get(task.name, ()), outgoing.get(task.name, ()))
        if k + 1 in barriers:
            for program in programs:
                program.barrier(k)
    return tuple(program.finish() for program in programs)


class _RankProgram:
    """Builds one rank's steps; each is keyed by the position it belongs to, so that receives can be
    posted early.
    """

    # Within one position: what must be over before the task, the task, what it sends, receives
    # posted after it.
    _BEFORE, _RECEIVED, _RUN, _SEND, _POST, _BARRIER = range(6)

    def __init__(self, graph: TaskGraph, rank: int, position: Mapping[str, int]) -> None:
        self._graph = graph
        self._rank = rank
        self._position = position
        self._steps: list[tuple[int, int, int, Step]] = []
        # Where each element was last touched by this rank's tasks and messages: position.
        self._touched: dict[str, PieceMap[int]] = {
            s.name: PieceMap(len(s.shape)) for s in graph.storages
        }
        self._sending: dict[str, PieceMap[Transfer]] = {
            s.name: PieceMap(len(s.shape)) for s in graph.storages
        }
        self._unsent: dict[int, Transfer] = {}
        self._sent_at: dict[int, int] = {}

    def run(self, task: Task, incoming: Iterable[Transfer], outgoing: Iterable[Transfer]) -> None:
        now = self._position[task.name]
        for transfer in incoming:
            self._receive(transfer, now)
        for access in task.writes:
            self._finish_sends(access.storage, access.region, now)
        self._add(now, self._RUN, Step(StepKind.RUN, task=task.name))
        for access in (*task.reads, *task.writes):
            self._touch(access.storage, access.region, now)
        for transfer in outgoing:
            self._add(now, self._SEND, Step(StepKind.SEND, transfer=transfer.index))
            self._sending[transfer.storage].add(transfer.box, transfer)
            self._unsent[transfer.index] = transfer

    def barrier(self, position: int) -> None:
        self._add(position, self._BARRIER, Step(StepKind.BARRIER))

    def finish(self) -> RankProgram:
        end = len(self._position)
        for index in sorted(self._unsent):
            self._add(end, self._BEFORE, Step(StepKind.WAIT_SENT, transfer=index))
        return tuple(step for *_, step in sorted(self._steps, key=lambda entry: entry[:3]))

    def _receive(self, transfer: Transfer, now: int) -> None:
        """Post as soon as this rank has no more use for what is there, wait right before the
        consumer.
        """
        region = (transfer.box,)
        last_use = max(
            (at for _, at in self._touched[transfer.storage].overlapping(transfer.box)), default=-1
        )
        after_sends = self._finish_sends(transfer.storage, region, now, early=True)
        post_at = max(last_use, after_sends)
        self._add(post_at, self._POST, Step(StepKind.POST, transfer=transfer.index))
        self._add(now, self._RECEIVED, Step(StepKind.WAIT_RECEIVED, transfer=transfer.index))
        self._touch(transfer.storage, region, now)

    def _finish_sends(self, storage: str, region: Region, now: int, *, early: bool = False) -> int:
        """Wait for this rank's sends from `region` before it is overwritten; the position where the
        last wait is.

        `early`: not at `now` but as soon as the message's own consumer is past, before a receive is
        posted.
        """
        latest = -1
        sending = self._sending[storage]
        for box in region:
            for _, transfer in sending.overlapping(box):
                if transfer.index in self._unsent:
                    del self._unsent[transfer.index]
                    at = self._position[transfer.consumer] if early else now
                    self._sent_at[transfer.index] = at
                    order = self._POST if early else self._BEFORE
                    self._add(at, order, Step(StepKind.WAIT_SENT, transfer=transfer.index))
                # The wait may be there already, for another part of the same message.
                latest = max(latest, self._sent_at[transfer.index])
            sending.remove(box)
        return latest

    def _touch(self, storage: str, region: Region, at: int) -> None:
        for box in region:
            self._touched[storage].remove(box)
            self._touched[storage].add(box, at)

    def _add(self, position: int, order: int, step: Step) -> None:
        self._steps.append((position, order, len(self._steps), step))
