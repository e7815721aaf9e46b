"""Engines for structured programs: as many as the largest of them wants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from avial_lab.core.toolchain import find_tool

if TYPE_CHECKING:
    from avial_lab.runtime.launch.cluster import Cluster

MOST_RANKS = 7


@pytest.fixture(scope="session", autouse=True)
def _tools() -> None:
    if find_tool("cc") is None:
        pytest.skip("no C compiler: neither the runtime nor the programs can be built")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Engines that every test shares; a test may cost them, the next one gets fresh ones."""
    pytest.importorskip("mpi4py", reason="no mpi4py: there are no ranks to run on")
    pytest.importorskip("ipyparallel", reason="no ipyparallel: there is no cluster to run on")
    from avial_lab.runtime.launch.cluster import Cluster

    with Cluster.start(cpu=MOST_RANKS, gpu=0) as started:
        yield started
