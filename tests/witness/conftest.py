"""Ranks for programs that are compared with what the interpreter says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from avial_lab.runtime.launch.cluster import Cluster


@pytest.fixture(scope="session")
def four_ranks() -> Iterator[Cluster]:
    with Cluster.start(cpu=3, gpu=1) as cluster:
        yield cluster
