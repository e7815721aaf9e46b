"""What is told of moves is what is moved: the bytes of the report are those of the schedule, or
more where nobody reads what a device then has (the copies of updated weights).
"""

from __future__ import annotations

import re

import pytest

from avial_lab.compiler.analysis.placements.report import moved_elements
from avial_lab.compiler.requests import Source
from avial_lab.compiler.worker.build import graph_of, parse
from avial_lab.compiler.worker.placed import ranks_of_tasks, schedule_on_ranks, told_of_division
from avial_lab.core.buffers import bind_arrays
from avial_lab.machine.topology import Topology
from avial_lab.planning.schedule import Sync
from avial_lab.planning.tensor_placement import Along, Mesh, Placement
from tests.compiler.passes.distir.training_step import arrays_of, training_step

UNITS = {"B": 1, "KiB": 1024}


def placed(mesh: Mesh, text: str) -> Placement:
    return Placement(mesh, tuple(Along.parse(each.strip()) for each in text.split(",")))


@pytest.mark.parametrize(
    ("have", "made", "elements"),
    [
        ("sum", "copy", 2 * 2 * 12),  # a ring and a gather: 2 (n - 1) / n of it for each of n = 3
        ("sum", "split 0", 2 * 12),
        ("split 0", "copy", 2 * 12),
        ("split 0", "split 1", 8),
        ("copy", "split 0", 0),
    ],
)
def test_moves_of_twelve_elements(have: str, made: str, elements: int) -> None:
    mesh = Mesh("m", (3,), (0, 1, 2))
    assert moved_elements([3, 4], placed(mesh, have), placed(mesh, made)) == elements
    twice = Mesh("m", (3,), (0, 1, 2), turns=2)
    first, second = placed(twice, f"{have}, split 1"), placed(twice, f"{made}, split 1")
    if "split 1" not in made:
        assert moved_elements([3, 4], first, second) == elements


@pytest.mark.parametrize(
    ("parallel", "all_read"),
    [("data 3", False), ("pipeline 2 x 3", True)],
)
def test_bytes_told_are_bytes_sent(parallel: str, all_read: bool) -> None:
    widths = (6, 6, 6, 6)
    arrays = arrays_of(6, widths)
    source = Source(training_step(6, widths), "test", bind_arrays(arrays), parallel=parallel)
    module = parse(source)
    told = re.findall(r"up to ([\d.]+) (B|KiB) sent", "\n".join(told_of_division(module.operation)))
    assert told
    said = sum(float(number) * UNITS[unit] for number, unit in told)
    ranks = ranks_of_tasks(module)
    topology = Topology.local(1 + max(ranks.values()))
    schedule = schedule_on_ranks(graph_of(module, source), topology, ranks, sync=Sync.EDGES)
    sent = sum(transfer.nbytes for transfer in schedule.transfers)
    assert 0 < sent <= said * 1.01
    assert sent == pytest.approx(said, rel=0.01) or not all_read
