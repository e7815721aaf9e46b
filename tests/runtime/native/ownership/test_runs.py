"""Structured programs on ranks: what they compute, and that exactly what was planned moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from avial_lab.runtime.launch import cluster as clusters
from avial_lab.runtime.rank.job import Options
from tests.runtime.native.ownership.cases import CASES

if TYPE_CHECKING:
    from avial_lab.runtime.launch.cluster import Cluster

RANKS = (1, 2, 3, 4, 7)
DEPEND_ON_DATA = {"loop_until_the_data_say_so", "element_the_data_choose"}

pytestmark = pytest.mark.mpi


@pytest.mark.quick("*-3", "*-7")
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", CASES)
def test_same_as_numpy_and_as_planned(name: str, ranks: int, cluster: Cluster) -> None:
    case = CASES[name]
    arrays, want = case.make(), case.make()
    case.meaning(want, ranks)
    plan = case.program.plan(arrays, ranks)
    trace = clusters.run(
        case.program.binary(arrays, ranks), arrays, cluster,
        options=Options(traced=False, poison=True),
    )  # fmt: skip
    for array in case.program.arrays:
        if array not in case.program.temporary:
            np.testing.assert_array_equal(arrays[array], want[array], err_msg=array)
    assert plan.complete == (name not in DEPEND_ON_DATA)
    if plan.complete:
        assert set(trace.moves) == set(plan.moves)
    if ranks == 1:
        assert not trace.moves
