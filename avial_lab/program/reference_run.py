"""One process where ranks cannot be had: the same program, run as its sequential reference.

Numbers of engines -> a Cluster, or, where MPI does not start, a OneProcess that says why. Its runs
compute the same values; they have no ranks, no messages and no timeline, and say so everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avial_lab.core.errors import ClusterError
from avial_lab.core.toolchain import ToolError
from avial_lab.machine.topology import Topology

if TYPE_CHECKING:
    from avial_lab.runtime.launch.cluster import Cluster
    from avial_lab.runtime.launch.engines import Progress


@dataclass(frozen=True)
class OneProcess:
    """Takes a Cluster's place: programs are compiled for `topology`, so that every picture is the
    same, and run in program order in one process. `reason` says why there are no ranks.
    """

    reason: str
    topology: Topology

    @property
    def label(self) -> str:
        """The label beside the values of a run."""
        return f"reference run, one process: {self.reason}"

    @property
    def status(self) -> str:
        return (
            f"no ranks: {self.reason}\nprograms run sequentially in one process, as their reference"
        )

    def __str__(self) -> str:
        return self.status

    @property
    def is_stopped(self) -> bool:
        return False

    def stop(self) -> None:
        """There is nothing to stop."""


def start_or_reference(
    cpu: int = 2,
    gpu: int = 1,
    *,
    profile: str | None = None,
    timeout: float = 60.0,
    keep_s: float = 0.0,
    progress: Progress | None = None,
) -> Cluster | OneProcess:
    """A cluster as `Cluster.start` makes it; one process where MPI cannot start."""
    from avial_lab.runtime.launch.cluster import (
        Cluster,  # with its client, which takes 0.3 s to load
    )

    if cpu < 0 or gpu < 0 or cpu + gpu < 1:
        return Cluster.start(cpu, gpu)  # raises: no MPI could start that
    try:
        return Cluster.start(
            cpu, gpu, profile=profile, timeout=timeout, keep_s=keep_s, progress=progress
        )
    except (ClusterError, ToolError) as error:
        first = error.message.partition("\n")[0].removeprefix("the cluster did not start: ")
        return OneProcess(f"MPI could not start: {first}", Topology.local(cpu + gpu, gpus=gpu))
