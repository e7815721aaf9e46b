"""Random functions of long rows, on threads and ranks, against the reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avial_lab.runtime.launch.cluster import Cluster
from tests.nests import WHOLE_PROGRAMS
from tests.nests.rows import long_rows
from tests.nests.sweeps import Sweeps
from tests.quick import examples
from tests.runtime.test_random_sweeps import DEVICES, check

QUICK = settings(WHOLE_PROGRAMS, max_examples=examples(8))
THOROUGH = settings(QUICK, max_examples=examples(400))


@pytest.mark.mpi
@QUICK
@given(function=long_rows(), devices=DEVICES, strict=st.booleans())
def test_a_run_is_what_the_reference_says(
    cluster: Cluster, function: Sweeps, devices: tuple[int, int], strict: bool
) -> None:
    check(cluster, function, "model", devices, strict=strict)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(3600)
@THOROUGH
@given(function=long_rows(), devices=DEVICES, strict=st.booleans())
def test_many_runs_are_what_the_reference_says(
    cluster: Cluster, function: Sweeps, devices: tuple[int, int], strict: bool
) -> None:
    check(cluster, function, "model", devices, strict=strict)
