"""A program as it was asked for, built: parsed, split into tasks, placed, lowered, compiled.

Build -> Built. Errors carry places without their text where they come from MLIR.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain

from mlir import ir

from avial_lab.artifact.binary import Binary, MachineCode
from avial_lab.artifact.device_memory import without_copies
from avial_lab.artifact.explanation import LoopReport
from avial_lab.artifact.manifest import KnownMessages
from avial_lab.artifact.plan import Plan
from avial_lab.artifact.stages import Stage
from avial_lab.compiler.analysis.accesses.buffers import argument_name
from avial_lab.compiler.analysis.accesses.program import read_groups, read_program, writes_between
from avial_lab.compiler.analysis.accesses.reassociation import reordered_storages
from avial_lab.compiler.analysis.costs.demand import demands_in
from avial_lab.compiler.backends.llvm import binary_of
from avial_lab.compiler.catalogue import ARRAYS, GRADIENT, PLACED, WHOLE
from avial_lab.compiler.codegen.math.functions import FUNCTIONS
from avial_lab.compiler.frontends.mlir import is_plain, parse_cell
from avial_lab.compiler.frontends.mlir.arguments import bind_arguments
from avial_lab.compiler.frontends.mlir.cells import ToMemory
from avial_lab.compiler.frontends.mlir.tensors import tensors_to_memory
from avial_lab.compiler.ir.attributes import CONTRACTED, ON
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.ir.placements import has_placements
from avial_lab.compiler.ir.program import is_structured, program_function
from avial_lab.compiler.ir.ptensor_types import short_types
from avial_lab.compiler.ir.views import is_memref
from avial_lab.compiler.lowering.arithmetic import settled
from avial_lab.compiler.lowering.facts import Finished, finished_phases
from avial_lab.compiler.lowering.lower import (
    lower_structured,
    lower_tasks,
    scheduled_binary,
    split_into_tasks,
    to_checked,
)
from avial_lab.compiler.lowering.predicted_messages import with_messages
from avial_lab.compiler.lowering.run import Pass, Stages, Watch, run_passes
from avial_lab.compiler.lowering.stages import (
    in_reading_order,
    kernels_of_stages,
    mlir_stage,
    our_line,
    ptx_in,
    text_of,
)
from avial_lab.compiler.options import CompileOptions
from avial_lab.compiler.passes.arithmetic.contract_fma import ContractFma
from avial_lab.compiler.passes.arithmetic.select_math import functions_chosen
from avial_lab.compiler.passes.distribution.tasks_to_mpi import refuse_many
from avial_lab.compiler.passes.ptensor.dist_to_runtime import has_dist
from avial_lab.compiler.passes.ptensor.lower_ptensor import has_ptensor
from avial_lab.compiler.passes.tasks.check_accesses import CheckAccesses
from avial_lab.compiler.passes.tasks.inline_calls import InlineCalls
from avial_lab.compiler.requests import ANY_SIZE, Build, Built, Source
from avial_lab.compiler.worker.explain import loop_reports_on
from avial_lab.compiler.worker.inspect.pass_log import PassLog
from avial_lab.compiler.worker.placed import (
    parallel_passes,
    prepare_tensors_to_place,
    ranks_of_tasks,
    schedule_on_ranks,
    sums_of_tasks,
    told_of_division,
)
from avial_lab.compiler.worker.plan import planned_binary
from avial_lab.compiler.worker.task_demands import task_demands
from avial_lab.compiler.worker.task_times import task_times
from avial_lab.core.buffers import Number
from avial_lab.core.cache import digest, fingerprint, made_once, spelled
from avial_lab.core.errors import AvialError, CellSpan, InternalError, PassError, ScheduleError
from avial_lab.machine.devices import GPU_FAMILY
from avial_lab.machine.topology import Topology, with_real_gpus
from avial_lab.planning.costs import Costs
from avial_lab.planning.distribution import Division
from avial_lab.planning.placement import schedule_phases, schedule_tasks
from avial_lab.planning.policies import Policy
from avial_lab.planning.schedule import Schedule, Sync, check_no_policy
from avial_lab.planning.task_graph import TaskGraph, build_dag


class Stopwatch:
    """Seconds since the last lap, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now


