"""The compiler's process: holds MLIR, answers questions until its pipe closes.

Questions (`messages.py`) -> answers or AvialErrors whose places carry the cell's own text.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import resource
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

from mlir import ir

from avial_lab.accesses import caller_memory, read_groups, read_program
from avial_lab.accesses.rounding import reordered_storages
from avial_lab.dag import TaskGraph, build_dag
from avial_lab.dialects.program import is_structured, program_function
from avial_lab.errors import AvialError, CellSpan, InternalError, PassError
from avial_lab.inside.look import look_inside
from avial_lab.inside.steps import PassLog
from avial_lab.messages import (
    Analyse,
    Analysis,
    Answer,
    Build,
    Built,
    Explore,
    Explored,
    Look,
    PrintBack,
    Printed,
    Proposal,
    Propose,
    Question,
    Referenced,
    RunReference,
    Source,
    Violation,
)
from avial_lab.nests import nests_on
from avial_lab.parse import is_plain, parse_cell, print_explained, print_module
from avial_lab.passes.one_task import OneTask
from avial_lab.pipelines import Watch, build, lower, run_passes, text_of
from avial_lab.schedule import schedule_phases, schedule_tasks
from avial_lab.simulator.reference import reference
from avial_lab.simulator.trial import trial_arguments
from avial_lab.spmd import (
    build_structured,
    lower_structured,
    planned_binary,
    take_apart,
    verdicts_on,
)
from avial_lab.stages import Inside
from avial_lab.topology import DeviceKind, Topology
from avial_lab.verdicts import Verdict


def main(arguments: list[str]) -> None:
    pipe = Connection(int(arguments[0]))
    limit = int(arguments[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    while True:
        try:
            question = pipe.recv()
        except EOFError:
            return
        # A question makes many objects and few cycles: collect between questions, not during one.
        gc.disable()
        pipe.send(answer(question))
        gc.enable()
        gc.collect()


def answer(question: Question) -> Answer | AvialError:
    """The answer to `question`, or the AvialError that stands in its way."""
    try:
        return _ANSWERS[type(question)](question)
    except AvialError as error:
        error.span = _with_text(error.span, question.source)
        return error
    except MemoryError:
        raise
    except Exception as error:  # whatever else is a fault of ours, told with its traceback
        trace = "".join(traceback.format_exception(error))
        return InternalError(f"{type(error).__name__}: {error}\n{trace}")


def _with_text(span: CellSpan | None, source: Source) -> CellSpan | None:
    return (
        replace(span, text=source.text) if span is not None and span.cell == source.cell else span
    )


class _Stopwatch:
    """Seconds since the last lap, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now


def _parse(source: Source) -> ir.Module:
    return parse_cell(
        source.text,
        cell=source.cell,
        context=ir.Context(),
        binding=source.binding,
        scalars=source.scalars,
        function=source.function,
    )


def _graph(module: ir.Module | ir.Operation, source: Source) -> TaskGraph:
    tasks, buffers, storages = read_program(module, source.binding)
    placed = [replace(task, span=_with_text(task.span, source)) for task in tasks]
    groups = [replace(group, span=_with_text(group.span, source)) for group in read_groups(module)]
    return build_dag(placed, buffers, storages, groups)


def _analyse(question: Analyse) -> Analysis:
    watch = _Stopwatch()
    module = _parse(question.source)
    watch.lap("parse")
    plain = is_plain(module) or is_structured(module)
    tasks = _taken_apart(module, question.source).module if plain else module
    graph = _graph(tasks, question.source)
    watch.lap("dag")
    return Analysis(graph, watch.seconds)


def _explore(question: Explore) -> Explored:
    module = _parse(question.source)
    if not (is_plain(module) or is_structured(module)):
        return Explored(())
    structured = _taken_apart(module, question.source, grid=question.grid).module
    return Explored(
        tuple(
            replace(nest, span=_with_text(nest.span, question.source))
            for nest in nests_on(structured)
        )
    )


@dataclass(frozen=True)
class _Apart:
    """A program as loops around tasks, or as one task (`whole`) where it cannot be that."""

    module: ir.Operation
    whole: bool


def _taken_apart(
    module: ir.Module, source: Source, *, grid: bool = False, watch: Watch | None = None
) -> _Apart:
    """The program as loops around tasks; a plain function that cannot be is one task."""
    binding = source.binding
    if binding is not None and any(storage.shared for storage in binding.storages):
        return _Apart(_as_one(module, "its arrays share memory"), whole=True)
    try:
        return _Apart(take_apart(module, grid=grid, watch=watch), whole=False)
    except PassError as error:
        if not is_plain(module):
            raise
        return _Apart(_as_one(module, error.message), whole=True)


def _build(question: Build) -> Built:
    watch = _Stopwatch()
    module = _parse(question.source)
    watch.lap("parse")
    if is_plain(module) or is_structured(module):
        return _build_structured(question, module, watch)
    return _build_tasks(question, module, watch)


