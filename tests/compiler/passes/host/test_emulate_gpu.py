"""Kernels as loops: every thread of every block, and barriers between what they share."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.compiler.passes.host.emulate_gpu import EmulateGpu
from tests.compiler.passes.golden import cases_of, computed

CASES = cases_of("emulate_gpu")


@pytest.mark.parametrize("blocks", [1, 3])
def test_every_thread_of_every_block(blocks: int) -> None:
    given = {0: np.full(20, -1), 1: np.int64(blocks)}
    (got,) = computed(CASES["simple"], (EmulateGpu(),), given=given)
    assert got.tolist() == [5 * (blocks - 1) + t for t in range(5)] + [-1] * 15


def test_what_others_stored_before_the_barrier() -> None:
    a = np.arange(20, dtype=np.int32) ** 2
    (got,) = computed(CASES["barrier"], (EmulateGpu(),), given={0: a, 1: np.int64(3)})
    assert got[:2].tolist() == [a[0] + a[1], a[1] + a[2]]  # the third reads what nobody wrote
    assert got[3:].tolist() == a[3:].tolist()


def test_a_dropped_barrier_is_found() -> None:
    a = np.arange(20, dtype=np.int32) ** 3 + 7  # what no run before left in memory
    without = CASES["barrier"].replace("    gpu.barrier\n", "")
    assert without != CASES["barrier"]
    for case, is_right in ((without, False), (CASES["barrier"], True)):
        (got,) = computed(case, (EmulateGpu(),), given={0: a.copy(), 1: np.int64(3)})
        assert (got[:2].tolist() == [a[0] + a[1], a[1] + a[2]]) == is_right
