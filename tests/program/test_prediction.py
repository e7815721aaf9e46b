"""A program's run, predicted: bytes and order are the run's, seconds have a source."""

from __future__ import annotations

import numpy as np
import pytest

import avial_lab
from avial_lab.benchmarks.kernel_suite import kernel_program
from avial_lab.core.errors import AvialError
from avial_lab.core.runtime_constants import PAGE
from avial_lab.lessons.demo import deck_text
from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import CostSource
from avial_lab.planning.profile import Profile
from avial_lab.planning.what_if import Change
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
    # At another size as far off the model as here.
    other = avial_lab.compile(
        deck_text().replace("20", "60"),
        arrays={name: np.zeros(60, np.int32) for name in "abcd"},
        ranks=2,
    )
    assert {*other._sources().values()} == {CostSource.SCALED.value}
    for said, held in zip(predicted.held_bytes, measured.held_bytes, strict=True):
        assert said <= held < said + PAGE  # four arrays of 80 bytes lie in pages that others touch


def test_another_machine_places_it_anew() -> None:
    program = _deck(ranks=1)
    assert program.simulate().ranks == 1
    assert program.simulate(Topology.local(3, gpus=1)).ranks == 3


UNTIL = """
  func.func @f(%A: memref<64xf64>, %n: memref<i64>) {
    %one = arith.constant 1 : i64
    %most = arith.constant 5 : i64
    scf.while : () -> () {
      %v = memref.load %n[] : memref<i64>
      %more = arith.cmpi slt, %v, %most : i64
      scf.condition(%more)
    } do {
      affine.for %i = 0 to 64 {
        %x = affine.load %A[%i] : memref<64xf64>
        %y = arith.addf %x, %x : f64
        affine.store %y, %A[%i] : memref<64xf64>
      }
      %v = memref.load %n[] : memref<i64>
      %w = arith.addi %v, %one : i64
      memref.store %w, %n[] : memref<i64>
      scf.yield
    }
    return
  }
"""
"""The loop ends where the data say so."""


def _until() -> Program:
    arrays = {"A": np.ones(64), "n": np.zeros((), np.int64)}
    return avial_lab.compile(UNTIL, arrays=arrays, ranks=2)


@pytest.mark.mpi
def test_where_data_decide_the_last_run_says_how_often() -> None:
    program = _until()
    assumed = program.simulate()
    assert dict(assumed.turns)["S1"] == 2
    assert "control depends on data: 2 iterations" in assumed.note
    assert dict(program.simulate(trips=9).turns)["S1"] == 9
    measured = program.run(threads=1)
    again = program.simulate()
    assert again.turns == measured.turns
    assert again.note.endswith("as in the last run")
    compared = program.compare(measured)
    assert compared.tasks_of == "phase"
    assert {task.source for task in compared.tasks} >= {"guessed"}
    assert program.explain() is not None


def test_impossible_trips_are_refused() -> None:
    with pytest.raises(AvialError, match="trips must be from 1"):
        _until().simulate(trips=0)


DOUBLED = """
  func.func @f(%A: memref<4096xf64>) {
    affine.for %i = 0 to 4096 {
      %x = affine.load %A[%i] : memref<4096xf64>
      %y = arith.addf %x, %x : f64
      affine.store %y, %A[%i] : memref<4096xf64>
    }
    return
  }
"""


def test_a_program_of_loops_on_a_machine_that_nobody_has() -> None:
    program = avial_lab.compile(DOUBLED, arrays={"A": np.zeros(4096)})
    trace = program.simulate("preset:fat-tree-1024")
    assert trace.ranks == 1024
    assert trace.label == "simulated on a fat tree of 1,024 nodes"
    assert program.simulate().ranks == 2


def test_scaling_tells_where_more_ranks_stop_paying() -> None:
    made = kernel_program("jacobi-1d", size="SMALL", element="f64", numbers={}, seed=0)
    program = avial_lab.compile(made.text, arrays=made.arrays, scalars=made.scalars)
    scaling = program.scaling([1, 2, 64], topology="preset:fat-tree-1024")
    assert [point.ranks for point in scaling.points] == [1, 2, 64]
    assert scaling.points[0].compute > 0
    assert scaling.stops_at is not None
    assert "hardly pay" in scaling.why
    with pytest.raises(AvialError, match="2,000 ranks asked for of a machine of 1,024"):
        program.scaling([2000], topology="preset:fat-tree-1024")


def test_a_run_scales_all_points_of_a_curve_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured is of one number of ranks: alone, it would bend the curve there."""
    text = DOUBLED.replace("4096", str(1 << 20))
    program = avial_lab.compile(text, arrays={"A": np.zeros(1 << 20)}, ranks=1)
    before = program.scaling([1, 2])
    assert ", by the roofline" in str(before)
    here = program.schedule.topology
    taken = 100 * before.points[0].makespan_s
    phase = next(iter(program.simulate().totals)).phase
    monkeypatch.setattr(Profile, "seconds", {(phase, "cpu0"): taken})
    after = program.scaling([1, 2])
    assert ", by what earlier runs took" in str(after)
    assert after.points[0].makespan_s == program.simulate().makespan_s
    assert after.points[0].makespan_s == pytest.approx(taken, rel=0.01)
    assert after.speedup(after.points[1]) == pytest.approx(before.speedup(before.points[1]), 0.1)
    asked = program.predicted_on_changes(here)
    assert asked(here).makespan_s == after.points[0].makespan_s
    faster = Change(speed=4.0, memory=4.0).of(here)
    assert asked(faster).makespan_s == pytest.approx(taken / 4, rel=0.01)


def test_tasks_scale_by_their_placement() -> None:
    with pytest.raises(AvialError, match="as fast as its placement"):
        _deck().scaling()


def test_loops_on_devices_are_predicted_on_other_machines_too() -> None:
    arrays = {"A": np.zeros(4096)}
    program = avial_lab.compile(DOUBLED, arrays=arrays, ranks=2, on="gpu")
    for machine, gpus in ((None, 2), (Topology.local(3, gpus=3), 3)):
        trace = program.simulate(machine)
        computed = {e.device for e in trace.events if e.kind is EventKind.TASK}
        assert computed == {f"gpu{k}" for k in range(gpus)}
        assert sum(c.nbytes for c in trace.copies if c.source.startswith("cpu")) == 4096 * 8
