"""The session's cluster: started, taken up again after a kernel's restart, stopped with the kernel.

`%avial cluster …` -> Cluster, and what is shown of it.

    kernel restarts            the cluster is left; `%avial cluster start` or `connect` takes it up
    kernel is shut down        the cluster ends with it
    kernel dies, or is killed  as a restart; in the middle of a run the cluster ends at once
    nobody comes back          the cluster ends by itself, after `KEEP_S` seconds (elsewhere 30)
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import DisplayHandle

from avial_lab.core.errors import AvialError
from avial_lab.notebook.display import Note
from avial_lab.notebook.live import widgets_there
from avial_lab.program.reference_run import OneProcess, start_or_reference
from avial_lab.runtime.launch.cluster import Cluster
from avial_lab.runtime.launch.hosts import Where, where_of
from avial_lab.runtime.launch.processes import crowd_warning, local_note
from avial_lab.runtime.launch.registry import (
    Record,
    cluster_called,
    clusters,
    clusters_elsewhere,
    stop_clusters,
    this_owner,
)

KEEP_S = 600.0
"""How long a cluster waits for the next kernel; AVIAL_KEEP_S says otherwise."""

KEEP_ELSEWHERE_S = 30.0
"""On other machines, which are others' too: as long as a kernel takes to restart."""


@dataclass(frozen=True)
class StartOptions:
    """What `%avial cluster start` was asked for; `or_reference`: one process, where MPI does not
    start. keep_s: how long it outlives its client, where somebody said so.
    """

    cpu: int = 2
    gpu: int = 1
    profile: str | None = None
    or_reference: bool = False
    where: Where | None = None
    keep_s: float | None = None

    @property
    def ranks(self) -> int:
        return self.where.most if self.where else self.cpu + self.gpu

    @property
    def crowd(self) -> str:
        """What to say of so many ranks, where they are here."""
        here = self.profile is None and self.where is None
        return crowd_warning(self.ranks) if here else ""

    @property
    def waits_s(self) -> float:
        """How long it outlives its kernel."""
        usual = KEEP_S if self.where is None else KEEP_ELSEWHERE_S
        return self.keep_s or float(os.environ.get("AVIAL_KEEP_S", usual))

    def open(self, tell: Callable[[str], None]) -> Cluster | OneProcess:
        how: Any = {
            "cpu": self.cpu, "gpu": self.gpu, "profile": self.profile, "keep_s": self.waits_s,
            "progress": tell,
        }  # fmt: skip
        if self.where is None and self.or_reference:
            return start_or_reference(**how)
        if self.where is not None:
            how |= {"where": self.where, "lease_s": self.keep_s}
        cluster = Cluster.start(**how)
        if self.keep_s:
            cluster.leave_at_exit()
        return cluster


def start_cluster(options: StartOptions) -> Cluster | OneProcess:
    """A new one, or that which this notebook's last kernel left, where it is of the same size."""
    threading.Thread(target=widgets_there, daemon=True).start()  # the first run need not wait
    shown, began = DisplayHandle(), time.monotonic()
    crowded = options.crowd
    way_out = "Interrupt the kernel (■) to ask for fewer." if crowded else ""
    shown.display(Note("Starting a cluster …", f"{crowded}\n{way_out}".strip()))

    def tell(words: str) -> None:
        seconds = time.monotonic() - began
        title = f"Starting a cluster … {words} ({seconds:.0f} s)"
        shown.update(Note(title, f"{crowded}\n{way_out}".strip()))

    try:
        cluster, title = open_cluster(options, tell=tell)
    except BaseException as error:
        # Otherwise what it was waiting for would remain on display.
        why = "" if isinstance(error, AvialError) else "Interrupted; nothing is left running."
        shown.update(Note("The cluster did not start.", why))
        raise
    if isinstance(cluster, OneProcess):
        shown.update(Note("The cluster could not be started:", cluster.status))
        return cluster
    took = f"in {time.monotonic() - began:.1f} s"
    shown.update(Note(f"{title}: cluster {cluster.id}, {took}", str(cluster.status)))
    return cluster


def open_cluster(
    options: StartOptions, *, tell: Callable[[str], None]
) -> tuple[Cluster | OneProcess, str]:
    """As `start_cluster`, with nothing shown; the cluster, and where it is from."""
    left = None if options.profile else _left_here(options)
    if left is not None:
        return Cluster.connect(left.id), "Reconnected to the cluster from before the restart"
    cluster = options.open(tell)
    # In a manager's job it is said that it is not on the job's other nodes.
    note = local_note() if isinstance(cluster, Cluster) and cluster.is_local else ""
    return cluster, f"Started ({note})" if note else "Started"


def _left_here(options: StartOptions) -> Record | None:
    """What this notebook's kernel left when it was restarted; those of another size end."""
    if "JPY_SESSION_NAME" not in os.environ:  # Jupyter says which notebook a kernel is of
        return None
    _, name = this_owner()
    mine = [record for record in clusters() if record.owner_name == name and not record.owned]
    wanted = (options.ranks, options.gpu, options.where)
    fitting = [r for r in mine if (r.ranks, r.gpus, where_of(r.where)) == wanted][:1]
    stop_clusters(record for record in mine if record not in fitting)
    return fitting[0] if fitting else None


def connect_cluster(cluster_id: str) -> Cluster:
    """The one of that id; without one, the only one that was left behind."""
    return Cluster.connect(cluster_id if cluster_id else cluster_called("").id)


def cluster_status(cluster: Cluster | OneProcess | None) -> Note:
    """The session's; where it has none, those that wait to be taken up, and how."""
    if cluster is not None:
        return Note(str(cluster.status))
    waiting = [record for record in clusters() if not record.owned]
    if not waiting:
        return Note("no cluster is running; %avial cluster start starts one")
    _, name = this_owner()
    mine = [record for record in waiting if record.owner_name == name]
    if mine:
        title = "no cluster is running in this kernel; the one from before its restart still is:"
    else:
        title = "no cluster is running in this kernel; others that were left still are:"
    shown = mine or waiting
    way = f"%avial cluster connect {shown[0].id} connects to it; after that this kernel has it"
    return Note(title, "\n".join([*map(str, shown), way]))


def cluster_list() -> Note:
    found = (*clusters(), *clusters_elsewhere())
    if not found:
        return Note("There is no cluster on this machine.")
    return Note(f"Clusters known on this machine: {len(found)}", "\n".join(map(str, found)))


def leave_at_restart(
    shell: InteractiveShell, cluster_of: Callable[[], Cluster | OneProcess | None]
) -> None:
    """When this kernel ends in order to start again, its cluster is left for the next one.

    Python's own exit cannot distinguish a restart from an end; the request to the kernel can.
    """
    kernel: Any = getattr(shell, "kernel", None)
    if kernel is None:  # a terminal: it does not restart
        return
    original = kernel.do_shutdown

    def do_shutdown(restart: bool) -> object:
        cluster = cluster_of()
        if restart and isinstance(cluster, Cluster):
            cluster.leave()
        return original(restart)

    kernel.do_shutdown = do_shutdown
