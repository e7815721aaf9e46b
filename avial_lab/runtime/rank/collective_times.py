"""How long calls of all ranks take: barrier, broadcast, all-gather, all-reduce, over sizes.

Nothing -> one line of JSON from rank 0, a row for each size of group, call and size of data:

    {"collectives": [["all-gather", ranks, nodes, bytes, seconds], …]}

Bytes are those that a rank has in the end. A call takes what its slowest rank does, from a barrier
on; the median of many calls.

    mpiexec -n 4 python -m avial_lab.runtime.rank.collective_times
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
from mpi4py import MPI

from avial_lab.machine.platform import Collective
from avial_lab.runtime.rank.meeting import meet

SIZES = tuple(1 << k for k in range(6, 23, 4))
"""64 bytes to 4 MiB."""

_ENOUGH_S = 0.05
_MOST, _LEAST = 200, 8

Row = tuple[str, int, int, int, float]


def collective_times(comm: MPI.Comm) -> list[Row]:
    """All ranks of `comm` call it; what rank 0 found. Groups of 2, 4, 8 … ranks, of those of the
    first node and of all: each the first ranks of `comm`, while the others sleep.
    """
    names: list[str] = comm.allgather(platform.node())
    found: list[Row] = []
    for ranks in groups(comm.size, names.count(names[0])):
        inside = comm.rank < ranks
        group = comm.Split(0 if inside else MPI.UNDEFINED, comm.rank)
        if inside:
            nodes = len(set(names[:ranks]))
            found += [(call, ranks, nodes, n, s) for call, n, s in _of_group(group)]
            group.Free()
        meet(comm)
    return found if comm.rank == 0 else []


def groups(ranks: int, on_node: int) -> tuple[int, ...]:
    """
    >>> groups(6, 6), groups(6, 3), groups(4, 2), groups(1, 1)
    ((2, 4, 6), (2, 3, 4, 6), (2, 4), ())
    """
    powers = (1 << k for k in range(1, ranks.bit_length()))
    return tuple(sorted({*powers, on_node, ranks} - {1}))


def _of_group(comm: MPI.Comm) -> Iterator[tuple[str, int, float]]:
    yield Collective.BARRIER.value, 0, _slowest_s(comm, comm.Barrier)
    for nbytes in SIZES:
        n = nbytes // 8
        data, whole = np.zeros(n), np.zeros(n)
        own = np.zeros(max(n // comm.size, 1))
        every = np.zeros(own.size * comm.size)
        calls: dict[Collective, tuple[int, Callable[[], object]]] = {
            Collective.BROADCAST: (data.nbytes, lambda data=data: comm.Bcast(data, 0)),
            Collective.ALL_GATHER: (
                every.nbytes,
                lambda own=own, every=every: comm.Allgather(own, every),
            ),
            Collective.ALL_REDUCE: (
                data.nbytes,
                lambda data=data, whole=whole: comm.Allreduce(data, whole, MPI.SUM),
            ),
        }
        for call, (size, done) in calls.items():
            yield call.value, size, _slowest_s(comm, done)


def _slowest_s(comm: MPI.Comm, call: Callable[[], object]) -> float:
    """The median over calls of what the slowest rank took; each begins when all are there."""
    taken = np.zeros(_MOST)
    begun, calls = time.perf_counter(), 0
    for _ in range(2):  # the first ones set up what the others use
        call()
    while calls < _MOST:
        comm.Barrier()
        started = time.perf_counter()
        call()
        taken[calls] = time.perf_counter() - started
        calls += 1
        if calls % _LEAST == 0:
            over = np.array([time.perf_counter() - begun > _ENOUGH_S], np.uint8)
            comm.Bcast([over, MPI.BYTE], 0)
            if over[0]:
                break
    slowest = np.zeros(calls)
    comm.Allreduce(taken[:calls], slowest, MPI.MAX)
    return median(slowest.tolist())


if __name__ == "__main__":
    rows = collective_times(MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        os.write(1, json.dumps({"collectives": rows}).encode() + b"\n")
