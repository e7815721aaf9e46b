"""Ranks for the tests of programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from avial_lab.runtime.launch.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    pytest.importorskip("ipyparallel", reason="no ipyparallel: there is no cluster to run on")
    from avial_lab.runtime.launch.cluster import Cluster

    with Cluster.start(cpu=2) as started:
        yield started
