"""Pipelines whose stages are divided each by itself: those that could be faster than what is known.

Model, devices, machine, seconds to beat -> configurations, and how many others a bound leaves out.

A stage that takes t seconds of each of k micro-batches ends no sooner than k t behind the first
micro-batch's way to it, and before the last one's way back: a lower bound of every schedule. Stages
are gone through in order (branch and bound: Land and Doig 1960) and given up where what is chosen
so far, or the devices that those to come need at least, cannot be faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from avial_lab.planning.model_costs import (
    Configuration,
    Layer,
    Machine,
    ModelCosts,
    parts_of,
    seeded,
    stage_bounds,
)

MOST_EVALUATED, MOST_TRIED = 2_000, 200_000
"""Divisions of stages that a search evaluates, and choices for a stage that it looks at."""

Degrees = tuple[int, int]


class _Option(NamedTuple):
    """A stage on d · h devices: seconds of the first micro-batch's way there and the last one's way
    back, at least; of all of them, and of what comes behind them.
    """

    degrees: Degrees
    there_s: float
    back_s: float
    busy_s: float
    behind_s: float

    @property
    def devices(self) -> int:
        return self.degrees[0] * self.degrees[1]

    @property
    def work_s(self) -> float:
        return self.devices * (self.busy_s + self.behind_s)


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
        """One for each division, those with as many stages and micro-batches together."""
        for p in range(2, min(self.devices - 1, len(self.model.layers)) + 1):
            for k in turns:
                base = Configuration(p=p, k=k, schedule="gpipe")
                options = self._options(base)
                # Devices' seconds of all stages together, spread evenly over the devices.
                work = (min((o.work_s for o in each), default=float("inf")) for each in options)
                least_s = sum(work) / self.devices
                if least_s >= self.seconds:
                    continue
                if found := list(self._of(base, options)):
                    yield found
                if self.is_cut:
                    self.least_s = min(self.least_s, least_s)

    def _of(
        self, base: Configuration, options: Sequence[Sequence[_Option]]
    ) -> Iterator[Configuration]:
        for found in _Choices(options, self.devices, self).all():
            if len({*found}) == 1:
                continue  # (as data and horizontal parallelism of all)
            if self.given >= MOST_EVALUATED:
                self.is_cut = True
                return
            self.given += 1
            yield replace(base, inside=found)

    def may_go_on(self) -> bool:
        self.tried += 1
        self.is_cut |= self.tried > MOST_TRIED
        return not self.is_cut

    def _options(self, base: Configuration) -> list[list[_Option]]:
        """Of each stage, those that alone could be faster; the fewest devices first."""
        may = [
            (d, h)
            for d, h in _products(self.devices - base.p + 1)
            if d == 1 or d * base.k <= self.model.rows
        ]
        given = [replace(base, inside=(each,) * base.p) for each in may]
        bounds = stage_bounds(self.model, given, self.machine)
        there, back, all_of_them, behind = (each.T.tolist() for each in bounds)
        found: list[list[_Option]] = []
        for s, part in enumerate(parts_of(self.model, base.p)):
            widest = min((layer.width for layer in seeded(part)), default=1)
            least = self._held(part)
            options = zip(may, there[s], back[s], all_of_them[s], behind[s], strict=True)
            found.append([
                _Option(*each)
                for each in options
                if each[0][1] <= widest
                and each[3] + each[4] < self.seconds
                and least / each[0][1] <= self.machine.memory_bytes
            ])  # fmt: skip
        return found

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

    stages: Sequence[Sequence[_Option]]
    devices: int
    space: DividedStages
    least: list[int] = field(init=False)
    """How many devices the stages from one on need."""

    def __post_init__(self) -> None:
        each = [min((o.devices for o in stage), default=self.devices) for stage in self.stages]
        self.least = [sum(each[s:]) for s in range(len(each) + 1)]

    def all(self) -> Iterator[tuple[Degrees, ...]]:
        if self.least[0] <= self.devices:
            yield from self._from(0, self.devices, 0.0, 0.0)

    def _from(
        self, stage: int, left: int, there_s: float, back_s: float
    ) -> Iterator[tuple[Degrees, ...]]:
        """For the stages from `stage` on, on `left` devices."""
        if stage == len(self.stages):
            yield ()
            return
        room, last = left - self.least[stage + 1], stage == len(self.stages) - 1
        beaten = self.space.seconds
        for option in self.stages[stage]:
            if option.devices > room or (last and option.devices != left):
                continue
            if there_s + option.busy_s + max(back_s, option.behind_s) >= beaten:
                continue
            if not self.space.may_go_on():
                return
            rest = self._from(
                stage + 1, left - option.devices, there_s + option.there_s, back_s + option.back_s
            )
            for others in rest:
                yield (option.degrees, *others)


def _products(most: int) -> list[Degrees]:
    """(d, h) of up to so many devices."""
    return [(d, h) for d in range(1, most + 1) for h in range(1, most // d + 1)]
