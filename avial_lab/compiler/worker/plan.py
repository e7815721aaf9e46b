"""A program of loops with its plan."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from avial_lab.artifact.binary import Binary, MachineCode
from avial_lab.artifact.manifest import DerivedMessages
from avial_lab.artifact.plan import Plan
from avial_lab.compiler.backends.llvm import binary_of
from avial_lab.core.buffers import Number
from avial_lab.planning.homes import homes_of
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
        launched=plan.launched,
    )
    return binary_of(code, manifest, ptx=ptx), plan
