"""What dist-to-runtime makes of divided memory: against NumPy, in this process; on several ranks:
`tests/ptensor/test_dist.py`.
"""

from __future__ import annotations

import numpy as np

from avial_lab.compiler.passes.ptensor.dist_to_runtime import DistToRuntime
from tests.compiler.passes.golden import cases_of, computed

CASES = cases_of("dist_to_runtime")
ROWS = np.random.default_rng(0).standard_normal((5, 4)) * 10.0 ** np.arange(5)[:, None]
LINE = np.arange(1.0, 10.0)


def test_partial_results_are_combined_in_pairs() -> None:
    _, total = computed(CASES["partial"], (DistToRuntime(),), given={0: ROWS})
    a, b, c, d, e = ROWS
    np.testing.assert_array_equal(total, ((a + b) + (c + d)) + e)


def test_a_copy_within_an_array_reads_what_was_there_before() -> None:
    (moved,) = computed(CASES["moved"], (DistToRuntime(),), given={0: LINE})
    np.testing.assert_array_equal(moved, [LINE[0], *LINE[:-1]])


def test_a_view_of_a_view() -> None:
    _, copied = computed(CASES["between"], (DistToRuntime(),), given={0: LINE})
    np.testing.assert_array_equal(copied, LINE[1::2][1::2])


def test_memory_that_is_allocated_and_reduced_in_place() -> None:
    given = ROWS[:2, :3]
    _, found = computed(CASES["allocated"], (DistToRuntime(),), given={0: given.copy()})
    np.testing.assert_array_equal(found, [given.max(axis=0), given[1]])


def test_each_rank_has_its_block() -> None:
    _, shapes = computed(CASES["shapes"], (DistToRuntime(),))
    assert shapes.tolist() == [[(r + 1) * 9 // 4 - r * 9 // 4, 3] for r in range(4)]
