"""Seven ranks for programs that nobody here has written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from avial_lab.runtime.launch.cluster import Cluster


@pytest.fixture(scope="session")
def seven_ranks() -> Iterator[Cluster]:
    with Cluster.start(cpu=6, gpu=1) as cluster:
        yield cluster
