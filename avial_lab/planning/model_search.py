"""Which transforms divide a function on tensors best over so many devices.

What its layers cost, machine, memory -> a row for each configuration, infeasible ones with the
reason. Times are in closed form; `program/model_search.py` runs the best by events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from avial_lab.core.errors import OptionError
from avial_lab.core.table import Table
from avial_lab.core.words import brief, count, format_bytes, format_seconds
from avial_lab.planning.foreseen import NOT_LOWERED
from avial_lab.planning.model_costs import (
    Configuration,
    Machine,
    ModelCosts,
    evaluated,
    seeded,
)
from avial_lab.planning.stage_degrees import DividedStages

MOST_DEVICES = 1 << 12

MOST_TURNS = 1 << 12
"""Micro-batches of a pipeline."""

MOST_APART = 20
"""Rows of pipelines whose stages are divided each by itself."""

SCHEDULES = ("1f1b", "gpipe", "zero-bubble", "interleaved 2")


@dataclass(frozen=True)
class SearchRow:
    """predicted_s and predicted_bytes (of the fullest device) in closed form; simulated_s,
    held_bytes and moved_bytes of the tasks that would run, where they were simulated by events.
    """

    configuration: Configuration
    words: str
    reason: str = ""
    predicted_s: float | None = None
    predicted_bytes: int | None = None
    simulated_s: float | None = None
    held_bytes: int | None = None
    moved_bytes: int | None = None

    @property
    def feasible(self) -> bool:
        return not self.reason

    @property
    def seconds(self) -> float:
        found = self.simulated_s if self.simulated_s is not None else self.predicted_s
        return found if found is not None else float("inf")

    @property
    def nbytes(self) -> int:
        return (self.held_bytes if self.held_bytes is not None else self.predicted_bytes) or 0

    def __repr__(self) -> str:
        told = self.reason or f"{format_seconds(self.seconds)}, {format_bytes(self.nbytes)}"
        return brief(self, f"{self.words}: {told}")


@dataclass(frozen=True)
class ModelSearch:
    """All rows: those that were simulated by events first, the fastest of them before others."""

    model: ModelCosts
    devices: int
    rows: tuple[SearchRow, ...] = field(repr=False)
    machine: Machine | None = field(default=None, repr=False)
    left_out: tuple[str, ...] = field(default=(), repr=False)
    """What of the space has no row, with the bound that says why."""

    @property
    def ranked(self) -> tuple[SearchRow, ...]:
        there = [row for row in self.rows if row.feasible]
        there.sort(key=lambda row: (row.simulated_s is None, row.seconds, row.nbytes, row.words))
        return tuple(there)

    @property
    def best(self) -> SearchRow | None:
        return next(iter(self.ranked), None)

    @property
    def front(self) -> tuple[SearchRow, ...]:
        """Of those simulated: of which none is faster with as little memory, the fastest first."""
        kept: list[SearchRow] = []
        for row in self.ranked:
            if row.simulated_s is not None and (not kept or row.nbytes < kept[-1].nbytes):
                kept.append(row)
        return tuple(kept)

    @property
    def least(self) -> list[str]:
        """Which holds least, of those of which that is known, in words."""
        known = [row for row in self.rows if row.predicted_bytes]
        if not known:
            return []
        row = min(known, key=lambda each: each.nbytes)
        return [f"the least that would do: {format_bytes(row.nbytes)} a device, {row.words}"]

    def explain(self, words: str, against: str = "") -> str:
        """Why it is slower than `against` (by default the best), or cannot be."""
        from avial_lab.planning.search_explanation import explained

        return explained(self, words, against)

    def __str__(self) -> str:
        front = self.front
        shown = [
            (row.words, _time(row.predicted_s), _time(row.simulated_s), format_bytes(row.nbytes),
             "" if row.moved_bytes is None else format_bytes(row.moved_bytes),
             "front" if row in front else "")
            for row in self.ranked[:10]
        ]  # fmt: skip
        infeasible = [row for row in self.rows if not row.feasible]
        head = (
            f"{count(len(self.rows), 'configuration')} on {count(self.devices, 'device')}, "
            f"{len(infeasible):,} infeasible"
        )
        columns = ("--parallel", "predicted", "simulated", "a device holds", "moved", "")
        text = Table(head, columns, tuple(shown), frozenset(columns[1:5])).to_text()
        reasons = dict.fromkeys(row.reason for row in infeasible)
        told = [f"infeasible: {reason}" for reason in list(reasons)[:5]]
        if not shown:
            text, told = head, [*told, *self.least]
        if any(row.simulated_s is not None for row in self.rows):
            told.append(f"simulated by events; {NOT_LOWERED}")
        return "\n".join([text, *told, *(f"left out: {each}" for each in self.left_out)])


def _time(seconds: float | None) -> str:
    return "" if seconds is None else format_seconds(seconds)


def search_model(model: ModelCosts, devices: int, machine: Machine) -> ModelSearch:
    """Every configuration in closed form; of pipelines whose stages are divided each by itself
    those that could be faster, of which `left_out` tells.
    """
    if not 1 <= devices <= MOST_DEVICES:
        raise OptionError(f"{devices} devices", hint=f"give a number from 1 to {MOST_DEVICES:,}")
    rows = _rows(model, list(_configurations(model, devices)), machine)
    apart, left_out = _stages_apart(model, devices, machine, rows)
    return ModelSearch(model, devices, (*rows, *apart), machine, left_out)


def _configurations(model: ModelCosts, devices: int) -> Iterator[Configuration]:
    for d in _divisors(devices):
        for h in _divisors(devices // d):
            base = Configuration(d, h, devices // d // h)
            levels = (-1, 1, 2, 3) if model.trained and not model.by_hand and d > 1 else (-1,)
            for zero in levels:
                yield from _pipelines(model, replace(base, zero=zero))


def _pipelines(model: ModelCosts, base: Configuration) -> Iterator[Configuration]:
    if base.p == 1:
        yield base
        if model.trained and base.d > 1:
            yield replace(base, overlap=True)
        return
    for k in _turns(model.rows // base.d):
        for schedule in SCHEDULES if model.trained else ("gpipe",):
            for recompute in (False, True) if model.trained else (False,):
                yield replace(base, k=k, schedule=schedule, recompute=recompute)


def _turns(rows: int) -> list[int]:
    """Micro-batches of so many rows."""
    return [1 << power for power in range(min(max(rows, 1).bit_length(), MOST_TURNS.bit_length()))]


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def _reason(model: ModelCosts, given: Configuration) -> str:
    """Why it cannot be; "" where it can."""
    stages = given.p * given.chunks
    if given.d > model.rows:
        return f"{given.d} devices for {count(model.rows, 'row')} of a batch"
    if stages > len(model.layers):
        return f"{stages} stages of {count(len(model.layers), 'weight')}"
    if given.h > 1:
        wide = seeded(model.layers)
        if not wide:
            return "no weight has columns that could be divided"
        narrow = next((layer for layer in wide if layer.width < given.h), None)
        if narrow is not None:
            return f"%{narrow.name} has {narrow.width} columns for {given.h} devices"
    return ""


def _rows(model: ModelCosts, given: Sequence[Configuration], machine: Machine) -> list[SearchRow]:
    """Those with as many stages are evaluated at once."""
    reasons = [_reason(model, each) for each in given]
    groups: dict[tuple[int, int], list[int]] = {}
    for k, each in enumerate(given):
        if not reasons[k]:
            groups.setdefault((each.p, each.chunks), []).append(k)
    seconds: dict[int, float] = {}
    held: dict[int, int] = {}
    for numbers in groups.values():
        found = evaluated(model, [given[k] for k in numbers], machine)
        seconds.update(zip(numbers, found.total_s.tolist(), strict=True))
        held.update(zip(numbers, map(int, found.nbytes.tolist()), strict=True))
    rows: list[SearchRow] = []
    for k, each in enumerate(given):
        over = held.get(k, 0) - machine.memory_bytes
        reason = reasons[k] or (over_memory(over) if over > 0 else "")
        rows.append(SearchRow(each, each.words(model), reason, seconds.get(k), held.get(k)))
    return rows


def over_memory(nbytes: float) -> str:
    return f"{format_bytes(int(nbytes))} over the memory of a device"


def _stages_apart(
    model: ModelCosts, devices: int, machine: Machine, rows: Sequence[SearchRow]
) -> tuple[list[SearchRow], tuple[str, ...]]:
    """Rows of pipelines whose stages are divided each by itself, the fastest alone; what of them is
    left out, and why.
    """
    best_s = min((row.seconds for row in rows if row.feasible), default=float("inf"))
    space = DividedStages(model, devices, machine, best_s)
    turns = _turns(model.rows)
    schedules = [each for each in SCHEDULES if "interleaved" not in each]
    ways = [
        (schedule, again)
        for schedule in (schedules if model.trained else ["gpipe"])
        for again in ((False, True) if model.trained else (False,))
    ]
    found: list[SearchRow] = []
    for batch in space.batches(turns):
        there = [
            replace(each, schedule=schedule, recompute=again)
            for each in batch
            for schedule, again in ways
        ]
        found += [row for row in _rows(model, there, machine) if row.feasible]
        space.seconds = min(space.seconds, *(row.seconds for row in found), float("inf"))
    found.sort(key=lambda row: (row.seconds, row.nbytes, row.words))
    kept = found[:MOST_APART]
    told: list[str] = []
    bounded = (space.all_of(len(turns)) - space.given) * len(ways)
    if bounded and space.seconds == float("inf"):
        told.append(
            f"{_many(bounded)} whose stages are divided each by itself: none has rows, columns and "
            "memory enough on all devices"
        )
    elif bounded and not space.is_cut:
        told.append(
            f"{_many(bounded)} whose stages are divided each by itself: what their stages compute "
            f"and send takes no less than the best of all, {format_seconds(space.seconds)}"
        )
    elif bounded:
        told.append(
            f"{_many(bounded)} whose stages are divided each by itself: "
            f"{space.given:,} divisions are evaluated, no other takes less than "
            f"{format_seconds(space.least_s)}; the best of all {format_seconds(space.seconds)}"
        )
    slower = len(found) - len(kept)
    if slower:
        told.append(f"{count(slower, 'pipeline')} of that kind slower than the {len(kept)} shown")
    if model.rows >= 2 * MOST_TURNS:
        told.append(f"more than {MOST_TURNS:,} micro-batches: {_of_more_turns(rows)}")
    return kept, tuple(told)


def _many(pipelines: int) -> str:
    return count(pipelines, "pipeline") if pipelines < 10**15 else f"{pipelines:.1e} pipelines"


def _of_more_turns(rows: Sequence[SearchRow]) -> str:
    """Each one takes the messages and the weights of each anew."""
    most = [row for row in rows if row.feasible and row.configuration.k == MOST_TURNS]
    best = min((row.seconds for row in rows if row.feasible), default=float("inf"))
    least = min((row.seconds for row in most), default=float("inf"))
    return (
        f"with that many the fastest takes {format_seconds(least)}, and the time of what each "
        f"micro-batch does anew grows from there; the best of all {format_seconds(best)}"
    )
