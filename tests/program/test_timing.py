"""Times of a few runs: each on the same arrays, in turn, and none where no rank ran."""

from __future__ import annotations

import numpy as np
import pytest

import avial_lab
from avial_lab.core.errors import RunError
from avial_lab.machine.topology import Topology
from avial_lab.program.reference_run import OneProcess
from avial_lab.program.timing import Timing, timed

TEXT = """
func.func @add(%x: memref<64xi32>, %y: memref<64xi32>) {
  affine.for %i = 0 to 64 {
    %a = affine.load %x[%i] : memref<64xi32>
    %b = affine.load %y[%i] : memref<64xi32>
    %c = arith.addi %a, %b : i32
    affine.store %c, %y[%i] : memref<64xi32>
  }
  return
}
"""


def program() -> avial_lab.Program:
    x, y = np.arange(64, dtype=np.int32), np.ones(64, np.int32)
    x.flags.writeable = False
    return avial_lab.compile(TEXT, arrays={"x": x, "y": y}, ranks=1)


@pytest.mark.mpi
def test_every_run_finds_the_same_arrays(cluster: avial_lab.Cluster) -> None:
    one, other = program(), program()
    first, second = timed(one, other, on=cluster, runs=3, enough_s=0)
    for each, timing in ((one, first), (other, second)):
        assert (each.arrays["y"] == np.arange(1, 65)).all()  # added once, not three times
        assert len(timing.seconds) == 3
        assert timing.best_s == min(timing.seconds) > 0
        assert timing.threads == each.trace.threads  # type: ignore[union-attr]
        assert each.trace.makespan_s in timing.seconds  # type: ignore[union-attr]
        assert timing.label == "measured"


@pytest.mark.mpi
def test_programs_that_share_an_array_do_not_disturb_each_other(
    cluster: avial_lab.Cluster,
) -> None:
    one = program()
    other = avial_lab.compile(TEXT, arrays=one.arrays, ranks=1, without="all")
    timed(one, other, one, on=cluster, runs=2)
    assert (one.arrays["y"] == np.arange(1, 65)).all()


@pytest.mark.mpi
def test_short_runs_are_repeated(cluster: avial_lab.Cluster) -> None:
    """It takes microseconds, so that all repeats together are not enough; and no more of them."""
    (timing,) = timed(program(), on=cluster, runs=2, enough_s=60.0)
    assert len(timing.seconds) == 20
    (timing,) = timed(program(), on=cluster, runs=2, enough_s=1e-9)
    assert len(timing.seconds) == 2


def test_without_ranks_there_are_values_and_no_times() -> None:
    nowhere = OneProcess("MPI could not start: no mpiexec", Topology.local(1, gpus=0))
    one = program()
    (timing,) = timed(one, on=nowhere)
    assert (one.arrays["y"] == np.arange(1, 65)).all()
    assert timing.seconds == ()
    assert timing.best_s is None
    assert str(timing) == (
        "no time: reference run, one process: MPI could not start: no mpiexec"
    )  # fmt: skip


def test_it_says_how_it_was_measured() -> None:
    timing = Timing((0.0031, 0.002), "measured", (2,), "why so few")
    assert str(timing) == "2 ms, the best of 2 runs (the longest: 3.1 ms), 2 threads; why so few"


def test_no_runs_are_refused() -> None:
    with pytest.raises(RunError, match="0 runs cannot be timed"):
        timed(program(), runs=0)
