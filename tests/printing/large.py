"""One of every type that a user can come to, large, with a text that no `repr` shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from avial_lab.artifact.binary import Binary, MachineCode
from avial_lab.artifact.explanation import Cell, Choice, Explanation, Tried
from avial_lab.artifact.kernels import KernelRow
from avial_lab.artifact.manifest import DerivedMessages, KnownMessages
from avial_lab.artifact.plan import EventTotal, Footprint, PhaseCount
from avial_lab.artifact.stages import Inside, Part, PassStep, Stage, StageInside, Stages
from avial_lab.benchmarks.table import Report, Result, Round
from avial_lab.compiler.analysis.costs.weights import FUNCTION
from avial_lab.compiler.catalogue import CATALOGUE, OPTIONAL
from avial_lab.compiler.options import CompileOptions
from avial_lab.compiler.pass_rows import Pipeline, Size, documentation
from avial_lab.compiler.requests import (
    Analyse,
    Analysis,
    Argument,
    Build,
    Built,
    Explore,
    Explored,
    Export,
    Exported,
    Foresee,
    Look,
    LoopTimes,
    PrintBack,
    Proposal,
    Propose,
    Referenced,
    Resume,
    RunReference,
    Simulate,
    Simulated,
    Source,
    TaskTimes,
    TimeLoops,
    TimeTasks,
    Violation,
    Walk,
    Weigh,
    Weighed,
    WeighLayers,
)
from avial_lab.compiler.requests import Printed as PrintedBack
from avial_lab.core.buffers import Binding, Number
from avial_lab.core.element_types import ELEMENT_TYPES
from avial_lab.core.errors import CellSpan
from avial_lab.core.regions import Box
from avial_lab.core.table import Table
from avial_lab.machine.demand import CoreTime, Demand
from avial_lab.machine.devices import KINDS
from avial_lab.machine.host import Machine
from avial_lab.machine.roofline import Ceilings
from avial_lab.machine.topology import Target, Topology
from avial_lab.notebook.display import Note, View
from avial_lab.planning.distribution import Division
from avial_lab.planning.schedule import DeviceCopy, PhaseRun, Piece, Schedule, Step, StepKind
from avial_lab.planning.task_graph import Access, Group, Task, TaskGraph
from avial_lab.plot import Film, Point, Roofline
from avial_lab.program.compilation import Namespace
from avial_lab.program.inputs import RandomArguments
from avial_lab.program.program import Program
from avial_lab.program.reference_run import OneProcess
from avial_lab.program.timing import Timing
from avial_lab.runtime.launch.progress import RankNow, RunState, TaskNow, TaskState
from avial_lab.runtime.native.ownership import Owned, Use
from avial_lab.runtime.rank.outcome import Failure, Outcome
from avial_lab.runtime.rank.output import Printed
from avial_lab.trace import Copy, Event, EventKind, Move, Total, Trace
from tests.plot import by_hand

CELL_TEXT = "the text of the cell"
"""It stands in everything that holds a program's text."""

MANY = 500
NAME = "name_" * 100
SPAN = CellSpan("In [3]", f"{CELL_TEXT}\n" * MANY, 3, 1)
BOX = Box((0,) * 32, (10_000,) * 32)
REGION = (BOX,) * 50


def large() -> list[object]:
    """All of them; those of one type may be several."""
    graph = _graph()
    schedule = by_hand.schedule_by_hand(graph, Topology.local(64, gpus=4, arch="x86_64"))
    pieces = (Piece(0, "a", BOX),) * MANY
    manifest = replace(
        KnownMessages.of(schedule), entry=NAME, buffers=graph.buffers * MANY, inputs=pieces
    )
    derived = DerivedMessages(
        entry=NAME, ranks=64, buffers=graph.buffers * MANY, storages=graph.storages * MANY,
        inputs=pieces, results=(), phases=(NAME,) * MANY,
    )  # fmt: skip
    binary = Binary(
        "0" * 64, b"code" * MANY, {NAME + str(k): CELL_TEXT for k in range(99)}, manifest
    )
    return [
        graph, schedule, manifest, binary, derived, PhaseRun(NAME, 3, 2),
        *graph.tasks[:1], *graph.dependencies[:1], *graph.groups, *graph.buffers, *graph.storages,
        graph.critical, *schedule.placements[:1], *schedule.transfers[:1],
        schedule.topology, schedule.topology.devices[0], Target(NAME, NAME, NAME), SPAN, BOX,
        Step(StepKind.RUN, NAME), Piece(3, NAME, BOX), Number(NAME, "f64", 1e300),
        Access(NAME, NAME, REGION, False, (NAME,) * 32, REGION),
        Binding(graph.buffers * MANY, graph.storages * MANY), MachineCode(b"code", CELL_TEXT),
        KernelRow(NAME, (NAME,) * 3, (64, 4, 1), (NAME,) * MANY),
        *_of_runs(), *_of_loops(), *_of_stages(), *_others(), *_of_tables(),
        *_of_requests(graph, schedule, binary),
    ]  # fmt: skip


