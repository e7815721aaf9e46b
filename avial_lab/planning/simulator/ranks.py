"""A program of tasks on its ranks, simulated step by step as they execute it.

Schedule, Costs -> activities -> Trace.

    rank 0   run t1 ── send 0 ──────── run t3 …
                          └─► message 0 ─┐ (links; rendezvous: once posted, too)
    rank 1   post 0 ── run t2 ───────── received 0 ── run t4 …
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from avial_lab.core.errors import ScheduleError
from avial_lab.machine.constants import (
    EAGER_BYTES,
    HOST_LINK_BYTES_PER_S,
    HOST_LINK_LATENCY_S,
    MESSAGE_STEP_S,
)
from avial_lab.machine.devices import label_with
from avial_lab.machine.platform import Hop, Platform
from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import Cost, Costs
from avial_lab.planning.message_steps import copy_words, message_step
from avial_lab.planning.schedule import DeviceCopy, Schedule, Step, StepKind, Transfer
from avial_lab.planning.simulator.activities import Activities, ActivityList, Times, simulate
from avial_lab.trace import Event, Trace
from avial_lab.trace.events import SIMULATED


def simulated(schedule: Schedule, costs: Costs) -> Trace:
    """What would happen when, on the platform of the schedule's topology.

    Raises ScheduleError where a message has no way to go.
    """
    run = Ranks(schedule.topology, schedule.copies)
    placed = schedule.placement_of
    graph, topology = schedule.graph, schedule.topology
    seconds = {
        task.name: costs.of(task, topology.device(placed[task.name].device), graph, topology)
        for task in graph.tasks
    }
    for rank, program in enumerate(schedule.programs):
        for step in program:
            run.add(rank, step, seconds)
    run.connect(schedule.transfers)
    times = simulate(run.activities())
    return _trace(schedule, run, times)


def _trace(schedule: Schedule, run: Ranks, times: Times) -> Trace:
    ends = times.end_s.tolist()
    placed = schedule.placement_of
    events: list[Event] = []
    for rank, steps in enumerate(run.steps):
        now = 0.0
        for step, activity in steps:
            end = ends[activity]
            kind = step.kind.event
            if step.kind is StepKind.RUN:
                device = placed[step.task].device
                events.append(Event(kind, step.task, rank, device, now, end))
            elif step.kind is StepKind.COPY:
                copied = schedule.copies[step.copy]
                name, what = copy_words(copied, schedule.topology.ranks)
                event = Event(kind, name, rank, "", now, end, copied.nbytes, what=what)
                events.append(event)
            elif step.kind is StepKind.BARRIER:
                events.append(Event(kind, str(step), rank, "", now, end))
            else:
                told = message_step(step, schedule.transfers[step.transfer])
                size, peer, number, what = told.nbytes, told.peer, told.number, told.what
                events.append(Event(kind, told.name, rank, "", now, end, size, peer, number, what))
            now = end
    events.sort(key=lambda event: (event.start_s, event.end_s, event.rank))
    topology = schedule.topology
    kinds = (topology.device(name).kind for name in schedule.device_kinds)
    return Trace(
        ranks=topology.ranks,
        events=tuple(events),
        label=label_with(f"{SIMULATED} on {topology.speeds.label}", kinds),
        kinds=tuple(schedule.device_kinds.items()),
        machine=str(topology.speeds),
        threads=topology.cores_of_rank,
    )


@dataclass
class Resources:
    """What activities share on a platform, by number: links, each direction for itself, and the
    cores and the memory of each node, and the link of each device to its host.
    """

    platform: Platform
    capacity: list[float] = field(default_factory=list[float])
    _number: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def cores(self, node: str) -> int:
        return self._of("cores", node, float(self.platform.node(node).cores))

    def memory(self, node: str) -> int:
        return self._of("memory", node, self.platform.node(node).memory_bytes_per_s)

    def link(self, hop: Hop) -> int | None:
        """None where messages do not slow each other on it."""
        name, backwards = hop
        link = self.platform.link(name)
        if not link.shared:
            return None
        way = "back" if backwards and link.duplex else "there"
        return self._of(way, name, link.bandwidth_bytes_per_s)

    def host_link(self, device: str, bytes_per_s: float, *, inwards: bool) -> int:
        return self._of("in" if inwards else "out", device, bytes_per_s)

    def _of(self, kind: str, name: str, capacity: float) -> int:
        number = self._number.setdefault((kind, name), len(self.capacity))
        if number == len(self.capacity):
            self.capacity.append(capacity)
        return number


@dataclass(frozen=True)
class Way:
    """How a message goes: the resources that it uses, its latency, and its rate alone."""

    uses: tuple[int, ...]
    latency_s: float
    bytes_per_s: float


class Ways:
    """The ways between ranks, found once for each pair of nodes; and those to and from devices."""

    def __init__(self, topology: Topology, resources: Resources) -> None:
        self._topology, self._resources = topology, resources
        self._known: dict[tuple[str, str], Way] = {}
        self._copies: dict[tuple[int, int], Way] = {}

    def between(self, source: int, dest: int) -> Way:
        """Raises ScheduleError where no link leads from node to node."""
        pair = self._topology.node_of[source], self._topology.node_of[dest]
        if pair not in self._known:
            self._known[pair] = self._found(*pair)
        return self._known[pair]

    def _found(self, source: str, dest: str) -> Way:
        platform = self._topology.speeds
        hops = platform.hops(source, dest)
        if hops is None:
            raise ScheduleError(
                f"no link leads from node '{source}' to node '{dest}' of {platform.label}",
                hint="add a route between them to the topology",
            )
        uses = (self._resources.link(hop) for hop in hops)
        return Way(
            tuple(each for each in uses if each is not None),
            platform.latency_s(hops),
            platform.bandwidth_bytes_per_s(hops),
        )

    def copied(self, source: int, dest: int) -> Way:
        """Between two places of one rank, over the links of those that are devices."""
        if (source, dest) not in self._copies:
            ends = ((source, False), (dest, True))
            links = [self._host_link(p, inwards) for p, inwards in ends if p >= self._ranks]
            self._copies[source, dest] = Way(
                tuple(use for link in links for use in link.uses),
                max(link.latency_s for link in links),
                min(link.bytes_per_s for link in links),
            )
        return self._copies[source, dest]

    @property
    def _ranks(self) -> int:
        return self._topology.ranks

    def _host_link(self, place: int, inwards: bool) -> Way:
        """An emulated device has its memory in the node's, where a core copies."""
        device = self._topology.accelerators[place - self._ranks]
        if device.emulated:
            return Way((), 0.0, self._topology.speeds.node(device.node).core_bytes_per_s)
        known = self._topology.accelerator_of(device)
        rate = HOST_LINK_BYTES_PER_S if known is None else known.host_bytes_per_s
        latency_s = HOST_LINK_LATENCY_S if known is None else known.host_latency_s
        use = self._resources.host_link(device.name, rate, inwards=inwards)
        return Way((use,), latency_s, rate)


