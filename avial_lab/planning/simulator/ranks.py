"""A program of tasks on its ranks, simulated step by step as they execute it.

Schedule, Costs -> activities -> Trace.

    rank 0   run t1 ── send 0 ──────── run t3 …
                          └─► message 0 ─┐ (links; rendezvous: once posted, too)
    rank 1   post 0 ── run t2 ───────── received 0 ── run t4 …
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from avial_lab.core.errors import ScheduleError
from avial_lab.machine.constants import (
    EAGER_BYTES,
    HOST_LINK_BYTES_PER_S,
    HOST_LINK_LATENCY_S,
    MESSAGE_STEP_S,
)
from avial_lab.machine.devices import label_with
from avial_lab.machine.platform import Collective, Hop, Platform
from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.memory import first_touched
from avial_lab.planning.message_steps import copy_words, message_step
from avial_lab.planning.schedule import DeviceCopy, Schedule, Step, StepKind, Transfer
from avial_lab.planning.simulator import collectives
from avial_lab.planning.simulator.activities import Activities, Times, simulate
from avial_lab.trace import Described, EventColumns, Trace
from avial_lab.trace.events import EVENT_KINDS, SIMULATED


def simulated(schedule: Schedule, costs: Costs) -> Trace:
    """What would happen when, on the platform of the schedule's topology.

    Raises ScheduleError where a message has no way to go.
    """
    steps = _Steps.of(schedule)
    return _trace(schedule, steps, simulate(_activities(schedule, steps, costs)))


@dataclass
class Resources:
    """What activities share on a platform, by number: links, each direction for itself, and the
    cores of each node, the memory of each of its domains, and the link of each device to its host.
    """

    platform: Platform
    capacity: list[float] = field(default_factory=list[float])
    _number: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def cores(self, node: str) -> int:
        return self._of("cores", node, float(self.platform.node(node).cores))

    def memory(self, node: str, domain: int) -> int:
        rate = self.platform.node(node).near(domain).memory_bytes_per_s
        return self._of(f"memory {domain}", node, rate)

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
    """How a message goes: the resources that it uses, its latency, its rate alone, and up to which
    size it is sent eagerly.
    """

    uses: tuple[int, ...]
    latency_s: float
    bytes_per_s: float
    eager_bytes: int = EAGER_BYTES


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
        on = self._topology.ranks_on
        delay_s = max(platform.node(node).delay_s(on[node]) for node in (source, dest))
        return Way(
            tuple(each for each in uses if each is not None),
            platform.latency_s(hops) + delay_s,
            platform.bandwidth_bytes_per_s(hops),
            platform.eager_bytes(hops),
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

    def staged_s(self, place: int, nbytes: int, *, out: bool) -> float:
        """At one end of a message: between a device's memory and that of its rank."""
        rank = self._topology.drivers[place - self._ranks]
        way = self.copied(place, rank) if out else self.copied(rank, place)
        return way.latency_s + nbytes / way.bytes_per_s

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


def barrier_s(topology: Topology, ways: Ways) -> float:
    """As it was measured of so many ranks, else by its algorithm."""
    ranks, nodes = topology.ranks, len(set(topology.node_of))
    known = topology.speeds.collective(Collective.BARRIER, ranks, nodes)
    if known is not None:
        return known.latency_s
    return collectives.barrier(ranks).rounds * ways.between(0, ranks - 1).latency_s


# The steps ----------------------------------------------------------------------------------------

_STEP_KINDS = tuple(StepKind)
_CODE_OF = {id(kind): code for code, kind in enumerate(_STEP_KINDS)}  # (an Enum hashes slowly)
_EVENT_CODES = np.array([EVENT_KINDS.index(kind.event) for kind in _STEP_KINDS], np.int8)


