"""Whole programs on several numbers of ranks, both ways to synchronise."""

from __future__ import annotations

import pytest

from avial_lab.runtime.launch.cluster import Cluster
from tests.differential.cases import Case, parametrised, try_case
from tests.differential.programs import CASES


@pytest.mark.quick("*-7-edges", "a diamond*")
@pytest.mark.mpi
@pytest.mark.parametrize(("ranks", "sync"), [(3, "levels"), (7, "edges")])
@parametrised(CASES)
def test_program(case: Case, ranks: int, sync: str, cluster: Cluster) -> None:
    try_case(case, cluster, ranks=ranks, sync=sync)