def with_text(span: CellSpan | None, source: Source) -> CellSpan | None:
    return (
        replace(span, text=source.shown) if span is not None and span.cell == source.cell else span
    )


def parse(
    source: Source,
    *,
    dynamic: bool = False,
    to_memory: ToMemory = tensors_to_memory,
    sequential: bool = False,
    stages: list[ArrayStage] | None = None,
) -> ir.Module:
    """The program in the source's text. Tensors that lie on several devices are tasks for these;
    `sequential`: they are tensors like any other. stages: is given those of a program of arrays.
    """

    def lowered(module: ir.Module) -> bool:
        lower_arrays(module.operation, source, stages)
        return _arrays_to_loops(module, source, to_memory, sequential)

    return parse_source(source, lowered, dynamic=dynamic)


def parse_source(source: Source, to_memory: ToMemory, *, dynamic: bool = False) -> ir.Module:
    """The program in the source's text, in a context of its own; what becomes of its tensors is
    `to_memory`'s.
    """
    return parse_cell(
        source.text,
        cell=source.cell,
        context=ir.Context(),
        binding=source.binding,
        scalars=source.scalars,
        function=source.function,
        dynamic=dynamic,
        to_memory=to_memory,
    )


ArrayStage = tuple[Stage, ir.Operation, Pass]
"""A stage of a program of arrays, its module, and the pass that makes the next one of it."""


def lower_arrays(module: ir.Operation, source: Source, stages: list[ArrayStage] | None) -> None:
    """Operations on ptensors and dtensors as loops on memory. stages: to be added to."""
    ignored = {f"ignore_{what}": True for what in source.ignore}
    lower, to_runtime = ARRAYS.passes({"lower-ptensor": ignored})
    steps = (
        (has_ptensor, "ptensor", "operations on arrays", lower),
        (has_dist, "dist", "loops, and operations on divided memory", to_runtime),
    )
    line = ""
    for there, name, title, item in steps:
        if not there(module):
            continue
        if stages is not None:
            made = mlir_stage(name, title, module, line, 0.0)
            before = replace(made, text=short_types(made.text))
            stages.append((before, module.clone().operation, item))
        run_passes(module, (item,))
        line = our_line((item,), f"{name}.mlir", "dist.mlir" if item is lower else "source.mlir")
    if ON in module.attributes:
        del module.attributes[ON]  # who asked has the option


def _arrays_to_loops(
    module: ir.Module, source: Source, to_memory: ToMemory, sequential: bool
) -> bool:
    """Tensors of all kinds: MLIR's, and those on several devices."""
    if source.update or source.gradient:
        to_tensors(module, source)
    if sequential or not (source.parallel or has_placements(module.operation)):
        return to_memory(module)
    prepare_tensors_to_place(module, source.scalars)
    run_passes(module.operation, (*parallel_passes(source.parallel), *PLACED.passes()))
    return True


def to_tensors(module: ir.Module, source: Source) -> None:
    """One function on tensors, with the gradients and updates that the source asks for."""
    if source.update and not source.gradient:
        raise ScheduleError(
            "weights follow gradients, and there are none",
            hint="name the weights, too: --gradient 'w0 w1'",
        )
    prepare_tensors_to_place(module, source.scalars)
    if source.gradient:
        given = {
            "differentiate": {"of": source.gradient},
            "update-weights": {"of": source.gradient, "rule": source.update}
            if source.update
            else None,
        }
        run_passes(module.operation, GRADIENT.passes(given))


def graph_of(module: ir.Module | ir.Operation, source: Source) -> TaskGraph:
    tasks, buffers, storages = read_program(module, source.binding)
    placed = [replace(task, span=with_text(task.span, source)) for task in tasks]
    groups = [replace(group, span=with_text(group.span, source)) for group in read_groups(module)]
    if not all(task.in_bounds for task in tasks):
        refuse_out_of_bounds(module)
    return build_dag(placed, buffers, storages, groups)