@dataclass(frozen=True, eq=False)
class _Steps:
    """The n steps of all ranks, one rank after the other; arrays of n.

    kind: numbers of `_STEP_KINDS`. transfer, copy: as a Step has them. before: the number of the
    step before it on its rank, -1 for the first. activity: which simulates it; all ranks' k-th
    barrier is one, as they leave it together. Those of messages follow the `activities` of steps.
    """

    steps: tuple[Step, ...]
    kind: np.ndarray
    rank: np.ndarray
    transfer: np.ndarray
    copy: np.ndarray
    before: np.ndarray
    activity: np.ndarray
    activities: int

    @staticmethod
    def of(schedule: Schedule) -> _Steps:
        programs = schedule.programs
        steps = tuple(chain.from_iterable(programs))
        lengths = np.array([len(program) for program in programs], np.int64)
        kinds, _, transfers, _, copies = zip(*steps, strict=True) if steps else ((),) * 5
        kind = np.array(list(map(_CODE_OF.__getitem__, map(id, kinds))), np.int8)
        before = np.arange(-1, len(steps) - 1)
        before[(np.cumsum(lengths) - lengths)[lengths > 0]] = -1
        first = _first_to_meet(kind == _CODE_OF[id(StepKind.BARRIER)], lengths)
        alone = first == np.arange(len(steps))
        return _Steps(
            steps,
            kind,
            np.repeat(np.arange(lengths.size), lengths),
            np.array(transfers, np.int64),
            np.array(copies, np.int64),
            before,
            (np.cumsum(alone) - 1)[first],
            int(alone.sum()),
        )

    def __len__(self) -> int:
        return len(self.steps)

    def of_kind(self, *kinds: StepKind) -> np.ndarray:
        """The numbers of the steps of these kinds."""
        return np.flatnonzero(np.isin(self.kind, [_CODE_OF[id(kind)] for kind in kinds]))

    def activity_of(self, *kinds: StepKind) -> np.ndarray:
        """The activities of the steps of these kinds."""
        return self.activity[self.of_kind(*kinds)]

    def of_message(self, kind: StepKind, messages: int) -> np.ndarray:
        """Of each message the activity of its step of that kind; -1 where there is none."""
        at, found = self.of_kind(kind), np.full(messages, -1)
        found[self.transfer[at]] = self.activity[at]
        return found


