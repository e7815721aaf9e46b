"""Recomputation: the same values, less memory; which values are kept under a cap."""

from __future__ import annotations

import pytest

from avial_lab.compiler.requests import Source
from avial_lab.compiler.worker.build import graph_of, parse
from avial_lab.compiler.worker.placed import ranks_of_tasks, schedule_on_ranks
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.errors import ScheduleError, VerifyError
from avial_lab.machine.topology import Topology
from avial_lab.planning.memory import held_bytes
from avial_lab.planning.schedule import Sync
from tests.compiler.passes.distir.divided import assert_divided_is_the_same
from tests.compiler.passes.distir.training_step import arrays_of, training_step

ROWS, WIDTHS = 7, (4, 4, 4, 4, 4)
slow = pytest.mark.slow


@pytest.mark.parametrize(
    "parallel",
    [
        "pipeline 2 x 3, recompute",
        pytest.param("data 2, pipeline 2 x 2 gpipe, recompute", marks=slow),
        pytest.param("pipeline 2 x 3, horizontal 2 w0:1, recompute w0", marks=slow),
        pytest.param("pipeline 3 x 2, recompute 100B", marks=slow),
    ],
)
def test_the_values_are_the_same(parallel: str) -> None:
    text = training_step(ROWS, WIDTHS)
    assert_divided_is_the_same(text, arrays_of(ROWS, WIDTHS), parallel, terms=256)


def held(parallel: str) -> tuple[int, ...]:
    """What each of two ranks holds, by the accesses of the tasks that would run."""
    text, arrays = training_step(ROWS, WIDTHS), arrays_of(ROWS, WIDTHS)
    source = Source(text, "t", bind_arrays(arrays), parallel=parallel)
    module = parse(source)
    graph, topology = graph_of(module, source), Topology.local(2)
    schedule = schedule_on_ranks(graph, topology, ranks_of_tasks(module), sync=Sync.EDGES)
    return held_bytes(schedule)


def test_less_is_held() -> None:
    """The first stage has two layers: of each row it keeps four numbers behind the first ReLU, and
    of both ReLUs whether they were positive (a byte each), for the way back. Two micro-batches are
    in flight, the first and third (of three rows) in one place, the second (of two) in another.
    """
    before, after = held("pipeline 2 x 3"), held("pipeline 2 x 3, recompute")
    flying = 3 + 2
    assert before[0] - after[0] == flying * (4 * 4 + 4 + 4)
    assert before[1] == after[1]  # the last stage goes back at once
    some = held(f"pipeline 2 x 3, recompute {ROWS * 8}B")
    assert some[0] - after[0] == flying * 8  # the positions; the numbers are cheap from them
    part = held("pipeline 2 x 3, recompute w1")
    assert after[0] < part[0] < before[0]


def test_nothing_to_recompute() -> None:
    source = Source(
        training_step(ROWS, WIDTHS), "t", bind_arrays(arrays_of(ROWS, WIDTHS)),
        parallel="pipeline 2 x 2, recompute w9",
    )  # fmt: skip
    with pytest.raises(VerifyError, match="there is no tensor %w9"):
        parse(source)
    with pytest.raises(ScheduleError, match="says nothing to recompute"):
        parse(Source(source.text, "t", source.binding, parallel="recompute 2MB w0"))
    forward = "func.func @f(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {\n  %y = math.tanh %x : tensor<4x3xf32>\n  return %y : tensor<4x3xf32>\n}"  # noqa: E501
    arrays = {"x": arrays_of(4, (3, 3))["x"]}
    with pytest.raises(ScheduleError, match="there is nothing to compute again"):
        parse(Source(forward, "t", bind_arrays(arrays), parallel="data 2, recompute"))
