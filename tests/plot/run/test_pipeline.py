"""The picture of a divided function: its tasks by micro-batch, and what ranks hold meanwhile."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

import pytest

from avial_lab.compiler.requests import Foresee, Source
from avial_lab.compiler.worker.layers import foresee
from avial_lab.core.buffers import bind_arrays
from avial_lab.machine.topology import Topology
from avial_lab.planning.foreseen import Foreseen, Way
from avial_lab.planning.memory import held_bytes
from avial_lab.planning.model_costs import Machine
from avial_lab.planning.model_search import search_model
from avial_lab.plot.run.pipeline import memory_table, pipeline_svg
from avial_lab.plot.views.parallel import parallel_data, picked_data
from tests.compiler.passes.distir.training_step import arrays_of, training_step
from tests.planning.test_model_search import MODEL

ROWS, WIDTHS = 6, (4, 4, 4)


@pytest.fixture(scope="module")
def foreseen() -> Foreseen:
    """Two stages, three micro-batches."""
    text, arrays = training_step(ROWS, WIDTHS), arrays_of(ROWS, WIDTHS)
    source = Source(text, "t", bind_arrays(arrays), parallel="pipeline 2 x 3 1f1b")
    return foresee(Foresee(source, Topology.local(2)))


def test_tasks_know_what_they_are_of_the_pipeline(foreseen: Foreseen) -> None:
    """The first stage goes forth and back with each micro-batch, the last turns round."""
    told = Counter((turn.stage, turn.way) for turn in foreseen.turns.values())
    assert told == {(0, Way.FORTH): 3, (0, Way.BACK): 3, (1, Way.BOTH): 3}
    assert {turn.number for turn in foreseen.turns.values()} == {0, 1, 2}


def test_memory_over_time_ends_with_what_is_held(foreseen: Foreseen) -> None:
    assert foreseen.peaks == held_bytes(foreseen.schedule)
    for steps in foreseen.held:
        assert [step.nbytes for step in steps] == sorted({step.nbytes for step in steps})
    assert "x 96 B" in memory_table(foreseen).to_text()


def test_the_picture_has_every_task(foreseen: Foreseen) -> None:
    drawn = picked_data(foreseen, "pipeline <b>")
    picture = ElementTree.fromstring(drawn["picture"])
    kinds = Counter(each.get("data-kind") for each in picture.iter())
    assert kinds["task"] == len(foreseen.schedule.graph.tasks)
    assert kinds["held"] == sum(map(len, foreseen.held))
    assert "<b>" not in drawn["picture"]
    assert len(re.findall("micro-batch 2, stage 0", drawn["picture"])) == 2
    assert any("mesh" in line for line in drawn["told"])
    assert "Hidden" not in pipeline_svg(foreseen, title="t")


def test_rows_of_the_page() -> None:
    found = search_model(MODEL, 12, Machine(1000.0, float("inf"), 0.0, float("inf")))
    data = parallel_data(found, "mine")
    feasible = [row["feasible"] for row in data["rows"]]
    assert feasible == sorted(feasible, reverse=True)
    reasons = {row["words"]: row["cells"][-1] for row in data["rows"]}
    assert reasons["data 12"] == "12 devices for 8 rows of a batch"
    assert all(len(row["cells"]) + 1 == len(data["columns"]) for row in data["rows"])
