"""Random programs of some and of hundreds of tasks, on one to seven ranks."""

from __future__ import annotations

import pytest

from avial_lab.runtime.launch.cluster import Cluster
from tests.differential.cases import SMALL_TOO, try_case
from tests.differential.generator import random_case


@pytest.mark.quick("0", "7", "10")
@pytest.mark.mpi
@pytest.mark.parametrize("seed", range(14))
def test_some_tasks(seed: int, cluster: Cluster) -> None:
    sync = ("edges", "levels")[seed // 7]
    case = random_case(seed, 12)
    on = {"gpus": 1 + seed % 3, "device_seed": seed}
    try_case(case, cluster, ranks=1 + seed % 7, sync=sync, sizes=SMALL_TOO, **on)


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("ranks", "sync"), [(7, "edges"), pytest.param(4, "levels", marks=pytest.mark.slow)]
)
def test_two_hundred_tasks(ranks: int, sync: str, cluster: Cluster) -> None:
    try_case(random_case(ranks, 200), cluster, ranks=ranks, sync=sync)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(8))
def test_many_programs(part: int, cluster: Cluster) -> None:
    for seed in range(100 + 50 * part, 150 + 50 * part):
        sync, sizes = ("edges", "levels")[seed % 2], ("", SMALL_TOO)[seed // 2 % 2]
        case = random_case(seed, 5 + seed % 40)
        on = {"gpus": 1 + seed % 5, "device_seed": seed % 4}
        try_case(case, cluster, ranks=1 + seed % 7, sync=sync, sizes=sizes, **on)
