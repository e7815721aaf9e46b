"""The way down for structured programs: every rank runs the control flow and its part of each nest.

Plain function, or replicates and converges written by hand -> tasks -> stages, LLVM IR, the phases'
names. (`pipelines.py` is the way for programs of tasks alone.)

    source ─► avial ─► placed ─► mpi ─► loops ─► host ─► llvm ─► llvmir ─► object
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mlir import ir

from avial_lab.arrays import Number
from avial_lab.binary import Binary, MachineCode, binary_of
from avial_lab.dag import TaskGraph, TaskKind
from avial_lab.dialects.places import span_of
from avial_lab.dialects.program import is_plain, program_function
from avial_lab.division import Division
from avial_lab.effort import Effort
from avial_lab.manifest import DerivedMessages
from avial_lab.ownership import Plan, plan_run
from avial_lab.passes.arrays_apart import ArraysApart
from avial_lab.passes.block_loops import BlockLoops
from avial_lab.passes.block_substitutions import BlockSubstitutions
from avial_lab.passes.check_accesses import CheckAccesses
from avial_lab.passes.check_distances import CheckDistances
from avial_lab.passes.complete_replicates import CompleteReplicates
from avial_lab.passes.converge_to_loops import ConvergeToLoops
from avial_lab.passes.cut_loops import CutLoops
from avial_lab.passes.distribute_loops import DistributeLoops
from avial_lab.passes.drop_in import DropIn
from avial_lab.passes.empty_loops import EmptyLoops
from avial_lab.passes.emulate_gpu import EmulateGpu
from avial_lab.passes.expand_arrays import ExpandArrays
from avial_lab.passes.expand_scalars import ExpandScalars
from avial_lab.passes.flatten_rows import FlattenRows, FlattenSums
from avial_lab.passes.fuse_nests import FuseNests
from avial_lab.passes.fuse_phases import FusePhases, fused_in
from avial_lab.passes.hold_rows import HoldRows
from avial_lab.passes.independent_accesses import IndependentAccesses
from avial_lab.passes.independent_to_llvm import KeepIndependent
from avial_lab.passes.inline_copies import InlineCopies
from avial_lab.passes.interleave_rows import InterleaveRows
from avial_lab.passes.jam_rows import JamRows
from avial_lab.passes.join_phases import JoinPhases, joined_in
from avial_lab.passes.join_sums import JoinSums
from avial_lab.passes.keep_on_one import KeepOnOne
from avial_lab.passes.mark_parallel import MarkParallel
from avial_lab.passes.near_arguments import NearArguments
from avial_lab.passes.normalise import Normalise
from avial_lab.passes.notes import told_in
from avial_lab.passes.order_loops import OrderLoops
from avial_lab.passes.pack_rows import PackRows
from avial_lab.passes.partial_sums import PartialSums
from avial_lab.passes.phases import alone_in
from avial_lab.passes.place_phases import PlacePhases
from avial_lab.passes.program import text_attribute
from avial_lab.passes.promote_scalars import PromoteScalars
from avial_lab.passes.reorder_extremes import ReorderExtremes
from avial_lab.passes.reorder_sums import ReorderSums, reordered_sums
from avial_lab.passes.replicate_to_mpi import ReplicateToMpi
from avial_lab.passes.scratch_per_iteration import ScratchPerIteration
from avial_lab.passes.share_loads import ShareLoads
from avial_lab.passes.share_rows import ShareRows, shared_sums
from avial_lab.passes.split_drivers import SplitDrivers
from avial_lab.passes.split_wraps import SplitWraps
from avial_lab.passes.stream_stores import StreamStores
from avial_lab.passes.thread_loops import ThreadLoops
from avial_lab.passes.thread_sums import ThreadSums
from avial_lab.passes.tile_time import TileTime
from avial_lab.passes.transpose_tiles import TransposeTiles
from avial_lab.passes.unroll_short import UnrollShort
from avial_lab.passes.unroll_sums import UnrollSums
from avial_lab.passes.vectorise_rows import VectoriseRows
from avial_lab.passes.whole_vectors import WholeVectors
from avial_lab.passes.widen_halos import WidenHalos
from avial_lab.pipelines import (
    TO_HOST,
    Pass,
    Stages,
    Watch,
    arithmetic,
    finished,
    machine_stages,
    mlir_stage,
    our_line,
    run_passes,
)
from avial_lab.schedule import Sync
from avial_lab.stages import Stage
from avial_lab.topology import Topology
from avial_lab.verdicts import Verdict

Told = TypeVar("Told")

TO_SPMD_HOST = (KeepIndependent(), *TO_HOST[1:-1])
"""Kernels are loops already; without mpi-to-llvm, for such programs call the ownership runtime."""


def to_tasks(*, plain: bool, grid: bool, strict: bool = False) -> tuple[Pass | str, ...]:
    """From a plain function, or from replicates as people write them, to what is lowered."""
    if not plain:
        return (*arithmetic(strict=strict), ConvergeToLoops(), CompleteReplicates(grid))
    return (
        *arithmetic(strict=strict),
        "lift-cf-to-scf",
        EmptyLoops(),
        UnrollShort(),
        "canonicalize",
        "cse",
        Normalise(),
        CheckAccesses(),
        DistributeLoops(),
        ScratchPerIteration(),
        CutLoops(),
        DropIn(grid),
    )


def to_checked(*, strict: bool = False) -> tuple[Pass | str, ...]:
    """Of what a plain function goes through, up to where its accesses are checked."""
    passes = to_tasks(plain=True, grid=False, strict=strict)
    return passes[: passes.index(CheckAccesses()) + 1]


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
    effort: Effort,
    *,
    sync: Sync = Sync.EDGES,
    watch: Watch | None = None,
) -> Stages:
    """The stages of a program of replicates: as it was read, its tasks, every rank's control flow,
    machine code.
    """
    text = "the program as it was read"
    yield mlir_stage("source", text, source.operation, "", 0.0), source.operation
    passes = to_tasks(plain=is_plain(source), grid=division.grid, strict=effort.strict)
    line = our_line(passes, "source.mlir", "avial.mlir")
    yield mlir_stage("avial", "its loops as tasks", structured, line, 0.0), structured
    work = structured.clone().operation
    place = PlacePhases(topology, division, sync)
    # Who writes replicates, or a division, wants to see it.
    given_up = is_plain(source) and division == Division()
    placed = (place, *to_one(topology, effort, given_up=given_up))
    seconds = run_passes(work, placed, watch=watch)
    line = our_line(placed, "avial.mlir", "placed.mlir") if place.is_told else ""
    yield mlir_stage("placed", "who takes part, and how it is divided", work, line, seconds), work
    yield from lower_placed(work, effort, watch=watch)


def to_one(topology: Topology, effort: Effort, *, given_up: bool) -> tuple[Pass, ...]:
    """What makes several phases one: so that no rank waits for another, or that all do so less.

    With `given_up`, what was found to be parallel may stay on one of several ranks.
    """
    blocking = BlockLoops(**effort.options("block-loops"))
    steps = blocking.steps if effort.keeps("block-loops") else 0
    fuse = FusePhases(**effort.options("tile-time"), steps=steps, ranks=topology.ranks)
    widen = WidenHalos(topology.ranks, **effort.options("widen-halos"))
    join = JoinPhases(topology.ranks)
    found: tuple[Pass, ...] = (fuse, join)
    if topology.ranks > 1:
        keep = KeepOnOne(topology.ranks)
        share = ShareRows(topology.ranks)
        found = (share, keep, widen, fuse, join) if given_up else (widen,)
    return tuple(each for each in found if effort.keeps(_name(each)))


def lower_placed(work: ir.Operation, effort: Effort, *, watch: Watch | None = None) -> Stages:
    """On from phases that are placed; `work` is changed."""
    to_mpi = (EmulateGpu(), ReplicateToMpi())
    seconds = run_passes(work, to_mpi, watch=watch)
    line = our_line(to_mpi, "placed.mlir", "mpi.mlir")
    yield mlir_stage("mpi", "what every rank runs", work, line, seconds), work
    yield from lower_mpi(work, effort, watch=watch)


def lower_mpi(work: ir.Operation, effort: Effort, *, watch: Watch | None = None) -> Stages:
    """On from what every rank runs."""
    in_order = to_loops(effort)
    seconds = run_passes(work, in_order, watch=watch)
    line = our_line(in_order, "mpi.mlir", "loops.mlir")
    yield mlir_stage("loops", "loops in the order the machine likes", work, line, seconds), work
    yield from lower_loops(work, watch=watch)


def to_loops(effort: Effort) -> tuple[Pass | str, ...]:
    """What makes a rank's loops fast."""
    blocks = effort.keeps("block-loops")
    # A BLAS takes no matrix that is mirrored as it is read.
    joins = blocks and effort.keeps("join-sums") and not (effort.strict or effort.blas)
    optional: tuple[Pass, ...] = (
        SplitWraps(),
        *([] if effort.blas else [UnrollSums(blocks)]),  # a BLAS takes small products too
        ExpandScalars(blocks, sums=joins),
        *([JoinSums()] if joins else []),
        *([ExpandArrays()] if blocks else []),
        BlockLoops(**effort.options("block-loops"), blas=effort.blas),
        BlockSubstitutions(**effort.options("block-substitutions")),
        OrderLoops(),
        FuseNests(),
        TileTime(**effort.options("tile-time")),
        FlattenSums(),
        PromoteScalars(),
        ReorderSums(),
        IndependentAccesses(),
        PartialSums(),
        ThreadSums(),
        MarkParallel(),
        HoldRows(),
        JamRows(**effort.options("jam-rows")),
        VectoriseRows(**effort.options("vectorise-rows")),
        InterleaveRows(**effort.options("interleave-rows")),
        ReorderExtremes(),
        TransposeTiles(),
        ThreadLoops(),
        SplitDrivers(),
        FlattenRows(),
        CheckDistances(),
        NearArguments(),
        PackRows(),
        ShareLoads(),
        InlineCopies(),
        StreamStores(),
        WholeVectors(),
    )
    return (ArraysApart(), *(each for each in optional if effort.keeps(_name(each))))


def _name(each: Pass) -> str:
    return str(each).partition("{")[0]


def lower_loops(work: ir.Operation, *, watch: Watch | None = None) -> Stages:
    """On from loops in their last order."""
    seconds = run_passes(work, TO_SPMD_HOST, watch=watch)
    line = our_line(TO_SPMD_HOST, "loops.mlir", "host.mlir")
    host = mlir_stage("host", "loops that are cut to a rank's range", work, line, seconds)
    yield host, work
    yield from machine_stages(work, host.text, watch=watch)


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
