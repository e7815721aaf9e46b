"""What lower-ptensor makes of recorded programs, on one rank, in this process; on several ranks:
`tests/ptensor`.
"""

from __future__ import annotations

import numpy as np

from avial_lab.compiler.passes.ptensor.lower_ptensor import LowerPtensor
from tests.compiler.passes.golden import cases_of, computed


def test_a_sum_of_products_of_neighbours() -> None:
    given = np.arange(1.0, 10.0)
    _, total = computed(cases_of("lower_ptensor")["fused"], (LowerPtensor(),), given={0: given})
    assert total == (given[:-1] * given[1:]).sum()


def test_an_array_that_is_moved_within_itself() -> None:
    given = np.arange(1.0, 10.0)
    (moved,) = computed(cases_of("lower_ptensor")["assigned"], (LowerPtensor(),), given={0: given})
    want = np.concatenate([given[:1], given[:-1]])
    np.testing.assert_array_equal(moved, want + want)
