"""What a step of a function on tensors costs when it is divided, in closed form.

Layers, machine, configurations -> seconds of the slowest device and bytes of the fullest, by what,
for all configurations of as many stages at once.

Passes take what the roofline says. A pipeline's times are those of its schedule's passes and
messages, one after the other (`simulator/pipelines.py`): what events of the same passes and
messages give, where no cores are shared. Replicas do the same at the same time: one is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from avial_lab.core.words import brief, count
from avial_lab.planning.simulator.pipelines import Array, Order, PassTimes, ends_s
from avial_lab.planning.stage_balance import balanced

GRADIENT_TRAFFIC = 8
"""How often a gradient is gone through to be made and added to those of other micro-batches."""


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

    @property
    def paired_bytes(self) -> int:
        """Of the result, where the weight can be divided by its columns."""
        return self.result_bytes if self.columns >= 0 else 0


@dataclass(frozen=True)
class ModelCosts:
    """A function's layers in the order of use. states: of how many numbers the optimizer keeps for
    each weight; trained: whether gradients of weights are made; by_hand: the function itself says
    what it does with them, and ZeRO has nothing to divide.
    """

    rows: int
    layers: tuple[Layer, ...]
    trained: bool = False
    states: int = 0
    given_bytes: int = 0
    by_hand: bool = False

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
    level, -1 without. overlap: whether sums of gradients move while others are computed. inside: of
    each stage its own (d, h), in place of those of all.
    """

    d: int = 1
    h: int = 1
    p: int = 1
    k: int = 1
    schedule: str = ""
    zero: int = -1
    recompute: bool = False
    overlap: bool = False
    inside: tuple[tuple[int, int], ...] = ()

    @property
    def chunks(self) -> int:
        """Stages of a device."""
        return 2 if self.schedule.startswith("interleaved") else 1

    @property
    def degrees(self) -> tuple[tuple[int, int], ...]:
        """(d, h) of each device along the pipeline."""
        return self.inside or ((self.d, self.h),) * self.p

    def words(self, model: ModelCosts) -> str:
        """As `--parallel` takes it."""
        parts = [f"data {self.d}"] if self.d > 1 else []
        parts += [f"zero {self.zero}"] if self.zero >= 0 else []
        if self.h > 1:
            parts.append(f"horizontal {self.h} {' '.join(seeds(model.layers))}")
        if self.p > 1:
            parts.append(f"pipeline {self.p} x {self.k} {self.schedule}")
        if self.inside:
            for stage, (part, (d, h)) in enumerate(
                zip(parts_of(model, self.p), self.inside, strict=True)
            ):
                parts += [f"data {d} in {stage}"] if d > 1 else []
                if h > 1:
                    parts.append(f"horizontal {h} in {stage} {' '.join(seeds(part))}")
        parts += ["recompute"] if self.recompute else []
        parts += ["overlap"] if self.overlap else []
        return ", ".join(parts) or "data 1"

    @property
    def name(self) -> str:
        told = f"{self.d}/{self.h}/{self.p}/{self.k}"
        if self.inside:
            told = f"{'+'.join(f'{d}x{h}' for d, h in self.inside)}/{self.p}/{self.k}"
        told += f" {self.schedule}" if self.schedule else ""
        told += f" zero {self.zero}" if self.zero >= 0 else ""
        told += " recompute" if self.recompute else ""
        return told + (" overlap" if self.overlap else "")


def seeded(layers: Sequence[Layer]) -> list[Layer]:
    """Every other layer that has columns: the rows of the next one meet them."""
    return [layer for layer in layers if layer.columns >= 0][::2]


def seeds(layers: Sequence[Layer]) -> tuple[str, ...]:
    return tuple(f"{layer.name}:{layer.columns}" for layer in seeded(layers))


@lru_cache(maxsize=256)
def parts_of(model: ModelCosts, stages: int) -> tuple[tuple[Layer, ...], ...]:
    """The layers of each stage, as `pipeline-parallel` cuts them."""
    stage_of = balanced([layer.work for layer in model.layers], stages)
    return tuple(
        tuple(layer for layer, s in zip(model.layers, stage_of, strict=True) if s == stage)
        for stage in range(stages)
    )


def _sums_of(parts: Sequence[Sequence[Layer]], name: str) -> Array:
    return np.array([sum(getattr(layer, name) for layer in part) for part in parts], float)


@dataclass(frozen=True)
class Costs:
    """Seconds of the slowest device, bytes of the fullest, by what; what both add up to."""

    seconds: dict[str, float]
    held: dict[str, float]


