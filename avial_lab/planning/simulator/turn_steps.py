"""One turn of a phase as activities: what each rank does in it, step by step, and the messages.

Pattern (and that of its partial results), costs of its shares -> Template. Turns that are alike
have the same template; `loops.py` strings them together.

    send … ─ inner part ─ wait, unpack … ─ ends ─ send partial … ─ wait, combine … ─ barrier

Devices have lanes of their own, beside those of the ranks, which begin what happens there:

    rank 0   begin copy ─ launch ──────── wait for copy back ─ send …
    gpu0            └─ copy ─ part ─ copy back ┘
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from avial_lab.core.runtime_constants import MessageFlag
from avial_lab.machine.constants import (
    FIRST_TURN_S,
    LAUNCH_STEP_S,
    LONE_PHASE_STEP_S,
    MESSAGE_STEP_S,
    PHASE_STEP_S,
)
from avial_lab.machine.platform import ASSUMED, Collective, CollectiveTime
from avial_lab.machine.topology import Topology
from avial_lab.planning.phase_costs import ShareCost
from avial_lab.planning.simulator import collectives
from avial_lab.planning.simulator.ranks import Resources, Way, Ways, barrier_s
from avial_lab.planning.turns import Pattern

RUN, SEND, WAIT, BARRIER, COPY = range(5)
"""What a step is."""

# The order of a rank's steps in a turn, and of a device's.
(_COPIED, _ARRIVED, _SEND, _PIPELINED, _SENT, _GATHER, _INNER, _RECEIVED, _LATE, _LOW,
 _HIGH) = range(11)  # fmt: skip
_BEGIN = -1
_PARTIAL = 11
"""Added to those of partial results, which come after the parts."""
_BARRIER = 2 * _PARTIAL

STEP_FIELDS = ("activity", "before", "kind", "place", "nbytes", "peer", "message", "array", "count",
               "low", "high", "combining")  # fmt: skip
"""The columns of `Template.steps`. before: the activity that the rank did last, as in `after`;
message: the activity that both ends have in common, -1 for none."""


@dataclass(frozen=True, eq=False)
class Template:
    """n activities. uses: how many resources each has, one after the other in `resources` and
    `factors`. after: what each waits for, as many as `waits` says: an activity of the template, or
    -1 - p for the last one of place p before it. places: those that have any; last: their last.
    """

    amount: np.ndarray
    latency_s: np.ndarray
    cap: np.ndarray
    uses: np.ndarray
    resources: np.ndarray
    factors: np.ndarray
    waits: np.ndarray
    after: np.ndarray
    places: np.ndarray
    last: np.ndarray
    steps: np.ndarray

    def __len__(self) -> int:
        return self.amount.size


class Roads:
    """The ways from place to place, and what they share, each looked up once. driver: the rank of
    each place; cores: how many of its node's it computes with; cap: the part of its time that it
    gets of them.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.resources = Resources(topology.speeds)
        self.ways = Ways(topology, self.resources)
        node_of = topology.node_of
        crowded = {name for k, name in enumerate(node_of) if node_of.index(name) != k}
        self.crowded = np.array([name in crowded for name in node_of])
        self._copies = topology.speeds.source != ASSUMED
        self.driver = np.array([*range(topology.ranks), *topology.drivers])
        emulated = [float(device.emulated) for device in topology.accelerators]
        self.cores = np.array([*topology.cores_of_rank, *emulated])
        self.cap = np.where(self.cores > 0, topology.share_of_core[self.driver], 1.0)

    def between(self, sources: np.ndarray, dests: np.ndarray) -> list[Way]:
        pairs = zip(sources.tolist(), dests.tolist(), strict=True)
        return [self.ways.between(source, dest) for source, dest in pairs]

    def copied(self, sources: np.ndarray, dests: np.ndarray) -> list[Way]:
        """Between two places of one rank each."""
        pairs = zip(sources.tolist(), dests.tolist(), strict=True)
        return [self.ways.copied(source, dest) for source, dest in pairs]

    def collective(self, call: Collective) -> CollectiveTime | None:
        """Of all ranks, where it was measured."""
        nodes = len(set(self.topology.node_of))
        return self.topology.speeds.collective(call, self.topology.ranks, nodes)

    def copy_s(self, rank: np.ndarray, nbytes: np.ndarray) -> np.ndarray:
        """To pack or to unpack so much. (What is assumed of links counts it in.)"""
        if not self._copies:
            return np.zeros(len(nbytes))
        which, hardware = self.topology.rank_hardware
        rates = np.array([node.core_bytes_per_s for node, _ in hardware])
        return nbytes / rates[which[rank]]

    def pack_s(self, place: np.ndarray, nbytes: np.ndarray, *, out: bool = True) -> np.ndarray:
        """The same at that end of a message; a device's goes through the memory of its rank."""
        rank = self.driver[place]
        seconds = np.array(self.copy_s(rank, nbytes))
        for k in np.flatnonzero(place >= self.topology.ranks).tolist():
            seconds[k] = self.ways.staged_s(int(place[k]), int(nbytes[k]), out=out)
        return seconds


