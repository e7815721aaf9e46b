"""The way down for structured programs: every rank runs the control flow and its part of each nest.

Plain function, or replicates and converges written by hand -> tasks -> stages, LLVM IR, the phases'
names. (`compiler/lowering/tasks.py` is the way for programs of tasks alone.)

    source ─► avial ─► placed ─► mpi ─► loops ─► host ─► llvm ─► llvmir ─► object
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from mlir import ir

from avial_lab.artifact.explanation import Verdict
from avial_lab.artifact.manifest import DerivedMessages, KnownMessages
from avial_lab.artifact.stages import Stage
from avial_lab.compiler.backends.llvm import Binary, MachineCode, binary_of
from avial_lab.compiler.backends.nvptx import make_kernels
from avial_lab.compiler.catalogue import (
    GROUP_PHASES,
    LOOPS,
    PHASES_TO_MPI,
    PLAIN,
    TASKS_TO_MPI,
    WRITTEN,
)
from avial_lab.compiler.codegen.outline_tasks import tasks_by_function
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.program import PROGRAMS, is_plain, program_function
from avial_lab.compiler.ir.remarks import told_in
from avial_lab.compiler.lowering.tasks import (
    TO_HOST,
    Pass,
    Stages,
    Watch,
    arithmetic,
    finished,
    gpu_stages,
    gpu_text,
    has_gpu_tasks,
    machine_stages,
    mlir_stage,
    object_stage,
    our_line,
    ptx_in,
    run_passes,
    to_tools,
)
from avial_lab.compiler.options import CompileOptions
from avial_lab.compiler.pass_rows import Given
from avial_lab.compiler.passes.distribution.phases import alone_in
from avial_lab.compiler.passes.loops.contractions.block_contractions import BlockLoops
from avial_lab.compiler.passes.loops.reductions.reassociate_sums import reordered_sums
from avial_lab.compiler.passes.placement.align_reductions import shared_sums
from avial_lab.compiler.passes.placement.fuse_phases import fused_in
from avial_lab.compiler.passes.placement.join_phases import joined_in
from avial_lab.compiler.passes.placement.place_phases import PlacePhases
from avial_lab.compiler.passes.placement.place_tasks import PlaceTasks
from avial_lab.core.buffers import Number
from avial_lab.machine.topology import Topology
from avial_lab.planning.distribution import Division
from avial_lab.planning.schedule import Schedule
from avial_lab.planning.task_graph import TaskGraph, TaskKind
from avial_lab.runtime.native.ownership import Plan, plan_run

Told = TypeVar("Told")


def to_tasks(*, plain: bool, grid: bool, strict: bool = False) -> tuple[Pass | str, ...]:
    """From a plain function, or from replicates as people write them, to what is lowered."""
    first = arithmetic(strict=strict)
    if not plain:
        return (*first, *WRITTEN.passes({"complete-replicates": {"grid": grid}}))
    return (*first, *PLAIN.passes({"drop-in": {"grid": grid}}))


def to_checked(*, strict: bool = False) -> tuple[Pass | str, ...]:
    """Of what a plain function goes through, up to where its accesses are checked."""
    passes = to_tasks(plain=True, grid=False, strict=strict)
    return passes[: [str(each) for each in passes].index("check-accesses") + 1]


def take_apart(
    module: ir.Module | ir.Operation,
    *,
    grid: bool = False,
    strict: bool = False,
    watch: Watch | None = None,
) -> ir.Operation:
    """The program with its parallel nests in replicates and the rest in tasks; `module` stays.

    With `grid` a second loop of each nest is divided too, where there is one.
    """
    work = module.operation.clone().operation
    passes = to_tasks(plain=is_plain(work), grid=grid, strict=strict)
    run_passes(work, passes, watch=watch)
    return work


def lower_structured(
    source: ir.Module | ir.Operation,
    structured: ir.Operation,
    topology: Topology,
    division: Division,
    options: CompileOptions,
    *,
    watch: Watch | None = None,
) -> Stages:
    """The stages of a program of replicates: as it was read, its tasks, every rank's control flow,
    machine code.
    """
    text = "the program as it was read"
    yield mlir_stage("source", text, source.operation, "", 0.0), source.operation
    passes = to_tasks(plain=is_plain(source), grid=division.grid, strict=options.strict)
    line = our_line(passes, "source.mlir", "avial.mlir")
    yield mlir_stage("avial", "its loops as tasks", structured, line, 0.0), structured
    work = structured.clone().operation
    place = PlacePhases(topology, division, options.sync)
    # Who writes replicates, or a division, wants to see it.
    given_up = is_plain(source) and division == Division()
    placed = (place, *to_one(topology, options, given_up=given_up))
    seconds = run_passes(work, placed, watch=watch)
    line = our_line(placed, "avial.mlir", "placed.mlir") if place.is_told else ""
    yield mlir_stage("placed", "who takes part, and how it is divided", work, line, seconds), work
    yield from lower_placed(work, options, watch=watch)


def to_one(topology: Topology, options: CompileOptions, *, given_up: bool) -> tuple[Pass, ...]:
    """What makes several phases one: so that no rank waits for another, or that all do so less.

    With `given_up`, what was found to be parallel may stay on one of several ranks.
    """
    several = topology.ranks > 1
    blocking = BlockLoops(**options.sizes_of("block-loops"))
    steps = blocking.steps if options.keeps("block-loops") else 0
    ranks = {"ranks": topology.ranks}
    fuse = {**options.sizes_of("tile-time"), "steps": steps, **ranks}
    given: Given = {
        "share-rows": ranks if several and given_up else None,
        "keep-on-one": ranks if several and given_up else None,
        "widen-halos": ranks if several else None,
        "fuse-phases": fuse if given_up or not several else None,
        "join-phases": ranks if given_up or not several else None,
    }
    return GROUP_PHASES.passes(given, without=options.without, sizes=options.sizes)


def lower_tasks(
    module: ir.Module | ir.Operation,
    schedule: Schedule,
    options: CompileOptions,
    *,
    watch: Watch | None = None,
) -> Stages:
    """The stages of a program of tasks alone under `schedule`; `module` itself stays as it is."""
    work = module.operation.clone().operation
    yield mlir_stage("avial", "the program as it was read", work, "", 0.0), work
    place = PlaceTasks(schedule)
    passes = (*arithmetic(strict=options.strict), place)
    seconds = run_passes(work, passes, watch=watch)
    line = our_line(passes, "avial.mlir", "placed.mlir") if place.is_told else ""
    yield mlir_stage("placed", "every task on its device, every message", work, line, seconds), work
    yield from lower_placed(work, options, watch=watch)


def lower_placed(
    work: ir.Operation, options: CompileOptions, *, watch: Watch | None = None
) -> Stages:
    """On from tasks or phases that are placed; `work` is changed.

    Where a schedule stands in the text the messages are known; else the ownership runtime, which
    the entry calls, finds them.
    """
    scheduled = PROGRAMS in program_function(work).attributes
    to_mpi = (TASKS_TO_MPI if scheduled else PHASES_TO_MPI).passes()
    title = "one block of steps for each rank" if scheduled else "what every rank runs"
    seconds = run_passes(work, to_mpi, watch=watch)
    line = our_line(to_mpi, "placed.mlir", "mpi.mlir")
    yield mlir_stage("mpi", title, work, line, seconds), work
    yield from lower_mpi(work, options, watch=watch)


def lower_mpi(work: ir.Operation, options: CompileOptions, *, watch: Watch | None = None) -> Stages:
    """On from what the ranks run: loops made fast, and beside them the kernels of GPU tasks, which
    come after `llvmir`; nothing is made before it is asked for.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="tools") as pool:
        kernels = pool.submit(make_kernels, gpu_text(work)) if has_gpu_tasks(work) else None
        in_order = to_loops(options)
        seconds = run_passes(work, in_order, watch=watch)
        line = our_line(in_order, "mpi.mlir", "loops.mlir")
        title = "loops in the order the machine likes"
        yield mlir_stage("loops", title, work, line, seconds), work
        host = host_stage(work, watch=watch)
        yield host, work
        machine = yield from to_tools(work, host.text, watch)
        if kernels is not None:
            yield from ((stage, None) for stage in gpu_stages(kernels.result()))
        yield object_stage(machine)


