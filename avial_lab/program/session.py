"""The cluster of this session: the one that `%avial cluster start` started, which runs that name no
other use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avial_lab.core.errors import ClusterError

if TYPE_CHECKING:
    from avial_lab.program.reference_run import OneProcess
    from avial_lab.runtime.launch.cluster import Cluster


@dataclass
class _Session:
    cluster: Cluster | OneProcess | None = None


_SESSION = _Session()


def cluster() -> Cluster | OneProcess:
    """The one that this session has started; ClusterError where there is none."""
    if _SESSION.cluster is None:
        raise ClusterError(
            "this session has no cluster",
            hint="%avial cluster start starts one; elsewhere avial_lab.Cluster.start() does",
        )
    return _SESSION.cluster


def use_cluster(cluster: Cluster | OneProcess | None) -> None:
    """From now on it is this session's; None: the session has none."""
    _SESSION.cluster = cluster


def cluster_for(ranks: int) -> Cluster | OneProcess | None:
    """The session's, where it has that many ranks."""
    found = _SESSION.cluster
    if found is None or found.is_stopped or found.topology.ranks < ranks:
        return None
    return found