Told = np.ndarray | np.integer[Any] | int
"""A column of `Template.steps`, or what stands in all of its rows."""


class _Draft:
    """A template that is being written: activities in blocks, then the order at each place."""

    def __init__(self, roads: Roads) -> None:
        self.roads = roads
        self.size = self._numbered = 0
        self._parts: list[tuple[np.ndarray, ...]] = []
        self._edges: list[tuple[np.ndarray, np.ndarray]] = []
        self._chain: list[tuple[np.ndarray, ...]] = []
        self._steps: list[np.ndarray] = []

    def add(
        self,
        n: int,
        *,
        amount: np.ndarray | float = 0.0,
        latency_s: np.ndarray | float = 0.0,
        cap: np.ndarray | float = np.inf,
        uses: Sequence[Sequence[tuple[int, float]]] | None = None,
    ) -> np.ndarray:
        """n activities; their numbers."""
        flat = [] if uses is None else [use for each in uses for use in each]
        counts = np.zeros(n, np.int64) if uses is None else np.array([len(u) for u in uses])
        self._parts.append(
            (
                np.broadcast_to(np.asarray(amount, np.float64), n),
                np.broadcast_to(np.asarray(latency_s, np.float64), n),
                np.broadcast_to(np.asarray(cap, np.float64), n),
                counts.astype(np.int64),
                np.array([resource for resource, _ in flat], np.int32),
                np.array([factor for _, factor in flat], np.float64),
            )
        )
        made = np.arange(self.size, self.size + n)
        self.size += n
        return made

    def after(self, activity: np.ndarray, before: np.ndarray) -> None:
        """Each waits for one: an activity, or -1 - p."""
        self._edges.append((activity, before))

    def in_order(self, activity: np.ndarray, place: np.ndarray, stage: int) -> None:
        """They are what is done next at those places, in that stage of a turn."""
        n = len(activity)
        number = self._numbered + np.arange(n)
        self._numbered += n
        self._chain.append((place, np.full(n, stage), number, activity))

    def step(self, kind: int, activity: np.ndarray, place: np.ndarray, **told: Told) -> None:
        """They are shown as events."""
        rows = np.full((len(activity), len(STEP_FIELDS)), -1, np.int64)
        values: dict[str, Told] = {"nbytes": 0, "count": 0, "low": 0, "combining": 0, **told}
        values |= {"kind": kind, "activity": activity, "place": place}
        for name, value in values.items():
            rows[:, STEP_FIELDS.index(name)] = value
        self._steps.append(rows)

    def _ordered(self) -> tuple[np.ndarray, np.ndarray]:
        """What is done, in its order, place by place: the places, and the activities."""
        place, stage, number, activity = (
            np.concatenate(column) for column in zip(*self._chain, strict=True)
        )
        order = np.lexsort((number, stage, place))
        return place[order], activity[order]

    def _begin(self) -> None:
        """A rank begins the phase with its first activity there; where that waits for something
        else, with one before it.
        """
        place, activity = self._ordered()
        waiting = np.isin(activity, np.concatenate([[-1], *(to for to, _ in self._edges)]))
        late = np.flatnonzero(_firsts(place) & waiting & self._is_rank(place))
        if late.size:
            self.in_order(self.add(late.size), place[late], _BEGIN)

    def _is_rank(self, place: np.ndarray) -> np.ndarray:
        return place < self.roads.topology.ranks

    def done(self, *, first_turn: bool) -> Template:
        self._begin()
        parts = [np.concatenate(column) for column in zip(*self._parts, strict=True)]
        amount, latency_s, cap, uses, resources, factors = parts
        place, activity = self._ordered()
        first = _firsts(place)
        before = np.where(first, -1 - place, np.roll(activity, 1))
        alone = self.roads.topology.ranks == 1 and not self.roads.topology.drivers
        step_s = LONE_PHASE_STEP_S if alone else PHASE_STEP_S + FIRST_TURN_S * first_turn
        latency_s[activity[first & self._is_rank(place)]] += step_s
        to = np.concatenate([activity, *(edge for edge, _ in self._edges)])
        of = np.concatenate([before, *(edge for _, edge in self._edges)])
        sorting = np.argsort(to, kind="stable")
        last = np.roll(first, -1)
        steps = np.concatenate([*self._steps, np.empty((0, len(STEP_FIELDS)), np.int64)])
        known = np.zeros(self.size, np.int64)
        known[activity] = before
        steps[:, 1] = known[steps[:, 0]]
        place_of = np.zeros(self.size, np.int64)
        place_of[activity] = np.arange(activity.size)
        steps = steps[np.argsort(place_of[steps[:, 0]], kind="stable")]
        return Template(
            amount, latency_s, cap, uses, resources, factors,
            np.bincount(to, minlength=self.size), of[sorting],
            place[last], activity[last], steps,
        )  # fmt: skip


