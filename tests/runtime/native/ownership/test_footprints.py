"""What a plan keeps of each phase for people to look at: the boxes every rank touches."""

from __future__ import annotations

import numpy as np

import avial_lab
from avial_lab.artifact.plan import Footprint
from avial_lab.runtime.native.ownership import Use

HALO = """
func.func @halo(%A: memref<12xf64>, %B: memref<12xf64>, %s: memref<f64>) {
  affine.for %t = 0 to 3 {
    affine.for %i = 1 to 11 {
      %l = affine.load %A[%i - 1] : memref<12xf64>
      %r = affine.load %A[%i + 1] : memref<12xf64>
      %x = arith.addf %l, %r : f64
      affine.store %x, %B[%i] : memref<12xf64>
    }
    affine.for %i = 1 to 11 {
      %x = affine.load %B[%i] : memref<12xf64>
      affine.store %x, %A[%i] : memref<12xf64>
    }
  }
  affine.for %i = 0 to 12 {
    %x = affine.load %A[%i] : memref<12xf64>
    %o = affine.load %s[] : memref<f64>
    %n = arith.addf %o, %x : f64
    affine.store %n, %s[] : memref<f64>
  }
  return
}
"""


def footprints(ranks: int) -> tuple[Footprint, ...]:
    arrays = {"A": np.zeros(12), "B": np.zeros(12), "s": np.zeros(())}
    program = avial_lab.compile(HALO, arrays=arrays, ranks=ranks)
    assert program.plan is not None
    assert {s.name: s.shape for s in program.plan.storages} == {"A": (12,), "B": (12,), "s": ()}
    return program.plan.footprints


def test_every_rank_reads_its_halo_and_writes_its_block() -> None:
    """
    A  0 1 2 3 4 5 6 7 8 9 . .      S1 on 2 ranks: rank 0 computes B[1:6] from A[0:7]
       0 0 0 0 0 0 0                rank 1 computes B[6:11] from A[5:12]
                 1 1 1 1 1 1 1
    """
    found = footprints(2)
    first = [(f.rank, f.storage, f.use, str(f.box)) for f in found if f.phase == "S1"]
    written = [(rank, box) for rank, storage, use, box in first if use.writes]
    assert written == [(0, "[1:6]"), (1, "[6:11]")]
    for rank, low, high in ((0, 0, 7), (1, 5, 12)):
        read = [f for f in found if f.phase == "S1" and f.rank == rank and f.use is Use.READ]
        assert {i for f in read for i in range(f.box.start[0], f.box.stop[0])} == set(
            range(low, high)
        )


def test_each_phase_is_kept_once_in_order_and_reductions_are_said() -> None:
    found = footprints(3)
    assert list(dict.fromkeys(f.phase for f in found)) == ["S1", "S2", "S3"]
    sums = [f for f in found if f.use is Use.REDUCE]
    assert [(f.phase, f.rank, f.storage, f.box.size) for f in sums] == [
        ("S3", rank, "s", 1) for rank in range(3)
    ]


def test_of_more_than_16_ranks_nothing_is_kept() -> None:
    assert footprints(16)
    assert footprints(17) == ()
