"""The tasks of a divided step, simulated as they would run, against the closed form's passes: their
order and who waits for whom are the compiler's, seconds are given, messages take next to nothing.
"""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.compiler.requests import Source
from avial_lab.compiler.worker.build import graph_of, parse
from avial_lab.compiler.worker.placed import ranks_of_tasks, schedule_on_ranks, turns_of_tasks
from avial_lab.core.buffers import bind_arrays
from avial_lab.machine.topologies import topology_called
from avial_lab.planning.costs import Costs
from avial_lab.planning.foreseen import Way
from avial_lab.planning.schedule import Sync
from avial_lab.planning.simulator.pipelines import Order, PassTimes, ends_s
from avial_lab.planning.simulator.ranks import simulated
from tests.compiler.passes.distir.training_step import arrays_of, training_step

ORDERS = {
    "1f1b": Order.ALTERNATING, "gpipe": Order.GPIPE, "interleaved 2": Order.ALTERNATING,
}  # fmt: skip
CASES = [
    (schedule, devices, turns, degrees)
    for schedule in ORDERS
    for devices, turns in ((2, 2), (2, 3), (3, 4), (4, 7))
    for degrees in ("", ", data 2")
    if not (degrees and (devices > 3 or schedule == "interleaved 2"))
]


@pytest.mark.quick("1f1b-3-4-")
@pytest.mark.parametrize(("schedule", "devices", "turns", "degrees"), CASES)
def test_tasks_take_what_passes_take(schedule: str, devices: int, turns: int, degrees: str) -> None:
    stages = devices * (2 if schedule.startswith("interleaved") else 1)
    widths = (4,) * (stages + 1)
    arrays = arrays_of(14, widths)
    parallel = f"pipeline {devices} x {turns} {schedule}{degrees}"
    source = Source(training_step(14, widths), "t", bind_arrays(arrays), parallel=parallel)
    module = parse(source)
    graph, ranks = graph_of(module, source), ranks_of_tasks(module)
    topology = topology_called("preset:8-gpu-node").first(1 + max(ranks.values()))
    made = schedule_on_ranks(graph, topology, ranks, sync=Sync.EDGES)

    rng = np.random.default_rng(turns)
    forward, backward = rng.uniform(1e6, 9e6, (2, stages))
    turn_of = turns_of_tasks(module)
    seconds = dict.fromkeys(graph.by_name, 0.0)
    for name, turn in turn_of.items():
        seconds[name] += forward[turn.stage] * (turn.way is not Way.BACK)
        seconds[name] += backward[turn.stage] * (turn.way is not Way.FORTH)
    found = simulated(made, Costs(given=seconds)).makespan_s

    none = np.zeros((1, stages))
    times = PassTimes(forward[None], backward[None], none, none, none, none, none)
    order = np.array([ORDERS[schedule]], np.int32)
    ends = ends_s(devices, np.array([turns]), order, times)
    assert found == pytest.approx(float(ends.max()), rel=1e-9)