def _first_to_meet(barrier: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Of each step its own number; of a barrier the number of the first rank's step that meets
    there.
    """
    first, at = np.arange(barrier.size), np.flatnonzero(barrier)
    met = np.cumsum(barrier) - barrier
    begins = (np.cumsum(lengths) - lengths)[lengths > 0]
    met -= np.repeat(met[begins], lengths[lengths > 0])
    _, where, which = np.unique(met[at], return_index=True, return_inverse=True)
    first[at] = at[where][which]
    return first


# Their activities ---------------------------------------------------------------------------------


@dataclass
class _Shares:
    """Which resources activities use, and of each how many times their rate: few different uses
    that are shared by many. of: (n,), of each activity the number of its use; 0 is that of none.
    """

    of: np.ndarray
    known: list[tuple[tuple[int, float], ...]] = field(default_factory=lambda: [()])

    def add(self, uses: Iterable[tuple[int, float]]) -> int:
        self.known.append(tuple(uses))
        return len(self.known) - 1

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`use_begin`, `use_resource` and `use_factor` of Activities."""
        lengths = np.array([len(uses) for uses in self.known], np.int64)
        begin = np.concatenate([[0], np.cumsum(lengths[self.of])])
        first = (np.cumsum(lengths) - lengths)[self.of]
        at = np.repeat(first - begin[:-1], lengths[self.of]) + np.arange(int(begin[-1]))
        flat = [use for uses in self.known for use in uses]
        resource = np.array([resource for resource, _ in flat], np.int32)
        factor = np.array([factor for _, factor in flat], np.float64)
        return begin, resource[at], factor[at]


def _activities(schedule: Schedule, steps: _Steps, costs: Costs) -> Activities:
    """The steps, then the messages, between the steps that begin them and those that wait."""
    topology, transfers = schedule.topology, schedule.transfers
    resources = Resources(topology.speeds)
    ways = Ways(topology, resources)
    size = steps.activities + len(transfers)
    amount, latency_s, cap = np.zeros(size), np.zeros(size), np.full(size, np.inf)
    shares = _Shares(np.zeros(size, np.int64))

    tasks = steps.activity_of(StepKind.RUN)
    amount[tasks] = _computing(schedule, steps, costs, resources, shares)
    cap[tasks] = topology.share_of_core[steps.rank[steps.of_kind(StepKind.RUN)]]

    latency_s[steps.activity_of(StepKind.POST, StepKind.SEND)] = MESSAGE_STEP_S
    for kind in (StepKind.SEND, StepKind.WAIT_RECEIVED):
        latency_s[steps.activity_of(kind)] += _staging(schedule, steps, ways, kind)
    barriers = steps.activity_of(StepKind.BARRIER)
    if barriers.size:
        latency_s[barriers] = barrier_s(topology, ways)

    # The rank waits for a copy to a device or from one.
    at = steps.activity_of(StepKind.COPY)
    numbers: list[int] = steps.copy[steps.of_kind(StepKind.COPY)].tolist()
    copies = [schedule.copies[k] for k in numbers]
    copied, shares.of[at] = _along(copies, ways.copied, shares)
    amount[at], cap[at], latency_s[at], _ = copied
    latency_s[at] += MESSAGE_STEP_S

    messages = slice(steps.activities, size)
    sent, shares.of[messages] = _along(transfers, ways.between, shares)
    amount[messages], cap[messages], latency_s[messages], eager = sent

    after_begin, after = _waits(steps, amount[messages] > eager)
    use_begin, use_resource, use_factor = shares.arrays()
    capacity = np.array(resources.capacity, np.float64)
    return Activities(
        amount, latency_s, cap, use_begin, use_resource, capacity, after_begin, after,
        use_factor=use_factor,
    )  # fmt: skip


def _staging(schedule: Schedule, steps: _Steps, ways: Ways, kind: StepKind) -> list[float]:
    """Seconds that steps which send, or receive, take at their own end of messages."""
    out = kind is StepKind.SEND
    numbers: list[int] = steps.transfer[steps.of_kind(kind)].tolist()
    moved = (schedule.transfers[k] for k in numbers)
    return [
        ways.staged_s(each.places[not out], each.nbytes, out=out) if each.places else 0.0
        for each in moved
    ]


def _computing(
    schedule: Schedule, steps: _Steps, costs: Costs, resources: Resources, shares: _Shares
) -> list[float]:
    """Seconds of each task in the order of `steps`; what it uses is put into `shares`. The caller
    has written all arrays of a program before it runs: they come from the cache that holds them
    all, or from memory. (Less than the nearest cache is not looked at.)
    """
    graph, topology, placed = schedule.graph, schedule.topology, schedule.placement_of
    whole = sum(storage.nbytes for storage in graph.storages)
    fits = all(n.caches and whole <= n.caches[0][0] for n in topology.speeds.nodes)
    cold = first_touched(schedule) if costs.loops and not fits else {}
    seconds: list[float] = []
    known: dict[tuple[str, int, int, float], int] = {}
    at = steps.of_kind(StepKind.RUN)
    of: list[int] = []
    numbers: list[int] = at.tolist()
    for k in numbers:
        task = graph.by_name[steps.steps[k].task]
        device = topology.device(placed[task.name].device)
        cost = costs.of(task, device, graph, topology)
        if task.name in cold:
            cost = cost.touching_first(cold[task.name], whole, topology.seen_by(device.rank))
        rate = cost.memory_bytes / cost.seconds if cost.memory_bytes and cost.seconds else 0.0
        use = topology.node_of[device.rank], topology.domain_of[device.rank], cost.cores, rate
        if use not in known:
            known[use] = shares.add(_used(*use, resources))
        of.append(known[use])
        seconds.append(cost.seconds)
    shares.of[steps.activity[at]] = of
    return seconds


def _used(
    node: str, domain: int, cores: int, bytes_per_s: float, resources: Resources
) -> Iterator[tuple[int, float]]:
    if cores:
        yield resources.cores(node), float(cores)
    if bytes_per_s:
        yield resources.memory(node, domain), bytes_per_s


def _along(
    moved: Sequence[Transfer | DeviceCopy], way_of: Callable[[int, int], Way], shares: _Shares
) -> tuple[np.ndarray, list[int]]:
    """Of each that moves: bytes, bytes/s, latency in seconds and eager bytes (4, n), and the number
    of its use in `shares`; found once for all that go between the same two.
    """
    if not moved:
        return np.zeros((4, 0)), []
    ends = [(each.source, each.dest) for each in moved]
    number = {pair: k for k, pair in enumerate(dict.fromkeys(ends))}
    ways = [way_of(*pair) for pair in number]
    use = np.array([shares.add((resource, 1.0) for resource in way.uses) for way in ways])
    of = np.array(list(map(number.__getitem__, ends)))
    told = np.array([(way.bytes_per_s, way.latency_s, way.eager_bytes) for way in ways])
    nbytes = np.array([each.nbytes for each in moved], np.float64)
    return np.vstack([nbytes, told[of].T]), use[of].tolist()


def _waits(steps: _Steps, long: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`after_begin` and `after` of Activities; long: of each message, whose activities are the
    last, whether it is too long to be sent eagerly.

    Such a one waits until its receiver has posted it, and its sender until it has arrived.
    """
    message = steps.activities + np.arange(long.size)
    later = np.flatnonzero(steps.before >= 0)
    received, sent = steps.of_kind(StepKind.WAIT_RECEIVED), steps.of_kind(StepKind.WAIT_SENT)
    sent = sent[long[steps.transfer[sent]]]
    waiting = np.concatenate([received, sent])
    pairs = (
        (steps.activity[later], steps.activity[steps.before[later]]),
        (message, steps.of_message(StepKind.SEND, long.size)),
        (message[long], steps.of_message(StepKind.POST, long.size)[long]),
        (steps.activity[waiting], message[steps.transfer[waiting]]),
    )
    waits, after = (np.concatenate(column) for column in zip(*pairs, strict=True))
    size = steps.activities + long.size
    begin = np.concatenate([[0], np.cumsum(np.bincount(waits, minlength=size))])
    return begin, after[np.argsort(waits, kind="stable")].astype(np.int32)


# The trace ----------------------------------------------------------------------------------------


def _trace(schedule: Schedule, steps: _Steps, times: Times) -> Trace:
    end = times.end_s[steps.activity]
    start = np.where(steps.before >= 0, end[steps.before], 0.0)
    order = np.lexsort((steps.rank, end, start))
    sizes = np.array([transfer.nbytes for transfer in schedule.transfers] or [0], np.int64)
    copied = np.array([copy.nbytes for copy in schedule.copies] or [0], np.int64)
    nbytes = np.where(
        steps.transfer >= 0, sizes[steps.transfer], np.where(steps.copy >= 0, copied[steps.copy], 0)
    )
    events = EventColumns(
        _EVENT_CODES[steps.kind[order]],
        steps.rank[order],
        start[order],
        end[order],
        nbytes[order],
        lambda k: _described(schedule, steps.steps[int(order[k])]),
    )
    topology = schedule.topology
    kinds = (topology.device(name).kind for name in schedule.device_kinds)
    return Trace(
        ranks=topology.ranks,
        events=events,
        label=label_with(f"{SIMULATED} on {topology.speeds.label}", kinds),
        kinds=tuple(schedule.device_kinds.items()),
        machine=str(topology.speeds),
        threads=topology.cores_of_rank,
    )


def _described(schedule: Schedule, step: Step) -> Described:
    """What it is called in a trace."""
    if step.kind is StepKind.RUN:
        return Described(step.task, schedule.placement_of[step.task].device)
    if step.kind is StepKind.COPY:
        name, what = copy_words(schedule.copies[step.copy], schedule.topology.ranks)
        return Described(name, what=what)
    if step.kind is StepKind.BARRIER:
        return Described(str(step))
    told = message_step(step, schedule.transfers[step.transfer])
    return Described(told.name, "", told.peer, told.number, told.what)