def refuse_out_of_bounds(module: ir.Module | ir.Operation) -> None:
    """VerifyError where a task certainly leaves an array, itself or in a function that it calls."""
    run_passes(module.operation.clone().operation, (InlineCalls(), CheckAccesses()))


@dataclass(frozen=True)
class SplitProgram:
    """A program as loops around tasks, or as one task (`whole`) where it cannot be that."""

    module: ir.Operation
    whole: bool


def split_program(
    module: ir.Module,
    source: Source,
    *,
    grid: bool = False,
    strict: bool = False,
    on: str = "",
    watch: Watch | None = None,
) -> SplitProgram:
    """The program as loops around tasks; a plain function that cannot be is one task."""
    binding = source.binding
    if binding is not None and any(storage.shared for storage in binding.storages):
        return SplitProgram(as_one(module, "its arrays share memory", strict=strict), whole=True)
    try:
        return SplitProgram(
            split_into_tasks(module, grid=grid, strict=strict, on=on, watch=watch), whole=False
        )
    except PassError as error:
        if not is_plain(module):
            raise
        return SplitProgram(as_one(module, error.message, strict=strict), whole=True)


def build_program(question: Build) -> Built:
    watch = Stopwatch()
    if question.options.dynamic:
        return build_dynamic(question, watch)
    arrays: list[ArrayStage] = []
    module = parse(question.source, stages=arrays)
    function = program_function(module)
    refuse_many(function, sum(map(is_memref, function.regions[0].blocks[0].arguments)))
    watch.lap("parse")
    if is_plain(module) or is_structured(module):
        built = build_loops(question, module, watch)
        return replace(built, stages=(*(stage for stage, _, _ in arrays), *built.stages))
    question.options.division.refuse_for_tasks()
    return build_tasks(question, module, watch)


def _contracts(question: Build, module: ir.Module | ir.Operation) -> bool:
    """Whether products are fused with sums: where the program did not say that they stay."""
    attributes = module.operation.attributes
    if CONTRACTED in attributes and attributes[CONTRACTED] == ir.BoolAttr.get(
        False, module.context
    ):
        return False
    return ContractFma() in settled(strict=question.options.strict)


def build_tasks(question: Build, module: ir.Module | ir.Operation, watch: Stopwatch) -> Built:
    """A program of tasks alone: every message is known before it runs."""
    options = question.options
    graph = graph_of(module, question.source)
    watch.lap("dag")
    topology = topology_for(question, graph)
    policy = options.policy or Policy.LEVELS
    costs = _costs_of(module, graph, topology, options) if policy.looks_at_costs else None
    ranks = ranks_of_tasks(module.operation)
    if ranks:
        check_no_policy(options.policy)
        schedule = schedule_on_ranks(graph, topology, ranks, sync=options.sync)
    else:
        schedule = schedule_tasks(graph, topology, policy=policy, sync=options.sync, costs=costs)
    watch.lap("schedule")
    done, binary = scheduled_binary(module, schedule, options)
    watch.lap("build")
    sums, binding = {**done.sums, **sums_of_tasks(module.operation)}, question.source.binding
    return Built(
        schedule,
        in_reading_order(done.stages),
        binary,
        watch.seconds,
        reports=tuple(
            replace(report, done=done.remarks.get(report.name, ()))
            for report in loop_reports_in(module.operation, question.source)
        ),
        reordered=reordered_storages(module.operation, binding, divided=False, sums=sums)
        if sums
        else {},
        contracted=_contracts(question, module),
        functions=_functions(module, strict=options.strict),
        divided=told_of_division(module.operation),
    )


def _costs_of(
    module: ir.Module | ir.Operation, graph: TaskGraph, topology: Topology, options: CompileOptions
) -> Costs:
    """As a placement is judged by it, before the program is lowered for that."""
    threads = {1, *topology.cores_of_rank}
    return Costs(task_demands(module.operation), loops=task_times(module, graph, options, threads))


