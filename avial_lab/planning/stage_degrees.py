"""Pipelines whose stages are divided each by itself: those that could be faster than what is known.

Model, devices, machine, seconds to beat -> configurations, and how many others a bound leaves out.

A stage that takes t seconds of each of k micro-batches ends no sooner than k t behind the first
micro-batch's way to it, messages included, and before the last one's way back and what replicas of
the stages on that way do then: a lower bound of every schedule. What stages to come add at least,
on as many devices as are left, is a recursion over stages and devices, as in PipeDream (Narayanan
et al. 2019, section 3.1) and Alpa (Zheng et al. 2022, section 5). Stages are gone through in order
(branch and bound: Land and Doig 1960) and given up where that cannot be faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from avial_lab.planning.model_costs import (
    Configuration,
    Layer,
    Machine,
    ModelCosts,
    parts_of,
    seeded,
    stage_bounds,
)
from avial_lab.planning.simulator.pipelines import Array

MOST_EVALUATED, MOST_TRIED, BATCH = 2_000, 200_000, 250
"""Divisions of stages that a search evaluates, choices for a stage that it looks at; how many are
evaluated together.
"""

Degrees = tuple[int, int]


class _Option(NamedTuple):
    """A stage on d · h devices, seconds at least: from the first micro-batch's message to it until
    it is at the next stage's (there_s), of the last one from behind it to behind the stage before
    (back_s); of all of them, and of what replicas do behind these.
    """

    degrees: Degrees
    enter_s: float
    there_s: float
    back_s: float
    leave_s: float
    busy_s: float
    behind_s: float

    @property
    def devices(self) -> int:
        return self.degrees[0] * self.degrees[1]


@dataclass
class DividedStages:
    """`seconds`: what is to be beaten; who evaluates what is given may lower it. given: how many
    could be faster; is_cut: they are not all, as there were too many, and none of the rest takes
    less than `least_s`.
    """

    model: ModelCosts
    devices: int
    machine: Machine
    seconds: float
    given: int = 0
    tried: int = 0
    is_cut: bool = False
    least_s: float = float("inf")

    def batches(self, turns: Sequence[int]) -> Iterator[list[Configuration]]:
        """Divisions to evaluate, those with as many stages and micro-batches together; what could
        be fastest first.
        """
        choices = [
            _Choices(base, options, self)
            for p in range(2, min(self.devices - 1, len(self.model.layers)) + 1)
            for k in turns
            if self._hops_s(p) < self.seconds
            and (options := self._options(base := Configuration(p=p, k=k, schedule="gpipe")))
        ]
        for each in sorted(choices, key=lambda each: each.least_s):
            if self.is_cut or each.least_s >= self.seconds:
                self.least_s = min(self.least_s, each.least_s)
                continue
            found = each.all()
            while batch := list(islice(found, BATCH)):
                yield batch

    def may_evaluate(self) -> bool:
        self.is_cut |= self.given >= MOST_EVALUATED
        self.given += not self.is_cut
        return not self.is_cut

    def may_go_on(self) -> bool:
        self.tried += 1
        self.is_cut |= self.tried > MOST_TRIED
        return not self.is_cut

    def _hops_s(self, stages: int) -> float:
        """Of the messages that the first micro-batch waits for."""
        return (stages - 1) * (2 if self._goes_back else 1) * self.machine.latency_s

    @property
    def _goes_back(self) -> bool:
        return any(layer.backward for layer in self.model.layers)

    def _options(self, base: Configuration) -> list[list[_Option]]:
        """Of each stage, those that alone could be faster, the fastest first; none where a stage
        has none, or all of them together need more devices.
        """
        may = [
            (d, h)
            for d, h in _products(self.devices - base.p + 1)
            if d == 1 or d * base.k <= self.model.rows
        ]
        given = [replace(base, inside=(each,) * base.p) for each in may]
        forward, back, busy, behind = (
            each.T for each in stage_bounds(self.model, given, self.machine)
        )  # (stages, options)
        d, h = np.array(may, float).T
        parts = parts_of(self.model, base.p)
        # One device gathers what is sent, and sends it to each column of the next.
        sent = np.array(
            [[p[-1].sent_bytes / base.k / self.machine.bytes_per_s] for p in parts[:-1]]
        )
        gathered = np.where(d > 1, 2, 1) * self.machine.latency_s + (d - 1) / d * sent
        enter, leave, back_enter, back_leave = (np.zeros_like(forward) for _ in range(4))
        enter[1:], leave[:-1] = h * sent, gathered
        if self._goes_back:
            back_enter[:-1], back_leave[1:] = h * sent, gathered
        messages = (base.k - 1) * np.maximum(enter, back_enter)
        busy = np.maximum(busy, forward + back + messages)
        widest = np.array([[min((e.width for e in seeded(part)), default=1)] for part in parts])
        held = np.array([[self._held(part)] for part in parts])
        alone = enter + busy + behind
        fits = (alone < self.seconds) & (h <= widest) & (held / h <= self.machine.memory_bytes)
        # Devices' seconds of all stages together, spread evenly over the devices.
        work = np.where(fits, d * h * (busy + behind), np.inf).min(axis=1).sum()
        if work >= self.devices * self.seconds:
            return []
        columns = np.stack([
            enter, enter + forward + leave, back_enter + back + back_leave, back_leave, busy, behind
        ])  # fmt: skip
        orders = np.argsort(alone, axis=1, kind="stable")
        return [
            [_Option(may[k], *columns[:, s, k].tolist()) for k in order if fits[s, k]]
            for s, order in enumerate(orders)
        ]

    def _held(self, part: Sequence[Layer]) -> int:
        """Bytes that a stage holds of its weights, at least."""
        times = 2 + 2 * (1 + self.model.states) if self.model.trained else 1
        return times * sum(layer.weight_bytes for layer in part)

    def all_of(self, turns: int) -> int:
        """How many divisions of stages there are, with so many numbers of micro-batches."""
        each = [0] * (self.devices + 1)
        for d, h in _products(self.devices):
            each[d * h] += 1
        total, ways = 0, each
        for _ in range(2, min(self.devices - 1, len(self.model.layers)) + 1):
            ways = [
                sum(ways[n - m] * each[m] for m in range(1, n)) for n in range(self.devices + 1)
            ]
            total += ways[self.devices]
        alike = sum(
            sum(1 for d, h in _products(self.devices // p) if d * h == self.devices // p)
            for p in range(2, min(self.devices - 1, len(self.model.layers)) + 1)
            if self.devices % p == 0
        )
        return (total - alike) * turns


@dataclass
class _Choices:
    """One option for each stage, so that all devices are used."""

    base: Configuration
    stages: Sequence[Sequence[_Option]]
    space: DividedStages

    def __post_init__(self) -> None:
        self.ahead = self._ahead()
        self.least_s = float(max(each[self.space.devices] for each in self.ahead[0]))

    def _ahead(self) -> list[tuple[Array, Array]]:
        """Seconds at least of the stages from each one on, on so many devices: until the last
        micro-batch is back before the first of them; until their replicas are done. O(stages x
        options x devices).
        """
        total = self.space.devices
        none = np.full(total + 1, np.inf)
        none[0] = -np.inf  # all devices are used
        found = [(none, none)]
        left = np.arange(total + 1, dtype=np.int64)
        for stage in reversed(self.stages):
            enter, there, back, leave, busy, behind = np.array([each[1:] for each in stage]).T
            rest = left - np.array([[each.devices] for each in stage], np.int64)

            def least(
                mine: Array, passed: Array, later: Array, rest: NDArray[np.int64] = rest
            ) -> Array:
                """(devices,): of this stage, or of one behind it."""
                later = np.where(rest >= 0, later[rest], np.inf)
                mine = np.where(later < np.inf, mine[:, None], np.inf)
                return np.maximum(mine, passed[:, None] + later).min(axis=0)

            returned, done = found[-1]
            found.append((
                least(enter + busy + leave, there + back, returned),
                least(enter + busy + behind, there, done),
            ))  # fmt: skip
        return found[::-1]

    def all(self) -> Iterator[Configuration]:
        for found in self._from(0, self.space.devices, 0.0, 0.0):
            if len({*found}) == 1:
                continue  # (as data and horizontal parallelism of all)
            if not self.space.may_evaluate():
                self.space.least_s = min(self.space.least_s, self.least_s)
                return
            yield replace(self.base, inside=found)

    def _from(
        self, stage: int, left: int, there_s: float, back_s: float
    ) -> Iterator[tuple[Degrees, ...]]:
        """For the stages from `stage` on, on `left` devices; `back_s`: what comes when the last
        micro-batch is back before them.
        """
        if stage == len(self.stages):
            yield ()
            return
        returned, done = self.ahead[stage + 1]
        for option in self.stages[stage]:
            rest = left - option.devices
            if rest < 0:
                continue
            then_s = there_s + option.there_s
            behind_s = max(option.behind_s, option.leave_s + back_s)
            back = max(option.back_s + back_s, option.back_s - option.leave_s + option.behind_s)
            least = max(
                there_s + option.enter_s + option.busy_s + behind_s,
                then_s + back + float(returned[rest]),
                then_s + float(done[rest]),
            )
            if least >= self.space.seconds:
                continue
            if not self.space.may_go_on():
                self.space.least_s = min(self.space.least_s, self.least_s)
                return
            for others in self._from(stage + 1, rest, then_s, back):
                yield (option.degrees, *others)


def _products(most: int) -> list[Degrees]:
    """(d, h) of up to so many devices."""
    return [(d, h) for d in range(1, most + 1) for h in range(1, most // d + 1)]
