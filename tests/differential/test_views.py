"""Random windows of arrays, read and written, on one rank and on two, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import avial_lab
from avial_lab.runtime.launch.cluster import Cluster
from tests.differential.views import FORMS, Cut, ViewCase, Window, case, windows
from tests.quick import examples

forms, counts = st.sampled_from(FORMS), st.integers(1, 2)

OPEN_SIZE = Window(
    (
        Cut(5, 2, 1, 2, 0, dropped=False, open_extent=True, open_offset=True, open_size=True),
        Cut(3, 0, 1, 1, 0, dropped=False, open_extent=False, open_offset=True, open_size=False),
    )
)
"""Inserted, the result's size is known only where the loop's tensors share %A's memory."""

STEP_OF_ONE = Window(
    (
        Cut(4, 1, 1, 1, 1, dropped=True, open_extent=False, open_offset=True, open_size=False),
        Cut(1, 0, 1, 2, 0, dropped=False, open_extent=False, open_offset=True, open_size=False),
    )
)
STEPS_OF_OPEN_ONES = Window(
    (
        Cut(3, 2, 1, 1, 0, dropped=True, open_extent=True, open_offset=True, open_size=False),
        Cut(6, 2, 1, 2, 1, dropped=False, open_extent=False, open_offset=True, open_size=True),
        Cut(4, 1, 1, 2, 0, dropped=False, open_extent=False, open_offset=False, open_size=True),
        Cut(2, 0, 2, 1, 0, dropped=False, open_extent=False, open_offset=False, open_size=True),
    )
)
SINGLE_ELEMENT = Window(
    (
        Cut(4, 2, 1, 1, 0, dropped=True, open_extent=False, open_offset=False, open_size=False),
        Cut(4, 0, 1, 1, 1, dropped=False, open_extent=False, open_offset=False, open_size=False),
        Cut(3, 0, 1, 2, 0, dropped=False, open_extent=False, open_offset=False, open_size=False),
    )
)
STEPS_IN_MEMORY = Window(
    (
        Cut(3, 1, 1, 2, 1, dropped=True, open_extent=True, open_offset=True, open_size=False),
        Cut(4, 2, 1, 2, 0, dropped=False, open_extent=False, open_offset=True, open_size=True),
    )
)
"""Steps of 2 between the elements of slices of one, which MLIR takes for another layout."""

UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""Each try is a second: the first program that fails is short enough."""


def check(found: ViewCase, cluster: Cluster, ranks: int) -> None:
    arrays = {name: array.copy() for name, array in found.arrays.items()}
    program = avial_lab.compile(found.text, arrays=arrays, ranks=ranks)
    program.run(cluster, check=True)
    for name, values in found.want.items():
        np.testing.assert_array_equal(np.asarray(program.arrays[name]), values, found.text)


@pytest.mark.mpi
@settings(max_examples=examples(10), deadline=None, phases=UNSHRUNK)
@given(windows, forms, counts)
@example(OPEN_SIZE, "inserted", 2)
@example(STEP_OF_ONE, "inserted", 2)
@example(STEPS_OF_OPEN_ONES, "extracted", 2)
@example(STEPS_IN_MEMORY, "stored", 1)
@example(SINGLE_ELEMENT, "in a task", 2)
def test_windows(cluster: Cluster, window: Window, form: str, ranks: int) -> None:
    check(case(window, form), cluster, ranks)


@pytest.mark.mpi
@pytest.mark.slow
@settings(max_examples=examples(500), deadline=None, phases=UNSHRUNK)
@given(windows, forms, counts)
def test_many_windows(cluster: Cluster, window: Window, form: str, ranks: int) -> None:
    check(case(window, form), cluster, ranks)