def _functions(module: ir.Module | ir.Operation, *, strict: bool) -> tuple[str, ...]:
    """The elementary functions that became code; tasks have none as a rule, and may be many."""
    if not operations_named(module.operation, *FUNCTIONS):
        return ()
    chosen = module.operation.clone().operation
    run_passes(chosen, settled(strict=strict))
    return functions_chosen(chosen)


def build_loops(question: Build, module: ir.Module, watch: Stopwatch) -> Built:
    """A program of loops around tasks: the ownership runtime finds the messages as it runs."""
    strict, grid = question.options.strict, question.options.division.grid
    on = question.options.on or ""
    if question.whole and is_plain(module):
        split = SplitProgram(as_one(module, question.whole, strict=strict), whole=True)
    else:
        split = split_program(module, question.source, grid=grid, strict=strict, on=on)
    watch.lap("analysis")
    if not split.whole:
        try:
            return build_split(question, module, split.module, watch)
        except PassError as error:
            if not is_plain(module):
                raise
            split = SplitProgram(as_one(module, error.message, strict=strict), whole=True)
    built, division = build_tasks(question, split.module, watch), question.options.division
    if division == Division():
        return built
    idle = f"division '{division}' has no effect: the program is one task"
    reports = (replace(each, reasons=(*each.reasons, idle)) for each in built.reports)
    return replace(built, reports=tuple(reports))


def build_dynamic(question: Build, watch: Stopwatch) -> Built:
    """A plain function for arrays of any size and any numbers; where it cannot be that, for those
    that it is given.
    """
    source = question.source
    fixed = parse(source)
    why = _fixed(fixed, source)
    if not why:
        # What these sizes make wrong is told as of any program.
        checks = to_checked(strict=question.options.strict)
        run_passes(fixed.operation, checks)
        watch.lap("check")
        try:
            module = parse(source, dynamic=True)
            text = str(module.operation.get_asm(enable_debug_info=True))
            structured = _cached_tasks(
                text,
                question.options.division.grid,
                question.options.strict,
                question.options.on or "",
            )
            watch.lap("analysis")
            built = build_split(question, module, structured, watch)
            return replace(built, sizes=ANY_SIZE)
        except InternalError:
            raise  # a fault of ours is told
        except AvialError as error:
            why = error.message
    built = build_program(replace(question, options=replace(question.options, dynamic=False)))
    return replace(built, sizes=f"compiled for these sizes and numbers only: {why}")


@lru_cache(maxsize=8)
def _cached_tasks(text: str, grid: bool, strict: bool, on: str) -> ir.Operation:
    """The program of that text, with its places, as loops around tasks; nobody changes it."""
    context = ir.Context()
    register(context)
    with context:
        module = ir.Module.parse(text)
    return split_into_tasks(module, grid=grid, strict=strict, on=on)


def _fixed(module: ir.Module, source: Source) -> str:
    """Why the program cannot do for other sizes; "" where it may."""
    if not is_plain(module):
        return "only plain functions are compiled for any sizes"
    binding = source.binding
    if binding is None:
        return "it is given no arrays"
    if any(storage.shared for storage in binding.storages):
        return "its arrays share memory"
    return ""


def sized(structured: ir.Operation, source: Source) -> ir.Operation:
    """The tasks of a program for arrays of any size, as they are with those of `source`.

    before:  func.func @f(%A: memref<?xf64>, %n: index)
    after:   func.func @f(%A: memref<8xf64>)
    """
    work = structured.clone().operation
    with work.context:
        bind_arguments(program_function(work), source.binding, source.scalars, all_known=False)
    return work


def numbers_of(module: ir.Operation, source: Source) -> tuple[Number, ...]:
    """What the program's function is handed besides arrays, in its order."""
    function = program_function(module)
    names = function.attributes.get("arg_attrs")
    return tuple(
        Number(name, str(argument.type), source.scalars[name])
        for k, argument in enumerate(function.regions[0].blocks[0].arguments)
        if not is_memref(argument) and (name := argument_name(names, k))
    )