class _Draft(NamedTuple):
    """An activity before all that it waits for is known. (Made so often that a dataclass, whose
    fields are set one by one, would take a tenth of a simulation.)
    """

    amount: float
    cap: float = math.inf
    latency_s: float = 0.0
    uses: tuple[tuple[int, float], ...] = ()


class Ranks:
    """The steps of every rank as activities, each after the one before it; then the messages."""

    def __init__(self, topology: Topology, copies: Sequence[DeviceCopy] = ()) -> None:
        self._topology = topology
        self._copies = copies
        self._resources = Resources(topology.speeds)
        self._ways = Ways(topology, self._resources)
        self._drafts: list[_Draft] = []
        self._after: list[list[int]] = []
        self.steps: list[list[tuple[Step, int]]] = [[] for _ in range(topology.ranks)]
        self._begun: dict[int, int] = {}
        self._posted: dict[int, int] = {}
        self._waits: list[tuple[Step, int]] = []
        self._barriers: dict[int, int] = {}
        self._met: list[int] = [0] * topology.ranks

    def add(self, rank: int, step: Step, seconds: dict[str, Cost]) -> None:
        """The next step of that rank."""
        before = [self.steps[rank][-1][1]] if self.steps[rank] else []
        activity = self._ADDED[step.kind](self, rank, step, seconds)
        self._after[activity].extend(before)
        self.steps[rank].append((step, activity))

    def _run(self, rank: int, step: Step, seconds: dict[str, Cost]) -> int:
        cost, node = seconds[step.task], self._topology.node_of[rank]
        uses: list[tuple[int, float]] = []
        if cost.cores:
            uses.append((self._resources.cores(node), float(cost.cores)))
        if cost.memory_bytes and cost.seconds:
            uses.append((self._resources.memory(node), cost.memory_bytes / cost.seconds))
        return self._draft(_Draft(cost.seconds, 1.0, 0.0, tuple(uses)))

    def _post(self, _rank: int, step: Step, _seconds: dict[str, Cost]) -> int:
        self._posted[step.transfer] = self._draft(_Draft(0.0, latency_s=MESSAGE_STEP_S))
        return self._posted[step.transfer]

    def _send(self, _rank: int, step: Step, _seconds: dict[str, Cost]) -> int:
        self._begun[step.transfer] = self._draft(_Draft(0.0, latency_s=MESSAGE_STEP_S))
        return self._begun[step.transfer]

    def _wait(self, _rank: int, step: Step, _seconds: dict[str, Cost]) -> int:
        activity = self._draft(_Draft(0.0))
        self._waits.append((step, activity))
        return activity

    def _barrier(self, rank: int, _step: Step, _seconds: dict[str, Cost]) -> int:
        """All ranks' k-th barrier is one activity: they leave it together."""
        k = self._met[rank]
        self._met[rank] += 1
        if k not in self._barriers:
            ranks = self._topology.ranks
            rounds = math.ceil(math.log2(ranks)) if ranks > 1 else 0
            latency_s = self._ways.between(0, ranks - 1).latency_s
            self._barriers[k] = self._draft(_Draft(0.0, latency_s=rounds * latency_s))
        return self._barriers[k]

    def _copy(self, _rank: int, step: Step, _seconds: dict[str, Cost]) -> int:
        """To a device or from one: the rank waits for it."""
        copy = self._copies[step.copy]
        way = self._ways.copied(copy.source, copy.dest)
        uses = tuple((resource, 1.0) for resource in way.uses)
        latency_s = MESSAGE_STEP_S + way.latency_s
        return self._draft(_Draft(float(copy.nbytes), way.bytes_per_s, latency_s, uses))

    _ADDED: ClassVar[dict[StepKind, Callable[[Ranks, int, Step, dict[str, Cost]], int]]] = {
        StepKind.RUN: _run,
        StepKind.POST: _post,
        StepKind.SEND: _send,
        StepKind.WAIT_RECEIVED: _wait,
        StepKind.WAIT_SENT: _wait,
        StepKind.BARRIER: _barrier,
        StepKind.COPY: _copy,
    }

    def connect(self, transfers: tuple[Transfer, ...]) -> None:
        """The messages, between the steps that begin them and those that wait for them."""
        arrived: dict[int, int] = {}
        for transfer in transfers:
            way = self._ways.between(transfer.source, transfer.dest)
            uses = tuple((resource, 1.0) for resource in way.uses)
            draft = _Draft(float(transfer.nbytes), way.bytes_per_s, way.latency_s, uses)
            arrived[transfer.index] = activity = self._draft(draft)
            self._after[activity].append(self._begun[transfer.index])
            if transfer.nbytes > EAGER_BYTES:
                self._after[activity].append(self._posted[transfer.index])
        for step, activity in self._waits:
            eager = transfers[step.transfer].nbytes <= EAGER_BYTES
            if not (step.kind is StepKind.WAIT_SENT and eager):
                self._after[activity].append(arrived[step.transfer])

    def activities(self) -> Activities:
        """All of them, in arrays."""
        made = ActivityList()
        for draft, after in zip(self._drafts, self._after, strict=True):
            made.add(
                draft.amount,
                after=after,
                cap=draft.cap,
                latency_s=draft.latency_s,
                uses=draft.uses,
            )
        return made.on(self._resources.capacity)

    def _draft(self, draft: _Draft) -> int:
        self._drafts.append(draft)
        self._after.append([])
        return len(self._drafts) - 1
