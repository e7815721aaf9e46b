"""`avial-lab cluster`: what runs on this machine."""

from __future__ import annotations

import argparse


def cluster_command(options: argparse.Namespace) -> int:
    from avial_lab.runtime.launch import registry  # psutil, which the other commands may do without

    if options.action == "stop":
        chosen = registry.clusters() if options.all else (registry.cluster_called(options.id),)
        registry.stop_clusters(chosen)
        registry.remove_traces()
        print(f"stopped {', '.join(record.id for record in chosen) or 'nothing: there is none'}")
        return 0
    for record in registry.clusters():
        print(record)
    return 0
