"""The cluster of this session: the one that `%avial cluster start` started, which runs that name no
other use; and the machine that `%avial topology` has changed, which predictions use.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avial_lab.core.errors import ClusterError

if TYPE_CHECKING:
    from avial_lab.machine.topology import Topology
    from avial_lab.program.program import Program
    from avial_lab.program.reference_run import OneProcess
    from avial_lab.runtime.launch.cluster import Cluster


@dataclass
class _Session:
    cluster: Cluster | OneProcess | None = None
    machine: Topology | None = None
    made: list[tuple[int, weakref.ref[Program]]] = field(
        default_factory=list["tuple[int, weakref.ref[Program]]"]
    )
    number: int = 0


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


def machine() -> Topology | None:
    """For predictions that name no other; None: each program's own."""
    return _SESSION.machine


def use_machine(machine: Topology | None) -> None:
    """From now on predictions are of it; None: each of its program's own machine."""
    _SESSION.machine = machine


def remember(program: Program) -> None:
    """It was compiled here; for as long as anybody holds it."""
    _SESSION.number += 1
    _SESSION.made.append((_SESSION.number, weakref.ref(program)))


def compiled_so_far() -> int:
    """How many programs this process has compiled."""
    return _SESSION.number


def made_since(number: int) -> list[Program]:
    """The programs compiled after the first `number` that somebody still holds, the latest last."""
    _SESSION.made = [each for each in _SESSION.made if each[1]() is not None]
    later = (made() for at, made in _SESSION.made if at > number)
    return [program for program in later if program is not None]


def cluster_for(ranks: int) -> Cluster | OneProcess | None:
    """The session's, where it has that many ranks."""
    found = _SESSION.cluster
    if found is None or found.is_stopped or found.topology.ranks < ranks:
        return None
    return found
