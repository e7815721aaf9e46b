"""A program of loops on its ranks, simulated turn by turn as they execute it.

Turns, PhaseCosts, Topology -> activities -> Trace.

    rank 0   send ─ inner part ─────── wait ─ ends │ next turn …
               └─► message 0 ─┐ (links; a long one: once rank 1 has begun the phase)
    rank 1   send ─ inner part ─ wait ─ ends ───── │ …

A trace keeps the events of the first turns; its sums are of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from avial_lab.core.errors import AvialError
from avial_lab.core.words import count
from avial_lab.machine.devices import CPU, DeviceKind, label_with, place_name
from avial_lab.machine.topology import Topology
from avial_lab.planning.message_steps import part_words, phase_words
from avial_lab.planning.phase_costs import PhaseCosts
from avial_lab.planning.simulator.activities import Activities, Times, simulate
from avial_lab.planning.simulator.turn_steps import (
    BARRIER,
    COPY,
    RUN,
    SEND,
    STEP_FIELDS,
    WAIT,
    Roads,
    Template,
    TurnKey,
    templates,
)
from avial_lab.planning.turns import Turns
from avial_lab.trace import Described, EventColumns, EventKind, Move, Total, Trace
from avial_lab.trace.events import EVENT_KINDS, SIMULATED

MOST_EVENTS = 50_000
"""That a trace keeps: those of the first turns."""

MOST_ACTIVITIES = 40_000_000
"""Each takes some 250 bytes."""

MOST_MOVES = 100_000
"""Of more pairs of ranks a trace has no sums."""

_KINDS = {
    RUN: EventKind.TASK,
    SEND: EventKind.SEND,
    WAIT: EventKind.WAIT,
    BARRIER: EventKind.BARRIER,
    COPY: EventKind.COPY,
}
_EVENT_CODES = np.array([EVENT_KINDS.index(_KINDS[kind]) for kind in sorted(_KINDS)], np.int8)


def simulated_turns(turns: Turns, costs: PhaseCosts, topology: Topology) -> Trace:
    """What would happen when, on the platform of `topology`, which has as many ranks.

    Raises ScheduleError where a message has no way to go, AvialError where it is too much.
    """
    roads = Roads(topology)
    rows: list[list[int]] = turns.turns.tolist()
    begun: set[int] = set()
    keys: list[TurnKey] = []
    for phase, *key in rows:
        keys.append(TurnKey(*key, first=phase not in begun))
        begun.add(phase)
    made = templates(roads, turns.patterns, costs.of(turns, topology), keys)
    run = [made[key] for key in keys]
    size = turns.places + sum(map(len, run))
    if size > MOST_ACTIVITIES:
        raise AvialError(
            f"a simulation of {count(size, 'activity')} would not fit",
            hint="fewer ranks, or fewer steps of time",
        )
    string = _String.of(turns.places, run)
    times = simulate(_activities(string, run, roads))
    return _trace(turns, string, run, times, topology)


# Activities ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _String:
    """Where each turn's activities begin, and what was the last of each place before it: a row of
    `last` each; the first `places` activities are where the places begin.
    """

    places: int
    begin: np.ndarray
    after: list[np.ndarray]
    before: list[np.ndarray]

    @staticmethod
    def of(places: int, run: list[Template]) -> _String:
        begin = np.cumsum([places, *map(len, run)])
        last = np.arange(places)
        after: list[np.ndarray] = []
        before: list[np.ndarray] = []
        for each, base in zip(run, begin.tolist(), strict=False):
            after.append(_resolved(each.after, last, base))
            before.append(_resolved(each.steps[:, 1], last, base))
            last[each.places] = base + each.last
        return _String(places, begin, after, before)


def _resolved(references: np.ndarray, last: np.ndarray, base: int) -> np.ndarray:
    """Numbers of activities, of what a template says: its own, or -1 - p for a place's last."""
    own = references >= 0
    found = np.empty(references.size, np.int32)
    found[own] = references[own] + base
    found[~own] = last[-1 - references[~own]]
    return found


def _activities(string: _String, run: list[Template], roads: Roads) -> Activities:
    zeros, none = np.zeros(string.places), np.zeros(string.places, np.int64)
    empty = [np.empty(0, np.int32)]
    return Activities(
        amount=np.concatenate([zeros, *(each.amount for each in run)]),
        latency_s=np.concatenate([zeros, *(each.latency_s for each in run)]),
        cap=np.concatenate([zeros + np.inf, *(each.cap for each in run)]),
        use_begin=_begins([none, *(each.uses for each in run)]),
        use_resource=np.concatenate([*empty, *(each.resources for each in run)]),
        use_factor=np.concatenate([np.empty(0), *(each.factors for each in run)]),
        capacity=np.array(roads.resources.capacity, np.float64),
        after_begin=_begins([none, *(each.waits for each in run)]),
        after=np.concatenate([*empty, *string.after]),
    )


def _begins(counts: list[np.ndarray]) -> np.ndarray:
    whole = np.concatenate([np.zeros(1, np.int64), *counts])
    return np.cumsum(whole)


# The trace ----------------------------------------------------------------------------------------