def to_loops(options: CompileOptions) -> tuple[Pass | str, ...]:
    """What makes a rank's loops fast."""
    blocks = options.keeps("block-loops")
    # A BLAS takes no matrix that is mirrored as it is read.
    joins = blocks and options.keeps("join-sums") and not (options.strict or options.blas)
    given: Given = {
        "unroll-sums": None if options.blas else {"blocks": blocks},  # it takes small products too
        "expand-scalars": {"blocks": blocks, "sums": joins},
        "join-sums": {} if joins else None,
        "expand-arrays": {} if blocks else None,
        "block-loops": {"blas": options.blas},
    }
    return LOOPS.passes(given, without=options.without, sizes=options.sizes)


def lower_loops(work: ir.Operation, *, watch: Watch | None = None) -> Stages:
    """On from loops in their last order."""
    host = host_stage(work, watch=watch)
    yield host, work
    yield from machine_stages(work, host.text, watch=watch)


def host_stage(work: ir.Operation, *, watch: Watch | None = None) -> Stage:
    """What a CPU runs, made of loops in their last order; `work` is changed."""
    seconds = run_passes(work, TO_HOST, watch=watch)
    line = our_line(TO_HOST, "loops.mlir", "host.mlir")
    return mlir_stage("host", "what a CPU runs", work, line, seconds)


