"""How long the compiled loops of a program's tasks keep a core busy, wherever the tasks are placed.

Module in the avial dialect, its graph, numbers of threads -> CoreTime by number and by the task's
name. The tasks are lowered to stage `loops` as for one rank, which runs them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mlir import ir

from avial_lab.compiler.analysis.costs.core_time import core_times_of_tasks
from avial_lab.compiler.codegen.outline_tasks import tasks_by_function
from avial_lab.compiler.lowering.lower import lower_tasks
from avial_lab.compiler.options import CompileOptions
from avial_lab.core.errors import AvialError
from avial_lab.machine.cpu import this_cpu
from avial_lab.machine.demand import CoreTime
from avial_lab.machine.devices import GPU_FAMILY
from avial_lab.machine.topology import Topology
from avial_lab.planning.placement import schedule_tasks
from avial_lab.planning.schedule import Schedule
from avial_lab.planning.task_graph import TaskGraph


def task_times(
    module: ir.Module | ir.Operation,
    graph: TaskGraph,
    options: CompileOptions,
    threads: Iterable[int],
) -> dict[int, dict[str, CoreTime]]:
    """`module` stays as it is. Nothing is known of tasks that cannot be lowered, or that do more
    than is looked at.
    """
    try:
        schedule = _on_one_rank(graph)
        stages = lower_tasks(module, schedule, options)
        loops = next(
            work
            for stage, work in stages
            if stage.name == "loops" and isinstance(work, ir.Operation)
        )
    except AvialError:  # whoever builds the program is told
        return {}
    order = {placed.task: k for k, placed in enumerate(schedule.placements)}
    shared = {
        first: sorted(names, key=order.__getitem__)
        for first, names in tasks_by_function(loops).items()
    }
    return {n: core_times_of_tasks(loops, "main", shared, n, this_cpu()) for n in set(threads)}


def _on_one_rank(graph: TaskGraph) -> Schedule:
    """Whatever nodes, ranks and devices the tasks ask for."""
    free = tuple(
        replace(task, target=replace(task.target, node=None, device=None, rank=None))
        for task in graph.tasks
    )
    gpus = int(any(task.target.kind.family == GPU_FAMILY for task in graph.tasks))
    return schedule_tasks(replace(graph, tasks=free), Topology.local(1, gpus=gpus))
