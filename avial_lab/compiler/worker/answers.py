"""What the compiler's process knows: one answer for each kind of question.

Questions (`compiler/requests.py`) -> answers or AvialErrors whose places carry the cell's own text.
"""

from __future__ import annotations

import ctypes
import mmap
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mlir import ir

from avial_lab.artifact.stages import Inside, StageInside
from avial_lab.compiler.analysis.accesses.buffers import caller_memory
from avial_lab.compiler.analysis.costs.core_time import core_times
from avial_lab.compiler.analysis.costs.demand import demands_in, runs_in
from avial_lab.compiler.frontends.mlir import is_plain, print_explained, print_module
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.program import is_structured, program_function
from avial_lab.compiler.requests import (
    Analyse,
    Analysis,
    Answer,
    Build,
    Explore,
    Explored,
    Export,
    Foresee,
    Look,
    LoopTimes,
    PrintBack,
    Printed,
    Proposal,
    Propose,
    Question,
    Referenced,
    Resume,
    RunReference,
    Simulate,
    TaskTimes,
    TimeLoops,
    TimeTasks,
    Violation,
    Walk,
    Weigh,
    Weighed,
    WeighLayers,
)
from avial_lab.compiler.worker.build import (
    Stopwatch,
    build_program,
    graph_of,
    lowered_again,
    parse,
    split_program,
    with_text,
)
from avial_lab.compiler.worker.export import exported
from avial_lab.compiler.worker.inspect.inspect import look_at_text, look_inside
from avial_lab.compiler.worker.inspect.pass_log import PassLog
from avial_lab.compiler.worker.iteration_spaces import nests_on
from avial_lab.compiler.worker.layers import foresee, simulate_divided, weigh_layers
from avial_lab.compiler.worker.reference.fresh_tensors import tensors_to_fresh_memory
from avial_lab.compiler.worker.reference.interpreter import reference
from avial_lab.compiler.worker.reference.sample_arguments import trial_arguments
from avial_lab.compiler.worker.resume import edited_build, is_program, resumed, watched_stages
from avial_lab.compiler.worker.task_demands import task_demands
from avial_lab.compiler.worker.task_times import task_times
from avial_lab.compiler.worker.walk import walked
from avial_lab.core.errors import AvialError, InternalError
from avial_lab.core.files import disk_error
from avial_lab.machine.cpu import this_cpu


def answer(question: Question) -> Answer | AvialError:
    """The answer to `question`, or the AvialError that stands in its way."""
    try:
        return _ANSWERS[type(question)](question)
    except AvialError as error:
        error.span = with_text(error.span, question.source)
        return error
    except MemoryError:
        raise
    except OSError as error:
        return disk_error(error) or _fault(error)
    except Exception as error:  # whatever else is a fault of ours, told with its traceback
        return _fault(error)


def _fault(error: Exception) -> InternalError:
    trace = "".join(traceback.format_exception(error))
    return InternalError(f"{type(error).__name__}: {error}\n{trace}")


def _analyse(question: Analyse) -> Analysis:
    watch = Stopwatch()
    module = parse(question.source)
    watch.lap("parse")
    plain = is_plain(module) or is_structured(module)
    tasks = split_program(module, question.source).module if plain else module
    graph = graph_of(tasks, question.source)
    watch.lap("dag")
    return Analysis(graph, watch.seconds)


def _explore(question: Explore) -> Explored:
    module = parse(question.source)
    if not (is_plain(module) or is_structured(module)):
        return Explored(())
    structured = split_program(module, question.source, grid=question.grid).module
    return Explored(
        tuple(
            replace(nest, span=with_text(nest.span, question.source))
            for nest in nests_on(structured)
        )
    )


def _print_back(question: PrintBack) -> Printed:
    module = parse(question.source)
    if not is_plain(module):
        return Printed(print_module(module))
    split = split_program(module, question.source, grid=question.grid)
    return Printed(print_explained(split.module))


def _look(question: Look) -> Inside:
    """(Of stages that an edit of the program's own text came before, as of any program.)"""
    build, built, after = question.build, question.built, question.after
    if after is not None and is_program(after):
        build, after = edited_build(after), None
    if after is None:
        stages, log = lowered_again(build, built)
        inside = look_inside(stages, log, build.source.cell)
    elif after.stage in ("placed", "avial", "mpi", "loops", "host", "llvm"):
        log = PassLog(after.text, f"{after.stage}.mlir")
        inside = look_inside(watched_stages(after, log.watch), log, after.source.cell)
    else:
        made = (stage for stage in built.stages if stage.edited == after.stage)
        inside = look_at_text(made, after.stage)
    order = [stage.name for stage in built.stages]
    shown = {stage.name: len(stage.text.splitlines()) for stage in built.stages}
    return Inside(
        tuple(
            _of_lines(stage, shown[stage.name])
            for stage in sorted(inside.stages, key=lambda stage: order.index(stage.name))
        )
    )


def _of_lines(stage: StageInside, count: int) -> StageInside:
    """With as many lines as are shown: comments may follow what the passes made."""
    return replace(stage, origins=(*stage.origins, *((),) * (count - len(stage.origins))))


def _reference(question: RunReference) -> Referenced:
    module = parse(question.source, to_memory=tensors_to_fresh_memory, sequential=True)
    buffers, storages = caller_memory(program_function(module), question.source.binding)
    step = None if question.journal is None else _mapped(question.journal)
    result = reference(
        module,
        buffers,
        storages,
        question.data,
        bounds_checks=question.bounds,
        strict=question.strict,
        journal=step,
    )
    violations = tuple(
        Violation(found.message, with_text(found.span, question.source), found.asserted)
        for found in result.violations
    )
    return Referenced(result.data, violations, result.seconds, result.ended)


def _mapped(path: str) -> ctypes.c_int64:
    """The word in that file, mapped into memory as long as somebody holds it."""
    with open(path, "r+b") as file:
        return ctypes.c_int64.from_buffer(mmap.mmap(file.fileno(), 8))


def _propose(question: Propose) -> Proposal:
    return Proposal(trial_arguments(question.source, question.given))


def _weigh(question: Weigh) -> Weighed:
    """(A plain function that could not be divided is one task.)"""
    module = parse(question.source)
    if is_plain(module) or is_structured(module):
        split = split_program(module, question.source).module
        return Weighed(task_demands(split) | demands_in(split), runs_in(split))
    return Weighed(task_demands(module.operation))


def _time_loops(question: TimeLoops) -> LoopTimes:
    """(The text is a stage's own: it parses.)"""
    context = ir.Context()
    register(context)
    with context:
        module = ir.Module.parse(question.text)
    times = core_times(module.operation, question.entry, question.threads, this_cpu())
    return LoopTimes(times)


def _time_tasks(question: TimeTasks) -> TaskTimes:
    module = parse(question.source)
    tasks: ir.Module | ir.Operation = module
    if is_plain(module) or is_structured(module):
        tasks = split_program(module, question.source).module
    graph = graph_of(tasks, question.source)
    return TaskTimes(task_times(tasks, graph, question.options, question.threads))


_ANSWERS: dict[type, Callable[[Any], Any]] = {
    Analyse: _analyse,
    Build: build_program,
    Explore: _explore,
    Export: exported,
    Foresee: foresee,
    Look: _look,
    PrintBack: _print_back,
    Propose: _propose,
    Resume: resumed,
    RunReference: _reference,
    TimeLoops: _time_loops,
    TimeTasks: _time_tasks,
    Walk: walked,
    Weigh: _weigh,
    WeighLayers: weigh_layers,
    Simulate: simulate_divided,
}