@dataclass(frozen=True)
class Finished:
    """All stages and the machine code; the names of the phases by their numbers, where a stage had
    them; for each task that was several phases why; the tasks whose
    sums are added in another order, with the most terms of one; what passes told of the phases; why
    it is `alone` on one of several ranks.
    """

    stages: list[Stage]
    code: MachineCode
    phases: tuple[str, ...]
    fused: dict[str, tuple[str, ...]]
    sums: dict[str, int]
    told: dict[str, tuple[str, ...]]
    alone: str | None = None


def finished_phases(stages: Stages) -> Finished:
    """Run to the end, with what is only known on the way."""
    phases: tuple[str, ...] = ()
    fused: dict[str, tuple[str, ...]] = {}
    sums: dict[str, int] = {}
    shared: dict[str, int] = {}
    told: dict[str, tuple[str, ...]] = {}
    joined: dict[str, tuple[str, ...]] = {}
    alone: str | None = None

    def hear(module: ir.Operation) -> None:
        for name, lines in told_in(module).items():
            told[name] = (*told.get(name, ()), *lines)

    def watched() -> Stages:
        nonlocal phases, sums, shared, alone
        for stage, module in stages:
            if stage.name == "placed" and isinstance(module, ir.Operation):
                fused.update(fused_in(module))
                joined.update(joined_in(module))
                alone = alone_in(module)
                shared = {} if alone else shared_sums(module)
                hear(module)
            if stage.name == "mpi" and isinstance(module, ir.Operation):
                phases = phases_in(module)
                joined.update(tasks_by_function(module))
            if stage.name == "loops" and isinstance(module, ir.Operation):
                sums = reordered_sums(module)
                hear(module)
            yield stage, module

    made, code = finished(watched())
    _tell_joined(fused, joined)
    _tell_joined(sums, joined)
    for name, terms in shared.items():
        sums[name] = max(terms, sums.get(name, 0))
    _tell_joined(told, joined)
    return Finished(made, code, phases, fused, sums, told, alone)


def _tell_joined(known: dict[str, Told], joined: Mapping[str, Sequence[str]]) -> None:
    """What is known of a task holds for all the phases that it is."""
    for name, others in joined.items():
        if name in known:
            known.update(dict.fromkeys(others, known[name]))


def phases_in(module: ir.Operation) -> tuple[str, ...]:
    """The names of the phases by their numbers, from what every rank runs."""
    attributes = program_function(module).attributes
    if "avial.phases" not in attributes:
        return ()
    return tuple(ir.StringAttr(name).value for name in ir.ArrayAttr(attributes["avial.phases"]))


def scheduled_binary(
    module: ir.Module | ir.Operation, schedule: Schedule, options: CompileOptions
) -> tuple[Finished, Binary]:
    """The way down of a program of tasks alone, and what engines run."""
    done = finished_phases(lower_tasks(module, schedule, options))
    return done, binary_of(done.code, KnownMessages.of(schedule), ptx=ptx_in(done.stages))


def planned_binary(
    code: MachineCode,
    graph: TaskGraph,
    ranks: int,
    phases: tuple[str, ...],
    *,
    edited: str = "",
    numbers: tuple[Number, ...] = (),
) -> tuple[Binary, Plan]:
    """Machine code with the plan of its runs on that many ranks in the manifest."""
    temporary = {buffer.storage for buffer in graph.buffers if buffer.temporary}
    plan = plan_run(
        code.shared_object,
        graph.storages,
        ranks,
        temporary=temporary,
        phases=phases,
        numbers=numbers,
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
    )
    return binary_of(code, manifest, ptx={}), plan


def verdicts_on(structured: ir.Operation) -> Iterator[Verdict]:
    """What each loop became, from the program of tasks; places without their text."""

    def inside(op: ir.Operation, around: int) -> Iterator[Verdict]:
        for view in (v for region in op.regions for block in region.blocks for v in block):
            inner = view.operation
            kind = _KINDS.get(inner.name)
            if kind is not None:
                why = inner.attributes.get("avial.why") or ir.ArrayAttr.get([], inner.context)
                yield Verdict(
                    text_attribute(inner, "name"),
                    kind,
                    around,
                    tuple(ir.StringAttr(line).value for line in ir.ArrayAttr(why)),
                    span_of(inner.location),
                )
            if kind in (None, TaskKind.CONVERGE):
                yield from inside(inner, around + (kind is TaskKind.CONVERGE))

    yield from inside(program_function(structured), 0)


_KINDS = {
    "avial.replicate": TaskKind.REPLICATE,
    "avial.converge": TaskKind.CONVERGE,
    "avial.task": TaskKind.TASK,
}