def _firsts(place: np.ndarray) -> np.ndarray:
    """Whether each is the first of its place; they are place by place."""
    first = np.ones(place.size, bool)
    first[1:] = place[1:] != place[:-1]
    return first


def template(
    roads: Roads,
    pattern: Pattern,
    cost: ShareCost,
    partials: Pattern | None,
    barriers: int,
    *,
    first: bool = False,
) -> Template:
    """A turn of that pattern, the `first` of its phase. A rank without any part takes no time."""
    draft = _Draft(roads)
    _copies(draft, pattern.copies)
    _messages(draft, pattern.messages, pattern.collective, 0)
    _shares(draft, pattern, cost)
    if partials is not None:
        _messages(draft, partials.messages, partials.collective, _PARTIAL)
    for k in range(barriers):
        _barrier(draft, _BARRIER + k)
    if not draft.size:
        draft.in_order(draft.add(1), np.zeros(1, np.int64), 0)
    messages = len(pattern.messages) + (0 if partials is None else len(partials.messages))
    return draft.done(first_turn=first and messages > 0)


# Parts --------------------------------------------------------------------------------------------


def _shares(draft: _Draft, pattern: Pattern, cost: ShareCost) -> None:
    """The inner part before the messages are waited for, where there is one; then the ends."""
    shares, place = pattern.shares, pattern.places
    inner, low, high = np.maximum(shares[:, 2], 0), shares[:, 3], shares[:, 4]
    whole = np.maximum(inner + low + high, 1)
    for stage, iterations in ((_INNER, inner), (_LOW, low), (_HIGH, high)):
        at = np.flatnonzero(iterations)
        if not at.size:
            continue
        seconds = cost.seconds[at] * iterations[at] / whole[at]
        rate = cost.memory_bytes[at] / np.maximum(cost.seconds[at], 1e-300)
        uses = _of_node(draft.roads, place[at], rate)
        there = np.flatnonzero(place[at] >= draft.roads.topology.ranks)
        # The last of several kernels begins when its rank has launched the others.
        others_s = max(cost.launches - 1, 0) * LAUNCH_STEP_S
        seconds[there] = np.maximum(seconds[there], others_s)
        made = draft.add(at.size, amount=seconds, cap=draft.roads.cap[place[at]], uses=uses)
        draft.in_order(made, place[at], stage)
        draft.step(RUN, made, place[at])
        _begin_there(draft, made[there], place[at][there], stage, LAUNCH_STEP_S)
        if there.size and others_s:
            launched = draft.add(there.size, latency_s=others_s)
            draft.in_order(launched, draft.roads.driver[place[at][there]], stage)


def _begin_there(
    draft: _Draft, made: np.ndarray, place: np.ndarray, stage: int, latency_s: float
) -> None:
    """The ranks of those devices begin what is done there."""
    if made.size:
        begun = draft.add(made.size, latency_s=latency_s)
        draft.in_order(begun, draft.roads.driver[place], stage)
        draft.after(made, begun)


