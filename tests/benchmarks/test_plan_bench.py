"""The planner's bench measures what it says: whole graphs, every message, nothing in circles."""

from __future__ import annotations

import numpy as np

from avial_lab.benchmarks.plan_bench import PREDECESSORS, random_activities
from avial_lab.planning.simulator.activities import simulate


def test_every_activity_of_the_random_graphs_runs() -> None:
    made = random_activities(200, 8)
    times = simulate(made)
    assert len(made) == 200 + 199 * PREDECESSORS
    assert times.events == 2 * len(made)
    assert times.makespan_s > 0
    for k in range(len(made)):
        waits = made.after[made.after_begin[k] : made.after_begin[k + 1]]
        assert times.ready_s[k] == max(times.end_s[waits], default=0.0)
    used = np.diff(made.use_begin)
    assert set(used.tolist()) == {0, 2}
