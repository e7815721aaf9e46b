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
from avial_lab.planning.stage_balance import balanced

MOST_DEVICES = 1 << 12


@dataclass(frozen=True)
class Layer:
    """What is computed with one weight, of the whole batch. work: by which stages are balanced.
    forward, backward: operations. kept_bytes: what the way back reads of the way forward.
    sent_bytes: what later layers read of this one and of those before. columns: the dimension that
    its result has, too; -1 where there is none. result_bytes: of the result.
    """

    name: str
    weight_bytes: int
    work: int
    forward: int
    backward: int = 0
    kept_bytes: int = 0
    sent_bytes: int = 0
    result_bytes: int = 0
    columns: int = -1
    width: int = 0


@dataclass(frozen=True)
class ModelCosts:
    """A function's layers in the order of use. states: of how many numbers the optimizer keeps for
    each weight; trained: whether weights follow gradients.
    """

    rows: int
    layers: tuple[Layer, ...]
    trained: bool = False
    states: int = 0
    given_bytes: int = 0

    def __repr__(self) -> str:
        return brief(self, f"of {count(len(self.layers), 'layer')}, {count(self.rows, 'row')}")


@dataclass(frozen=True)
class Machine:
    """flops_per_s: of a device; a message takes latency_s and goes at bytes_per_s. memory_bytes: of
    a device, through which it goes at stream_bytes_per_s. crowded: how many devices share what each
    of them could use alone: ranks on too few cores.
    """

    flops_per_s: float
    bytes_per_s: float
    latency_s: float
    memory_bytes: float
    stream_bytes_per_s: float = float("inf")
    crowded: float = 1.0


@dataclass(frozen=True)
class Configuration:
    """Degrees d of data, h of horizontal, p of pipeline parallelism; k micro-batches. zero: its
    level, -1 without.
    """

    d: int = 1
    h: int = 1
    p: int = 1
    k: int = 1
    schedule: str = ""
    zero: int = -1
    recompute: bool = False

    def words(self, model: ModelCosts) -> str:
        """As `--parallel` takes it."""
        parts = [f"data {self.d}"] if self.d > 1 else []
        parts += [f"zero {self.zero}"] if self.zero >= 0 else []
        if self.h > 1:
            parts.append(f"horizontal {self.h} {' '.join(seeds(model))}")
        if self.p > 1:
            parts.append(f"pipeline {self.p} x {self.k} {self.schedule}")
        parts += ["recompute"] if self.recompute else []
        return ", ".join(parts) or "data 1"

    @property
    def name(self) -> str:
        told = f"{self.d}/{self.h}/{self.p}/{self.k}"
        told += f" {self.schedule}" if self.schedule else ""
        told += f" zero {self.zero}" if self.zero >= 0 else ""
        return told + (" recompute" if self.recompute else "")


def seeds(model: ModelCosts) -> tuple[str, ...]:
    """Every other layer by its columns: the rows of the next one meet them."""
    wide = [layer for layer in model.layers if layer.columns >= 0]
    return tuple(f"{layer.name}:{layer.columns}" for layer in wide[::2])


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
        return "\n".join([text, *(f"infeasible: {reason}" for reason in list(reasons)[:5])])


def _time(seconds: float | None) -> str:
    return "" if seconds is None else format_seconds(seconds)


def search_model(model: ModelCosts, devices: int, machine: Machine) -> ModelSearch:
    """Every configuration in closed form."""
    if not 1 <= devices <= MOST_DEVICES:
        raise OptionError(f"{devices} devices", hint=f"give a number from 1 to {MOST_DEVICES:,}")
    rows = tuple(_row(model, each, machine) for each in _configurations(model, devices))
    return ModelSearch(model, devices, rows, machine)


