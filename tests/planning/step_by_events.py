"""A step of a divided model by events: every device, every pass, every message of every ring.

Model, configuration, machine -> seconds, by the simulator's core of activities. The order of passes
is that in which the compiler puts tasks (`in_pipeline_order`); costs are written here once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from avial_lab.compiler.passes.distir.task_order import PipelineOrder, in_pipeline_order
from avial_lab.planning.model_costs import (
    GRADIENT_TRAFFIC,
    Configuration,
    Layer,
    Machine,
    ModelCosts,
    parts_of,
)
from avial_lab.planning.simulator.activities import ActivityList, simulate
from tests.compiler.passes.distir.test_pipeline_parallel import jobs_of

Device = tuple[int, int, int]
"""Along the pipeline, of its replicas, of those that have columns of its weights."""


def step_by_events(model: ModelCosts, given: Configuration, machine: Machine) -> float:
    return _Step(model, given, machine).run()


@dataclass
class _Step:
    model: ModelCosts
    given: Configuration
    machine: Machine
    made: ActivityList = field(default_factory=ActivityList)
    last: dict[Device, int] = field(default_factory=dict)
    arrived: dict[tuple[int, int, bool], dict[tuple[int, int], int]] = field(default_factory=dict)
    way: dict[tuple[int, int, int, int], int] = field(default_factory=dict)

    def run(self) -> float:
        given = self.given
        self.parts = parts_of(self.model, given.p * given.chunks)
        self.trained = any(layer.backward for layer in self.model.layers)
        for depth, turn, stage, late in self._order():
            back = late or depth >= len(self.parts)
            if late:
                self._passes(stage, turn, self._back(stage) / 2)
                continue
            reads = self.arrived.get((stage, turn, back), {})
            both = self.trained and stage == len(self.parts) - 1
            if not back:
                self._passes(stage, turn, self._forward(stage), reads)
                self._ring_of_columns(stage)
            if back or both:
                self._passes(stage, turn, self._way_back(stage), reads if back else {})
                self._ring_of_columns(stage)
            self._send(stage, stage - 1 if back or both else stage + 1, turn, back or both)
        self._replicas()
        return simulate(self.made.on([1.0])).makespan_s

    def _order(self) -> list[tuple[int, int, int, bool]]:
        """(depth, micro-batch, stage, whether gradients of weights alone) of all passes."""
        given, stages = self.given, len(self.parts)
        if not self.trained:
            return [(s, turn, s, False) for s in range(stages) for turn in range(given.k)]
        schedule, *_ = (given.schedule or "1f1b").split()
        order = PipelineOrder(schedule, stages, given.p)
        jobs = jobs_of(stages, given.k, devices=given.p, apart=schedule == "zero-bubble")
        made = in_pipeline_order(jobs, {q: q for q in range(given.p)}, order)
        return [(job.depth, job.turn, job.stage, job.late) for job in made]

    # -- seconds of a pass -------------------------------------------------------------------------

    def _degrees(self, stage: int) -> tuple[int, int]:
        return self.given.degrees[stage % self.given.p]

    def _roofline(self, stage: int, layers: Sequence[Layer], *, back: bool) -> float:
        d, h = self._degrees(stage)
        flops = sum(layer.backward if back else layer.forward for layer in layers)
        if not flops:
            return 0.0
        values = sum(layer.kept_bytes + layer.result_bytes for layer in layers)
        weights = sum(layer.weight_bytes for layer in layers) / h
        often = (GRADIENT_TRAFFIC if self.given.p > 1 else 3) + 1 if back else 1
        share = d * h * self.given.k
        nbytes = often * weights + (2 if back else 1) * values / share
        return max(
            flops / share / self.machine.flops_per_s, nbytes / self.machine.stream_bytes_per_s
        )

    def _forward(self, stage: int) -> float:
        return self._roofline(stage, self.parts[stage], back=False)

    def _back(self, stage: int) -> float:
        return self._roofline(stage, self.parts[stage], back=True)

    def _way_back(self, stage: int) -> float:
        seconds = self._back(stage) / (2 if self.given.schedule == "zero-bubble" else 1)
        again = self.given.recompute and stage < len(self.parts) - 1
        return seconds + (self._forward(stage) if again else 0.0)

    # -- activities --------------------------------------------------------------------------------

    def _members(self, stage: int) -> list[Device]:
        d, h = self._degrees(stage)
        return [(stage % self.given.p, i, j) for i in range(d) for j in range(h)]

    def _passes(
        self, stage: int, turn: int, seconds: float, reads: dict[tuple[int, int], int] | None = None
    ) -> None:
        for device in self._members(stage):
            waits = [self.last[device]] if device in self.last else []
            waits += [reads[device[1:]]] if reads else []
            if self.given.overlap and turn == 0 and reads == {} and device in self.last:
                self._layer_by_layer(device, seconds)
            else:
                self.last[device] = self.made.add(seconds, after=waits, cap=1.0)

    def _ring(self, devices: Sequence[Device], nbytes: float, rounds: int,
              begun: Sequence[int]) -> list[int]:  # fmt: skip
        """The last message of each device; in each round each sends the next one an n-th."""
        n, ends = len(devices), list(begun)
        for _ in range(rounds * (n - 1)):
            ends = [
                self.made.add(nbytes / n, after=(ends[k], ends[k - 1]),
                              latency_s=self.machine.latency_s, cap=self.machine.bytes_per_s)
                for k in range(n)
            ]  # fmt: skip
        return ends

    def _ring_of_columns(self, stage: int) -> None:
        d, h = self._degrees(stage)
        pairs = sum(layer.result_bytes for layer in self.parts[stage] if layer.columns >= 0) / 2
        for i in range(d):
            devices = [(stage % self.given.p, i, j) for j in range(h)]
            begun = [self.last[each] for each in devices]
            ends = self._ring(devices, pairs / d / self.given.k, 2, begun)
            self.last.update(zip(devices, ends, strict=True))

    def _send(self, stage: int, to: int, turn: int, back: bool) -> None:
        if not 0 <= to < len(self.parts):
            return
        (d, h), (to_d, to_h) = self._degrees(stage), self._degrees(to)
        nbytes = self.parts[min(stage, to)][-1].sent_bytes / self.given.k
        found = self.arrived.setdefault((to, turn, back), {})
        if not self.given.inside:
            for i in range(d):
                for j in range(h):
                    ready = [self.last[stage % self.given.p, i, j]]
                    found[i, j] = self._message(stage, to, (i, j), ready, nbytes / d, 1)
            return
        ready = [self.last[each] for each in self._members(stage)]
        crossing = (d - 1) / d * nbytes + to_h * nbytes
        end = self._message(stage, to, (0, 0), ready, crossing, 2 if d > 1 else 1)
        found.update({(i, j): end for i in range(to_d) for j in range(to_h)})

    def _message(self, stage: int, to: int, pair: tuple[int, int], ready: Sequence[int],
                 nbytes: float, hops: int) -> int:  # fmt: skip
        key = (stage % self.given.p, to % self.given.p, *pair)
        begun = self.made.add(0.0, after=ready, latency_s=hops * self.machine.latency_s)
        before = [self.way[key]] if key in self.way else []
        self.way[key] = self.made.add(nbytes, after=(begun, *before), cap=self.machine.bytes_per_s)
        return self.way[key]

    # -- once a step -------------------------------------------------------------------------------

    def _replicas(self) -> None:
        if not self.model.trained:
            return
        given, model = self.given, self.model
        for q, (d, h) in enumerate(given.degrees):
            mine = [layer for s in range(q, len(self.parts), given.p) for layer in self.parts[s]]
            weights = sum(layer.weight_bytes for layer in mine) / h
            updated = (3 + 3 * model.states) * weights / (d if given.zero >= 1 else 1)
            for j in range(h):
                devices = [(q, i, j) for i in range(d)]
                ends = [self.last[each] for each in devices]
                if not given.overlap:
                    ends = self._ring(devices, weights, 1, ends)
                ends = [
                    self.made.add(updated / self.machine.stream_bytes_per_s, after=(end,), cap=1.0)
                    for end in ends
                ]
                self._ring(devices, weights, 2 if given.zero == 3 else 1, ends)

    def _layer_by_layer(self, device: Device, seconds: float) -> None:
        """The way back of one stage, each layer's sum begun behind it; the last device does it for
        all of its ring.
        """
        d, h = self._degrees(0)
        if device[1] < d - 1:
            return
        layers = self.model.layers
        alone = [self._roofline(0, [layer], back=True) for layer in layers]
        devices = [(0, i, device[2]) for i in range(d)]
        rings: list[int] | None = None
        for layer, each in zip(reversed(layers), reversed(alone), strict=True):
            for one in devices:
                part = seconds * each / (sum(alone) or 1.0)
                self.last[one] = self.made.add(part, after=(self.last[one],), cap=1.0)
            begun = [
                self.made.add(0.0, after=(self.last[one], *([rings[k]] if rings else [])))
                for k, one in enumerate(devices)
            ]
            rings = self._ring(devices, layer.weight_bytes / h, 1, begun)
        for k, one in enumerate(devices):
            assert rings is not None
            self.last[one] = self.made.add(0.0, after=(self.last[one], rings[k]))
