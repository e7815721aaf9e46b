"""The one way down, stage by stage, each one kept as text with the line that makes it.

A plain function, replicates and converges, or tasks alone -> tasks -> stages, machine code.

    source ─► avial ─► placed ─► mpi ─► loops ─► host ─┬─► llvm ─► llvmir ─► object
                                                       └─► gpu ─► ptx:task3

What differs is where messages come from: a schedule of tasks knows them when the program is
compiled (tasks-to-mpi), for phases of loops the ownership runtime derives them as the program runs
(replicate-to-mpi). From stage `mpi` on there is no difference.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from mlir import ir

from avial_lab.artifact.binary import Binary
from avial_lab.artifact.manifest import KnownMessages
from avial_lab.artifact.stages import Stage
from avial_lab.compiler.backends.llvm import binary_of
from avial_lab.compiler.catalogue import (
    GROUP_PHASES,
    LOOPS,
    ON_DEVICES,
    PHASES_TO_MPI,
    PLAIN,
    TASKS_TO_MPI,
    WRITTEN,
)
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import loops_in
from avial_lab.compiler.ir.program import PROGRAMS, is_plain, program_function
from avial_lab.compiler.lowering.arithmetic import settled
from avial_lab.compiler.lowering.facts import Finished, finished_phases
from avial_lab.compiler.lowering.gpu import (
    Compiled,
    compile_kernels,
    has_kernels,
    kernel_stages,
    kernels_of,
)
from avial_lab.compiler.lowering.machine_code import Images, to_tools
from avial_lab.compiler.lowering.pipelines import TO_HOST
from avial_lab.compiler.lowering.run import Pass, Stages, Watch, run_passes
from avial_lab.compiler.lowering.stages import (
    kernels_of_stages,
    mlir_stage,
    object_stage,
    our_line,
    ptx_in,
)
from avial_lab.compiler.options import CompileOptions
from avial_lab.compiler.pass_rows import Given
from avial_lab.compiler.passes.loops.contractions.block_contractions import BlockContractions
from avial_lab.compiler.passes.placement.place_phases import PlacePhases
from avial_lab.compiler.passes.placement.place_tasks import PlaceTasks
from avial_lab.core.errors import PassError
from avial_lab.machine.cpu import NATIVE
from avial_lab.machine.topology import Topology
from avial_lab.planning.distribution import Division
from avial_lab.planning.schedule import Schedule


def to_tasks(
    *, plain: bool, grid: bool, strict: bool = False, on: str = ""
) -> tuple[Pass | str, ...]:
    """From a plain function, or from replicates as people write them, to what is lowered; where it
    is to run `on` other devices than its text says.
    """
    first = settled(strict=strict)
    where = {"on": on} if on else None
    target: Given = {row.name: where for row in ON_DEVICES}
    if not plain:
        return (*first, *WRITTEN.passes({"complete-replicates": {"grid": grid}, **target}))
    return (*first, *PLAIN.passes({"drop-in": {"grid": grid}, **target}))


def to_checked(*, strict: bool = False) -> tuple[Pass | str, ...]:
    """Of what a plain function goes through, up to where its accesses are checked."""
    passes = to_tasks(plain=True, grid=False, strict=strict)
    return passes[: [str(each) for each in passes].index("check-accesses") + 1]


def split_into_tasks(
    module: ir.Module | ir.Operation,
    *,
    grid: bool = False,
    strict: bool = False,
    on: str = "",
    watch: Watch | None = None,
) -> ir.Operation:
    """The program with its parallel nests in replicates and the rest in tasks; `module` stays.

    With `grid` a second loop of each nest is divided too, where there is one.
    """
    work = module.operation.clone().operation
    _refuse_deep(work)
    passes = to_tasks(plain=is_plain(work), grid=grid, strict=strict, on=on)
    run_passes(work, passes, watch=watch)
    return work


MOST_LOOPS = 16
"""Inside of each other that are analysed: what isl does for one of them grows with their number."""


def _refuse_deep(module: ir.Operation) -> None:
    """PassError where more loops than that nest."""
    depths: dict[ir.Operation, int] = {}
    for loop in loops_in(module):  # outer before inner
        around = parent_of(loop)
        while around is not None and around not in depths:
            around = parent_of(around)
        depths[loop] = depth = depths[around] + 1 if around is not None else 1
        if depth > MOST_LOOPS:
            raise PassError(
                f"loops nest deeper than the {MOST_LOOPS} that are analysed",
                span=span_of(loop.location),
            )


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
    text = "the program as read"
    yield mlir_stage("source", text, source.operation, "", 0.0), source.operation
    passes = to_tasks(
        plain=is_plain(source), grid=division.grid, strict=options.strict, on=options.on or ""
    )
    line = our_line(passes, "source.mlir", "avial.mlir")
    yield mlir_stage("avial", "its loops as tasks", structured, line, 0.0), structured
    work = structured.clone().operation
    place = PlacePhases(topology, division, options.sync)
    # Who writes replicates, or a division, wants to see it.
    given_up = is_plain(source) and division == Division() and options.on != "gpu"
    placed = (place, *to_one(topology, options, given_up=given_up))
    seconds = run_passes(work, placed, watch=watch)
    line = our_line(placed, "avial.mlir", "placed.mlir") if place.has_command_line else ""
    yield (
        mlir_stage(
            "placed", "the ranks of each phase, and how its loops are divided", work, line, seconds
        ),
        work,
    )
    yield from lower_placed(work, options, watch=watch)


def to_one(topology: Topology, options: CompileOptions, *, given_up: bool) -> tuple[Pass, ...]:
    """What makes several phases one: so that no rank waits for another, or that all do so less.

    With `given_up`, what was found to be parallel may stay on one of several ranks.
    """
    several = topology.ranks > 1
    blocking = BlockContractions(**options.sizes_of("block-contractions"))
    steps = blocking.steps if options.keeps("block-contractions") else 0
    ranks = {"ranks": topology.ranks}
    fuse = {**options.sizes_of("tile-time"), "steps": steps, **ranks}
    given: Given = {
        "align-reductions": ranks if several and given_up else None,
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
    yield mlir_stage("avial", "the program as read", work, "", 0.0), work
    place = PlaceTasks(schedule)
    passes = (*settled(strict=options.strict), place)
    seconds = run_passes(work, passes, watch=watch)
    line = our_line(passes, "avial.mlir", "placed.mlir") if place.has_command_line else ""
    yield (
        mlir_stage("placed", "the device of each task, and every message", work, line, seconds),
        work,
    )
    yield from lower_placed(work, options, watch=watch)


def lower_placed(
    work: ir.Operation, options: CompileOptions, *, watch: Watch | None = None
) -> Stages:
    """On from tasks or phases that are placed; `work` is changed.

    Where a schedule stands in the text the messages are known; else the ownership runtime, which
    the entry calls, finds them.
    """
    scheduled = PROGRAMS in program_function(work).attributes
    unchecked = {} if scheduled or not options.no_bounds else {"bounds": False}
    to_mpi = (
        TASKS_TO_MPI.passes()
        if scheduled
        else PHASES_TO_MPI.passes({"replicate-to-mpi": unchecked})
    )
    title = "the steps of each rank" if scheduled else "the code that every rank runs"
    seconds = run_passes(work, to_mpi, watch=watch)
    line = our_line(to_mpi, "placed.mlir", "mpi.mlir")
    yield mlir_stage("mpi", title, work, line, seconds), work
    yield from lower_mpi(work, options, watch=watch)


def lower_mpi(work: ir.Operation, options: CompileOptions, *, watch: Watch | None = None) -> Stages:
    """On from what the ranks run: loops made fast, and the kernels of GPUs, whose stages come after
    `llvmir`; nothing is made before it is asked for.
    """
    in_order = to_loops(options)
    seconds = run_passes(work, in_order, watch=watch)
    line = our_line(in_order, "mpi.mlir", "loops.mlir")
    title = "loops optimised for the machine"
    yield mlir_stage("loops", title, work, line, seconds), work
    yield from lower_loops(work, watch=watch, cpu=options.cpu_target)


def _compiled(
    work: ir.Operation, pool: ThreadPoolExecutor
) -> tuple[Future[Compiled] | None, Images | None]:
    """The kernels, which are compiled meanwhile, and what waits for their PTX."""
    if not has_kernels(work):
        return None, None
    compiled = pool.submit(compile_kernels, kernels_of(work))
    return compiled, lambda: compiled.result().ptx


def to_loops(options: CompileOptions) -> tuple[Pass | str, ...]:
    """What makes a rank's loops fast."""
    blocks = options.keeps("block-contractions")
    # A BLAS takes no matrix that is mirrored as it is read.
    joins = (
        blocks and options.keeps("merge-split-reductions") and not (options.strict or options.blas)
    )
    given: Given = {
        "check-loaded": None if options.no_bounds else {},
        "unroll-reductions": None
        if options.blas
        else {"blocks": blocks},  # it takes small products too
        "expand-scalars": {"blocks": blocks, "sums": joins},
        "merge-split-reductions": {} if joins else None,
        "expand-arrays": {} if blocks else None,
        "block-contractions": {"blas": options.blas},
    }
    return LOOPS.passes(given, without=options.without, sizes=options.sizes)


