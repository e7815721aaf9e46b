"""A program of loops with its plan."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from avial_lab.artifact.binary import Binary, MachineCode
from avial_lab.artifact.manifest import DerivedMessages
from avial_lab.artifact.plan import Plan
from avial_lab.compiler.backends.llvm import binary_of
from avial_lab.core.buffers import Number
from avial_lab.core.errors import BindError
from avial_lab.core.words import count
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.runtime.native.ownership import LAUNCH
from avial_lab.runtime.native.planned_run import plan_run


def planned_binary(
    code: MachineCode,
    graph: TaskGraph,
    ranks: int,
    phases: tuple[str, ...],
    *,
    edited: str = "",
    numbers: tuple[Number, ...] = (),
    drivers: tuple[int, ...] = (),
    ptx: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Binary, Plan]:
    """Machine code with the plan of its runs on that many ranks in the manifest; `drivers` drive
    the devices, where it launches anything there.
    """
    drivers = drivers if LAUNCH in code.assembly else ()
    homes = homes_of(graph, ranks, drivers)
    temporary = {buffer.storage for buffer in graph.buffers if buffer.temporary}
    plan = plan_run(
        code.shared_object,
        graph.storages,
        ranks,
        temporary=temporary,
        phases=phases,
        numbers=numbers,
        drivers=drivers,
        homes=homes,
    )
    begun = {count.phase: count.begun for count in plan.phases}
    manifest = DerivedMessages(
        entry="main",
        ranks=ranks,
        buffers=graph.buffers,
        storages=graph.storages,
        inputs=plan.inputs,
        results=plan.results,
        uses_mpi=ranks > 1,
        phases=phases,
        rounds=tuple(begun.get(phase, 0) for phase in phases) if plan.complete else (),
        planned=plan.bytes_moved if plan.complete else None,
        edited=edited,
        numbers=numbers,
        drivers=drivers,
        homes=tuple(homes.items()),
        stays=plan.stays,
    )
    return binary_of(code, manifest, ptx=ptx), plan


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
            raise BindError(
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