def _graph() -> TaskGraph:
    layers = by_hand.layers(30, 50)
    first = Task(
        NAME, by_hand.CPU, (Access(NAME, "a", REGION),) * 50, (Access("b", "b", REGION),),
        after=(NAME,) * MANY, summary=CELL_TEXT, span=SPAN,
    )  # fmt: skip
    tasks = (first, *(replace(task, span=SPAN) for task in layers.tasks))
    group = Group(NAME, NAME, around=(NAME,) * MANY, span=SPAN)
    return replace(layers, tasks=tasks, groups=(group,))


def _of_runs() -> list[object]:
    event = Event(EventKind.SEND, NAME, 1, NAME, 0.1, 0.3, 1 << 60, 2, 3, NAME, 9)
    total = Total(1, NAME, EventKind.WAIT, MANY, 1.0, 1 << 60)
    move = Move(NAME, 0, 1, MANY, 1 << 60)
    copy = Copy(NAME, NAME, NAME, MANY, 1 << 60)
    trace = Trace(
        64, (event,) * MANY, NAME, (move,) * MANY,
        totals=(total,) * MANY, note=NAME * 9, copies=(copy,) * MANY,
    )  # fmt: skip
    tasks = tuple(TaskNow(f"{NAME}{k}", TaskState.RUNNING, tuple(range(64))) for k in range(MANY))
    ranks = tuple(RankNow(k, NAME, 1, 2) for k in range(64))
    printed = Printed(dict.fromkeys(range(64), (CELL_TEXT,) * MANY))
    outcome = Outcome(3, results=(np.zeros(MANY),) * 99, failure=Failure(NAME, traceback=CELL_TEXT))
    return [
        event,
        total,
        move,
        copy,
        DeviceCopy(MANY, NAME, BOX, 3, 99, NAME, 1 << 60),
        trace,
        RunState(1.0, tasks, ranks, printed=printed),
        printed,
        outcome,
    ]


def _of_loops() -> list[object]:
    plan = by_hand.neighbours(64, phases=40)
    footprint = Footprint(NAME, 1, NAME, Use.UPDATE, BOX)
    plan = replace(plan, phases=plan.phases * MANY, footprints=(footprint,) * MANY)
    nest = by_hand.heat_nest()
    nest = replace(nest, dependences=nest.dependences * 50, cells=nest.cells * MANY, span=SPAN)
    old = by_hand.heat_explanation().reports[0]
    report = replace(old, reasons=(NAME,) * MANY, done=(NAME,) * MANY, span=SPAN)
    tried = Tried(NAME, 1.0, 1.0, 0.1, kept=True)
    choice = Choice("2026-11-22", 1, 1.1, NAME, (NAME,) * MANY, (tried,) * MANY)
    explanation = Explanation((report,) * MANY, CELL_TEXT, choice)
    owned = Owned(NAME, BOX, 3, frozenset(range(0, 1024, 3)))
    counted = (PhaseCount(NAME, 3, 1 << 60, 2), EventTotal("S1", 1, 2, 3, 4, 5, 6, 7))
    parts = (Demand(1 << 60, 1 << 60), Cell(1, 2, 3), tried, *nest.dependences[:1])
    return [plan, footprint, nest, report, choice, explanation, owned, *counted, *parts]