def lower_loops(work: ir.Operation, *, watch: Watch | None = None, cpu: str = NATIVE) -> Stages:
    """On from loops in their last order."""
    host = host_stage(work, watch=watch)
    yield host, work
    yield from lower_host(work, host.text, watch=watch, cpu=cpu)


def lower_host(
    work: ir.Operation, text: str, *, watch: Watch | None = None, cpu: str = NATIVE
) -> Stages:
    """On from the host's part, whose text that is: machine code, and the kernels among it."""
    with ThreadPoolExecutor(1, thread_name_prefix="tools") as pool:
        compiled, images = _compiled(work, pool)
        machine = yield from to_tools(work, text, watch, cpu=cpu, images=images)
        if compiled is not None:
            yield from ((stage, None) for stage in kernel_stages(compiled.result()))
        yield object_stage(machine)


def host_stage(work: ir.Operation, *, watch: Watch | None = None) -> Stage:
    """What a CPU runs, made of loops in their last order; `work` is changed."""
    seconds = run_passes(work, TO_HOST, watch=watch)
    line = our_line(TO_HOST, "loops.mlir", "host.mlir")
    return mlir_stage("host", "code for the CPU", work, line, seconds)


def scheduled_binary(
    module: ir.Module | ir.Operation, schedule: Schedule, options: CompileOptions
) -> tuple[Finished, Binary]:
    """The way down of a program of tasks alone, and what engines run."""
    done = finished_phases(lower_tasks(module, schedule, options))
    manifest = KnownMessages.of(schedule, kernels_of_stages(done.stages, schedule.topology))
    return done, binary_of(done.code, manifest, ptx=ptx_in(done.stages))