def _build_tasks(question: Build, module: ir.Module | ir.Operation, watch: _Stopwatch) -> Built:
    """A program of tasks alone: every message is known before it runs."""
    graph = _graph(module, question.source)
    watch.lap("dag")
    topology = question.topology or Topology.local(question.ranks, gpus=_gpus(question, graph))
    schedule = schedule_tasks(graph, topology, policy=question.policy, sync=question.sync)
    watch.lap("schedule")
    stages, binary = build(module, schedule)
    watch.lap("build")
    return Built(schedule, stages, binary, watch.seconds)


def _build_structured(question: Build, module: ir.Module, watch: _Stopwatch) -> Built:
    """A program of loops around tasks: the ownership runtime finds the messages as it runs."""
    apart = _taken_apart(module, question.source, grid=question.division.grid)
    watch.lap("analysis")
    if not apart.whole:
        try:
            return _build_apart(question, module, apart.module, watch)
        except PassError as error:
            if not is_plain(module):
                raise
            apart = _Apart(_as_one(module, error.message), whole=True)
    built = _build_tasks(question, apart.module, watch)
    return replace(built, verdicts=_verdicts(apart.module, question.source))


def _build_apart(
    question: Build, module: ir.Module, structured: ir.Operation, watch: _Stopwatch
) -> Built:
    graph = _graph(structured, question.source)
    watch.lap("dag")
    topology = question.topology or Topology.local(question.ranks, gpus=_gpus(question, graph))
    stages, llvm_ir, phases = build_structured(module, structured, topology, question.division)
    watch.lap("build")
    binary, plan = planned_binary(llvm_ir, graph, topology.ranks, phases)
    schedule = schedule_phases(
        graph,
        topology,
        inputs=plan.inputs,
        results=plan.results,
        moves=plan.moves,
        rank_of={f.phase: f.rank for f in plan.footprints if f.rank >= 0},
    )
    watch.lap("plan")
    verdicts = _verdicts(structured, question.source)
    binding = question.source.binding
    reordered = reordered_storages(structured, binding) if topology.ranks > 1 else {}
    return Built(schedule, stages, binary, watch.seconds, plan, verdicts, reordered)


def _verdicts(module: ir.Operation, source: Source) -> tuple[Verdict, ...]:
    return tuple(
        replace(verdict, span=_with_text(verdict.span, source)) for verdict in verdicts_on(module)
    )


def _as_one(module: ir.Module, why: str) -> ir.Operation:
    whole = module.operation.clone().operation
    run_passes(whole, ("lift-cf-to-scf", OneTask(why)))
    return whole


def _print_back(question: PrintBack) -> Printed:
    module = _parse(question.source)
    if not is_plain(module):
        return Printed(print_module(module))
    apart = _taken_apart(module, question.source, grid=question.grid)
    return Printed(print_explained(apart.module))


def _look(question: Look) -> Inside:
    build, built = question.build, question.built
    module = _parse(build.source)
    plain = is_plain(module) or is_structured(module)
    log = PassLog(text_of(module.operation), "source.mlir")
    if built.plan is not None:
        apart = _taken_apart(module, build.source, grid=build.division.grid, watch=log.watch)
        topology = built.schedule.topology
        stages = lower_structured(module, apart.module, topology, build.division, watch=log.watch)
    else:
        tasks = _as_one(module, built.verdicts[0].reasons[0]) if plain else module.operation
        log = PassLog(text_of(tasks), "avial.mlir")
        stages = lower(tasks, built.schedule, watch=log.watch)
    inside = look_inside(stages, log, build.source.cell)
    order = [stage.name for stage in built.stages]
    return Inside(tuple(sorted(inside.stages, key=lambda stage: order.index(stage.name))))


def _gpus(question: Build, graph: TaskGraph) -> int:
    """As many as asked for; else one where some task asks for a GPU."""
    if question.gpus is not None:
        return question.gpus
    return int(any(task.target.kind is DeviceKind.GPU for task in graph.tasks))


def _reference(question: RunReference) -> Referenced:
    module = _parse(question.source)
    if is_plain(module) or is_structured(module):
        buffers, storages = caller_memory(program_function(module), question.source.binding)
    else:
        graph = _graph(module, question.source)
        buffers, storages = graph.buffers, graph.storages
    step = None if question.journal is None else _mapped(question.journal)
    result = reference(module, buffers, storages, question.data, journal=step)
    violations = tuple(
        Violation(found.message, _with_text(found.span, question.source))
        for found in result.violations
    )
    return Referenced(result.data, violations, result.seconds)


def _mapped(path: str) -> ctypes.c_int64:
    """The word in that file, mapped into memory as long as somebody holds it."""
    with open(path, "r+b") as file:
        return ctypes.c_int64.from_buffer(mmap.mmap(file.fileno(), 8))


def _propose(question: Propose) -> Proposal:
    return Proposal(trial_arguments(question.source, question.given))


_ANSWERS: dict[type, Callable[[Any], Any]] = {
    Analyse: _analyse,
    Build: _build,
    Explore: _explore,
    Look: _look,
    PrintBack: _print_back,
    Propose: _propose,
    RunReference: _reference,
}


if __name__ == "__main__":
    main(sys.argv[1:])
