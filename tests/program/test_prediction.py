"""A program's run, predicted: bytes and order are the run's, seconds have a source."""

from __future__ import annotations

import numpy as np
import pytest

import avial_lab
from avial_lab.core.errors import AvialError
from avial_lab.lessons.demo import deck_text
from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import CostSource
from avial_lab.program.program import Program
from avial_lab.trace import EventKind, Trace


def _deck(ranks: int = 2) -> Program:
    arrays = {name: np.zeros(20, np.int32) for name in "abcd"}
    return avial_lab.compile(deck_text(), arrays=arrays, ranks=ranks)


def _steps(trace: Trace, rank: int) -> list[tuple[EventKind, str]]:
    """In the order of their ends: a copy from a device is begun before the task there is over. The
    end of a message that takes no time is not measured.
    """
    events = sorted(trace.events, key=lambda event: event.end_s)
    return [(e.kind, e.name) for e in events if e.rank == rank and "is sent" not in e.name]


@pytest.mark.mpi
def test_a_run_is_as_it_was_simulated() -> None:
    program = _deck()
    compared = program.compare(runs=1)
    predicted, measured = compared.predicted, compared.measured
    assert predicted.label == "simulated on this machine, GPU emulated"
    assert predicted.bytes_sent == measured.bytes_sent == 80
    for rank in range(2):
        assert _steps(predicted, rank) == _steps(measured, rank)
    assert {task.name for task in compared.tasks} == {"task1", "task2", "task3"}
    # The run is remembered: what is predicted now comes from it.
    costs, topology = program.costs(), program.schedule.topology
    for placed in program.schedule.placements:
        task = program.graph.by_name[placed.task]
        cost = costs.of(task, topology.device(placed.device), program.graph, topology)
        assert cost.source is CostSource.PROFILE


def test_another_machine_places_it_anew() -> None:
    program = _deck(ranks=1)
    assert program.simulate().ranks == 1
    assert program.simulate(Topology.local(3, gpus=1)).ranks == 3


def test_loops_are_refused_with_the_reason() -> None:
    text = """
      func.func @f(%A: memref<8xf64>) {
        affine.for %i = 0 to 8 {
          %x = affine.load %A[%i] : memref<8xf64>
          affine.store %x, %A[%i] : memref<8xf64>
        }
        return
      }
    """
    program = avial_lab.compile(text, arrays={"A": np.zeros(8)})
    with pytest.raises(AvialError, match="programs of loops are not simulated yet"):
        program.simulate()
