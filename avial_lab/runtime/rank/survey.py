"""What ranks on several hosts find out about them: cores, memories, messages on and between hosts.

Nothing -> one line of JSON from rank 0:

    {"hosts": [{"name": …, "ranks": …, "cores": …, "memory_bytes": …, "node": … | "why": …}, …],
     "inside": [ping-pong, …], "between": [ping-pong, …], "collectives": [[call, …], …]}

    mpiexec -hosts A,B -ppn 2 -n 4 python -m avial_lab.runtime.rank.survey
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from mpi4py import MPI

from avial_lab.core.errors import AvialError
from avial_lab.machine.cpu import domains_of
from avial_lab.machine.measure import measure_node
from avial_lab.machine.measured import memory_here
from avial_lab.runtime.rank.collective_times import collective_times
from avial_lab.runtime.rank.meeting import meet
from avial_lab.runtime.rank.ping_pong import eager_bytes, ping_pong
from avial_lab.runtime.rank.threads import cores


def survey(comm: MPI.Comm) -> dict[str, Any]:
    """All ranks of `comm` call it; what rank 0 found. One rank of a host measures it while the
    others sleep; hosts do so at the same time, but talk to each other pair by pair.
    """
    names: list[str] = comm.allgather(platform.node())
    first = [names.index(name) for name in dict.fromkeys(names)]
    facts = _this_host(names.count(platform.node())) if comm.rank in first else None
    meet(comm)
    on_host = comm.Split(names.index(platform.node()), comm.rank)
    inside = _messages(on_host.Split(0 if on_host.rank < 2 else MPI.UNDEFINED, on_host.rank))
    meet(comm)
    between: list[Any] = []
    for pair in _pairs(first):
        between.append(_messages(comm.Split(0 if comm.rank in pair else MPI.UNDEFINED, comm.rank)))
        meet(comm)
    calls = collective_times(comm)
    hosts, pairs_inside = comm.gather(facts), comm.gather(inside)
    pairs_between = comm.gather(between)
    if comm.rank:
        return {}
    assert hosts is not None
    assert pairs_inside is not None
    assert pairs_between is not None
    return {
        "hosts": [host for host in hosts if host is not None],
        "inside": [each for each in pairs_inside if each is not None],
        "between": [each for found in pairs_between for each in found if each is not None],
        "collectives": calls,
    }


def _this_host(ranks: int) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": platform.node(),
        "ranks": ranks,
        "cores": len(cores()),
        "memory_bytes": memory_here(),
        "domains": domains_of(cores()),
    }
    try:
        return facts | {"node": asdict(measure_node(len(cores())))}
    except AvialError as error:
        return facts | {"why": str(error)}


def _messages(comm: MPI.Comm) -> dict[str, Any] | None:
    """Between the two ranks of `comm`; None on the second, on others, and on a rank alone."""
    if comm == MPI.COMM_NULL or comm.size < 2:
        return None
    found = {"one_way": ping_pong(comm), "eager_bytes": eager_bytes(comm)}
    return found if comm.rank == 0 else None


def _pairs(ranks: list[int]) -> Iterator[tuple[int, int]]:
    """The first with each other, and each with its next: 2 n - 3 of n."""
    yield from ((ranks[0], other) for other in ranks[1:])
    yield from pairwise(ranks[1:])


if __name__ == "__main__":
    result = survey(MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        os.write(1, json.dumps(result).encode() + b"\n")