def _copies(draft: _Draft, copies: np.ndarray) -> None:
    """Each in its device's queue; a rank waits for what comes to its own memory, as it is about to
    send it or to use it. Those of what a message brings begin when that is there.
    """
    for late, stage in ((0, _COPIED), (1, _LATE)):
        of = copies[copies[:, 4] == late]
        if not len(of):
            continue
        source, dest = of[:, 0], of[:, 1]
        ways = draft.roads.copied(source, dest)
        made = draft.add(
            len(of),
            amount=of[:, 2],
            latency_s=np.array([way.latency_s for way in ways]),
            cap=np.array([way.bytes_per_s for way in ways]),
            uses=[[(resource, 1.0) for resource in way.uses] for way in ways],
        )
        ranks = draft.roads.topology.ranks
        device = np.where(source >= ranks, source, dest)
        draft.in_order(made, device, stage)
        draft.step(COPY, made, device, nbytes=of[:, 2], array=of[:, 3], peer=dest)
        _begin_there(draft, made, device, stage, MESSAGE_STEP_S)
        both = np.flatnonzero((source >= ranks) & (dest >= ranks))
        draft.after(made[both], -1 - dest[both])  # its queue is another one
        back = np.flatnonzero(dest < ranks)
        if back.size:
            arrived = draft.add(back.size)
            draft.after(arrived, made[back])
            draft.in_order(arrived, dest[back], _ARRIVED if not late else stage)


def _of_node(
    roads: Roads, place: np.ndarray, memory_rate: np.ndarray
) -> list[list[tuple[int, float]]] | None:
    """What computing shares with other places of the node: cores and memory."""
    rank = roads.driver[place]
    if not roads.crowded[rank].any():
        return None
    found: list[list[tuple[int, float]]] = []
    ranks: list[int] = rank.tolist()
    computes = roads.cores[place].tolist()
    for r, cores, rate in zip(ranks, computes, memory_rate.tolist(), strict=True):
        uses: list[tuple[int, float]] = []
        if roads.crowded[r] and cores:
            node = roads.topology.node_of[r]
            uses.append((roads.resources.cores(node), cores))
            if rate:
                domain = roads.topology.domain_of[r]
                uses.append((roads.resources.memory(node, domain), rate))
        found.append(uses)
    return found


# Messages -----------------------------------------------------------------------------------------


def _messages(draft: _Draft, messages: np.ndarray, collective: np.ndarray, partial: int) -> None:
    alone = messages[~collective]
    if len(alone) > DENSE * draft.roads.topology.ranks:
        _exchange(draft, alone, partial)
    elif len(alone):
        pipelined = (alone[:, 3] & MessageFlag.PIPELINED) != 0
        _point_to_point(draft, alone[~pipelined], partial, _RECEIVED)
        _point_to_point(draft, alone[pipelined], partial, _PIPELINED)
    shared = messages[collective]
    if len(shared):
        _collectives(draft, shared[np.argsort(shared[:, 0], kind="stable")], partial)


DENSE = 64
"""Messages for each rank in a turn from which on they are looked at together."""