@dataclass(frozen=True)
class Evaluation:
    """As Costs, of n configurations: (n,) each."""

    seconds: dict[str, Array]
    held: dict[str, Array]

    @property
    def total_s(self) -> Array:
        return np.sum(list(self.seconds.values()), axis=0)

    @property
    def nbytes(self) -> Array:
        return np.sum(list(self.held.values()), axis=0)


def costs_of(model: ModelCosts, given: Configuration, machine: Machine) -> Costs:
    found = evaluated(model, [given], machine)
    return Costs(
        {name: float(each[0]) for name, each in found.seconds.items()},
        {name: float(each[0]) for name, each in found.held.items()},
    )


def closed_form(model: ModelCosts, given: Configuration, machine: Machine) -> tuple[float, int]:
    """Seconds of a step, bytes of the fullest device. Where devices are crowded it is no less than
    all that they compute, which they do by turns: bubbles fill others' time.
    """
    found = evaluated(model, [given], machine)
    return float(found.total_s[0]), int(found.nbytes[0])


def evaluated(model: ModelCosts, given: Sequence[Configuration], machine: Machine) -> Evaluation:
    """Of configurations with as many stages and devices along the pipeline."""
    return _Evaluation(model, given, machine).run()


def stage_bounds(
    model: ModelCosts, given: Sequence[Configuration], machine: Machine
) -> tuple[Array, Array, Array, Array]:
    """Of stages in training, one on a device, whatever the others are, (n, stages): seconds of a
    micro-batch there, of one back until it is sent on, of all of them, and of what replicas do
    behind these. No schedule is faster.
    """
    made = _Evaluation(model, given, machine)
    times = made.stage_times()
    back = times.backward + times.shared * (times.backward > 0)
    there = times.forward + times.shared
    sums, updates = made.behind_passes(times)
    return there, back / 2, made.k * (there + back), sums + updates  # (W may come later)


@dataclass(frozen=True)
class StageTimes:
    """Of each configuration and stage, (n, stages): seconds that a pass computes, forward, back,
    forward `again`; that devices of a stage then wait for sums among them (`shared`, each way);
    latency and seconds of what is sent on to the next stage, and back to the one before.
    """

    forward: Array
    backward: Array
    again: Array
    shared: Array
    there_latency: Array
    there: Array
    back_latency: Array
    back: Array


