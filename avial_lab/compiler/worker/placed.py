"""Programs whose tasks know their ranks: placed tensors made ready, and their schedule.

Module on tensors that lie on meshes -> the same as what `lower-placements` reads; tasks with ranks
-> Schedule.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlir import ir

from avial_lab.compiler.frontends.mlir.arguments import bind_numbers
from avial_lab.compiler.frontends.mlir.tensors import (
    prepare_tensors,
    run_pipeline,
    tosa_to_linalg,
)
from avial_lab.compiler.frontends.notation.elaboration import Scalar
from avial_lab.compiler.ir.attributes import DIVIDED, ON_RANK, SUMMED, TURN
from avial_lab.compiler.ir.program import (
    has_body,
    is_plain,
    program_function,
    scheduled_function,
    tasks_of,
)
from avial_lab.compiler.lowering.run import Pass
from avial_lab.compiler.passes.distir.choose_collectives import ChooseCollectives
from avial_lab.compiler.passes.distir.data_parallel import DataParallel
from avial_lab.compiler.passes.distir.fuse_segments import FuseSegments
from avial_lab.compiler.passes.distir.horizontal_parallel import HorizontalParallel
from avial_lab.compiler.passes.distir.overlap import Overlap
from avial_lab.compiler.passes.distir.pipeline_parallel import PipelineParallel
from avial_lab.compiler.passes.distir.recompute import Recompute
from avial_lab.compiler.passes.distir.zero import Zero
from avial_lab.core.errors import ScheduleError
from avial_lab.machine.devices import CPU
from avial_lab.machine.topology import Topology
from avial_lab.planning.foreseen import Turn, Way
from avial_lab.planning.parallelism import Strategy, strategies
from avial_lab.planning.placement import schedule_by_hand
from avial_lab.planning.schedule import Schedule, Sync
from avial_lab.planning.task_graph import TaskGraph


def prepare_tensors_to_place(module: ir.Module, scalars: Mapping[str, Scalar]) -> None:
    """One function on tensors, in linalg: calls inlined, tosa lowered, numbers given."""
    run_pipeline(module, "builtin.module(inline,symbol-dce)", "calls could not be inlined")
    function = program_function(module)
    bind_numbers(function, scalars)
    prepare_tensors(module)
    tosa_to_linalg(module)
    if "arg_attrs" in function.attributes and has_body(function):
        del function.attributes["arg_attrs"]  # what says that nobody writes tensors


def parallel_passes(text: str) -> tuple[Pass, ...]:
    """The transforms that a text asks for (`planning/parallelism.py`), in their order."""
    return tuple(_pass_of(strategy) for strategy in strategies(text))


def _pass_of(strategy: Strategy) -> Pass:
    if strategy.kind == "data":
        return DataParallel(strategy.degree, "".join(strategy.dimensions), strategy.stage)
    if strategy.kind == "zero":
        return Zero(strategy.degree)
    if strategy.kind == "recompute":
        most = strategy.most_bytes
        return Recompute("" if most else "+".join(strategy.dimensions), most)
    if strategy.kind == "overlap":
        return Overlap(strategy.most_bytes)
    if strategy.kind == "collectives":
        return ChooseCollectives("".join(strategy.dimensions))
    if strategy.kind == "fuse":
        return FuseSegments()
    if strategy.kind == "horizontal":
        return HorizontalParallel(strategy.degree, "+".join(strategy.dimensions), strategy.stage)
    return PipelineParallel(
        strategy.degree, strategy.microbatches, strategy.schedule, strategy.chunks, strategy.flight
    )


def ranks_of_tasks(module: ir.Module | ir.Operation) -> dict[str, int]:
    """The rank of every task, in their order; empty where they do not know."""
    if is_plain(module):
        return {}
    return {
        _name(task): ir.IntegerAttr(task.attributes[ON_RANK]).value
        for task in tasks_of(scheduled_function(module))
        if ON_RANK in task.attributes
    }


def sums_of_tasks(module: ir.Module | ir.Operation) -> dict[str, int]:
    """The terms of the sums of tasks that add up what several devices computed."""
    if is_plain(module):
        return {}
    return {
        _name(task): ir.IntegerAttr(task.attributes[SUMMED]).value
        for task in tasks_of(scheduled_function(module))
        if SUMMED in task.attributes
    }


def turns_of_tasks(module: ir.Module | ir.Operation) -> dict[str, Turn]:
    """What tasks are of a pipeline."""
    found: dict[str, Turn] = {}
    for task in tasks_of(scheduled_function(module)):
        if TURN in task.attributes:
            number, stage, way = ir.DenseI64ArrayAttr(task.attributes[TURN])
            found[_name(task)] = Turn(number, stage, Way(way))
    return found


def told_of_division(module: ir.Operation) -> tuple[str, ...]:
    """What moves between devices and what these hold, where tensors lie on several."""
    if DIVIDED not in module.attributes:
        return ()
    return tuple(ir.StringAttr(line).value for line in ir.ArrayAttr(module.attributes[DIVIDED]))


def _name(task: ir.Operation) -> str:
    return ir.StringAttr(task.attributes["name"]).value


def schedule_on_ranks(
    graph: TaskGraph, topology: Topology, ranks: Mapping[str, int], *, sync: Sync
) -> Schedule:
    """Every task on the CPU of its rank, in the program's order."""
    cpus = {d.rank: d.name for d in reversed(topology.devices) if d.kind is CPU}
    most = max(ranks.values(), default=0)
    if most >= topology.ranks:
        raise ScheduleError(
            f"the program's meshes name device {most}, and there are {topology.ranks} ranks",
            hint=f"start {most + 1}: -n {most + 1}",
        )
    devices = {task: cpus[rank] for task, rank in ranks.items()}
    return schedule_by_hand(graph, topology, devices, order=list(ranks), sync=sync)