def _exchange(draft: _Draft, messages: np.ndarray, partial: int) -> None:
    """Very many messages, from nearly everyone to nearly everyone: all begin when all ranks have
    begun to send, and each rank gets its bytes over its own link. One step to send and one to
    receive stand for all of a rank's.
    """
    ranks, driver = draft.roads.topology.ranks, draft.roads.driver
    out, come = np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)
    np.add.at(out, driver[messages[:, 0]], messages[:, 2])
    np.add.at(come, driver[messages[:, 1]], messages[:, 2])
    sources, sent = np.unique(driver[messages[:, 0]], return_counts=True)
    dests = np.unique(driver[messages[:, 1]])
    pack_s = draft.roads.copy_s(sources, out[sources])
    sends = draft.add(len(sources), latency_s=sent * MESSAGE_STEP_S + pack_s)
    draft.in_order(sends, sources, partial + _SEND)
    gate = draft.add(1)
    draft.after(np.repeat(gate, len(sources)), sends)
    apart = (dests + ranks // 2) % ranks
    ways = draft.roads.between(apart, dests)
    received = draft.add(
        len(dests),
        amount=np.maximum(come, out)[dests],
        latency_s=np.array([way.latency_s for way in ways])
        + draft.roads.copy_s(dests, come[dests]),
        cap=np.array([way.bytes_per_s for way in ways]),
        uses=[[(resource, 1.0) for resource in way.uses] for way in ways],
    )
    draft.after(received, np.repeat(gate, len(dests)))
    draft.in_order(received, dests, partial + _RECEIVED)
    told = {"combining": int(partial > 0), "message": gate[0]}
    draft.step(SEND, sends, sources, nbytes=out[sources], **told)
    draft.step(WAIT, received, dests, nbytes=come[dests], **told)


def _told(messages: np.ndarray, partial: int) -> dict[str, Told]:
    """What their events say of messages."""
    array, count, low, high = messages[:, 4:8].T
    combining = int(partial > 0)
    return {"array": array, "count": count, "low": low, "high": high, "combining": combining}


def _travelling(draft: _Draft, messages: np.ndarray) -> np.ndarray:
    """The messages themselves, over the links between their ranks."""
    driver = draft.roads.driver
    ways = draft.roads.between(driver[messages[:, 0]], driver[messages[:, 1]])
    return draft.add(
        len(messages),
        amount=messages[:, 2],
        latency_s=np.array([way.latency_s for way in ways]),
        cap=np.array([way.bytes_per_s for way in ways]),
        uses=[[(resource, 1.0) for resource in way.uses] for way in ways],
    )


def _point_to_point(draft: _Draft, messages: np.ndarray, partial: int, waits: int) -> None:
    """Sent at once; a long one leaves when its receiver has begun the phase, too. What a device
    sends it has to have computed.
    """
    if not len(messages):
        return
    places, nbytes = messages[:, :2], messages[:, 2]
    source, dest = draft.roads.driver[places.T]
    pipelined, n, told = waits == _PIPELINED, len(messages), _told(messages, partial)
    pack_s = 0.0 if pipelined else draft.roads.pack_s(places[:, 0], nbytes)
    sends = draft.add(n, latency_s=MESSAGE_STEP_S + pack_s)
    of_device = places[:, 0] >= draft.roads.topology.ranks
    draft.after(sends[of_device], -1 - places[of_device, 0])
    draft.in_order(sends, source, partial + _SEND)
    message = _travelling(draft, messages)
    draft.after(message, sends)
    ways = draft.roads.between(source, dest)
    long = np.flatnonzero(nbytes > np.array([way.eager_bytes for way in ways]))
    if not partial:
        draft.after(message[long], -1 - dest[long])
    copied = (messages[:, 3] & MessageFlag.IN_PLACE) == 0
    unpack_s = np.where(copied, draft.roads.pack_s(places[:, 1], nbytes, out=False), 0.0)
    received = draft.add(n, latency_s=unpack_s)
    draft.after(received, message)
    draft.in_order(received, dest, partial + waits)
    draft.step(SEND, sends, source, nbytes=nbytes, peer=dest, message=message, **told)
    draft.step(WAIT, received, dest, nbytes=nbytes, peer=source, message=message, **told)
    if pipelined:  # who sends goes on when all of it has left
        sent = draft.add(n)
        draft.after(sent, message)
        draft.in_order(sent, source, partial + _SENT)


MOST_IN_ONE_CALL = 1 << 30
"""Bytes (`avial_chunk`): of more, each rank sends its own to all."""


def _collectives(draft: _Draft, messages: np.ndarray, partial: int) -> None:
    """One broadcast; where several ranks send one gathering of all."""
    if len(messages) > 1 and int(messages[:, 2].sum()) <= MOST_IN_ONE_CALL:
        _gathering(draft, messages, partial)
        return
    for k in range(len(messages)):
        _broadcast(draft, messages[k : k + 1], partial)


def _gathering(draft: _Draft, messages: np.ndarray, partial: int) -> None:
    ranks = draft.roads.topology.ranks
    everyone, source = np.arange(ranks), messages[:, 0]
    total = int(messages[:, 2].sum())
    own = np.zeros(ranks)
    own[source] = messages[:, 2]
    pack_s = draft.roads.copy_s(source, messages[:, 2])
    sends = draft.add(len(messages), latency_s=MESSAGE_STEP_S + pack_s)
    draft.in_order(sends, source, partial + _GATHER)
    rounds = collectives.gather_to_all(ranks, total)
    gate = _gate(draft, everyone, partial + _GATHER)
    known = draft.roads.collective(Collective.ALL_GATHER)
    if known is not None:
        received = _as_measured(draft, known, total, total - own)
    else:
        received = _through_ring(draft, rounds, np.maximum(rounds.nbytes - own, 0), total - own)
    draft.after(received, gate)
    draft.in_order(received, everyone, partial + _GATHER)
    told = _told(messages, partial)
    sent = (ranks - 1) * messages[:, 2]
    draft.step(SEND, sends, source, nbytes=sent, message=gate[0], **told)
    combining = int(partial > 0)
    nbytes = (total - own).astype(np.int64)
    draft.step(WAIT, received, everyone, nbytes=nbytes, message=gate[0], combining=combining)


def _broadcast(draft: _Draft, message: np.ndarray, partial: int) -> None:
    """The root is over when it has sent its part; the others when they have all of it."""
    ranks, source = draft.roads.topology.ranks, int(message[0, 0])
    nbytes, root = int(message[0, 2]), message[:, 0]
    others = np.delete(np.arange(ranks), source)
    pack_s = draft.roads.copy_s(root, message[:, 2])
    begun = draft.add(1, latency_s=MESSAGE_STEP_S + pack_s)
    draft.in_order(begun, root, partial + _GATHER)
    rounds = collectives.broadcast(ranks, nbytes)
    got = np.full(ranks, float(nbytes))
    known = draft.roads.collective(Collective.BROADCAST)
    if known is not None:
        all_got = _as_measured(draft, known, nbytes, got)
    else:
        all_got = _through_ring(draft, rounds, np.full(ranks, rounds.nbytes), got)
    draft.after(all_got, np.full(ranks, begun[0]))
    draft.in_order(all_got, np.arange(ranks), partial + _GATHER)
    told = _told(message, partial)
    sent = (ranks - 1) * nbytes
    draft.step(SEND, all_got[root], root, nbytes=sent, message=begun[0], **told)
    told = {key: np.broadcast_to(value, ranks - 1) for key, value in told.items()}
    draft.step(WAIT, all_got[others], others, nbytes=nbytes, peer=source, message=begun[0], **told)


def _gate(draft: _Draft, ranks: np.ndarray, stage: int, latency_s: float = 0.0) -> np.ndarray:
    """What is there when all of them have come; for each of them the same activity."""
    entries = draft.add(len(ranks))
    draft.in_order(entries, ranks, stage)
    gate = draft.add(1, latency_s=latency_s)
    draft.after(np.repeat(gate, len(ranks)), entries)
    return np.repeat(gate, len(ranks))


def _through_ring(
    draft: _Draft, rounds: collectives.Rounds, nbytes: np.ndarray, copied: np.ndarray
) -> np.ndarray:
    """For each rank what comes to it over the link from the one before it."""
    everyone = np.arange(len(nbytes))
    ways = draft.roads.between(np.roll(everyone, 1), everyone)
    latency = rounds.rounds * np.array([way.latency_s for way in ways])
    return draft.add(
        len(nbytes),
        amount=nbytes,
        latency_s=latency + draft.roads.copy_s(everyone, copied),
        cap=np.array([way.bytes_per_s for way in ways]),
        uses=[[(resource, 1.0) for resource in way.uses] for way in ways],
    )


def _as_measured(
    draft: _Draft, known: CollectiveTime, nbytes: int, copied: np.ndarray
) -> np.ndarray:
    """For each rank its end of a call that was measured: with all that its messages share."""
    everyone = np.arange(len(copied))
    return draft.add(
        len(copied),
        amount=float(nbytes),
        latency_s=known.latency_s + draft.roads.copy_s(everyone, copied),
        cap=known.bytes_per_s,
    )


def _barrier(draft: _Draft, stage: int) -> None:
    ranks = draft.roads.topology.ranks
    everyone = np.arange(ranks)
    gate = _gate(draft, everyone, stage, barrier_s(draft.roads.topology, draft.roads.ways))
    left = draft.add(ranks)
    draft.after(left, gate)
    draft.in_order(left, everyone, stage)
    draft.step(BARRIER, left, everyone)


class TurnKey(NamedTuple):
    """What tells turns apart: the numbers of their pattern and of that of the partial results (-1:
    none), barriers, and whether it is the first of its phase.
    """

    pattern: int
    partial: int
    barriers: int
    first: bool = False


def templates(
    roads: Roads,
    patterns: Sequence[Pattern],
    costs: Sequence[ShareCost],
    turns: Iterable[TurnKey],
) -> dict[TurnKey, Template]:
    """Those of all different turns."""
    found: dict[TurnKey, Template] = {}
    for key in turns:
        if key not in found:
            partials = patterns[key.partial] if key.partial >= 0 else None
            found[key] = template(
                roads, patterns[key.pattern], costs[key.pattern], partials, key.barriers,
                first=key.first,
            )  # fmt: skip
    return found
