"""`avial-lab cluster`: what runs on this machine, and on others from here."""

from __future__ import annotations

import argparse

from avial_lab.cli.question import print_to_stderr

LEFT_S = 600.0
"""How long a cluster that was started here waits for somebody to connect to it."""


def cluster_command(options: argparse.Namespace) -> int:
    from avial_lab.runtime.launch import registry  # psutil, which the other commands may do without

    if options.action == "start":
        return _start(options)
    if options.action == "stop":
        chosen = registry.clusters() if options.all else (registry.cluster_called(options.id),)
        registry.stop_clusters(chosen)
        registry.remove_traces()
        print(f"stopped {', '.join(record.id for record in chosen) or 'nothing: there is none'}")
        for record in registry.clusters_elsewhere() if options.all else ():
            print(f"not stopped: {record}")
        return 0
    for record in (*registry.clusters(), *registry.clusters_elsewhere()):
        print(record)
    return 0


def _start(options: argparse.Namespace) -> int:
    """A cluster that nobody owns yet."""
    from avial_lab.program.where import where_given
    from avial_lab.runtime.launch.cluster import Cluster

    keep_s = options.keep * 3600 if options.keep else LEFT_S
    cluster = Cluster.start(
        2 if options.cpu is None else options.cpu, options.gpu or 0, keep_s=keep_s,
        lease_s=keep_s if options.keep else None, progress=print_to_stderr,
        where=where_given(options),
    )  # fmt: skip
    print(f"cluster {cluster.id}\n{cluster.status}")
    print(
        f"`%avial cluster connect {cluster.id}` or Cluster.connect({cluster.id!r}) takes it up; "
        f"it stops by itself in {keep_s / 60:g} min where nobody does"
    )
    cluster.leave()
    return 0
