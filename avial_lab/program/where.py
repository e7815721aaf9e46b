"""Where ranks are started that are not here, as a command says it.

`--hosts node1,node2 --ppn 2`, `--slurm -N 4 --ppn 16 --time 1:00:00` -> Hosts, Slurm; a Topology.
"""

from __future__ import annotations

import argparse
import os
import platform

from avial_lab.core.errors import ClusterError
from avial_lab.machine.devices import CPU
from avial_lab.machine.devices.cpu import canonical_cpu
from avial_lab.machine.topology import Device, Topology, gpus_driven
from avial_lab.runtime.launch.hosts import Hosts, Slurm, Where, inside_slurm, node_names

KEEP = (
    "keep its engines as long where nobody is connected to it, or its client cannot be reached "
    "(otherwise minutes)"
)


def where_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that `where_given` reads."""
    group = parser.add_argument_group("other machines")
    group.add_argument(
        "--hosts", metavar="A,B", help="start the ranks on these machines, which ssh reaches"
    )
    group.add_argument(
        "--slurm",
        action="store_true",
        help="start the ranks on nodes of Slurm (in a job: on its own)",
    )
    group.add_argument("--ppn", type=int, metavar="N", help="ranks on each of them")
    group.add_argument("-N", "--nodes", type=int, metavar="N", help="how many nodes of Slurm")
    group.add_argument("--time", metavar="T", help="Slurm's time limit: 1:00:00")
    group.add_argument("--partition", metavar="P", help="Slurm's partition")


def where_given(options: argparse.Namespace, *, ranks: int | None = None) -> Where | None:
    """None for this machine; `ranks` are spread over the hosts where `--ppn` is not given."""
    if options.hosts and options.slurm:
        raise ClusterError("--hosts and --slurm are two ways to say where", hint="leave one out")
    if options.hosts:
        _refuse(options, ("nodes", "time", "partition"), "--slurm")
        return Hosts.parse(options.hosts, ppn=options.ppn, ranks=ranks)
    if options.slurm:
        return _slurm(options, ranks)
    _refuse(options, ("nodes", "time", "partition", "ppn"), "--hosts or --slurm")
    return None


def _slurm(options: argparse.Namespace, ranks: int | None) -> Slurm:
    nodes = options.nodes
    if nodes is None:
        nodes = int(os.environ.get("SLURM_JOB_NUM_NODES", "0"))
    if nodes < 1:
        raise ClusterError("--slurm needs a number of nodes", hint="say it: --slurm -N 2 --ppn 4")
    if inside_slurm():
        _refuse(options, ("time", "partition"), "a new allocation, and this is inside one")
    ppn = options.ppn if options.ppn is not None else -(-(ranks or nodes) // nodes)
    if ppn < 1:
        raise ClusterError(f"{ppn} ranks per node cannot run a program", hint="--ppn 1 or more")
    return Slurm(nodes, ppn, options.time or "", options.partition or "")


def _refuse(options: argparse.Namespace, names: tuple[str, ...], those: str) -> None:
    for name in names:
        if getattr(options, name) is not None:
            raise ClusterError(f"--{name} is for {those}", hint="leave it out")


def topology_on(where: Where, ranks: int, *, gpus: int = 0, cpu: str = "") -> Topology:
    """`ranks` ranks on those machines, filled in order; the last `gpus` drive a GPU each. cpu: as
    Topology's.

    >>> [device.node for device in topology_on(Hosts(("a", "b"), ppn=2), 3).devices]
    ['a', 'a', 'b']
    """
    arch = canonical_cpu(platform.machine())
    nodes = node_names(where, ranks)
    cpus = tuple(Device(CPU.device_name(r), CPU, r, arch, n) for r, n in enumerate(nodes))
    drivers = list(enumerate(nodes))[len(nodes) - gpus :]
    return Topology(len(nodes), (*cpus, *gpus_driven(drivers)), cpu=cpu)