def build_split(
    question: Build, module: ir.Module | ir.Operation, structured: ir.Operation, watch: Stopwatch
) -> Built:
    """The program whose loops around tasks are `structured`; `module` is what it was before."""
    options = question.options
    check_no_policy(options.policy)
    placed = sized(structured, question.source) if options.dynamic else structured
    numbers = numbers_of(structured, question.source) if options.dynamic else ()
    graph = graph_of(placed, question.source)
    watch.lap("dag")
    topology = topology_for(question, graph)
    demands = cache(lambda: demands_in(placed))
    done = lowered(question, module, structured, topology, meanwhile=demands)
    watch.lap("build")
    binary, plan, schedule = planned(
        done.code,
        graph,
        topology,
        done.phases,
        sync=question.options.sync,
        numbers=numbers,
        stages=done.stages,
    )
    watch.lap("plan")
    alone = (f"all of the program runs on one rank: {done.alone}",) if done.alone else ()
    reports = tuple(
        replace(
            report,
            reasons=(
                *report.reasons,
                *(alone if not report.depth else ()),
                *done.fused.get(report.name, ()),
            ),
            done=done.remarks.get(report.name, ()),
            demand=demands().get(report.name),
        )
        for report in loop_reports_in(structured, question.source)
    )
    binding = question.source.binding
    divided = topology.ranks > 1
    reordered = reordered_storages(placed, binding, divided=divided, sums=done.sums)
    made = _with_messages(in_reading_order(done.stages), plan, done.phases)
    return Built(
        schedule,
        made,
        binary,
        watch.seconds,
        plan,
        reports,
        reordered,
        _contracts(question, structured),
        functions_chosen(structured),
        between=writes_between(placed, binding),
    )


def lowered(
    question: Build,
    module: ir.Module | ir.Operation,
    structured: ir.Operation,
    topology: Topology,
    *,
    meanwhile: Callable[[], object],
) -> Finished:
    """The program's code; that of a dynamic one is made once for all sizes. While tools are at it,
    `meanwhile` is called.
    """
    options = question.options

    def make() -> Finished:
        stages = lower_structured(module, structured, topology, options.division, options)
        return finished_phases(_beside_tools(stages, meanwhile))

    if not options.dynamic:
        return make()
    texts = (text_of(module.operation), text_of(structured))
    how = (topology, options.settled)
    return made_once("dynamic", digest(repr(fingerprint()), *texts, spelled(how)), make)


def _beside_tools(stages: Stages, work: Callable[[], object]) -> Stages:
    """The same stages, with `work` done where the last one is still being made."""
    for stage, of in stages:
        if stage.name == "llvmir":
            work()
        yield stage, of


def planned(
    code: MachineCode,
    graph: TaskGraph,
    topology: Topology,
    phases: tuple[str, ...],
    *,
    sync: Sync,
    edited: str = "",
    numbers: tuple[Number, ...] = (),
    stages: Sequence[Stage],
) -> tuple[Binary, Plan, Schedule]:
    """A program of loops, the plan of its runs, and the schedule that follows from it."""
    binary, plan = planned_binary(
        code,
        graph,
        topology.ranks,
        phases,
        edited=edited,
        numbers=numbers,
        drivers=topology.drivers,
        ptx=ptx_in(stages),
    )
    kernels = kernels_of_stages(stages, topology)
    schedule = schedule_phases(
        graph,
        topology,
        inputs=plan.inputs,
        results=plan.results,
        moves=plan.moves,
        phases=plan.runs,
        sync=sync,
        rank_of={f.phase: f.rank for f in plan.footprints if f.rank >= 0},
    )
    manifest = replace(binary.manifest, kinds=schedule.device_kinds, kernels=kernels)
    stays = without_copies(plan.stays, manifest.homes, kernels, manifest.tasks)
    manifest = replace(manifest, stays=stays)
    return replace(binary, manifest=manifest), replace(plan, stays=stays), schedule