class _Evaluation:
    def __init__(self, model: ModelCosts, given: Sequence[Configuration], machine: Machine) -> None:
        self.model, self.machine = model, machine
        self.p, self.chunks = given[0].p, given[0].chunks
        self.stages = self.p * self.chunks
        self.parts = parts_of(model, self.stages)
        degrees = np.array([each.degrees for each in given], np.float64)  # (n, p, 2)
        self.d, self.h = degrees[:, :, 0], degrees[:, :, 1]
        self.k = np.array([[each.k] for each in given], np.float64)
        self.zero = np.array([[each.zero] for each in given])
        self.recompute = np.array([[each.recompute] for each in given])
        self.overlap = np.array([each.overlap for each in given])
        self.apart = np.array([[bool(each.inside)] for each in given])
        self.schedules = [each.schedule for each in given]

    def run(self) -> Evaluation:
        return Evaluation(self._seconds(), self._held())

    def _of_stages(self, name: str) -> Array:
        """What layers add up to, by stage."""
        return _sums_of(self.parts, name)

    def _by_stage(self, of_devices: Array) -> Array:
        return np.tile(of_devices, (1, self.chunks))

    def _by_device(self, of_stages: Array) -> Array:
        shape = (len(of_stages), self.chunks, self.p)
        return of_stages.reshape(shape).sum(axis=1)

    # -- seconds -----------------------------------------------------------------------------------

    def stage_times(self) -> StageTimes:
        d, h = self._by_stage(self.d), self._by_stage(self.h)
        share = d * h * self.k
        values = (self._of_stages("kept_bytes") + self._of_stages("result_bytes")) / share
        weights = self._of_stages("weight_bytes") / h
        traffic = 1 + (GRADIENT_TRAFFIC if self.p > 1 else 3)
        forward = self._computed(self._of_stages("forward"), share, weights + values)
        backward = self._computed(
            self._of_stages("backward"), share, traffic * weights + 2 * values
        )
        is_last = np.arange(self.stages) == self.stages - 1
        pairs = self._of_stages("paired_bytes") / 2 / (d * self.k)
        there_latency, there = self._sent(d, h)
        # What comes back to a stage has the size of what it sends on.
        back_latency, back = (np.zeros_like(there) for _ in range(2))
        back_latency[:, 1:], back[:, 1:] = self._between(
            d[:, 1:], d[:, :-1], h[:, :-1], self._handed_on()[:-1] / self.k
        )
        return StageTimes(
            forward,
            backward,
            np.where(self.recompute & ~is_last, forward, 0.0),
            2 * self._ring(pairs, h),
            there_latency,
            there,
            back_latency,
            back,
        )

    def _computed(self, flops: Array, share: Array, nbytes: Array) -> Array:
        """Seconds of a pass by the roofline."""
        streamed = nbytes / self.machine.stream_bytes_per_s
        return np.where(
            flops > 0, np.maximum(flops / share / self.machine.flops_per_s, streamed), 0.0
        )

    def _ring(self, nbytes: Array, devices: Array) -> Array:
        """Half an all-reduce: (n - 1)/n of the bytes, in n - 1 messages; 0 s of one device."""
        sent = (devices - 1) / devices * nbytes
        return sent / self.machine.bytes_per_s + (devices - 1) * self.machine.latency_s

    def _handed_on(self) -> Array:
        """Bytes of the whole batch that go over the end of each stage."""
        return np.array([part[-1].sent_bytes for part in self.parts], float)

    def _sent(self, d: Array, h: Array) -> tuple[Array, Array]:
        latency, seconds = np.zeros_like(d), np.zeros_like(d)
        latency[:, :-1], seconds[:, :-1] = self._between(
            d[:, :-1], d[:, 1:], h[:, 1:], self._handed_on()[:-1] / self.k
        )
        return latency, seconds

    def _between(self, d: Array, to_d: Array, to_h: Array, nbytes: Array) -> tuple[Array, Array]:
        """Latency and seconds of what one stage sends another. Stages divided alike send replica by
        replica; others gather it on one device, which sends each of the others what it needs.
        """
        latency, bytes_per_s = self.machine.latency_s, self.machine.bytes_per_s
        gathered = (d - 1) / d * nbytes
        crossing = np.where(self.apart, gathered + to_h * nbytes, nbytes / d)
        hops = np.where(self.apart & (d > 1), 2, 1)
        return hops * latency, crossing / bytes_per_s

    def pass_times(self, times: StageTimes) -> PassTimes:
        apart = np.array([[each == "zero-bubble"] for each in self.schedules])
        late = np.where(apart, times.backward / 2, 0.0)
        return PassTimes(
            times.forward + times.shared,
            times.backward - late + times.again + times.shared,
            late,
            times.there_latency,
            times.there,
            times.back_latency,
            times.back,
        )

    def orders(self) -> list[Order]:
        if not any(layer.backward for layer in self.model.layers):
            return [Order.FORWARD] * len(self.schedules)
        known = {"gpipe": Order.GPIPE, "zero-bubble": Order.ZERO_BUBBLE}
        return [known.get(each, Order.ALTERNATING) for each in self.schedules]

    def _seconds(self) -> dict[str, Array]:
        times = self.stage_times()
        orders = np.array(self.orders(), np.int32)
        turns = self.k[:, 0].astype(np.int64)
        ends = ends_s(self.p, turns, order=orders, times=self.pass_times(times))
        sums, updates = self.behind_passes(times)
        slowest = np.argmax(ends + sums + updates, axis=1)
        ways = 1 if orders[0] == Order.FORWARD else 2
        done = self.k * self._by_device(times.forward + times.backward)
        again = self.k * self._by_device(times.again)
        moved = self.k * ways * self._by_device(times.shared)
        devices = self.d * self.h
        mean = ((done + again) * devices).sum(axis=1) / devices.sum(axis=1)
        row = np.arange(len(slowest))

        def of_slowest(each: Array) -> Array:
            return each[row, slowest]

        crowded = mean * self.machine.crowded - of_slowest(ends)
        # (No more than rounding is below 0.)
        waiting = np.maximum(of_slowest(ends - done - again - moved), 0.0)
        return {
            "arithmetic": of_slowest(done),
            "recomputation": of_slowest(again),
            "messages of micro-batches": of_slowest(moved),
            "waiting in the pipeline": waiting,
            "ranks that share cores": np.maximum(crowded, 0.0) * (self.machine.crowded > 1),
            "sums of gradients": of_slowest(sums),
            "updates": of_slowest(updates),
        }

    def behind_passes(self, times: StageTimes) -> tuple[Array, Array]:
        """What replicas do once a step, by device: seconds of sums of gradients, as far as devices
        wait for them, and of updates.
        """
        weights = self._by_device(self._of_stages("weight_bytes") / self._by_stage(self.h))
        if not self.model.trained:
            return np.zeros_like(weights), np.zeros_like(weights)
        shared = np.where(self.zero >= 1, self.d, 1.0)
        updated = (3 + 3 * self.model.states) * weights / shared
        seconds = updated / self.machine.stream_bytes_per_s * self.machine.crowded
        return self._sums(weights, times), seconds

    def _sums(self, weights: Array, times: StageTimes) -> Array:
        ring = self._ring(weights, self.d)
        halves = np.where(self.zero == 3, 3, 2)
        return np.where(
            self.overlap[:, None], self._left_of_sums(times)[:, None] + (halves - 1) * ring,
            halves * ring,
        )  # fmt: skip

    def _left_of_sums(self, times: StageTimes) -> Array:
        """Seconds for which sums that begin as soon as a layer's gradient is there go on behind the
        last layer's, of one stage: each half an all-reduce, one after the other on their way.
        """
        if not self.overlap.any():
            return np.zeros(len(self.k))
        d, h, share = self.d[:, 0], self.h[:, 0], (self.d * self.h * self.k)[:, 0]
        alone: list[Array] = []
        for layer in self.model.layers:
            values = (layer.kept_bytes + layer.result_bytes) / share
            nbytes = 4 * layer.weight_bytes / h + 2 * values
            alone.append(self._computed(np.array(float(layer.backward)), share, nbytes))
        whole = np.maximum(np.sum(alone, axis=0), 1e-300)
        now = way = np.zeros(len(self.k))
        for layer, each in zip(reversed(self.model.layers), reversed(alone), strict=True):
            now = now + times.backward[:, 0] * each / whole
            way = np.maximum(now, way) + self._ring(layer.weight_bytes / h, d)
        return np.maximum(way - now, 0.0)

    # -- bytes -------------------------------------------------------------------------------------

    def _held(self) -> dict[str, Array]:
        """Weights, and of a step their gradients, what the optimizer keeps, and all of it as it is
        after the step; what stages keep for the way back, of the micro-batches in flight, and what
        they hand on, whose memory the next stage has, too. Of the fullest device.
        """
        trained = self.model.trained
        weights = self._by_device(self._of_stages("weight_bytes") / self._by_stage(self.h))
        state, gradients, own = (
            np.where(self.zero >= level, 1 / self.d, 1.0) for level in (1, 2, 3)
        )
        held = {"weights": weights * own * (2 if trained else 1)}  # also as after the step
        if trained:
            held["gradients"] = weights * (1 + gradients)  # the parts, and their sum
            held["state of the optimizer"] = 2 * weights * self.model.states * state
        d, h = self._by_stage(self.d), self._by_stage(self.h)
        flying = self._flying() if trained else np.minimum(self.k, 2) + np.zeros_like(d)
        handed_on = np.minimum(flying, 2)  # while the next one is made
        kept = flying * self._of_stages("kept_bytes") / (d * self.k)
        kept = np.where(self.recompute, 0.0, kept)
        kept[:, -1] = 0.0  # (the last one goes back at once)
        sent = self._handed_on() / (d * self.k)
        handed = handed_on * sent
        handed[:, -1] = 0.0
        received = self._handed_on()[:-1] / (d[:, 1:] * self.k)
        handed[:, 1:] += (flying + handed_on)[:, 1:] * received
        # Of layers in pairs: what every device has a block of, parts of sums and the sums.
        results = self._of_stages("paired_bytes") / 2 * (1 / h + 2) / d
        between = np.where(h > 1, (2 if trained else 1) * results, 0.0)
        given = np.zeros_like(self.d)
        given[:, 0] = self.model.given_bytes / self.d[:, 0]
        held["kept for the way back"] = self._by_device(kept)
        held["handed on"] = self._by_device(handed)
        held["results of divided weights"] = self._by_device(between)
        held["arrays that are given"] = given
        fullest = np.argmax(np.sum(list(held.values()), axis=0), axis=1)
        row = np.arange(len(fullest))
        return {name: each[row, fullest] for name, each in held.items()}

    def _flying(self) -> Array:
        """Of how many micro-batches a stage keeps values at a time, (n, stages)."""
        later = self.p - 1 - np.arange(self.stages) % self.p
        first = later if self.chunks == 1 else 2 * later + (self.chunks - 1) * self.p
        most = np.array([
            [np.inf] * self.stages if schedule in ("", "gpipe")
            else [self.p] * self.stages if schedule == "zero-bubble"
            else -(-(first + 1) // self.chunks)
            for schedule in self.schedules
        ])  # fmt: skip
        return np.minimum(self.k, most)
