"""What a program of tasks is planned to move and to hold, beside what its run counts."""

from __future__ import annotations

import numpy as np
import pytest

import avial_lab
from avial_lab.runtime.launch.cluster import Cluster

TEXT = """
avial.schedule %x: memref<40x8xf32>, %y: memref<40x8xf32>, %z: memref<40x8xf32> {
  %cpu = avial.target {arch = "cpu"}
  %gpu = avial.target {arch = "gpu"}
  %a = avial.task %cpu, %x, %y {
    affine.for %i = 0 to 40 {
      affine.for %j = 0 to 8 {
        %v = affine.load %x[%i, %j] : memref<40x8xf32>
        affine.store %v, %y[%i, %j] : memref<40x8xf32>
      }
    }
  }
  %b = avial.task %gpu, %y, %z {
    affine.for %i = 0 to 40 {
      affine.for %j = 0 to 8 {
        %v = affine.load %y[%i, %j] : memref<40x8xf32>
        %w = arith.addf %v, %v : f32
        affine.store %w, %z[%i, %j] : memref<40x8xf32>
      }
    }
  }
}
"""


@pytest.mark.mpi
def test_moves_copies_and_bytes(cluster: Cluster) -> None:
    """Rank 0 holds x and y, its device's rank y and z; each array has 1280 bytes."""
    arrays = {name: np.ones((40, 8), np.float32) for name in "xyz"}
    program = avial_lab.compile(TEXT, arrays=arrays, ranks=2)
    plan = program.plan
    assert not program.of_loops
    assert [(m.phase, m.source, m.dest, m.nbytes) for m in plan.moves] == [("b", 0, 1, 1280)]
    assert [(c.source, c.dest, c.nbytes) for c in plan.copies] == [
        ("cpu1", "gpu0", 1280), ("gpu0", "cpu1", 1280),
    ]  # fmt: skip
    assert (plan.held_bytes, plan.device_bytes) == ((2560, 2560), (2560,))
    trace = program.run(cluster, check=True)
    untimed = program.run(cluster, trace=False)
    for each in (trace, untimed):
        assert (each.moves, each.copies) == (plan.moves, plan.copies)
        assert each.taken_bytes == plan.taken_bytes == (("gpu0", 2560),)
    assert not untimed.events