def _of_stages() -> list[object]:
    stage = Stage(NAME, NAME, "mlir", CELL_TEXT * MANY, NAME, 1.0, NAME)
    step = PassStep(NAME, NAME, 1.0, MANY, MANY, CELL_TEXT * MANY)
    part = Part(NAME, 1, MANY)
    facts = {f"{NAME}{k}": NAME for k in range(MANY)}
    inside = StageInside(NAME, ((1,),) * MANY, (step,) * MANY, (part,) * MANY, facts=facts)
    stages = Stages({f"{NAME}{k}": stage for k in range(MANY)})
    return [stage, stages, step, part, inside, Inside((inside,) * MANY)]


def _of_requests(graph: TaskGraph, schedule: Schedule, binary: Binary) -> list[object]:
    scalars = {f"{NAME}{k}": k for k in range(MANY)}
    binding = Binding(graph.buffers * MANY, graph.storages)
    source = Source(SPAN.text, NAME, binding, scalars, NAME)
    build = Build(source, whole=NAME)
    stages = (Stage("mpi", "", "mlir", SPAN.text),) * MANY
    built = Built(schedule, stages, binary, {NAME: 1.0}, fault=NAME * 99)
    data = {f"{NAME}{k}": np.zeros(MANY) for k in range(99)}
    resume = Resume(build, built, NAME, SPAN.text)
    argument = Argument("x", "f64", (3, 4))
    program = Program(NAME, data, build, built, printed=Printed({0: (CELL_TEXT,)}))
    return [
        source, build, built, resume, Look(build, built, resume), Analyse(source),
        Analysis(graph, {"parse": 1.0}), Propose(source, {}), argument, Proposal((argument,)),
        Explore(source), Explored(()), PrintBack(source), PrintedBack(SPAN.text * 99),
        RunReference(source, data), Referenced(data, (Violation(NAME, SPAN),) * MANY, 1.0),
        WeighLayers(source), Simulate(source, Topology.local(99)), Simulated(1.0, (9,) * 999, 9),
        Foresee(source, Topology.local(99)), Export(source), Exported(b"9" * 999),
        Weigh(source), Weighed({f"{NAME}{k}": Demand(1, 8) for k in range(99)}),
        TimeLoops(source, "loops " * 99, "main", 2),
        LoopTimes({f"{NAME}{k}": CoreTime(1.0) for k in range(99)}),
        TimeTasks(source, CompileOptions(), tuple(range(99))),
        TaskTimes({k: {f"{NAME}{k}": CoreTime(1.0)} for k in range(99)}),
        Walk(build, built), Violation("an index leaves a", SPAN), program,
        View(program), Namespace(data),
    ]  # fmt: skip


def _of_tables() -> list[object]:
    options = CompileOptions(without=OPTIONAL * 9, sizes=((NAME, ((NAME, NAME),)),) * 9)
    row = next(row for pipeline in CATALOGUE for row in pipeline.rows if row.is_ours)
    at = row.at
    row = replace(row, name=NAME, what=NAME * 9, why=CELL_TEXT, sizes={NAME: Size(NAME, 1, 9)})
    return [
        options, row, Size(NAME * 9, 1, 9, 2, (1, 2, 3)), Pipeline(NAME, NAME, (row,) * MANY),
        documentation(at), KINDS[-1], KINDS[-1].look,
        Division(), ELEMENT_TYPES["complex<f64>"], FUNCTION,
    ]  # fmt: skip


def _others() -> list[object]:
    ceilings = Ceilings(2, "f64", 1e10, 1e10)
    result = Result("avial", (1e-3,) * MANY, note=NAME)
    raced = Round("gemm", "f64", {"N": 9}, 1, 2, 9, 9, (result,) * MANY, ceilings)
    machine = Machine("A processor", "x86_64", 2, 2, ())
    arrays = {"a": np.zeros(MANY)}
    return [
        result, raced, Report("SMALL", (raced,) * 99, (ceilings,), machine), ceilings, machine,
        Table(NAME, (NAME,) * 99, ((NAME,) * 99,) * MANY), Note(NAME, CELL_TEXT),
        Film([np.zeros((50, 50))] * 500, title=NAME), Timing((1e-3,) * MANY, note=NAME),
        Roofline([Point(f"{NAME}{k}", "fast", 80, 8, 1e-6) for k in range(99)], ceilings),
        OneProcess("MPI is not installed", Topology.local(64)),
        RandomArguments(arrays, {}, tuple(f"{NAME}{k}" for k in range(MANY)), NAME),
    ]  # fmt: skip