def _configurations(model: ModelCosts, devices: int) -> Iterator[Configuration]:
    for d in _divisors(devices):
        for h in _divisors(devices // d):
            base = Configuration(d, h, devices // d // h)
            levels = (-1, 1, 2, 3) if model.trained and d > 1 else (-1,)
            for zero in levels:
                yield from _pipelines(model, replace(base, zero=zero))


def _pipelines(model: ModelCosts, base: Configuration) -> Iterator[Configuration]:
    if base.p == 1:
        yield base
        return
    k = 1
    schedules = ("1f1b", "gpipe", "zero-bubble", "interleaved 2") if model.trained else ("gpipe",)
    while k == 1 or k <= model.rows // base.d:
        for schedule in schedules:
            for recompute in (False, True) if model.trained else (False,):
                yield replace(base, k=k, schedule=schedule, recompute=recompute)
        k *= 2


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def _reason(model: ModelCosts, given: Configuration) -> str:
    """Why it cannot be; "" where it can."""
    stages = given.p * _chunks(given)
    if given.d > model.rows:
        return f"{given.d} devices for {count(model.rows, 'row')} of a batch"
    if stages > len(model.layers):
        return f"{stages} stages of {count(len(model.layers), 'weight')}"
    if given.h > 1:
        wide = [layer for layer in model.layers if layer.columns >= 0]
        if not wide:
            return "no weight has columns that could be divided"
        narrow = next((layer for layer in wide[::2] if layer.width < given.h), None)
        if narrow is not None:
            return f"%{narrow.name} has {narrow.width} columns for {given.h} devices"
    return ""


def _chunks(given: Configuration) -> int:
    return 2 if given.schedule.startswith("interleaved") else 1


def _row(model: ModelCosts, given: Configuration, machine: Machine) -> SearchRow:
    words = given.words(model)
    reason = _reason(model, given)
    if reason:
        return SearchRow(given, words, reason)
    seconds, nbytes = closed_form(model, given, machine)
    over = nbytes - machine.memory_bytes
    if over > 0:
        reason = f"{format_bytes(int(over))} over the memory of a device"
    return SearchRow(given, words, reason, seconds, nbytes)


def closed_form(model: ModelCosts, given: Configuration, machine: Machine) -> tuple[float, int]:
    """Seconds of a step, bytes of the fullest device. A pipeline's time is that of its slowest
    stage for all micro-batches, and its bubble: (p - 1) of them, of 1/v where a device has v
    stages, without the gradients of weights where these fill it. Where devices are crowded it is no
    less than all that they compute, which they do by turns: bubbles fill others' time.
    """
    found = costs_of(model, given, machine)
    return sum(found.seconds.values()), int(sum(found.held.values()))


@dataclass(frozen=True)
class Costs:
    """What `closed_form` adds up: seconds of the slowest device, bytes of the fullest, by what."""

    seconds: dict[str, float]
    held: dict[str, float]


def costs_of(model: ModelCosts, given: Configuration, machine: Machine) -> Costs:
    chunks = _chunks(given)
    stages = given.p * chunks
    stage_of = balanced([layer.work for layer in model.layers], stages)
    parts = [
        [layer for layer, s in zip(model.layers, stage_of, strict=True) if s == stage]
        for stage in range(stages)
    ]
    turns: list[tuple[float, float, float]] = []
    computed = longest_first = 0.0
    for stage, part in enumerate(parts):
        forward, back = _computed(part, given, machine)
        again = forward if given.recompute and stage < stages - 1 else 0.0
        moved = _moved(part, stage, stages, given, machine)
        turns.append((forward + back, again, moved))
        computed += forward + back + again
        longest_first = max(longest_first, forward + moved)
    devices = [
        tuple(sum(turns[s][k] for s in range(stages) if s % given.p == q) for k in range(3))
        for q in range(given.p)
    ]
    busiest = max(devices, key=sum)
    slowest = sum(busiest)
    bubble = (given.p - 1) / chunks * slowest
    if given.schedule == "zero-bubble":  # W of the last one has nothing to fill where k < p
        bubble = (given.p - 1) * (longest_first if given.k >= given.p else slowest)
    weights = max(
        sum(layer.weight_bytes for s in range(stages) if s % given.p == q for layer in parts[s])
        for q in range(given.p)
    )
    updated = (3 + 3 * model.states) * weights / given.h if model.trained else 0.0
    shared = given.d if given.zero >= 1 else 1
    done, again, moved = (given.k * each for each in busiest)
    crowded = given.k * computed / given.p * machine.crowded - (done + again + moved + bubble)
    seconds = {
        "arithmetic": done,
        "recomputation": again,
        "messages of micro-batches": moved,
        "waiting in the pipeline": bubble,
        "ranks that share cores": max(crowded, 0.0),
        "sums of gradients": _summed(model, weights / given.h, given, machine),
        "updates": updated / shared / machine.stream_bytes_per_s * machine.crowded,
    }
    held = (_held(model, parts, device, given) for device in range(given.p))
    return Costs(seconds, max(held, key=lambda each: sum(each.values())))


GRADIENT_TRAFFIC = 8
"""How often a gradient is gone through to be made and added to those of other micro-batches."""


def _computed(part: Sequence[Layer], given: Configuration, machine: Machine) -> tuple[float, float]:
    """Seconds of a stage for one micro-batch, forward and back, each by the roofline."""
    share = given.d * given.h * given.k
    values = sum(layer.kept_bytes + layer.result_bytes for layer in part) / share
    weights = sum(layer.weight_bytes for layer in part) / given.h
    again = GRADIENT_TRAFFIC if given.p > 1 else 3
    found: list[float] = []
    for flops, nbytes in (
        (sum(layer.forward for layer in part), weights + values),
        (sum(layer.backward for layer in part), (1 + again) * weights + 2 * values),
    ):
        streamed = nbytes / machine.stream_bytes_per_s if flops else 0.0
        found.append(max(flops / share / machine.flops_per_s, streamed))
    return found[0], found[1]


def _ring(nbytes: float, devices: int, machine: Machine) -> float:
    """Half an all-reduce: (n - 1)/n of the bytes, in n - 1 messages."""
    if devices == 1:
        return 0.0
    sent = (devices - 1) / devices * nbytes
    return sent / machine.bytes_per_s + (devices - 1) * machine.latency_s


def _moved(
    part: Sequence[Layer], stage: int, stages: int, given: Configuration, machine: Machine
) -> float:
    """Messages of a stage for one micro-batch, there and back."""
    ways = 2 if any(layer.backward for layer in part) else 1
    share = given.d * given.k
    seconds = 0.0
    if stage < stages - 1 and part:
        nbytes = part[-1].sent_bytes / share
        seconds += ways * (machine.latency_s + nbytes / machine.bytes_per_s)
    if given.h > 1:
        pairs = sum(layer.result_bytes for layer in part if layer.columns >= 0) / 2 / share
        seconds += ways * 2 * _ring(pairs, given.h, machine)
    return seconds


def _summed(
    model: ModelCosts, weight_bytes: float, given: Configuration, machine: Machine
) -> float:
    """What replicas do once a step for their gradients."""
    if not model.trained or given.d == 1:
        return 0.0
    return (3 if given.zero == 3 else 2) * _ring(weight_bytes, given.d, machine)


def _held(
    model: ModelCosts, parts: Sequence[Sequence[Layer]], device: int, given: Configuration
) -> dict[str, float]:
    """Weights, and of a step their gradients, what the optimizer keeps, and all of it as it is
    after the step; what stages keep for the way back, of the micro-batches in flight, and what
    they hand on, whose memory the next stage has, too.
    """
    mine = range(device, len(parts), given.p)
    weights = sum(layer.weight_bytes for stage in mine for layer in parts[stage]) / given.h
    state, gradients, own = (1 / given.d if level <= given.zero else 1.0 for level in (1, 2, 3))
    held = {"weights": weights * own}
    if model.trained:
        held["weights"] += weights * own  # as they are after the step
        held["gradients"] = weights * (1 + gradients)  # the parts, and their sum
        held["state of the optimizer"] = 2 * weights * model.states * state
    share = given.d * given.k
    kept = handed = between = 0.0
    for stage in mine:
        flying = _flying(stage, len(parts), given) if model.trained else min(given.k, 2)
        handed_on = min(flying, 2)  # while the next one is made
        if stage < len(parts) - 1:  # (the last one goes back at once)
            of_layers = sum(layer.kept_bytes for layer in parts[stage])
            kept += 0 if given.recompute else flying * of_layers / share
            handed += handed_on * _sent(parts[stage]) / share
        if stage:
            handed += (flying + handed_on) * _sent(parts[stage - 1]) / share
        if given.h > 1:
            between += (2 if model.trained else 1) * _between_devices(parts[stage], given)
    return held | {
        "kept for the way back": kept,
        "handed on": handed,
        "results of divided weights": between,
        "arrays that are given": model.given_bytes / given.d if device == 0 else 0.0,
    }


def _sent(part: Sequence[Layer]) -> int:
    return part[-1].sent_bytes if part else 0


def _flying(stage: int, stages: int, given: Configuration) -> int:
    """Of how many micro-batches a stage keeps values at a time."""
    if given.schedule in ("", "gpipe"):
        return given.k
    chunks, later = stages // given.p, given.p - 1 - stage % given.p
    first = later if chunks == 1 else 2 * later + (chunks - 1) * given.p
    if given.schedule == "zero-bubble":
        first = given.p - 1
    return min(given.k, -(-(first + 1) // chunks))


def _between_devices(part: Sequence[Layer], given: Configuration) -> float:
    """Of layers in pairs: what every device has a block of, and the parts of sums and the sums."""
    results = sum(layer.result_bytes for layer in part if layer.columns >= 0) / 2
    return results * (1 / given.h + 2) / given.d
