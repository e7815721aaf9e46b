"""Every body on ranks, against NumPy and the reference."""

from __future__ import annotations

import pytest

from avial_lab.runtime.launch.cluster import Cluster
from tests.differential.bodies import CASES
from tests.differential.cases import SMALL_TOO, Case, parametrised, try_case


@pytest.mark.quick("*-loop passes")
@pytest.mark.mpi
@pytest.mark.parametrize("sizes", ["", SMALL_TOO], ids=["as written", "loop passes"])
@parametrised(CASES)
def test_body(case: Case, sizes: str, cluster: Cluster) -> None:
    try_case(case, cluster, ranks=2, sizes=sizes)
