"""Arrays that the caller has on GPUs: a device's place is where they are, before and after a run.

The arrays of a graph, who drives which GPU -> the place of each.
"""

from __future__ import annotations

from avial_lab.core.errors import BindError
from avial_lab.core.words import count
from avial_lab.planning.task_graph import TaskGraph


class NoKernels(BindError):
    """An array is on a GPU, and nothing of the program runs there."""


def homes_of(graph: TaskGraph, ranks: int, drivers: tuple[int, ...]) -> dict[str, int]:
    """The places where the caller has arrays on GPUs, by storage; BindError where they cannot be
    used there.
    """
    homes: dict[str, int] = {}
    for buffer in graph.buffers:
        if buffer.gpu is None:
            continue
        lies = f"array '{buffer.name}' is on GPU {buffer.gpu}"
        if ranks > 1:
            raise BindError(
                f"{lies}, and the program has {ranks} ranks",
                hint="arrays on GPUs are for one rank, the caller's process: ranks=1",
            )
        if not drivers:
            raise NoKernels(
                f"{lies}, and nothing of the program runs on a GPU",
                hint='compile it with on="gpu"; where that is done, explain() says why its loops '
                "stay on the host: pass arrays of the host",
            )
        if buffer.gpu >= len(drivers):
            raise BindError(
                f"{lies}, and the program drives {count(len(drivers), 'GPU')}, from 0",
                hint=f"move it, or compile with gpus={buffer.gpu + 1}",
            )
        homes[buffer.storage] = ranks + buffer.gpu
    return homes