def _trace(
    turns: Turns, string: _String, run: list[Template], times: Times, topology: Topology
) -> Trace:
    steps = [len(each.steps) for each in run]
    kept = int(np.searchsorted(np.cumsum(steps), MOST_EVENTS, side="right"))
    events = _events(turns, string, run[: max(kept, 1)], times)
    totals, ends = _totals(turns, string, run, times)
    dropped = np.zeros(turns.ranks, np.int64)
    for each in run[max(kept, 1) :]:
        dropped += np.bincount(turns.driver[each.steps[:, 3]], minlength=turns.ranks)
    kinds = _kinds_of(turns, topology)
    return Trace(
        ranks=turns.ranks,
        events=events,
        label=label_with(f"{SIMULATED} on {topology.speeds.label}", kinds.values()),
        moves=_moves(turns),
        totals=totals,
        dropped=tuple(dropped.tolist()) if dropped.any() else (),
        turns=tuple(turns.begun.items()),
        ends_s=tuple(ends.tolist()),
        machine=str(topology.speeds),
        threads=topology.cores_of_rank,
        note=_trips_words(turns),
        kinds=tuple((name, kind.name) for name, kind in kinds.items()),
        copies=turns.copies(),
    )


def _kinds_of(turns: Turns, topology: Topology) -> dict[str, DeviceKind]:
    devices = topology.accelerators[: len(turns.drivers)]
    hosts = {CPU.device_name(rank): CPU for rank in range(turns.ranks)}
    return hosts | {device.name: device.kind for device in devices}


def _trips_words(turns: Turns) -> str:
    if turns.complete:
        return ""
    return f"control depends on data: {count(turns.trips, 'iteration')} of such a loop are assumed"


def _moves(turns: Turns) -> tuple[Move, ...]:
    # (Where many messages are looked at together, too.)
    pairs = sum(
        len(pattern.messages) + int(pattern.collective.sum()) * turns.ranks
        for pattern in turns.patterns
    )
    return turns.moves() if pairs <= MOST_MOVES else ()


def _spans(
    each: Template, before: np.ndarray, base: int, times: Times
) -> tuple[np.ndarray, np.ndarray]:
    """When each step begins and ends: from the end of the one before it, but for what a rank does
    to begin a phase.
    """
    at = each.steps[:, 0] + base
    start = np.where(each.steps[:, 2] == RUN, times.flow_s[at], times.end_s[before])
    return start, times.end_s[at]


def _events(turns: Turns, string: _String, run: list[Template], times: Times) -> EventColumns:
    of_turn: list[_Turn] = []
    begun: dict[int, int] = {}
    spans: list[tuple[np.ndarray, np.ndarray]] = []
    for k, each in enumerate(run):
        number, base = int(turns.turns[k, 0]), int(string.begin[k])
        begun[number] = begun.get(number, 0) + 1
        of_turn.append(_Turn(turns.phases[number], begun[number], base))
        spans.append(_spans(each, string.before[k], base, times))
    rows = np.concatenate([each.steps for each in run])
    turn = np.repeat(np.arange(len(run)), [len(each.steps) for each in run])
    start, end = (np.concatenate(column) for column in zip(*spans, strict=True))
    rank = turns.driver[rows[:, STEP_FIELDS.index("place")]]
    order = np.lexsort((rank, end, start))
    rows, turn = rows[order], turn[order]
    return EventColumns(
        _EVENT_CODES[rows[:, STEP_FIELDS.index("kind")]],
        rank[order],
        start[order],
        end[order],
        rows[:, STEP_FIELDS.index("nbytes")],
        lambda k: _described(turns, of_turn[int(turn[k])], rows[k].tolist()),
    )


class _Turn(NamedTuple):
    """The `time`-th turn of a phase, whose activities begin with number `base`."""

    phase: str
    time: int
    base: int


def _described(turns: Turns, of: _Turn, row: list[int]) -> Described:
    told = dict(zip(STEP_FIELDS, row, strict=True))
    kind, device = _KINDS[told["kind"]], place_name(told["place"], turns.ranks)
    if kind is EventKind.TASK:
        return Described(of.phase, device, turn=of.time)
    if kind is EventKind.COPY:
        name, dest = turns.storages[told["array"]].name, place_name(told["peer"], turns.ranks)
        words = f"copy {name} to {dest}" + (f" for {of.phase}" if of.phase else "")
        return Described(words, device, what=name, turn=of.time)
    if kind is EventKind.BARRIER:
        return Described(f"barrier after {of.phase}", turn=of.time)
    array, how_many = told["array"], told["count"]
    storage = turns.storages[array] if array >= 0 and how_many > 0 else None
    what, name = "", ""
    if storage is not None:
        what, name = part_words(storage, how_many, told["low"], told["high"]), storage.name
    peer = told["peer"]
    words, _ = phase_words(of.phase, kind, bool(told["combining"]), peer, name)
    message = of.base + told["message"]
    return Described(words, "", peer if peer >= 0 else None, message, what, of.time)


def _totals(
    turns: Turns, string: _String, run: list[Template], times: Times
) -> tuple[tuple[Total, ...], np.ndarray]:
    """Of each rank, phase and kind of event; and when each rank is done."""
    phases, kinds = len(turns.phases), len(_KINDS)
    size = turns.ranks * phases * kinds
    events, seconds, nbytes = np.zeros(size, np.int64), np.zeros(size), np.zeros(size)
    ends, driver = np.zeros(turns.ranks), turns.driver
    for k, each in enumerate(run):
        start, end = _spans(each, string.before[k], int(string.begin[k]), times)
        steps = each.steps
        where = (driver[steps[:, 3]] * phases + int(turns.turns[k, 0])) * kinds + steps[:, 2]
        events += np.bincount(where, minlength=size)
        seconds += np.bincount(where, end - start, size)
        nbytes += np.bincount(where, steps[:, 4], size)
        np.maximum.at(ends, driver[each.places], times.end_s[each.last + int(string.begin[k])])
    found: list[Total] = []
    for at in np.flatnonzero(events).tolist():
        rest, kind = divmod(at, kinds)
        rank, phase = divmod(rest, phases)
        told = int(events[at]), float(seconds[at]), int(nbytes[at])
        found.append(Total(rank, turns.phases[phase], _KINDS[kind], *told))
    return tuple(found), ends