def with_code(
    built: Built, code: MachineCode, stages: tuple[Stage, ...], phases: tuple[str, ...]
) -> Built:
    """`built` with other stages and machine code; where the ownership runtime finds the messages,
    the runs are planned anew, for phases of these names.
    """
    manifest, schedule = built.binary.manifest, built.schedule
    if isinstance(manifest, KnownMessages):
        return replace(built, stages=stages, binary=binary_of(code, manifest, ptx=ptx_in(stages)))
    graph, topology = schedule.graph, schedule.topology
    binary, plan, schedule = planned(
        code, graph, topology, phases, sync=schedule.sync, stages=stages
    )
    stages = _with_messages(stages, plan, phases)
    return replace(built, stages=stages, binary=binary, plan=plan, schedule=schedule)


def _with_messages(
    stages: tuple[Stage, ...], plan: Plan, phases: tuple[str, ...]
) -> tuple[Stage, ...]:
    """What the plan foresees is told where the ranks' calls stand; a text edited by hand stays."""
    return tuple(
        replace(stage, text=with_messages(stage.text, plan, phases))
        if stage.name == "mpi" and stage.edited != "mpi"
        else stage
        for stage in stages
    )


def lowered_again(build: Build, built: Built) -> tuple[Stages, PassLog]:
    """The stages of a program once more, and the log of the passes that make them."""
    arrays: list[ArrayStage] = []
    module = parse(build.source, dynamic=built.dynamic, stages=arrays)
    options, strict = build.options, build.options.strict
    if isinstance(built.binary.manifest, KnownMessages):
        plain = is_plain(module) or is_structured(module)
        why = built.reports[0].reasons[0] if plain else ""
        tasks = as_one(module, why, strict=strict) if plain else module.operation
        log = PassLog(text_of(tasks), "avial.mlir")
        return lower_tasks(tasks, built.schedule, options, watch=log.watch), log
    log = PassLog(text_of(module.operation), "source.mlir")
    _arrays_again(arrays, log)
    grid, topology = options.division.grid, built.schedule.topology
    split = split_program(module, build.source, grid=grid, strict=strict, watch=log.watch)
    stages = lower_structured(
        module, split.module, topology, options.division, options, watch=log.watch
    )
    return chain(((stage, made) for stage, made, _ in arrays), stages), log


def _arrays_again(arrays: Sequence[ArrayStage], log: PassLog) -> None:
    """The passes of a program of arrays until it is one of loops, in stage `source`."""
    source = log.text, log.file
    for stage, module, item in arrays:
        log.text, log.file = stage.text, f"{stage.name}.mlir"
        log.made(stage.name)
        run_passes(module.clone().operation, (item,), watch=log.watch)
    log.made("source")
    log.text, log.file = source


def loop_reports_in(module: ir.Operation, source: Source) -> tuple[LoopReport, ...]:
    return tuple(
        replace(report, span=with_text(report.span, source)) for report in loop_reports_on(module)
    )


def as_one(module: ir.Module, why: str, *, strict: bool) -> ir.Operation:
    whole = module.operation.clone().operation
    run_passes(whole, (*settled(strict=strict), *WHOLE.passes({"one-task": {"why": why}})))
    return whole


def topology_for(question: Build, graph: TaskGraph) -> Topology:
    """What was given, or ranks of this machine; with its GPUs, or emulated ones."""
    local = Topology.local(question.options.ranks, gpus=gpus_of(question, graph))
    return with_real_gpus(question.topology or local, question.chips)


def gpus_of(question: Build, graph: TaskGraph) -> int:
    """As many as asked for; else one a rank where all is to run there, or one where some task asks
    for a GPU.
    """
    if question.options.gpus is not None:
        return question.options.gpus
    if question.options.on == GPU_FAMILY:
        return question.options.ranks
    return int(any(task.target.kind.family == GPU_FAMILY for task in graph.tasks))
