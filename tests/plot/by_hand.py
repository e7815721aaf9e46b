"""Graphs, schedules and traces made by hand: the pictures are tested without a compiler."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import cycle

from avial_lab.artifact.explanation import Cell, Dependence, Explanation, LoopReport, Nest, Order
from avial_lab.artifact.plan import Footprint, PhaseCount, Plan
from avial_lab.core.buffers import Buffer, Storage
from avial_lab.core.errors import CellSpan
from avial_lab.core.regions import Box
from avial_lab.machine.topology import Target, Topology
from avial_lab.planning.placement import schedule_phases
from avial_lab.planning.policies import Policy
from avial_lab.planning.schedule import Placement, Schedule, Step, StepKind, Sync, Transfer
from avial_lab.planning.task_graph import (
    Access,
    Dependency,
    Group,
    Hazard,
    Task,
    TaskGraph,
    TaskKind,
    build_dag,
)
from avial_lab.runtime.native.ownership import Use
from avial_lab.trace import Event, EventKind, Move, Trace

CPU, GPU = Target("cpu", "x86_64"), Target("gpu", "sm_90")
TWENTY = (Box((0,), (20,)),)


def access(name: str) -> Access:
    return Access(name, name, TWENTY)


def task(
    name: str, target: Target, reads: str, writes: str, *, summary: str = "scf.parallel 20"
) -> Task:
    return Task(
        name, target, tuple(map(access, reads)), tuple(map(access, writes)), summary=summary
    )


def edge(
    before: str, after: str, buffer: str, hazard: Hazard = Hazard.READ_AFTER_WRITE
) -> Dependency:
    return Dependency(before, after, hazard, buffer, TWENTY, 80)


def buffers(names: str) -> tuple[tuple[Buffer, ...], tuple[Storage, ...]]:
    return (
        tuple(Buffer(name, (20,), "i32", name, (1,)) for name in names),
        tuple(Storage(name, (20,), 4, (name,)) for name in names),
    )


def schedule_by_hand(graph: TaskGraph, topology: Topology, *, sync: Sync = Sync.EDGES) -> Schedule:
    """Round-robin over the fitting devices, level by level; a transfer for every RAW edge
    between two ranks.
    """
    turns = {
        target: cycle(topology.satisfying(target))
        for target in {task.target for task in graph.tasks}
    }
    placements = []
    for level, tasks in enumerate(graph.levels):
        for each in tasks:
            device = next(turns[each.target])
            placements.append(Placement(each.name, device.name, device.rank, level, "turn"))
    rank = {placement.task: placement.rank for placement in placements}
    crossing = [
        e
        for e in graph.dependencies
        if e.hazard is Hazard.READ_AFTER_WRITE and rank[e.before] != rank[e.after]
    ]
    transfers = tuple(
        Transfer(
            k, e.buffer, e.region[0], rank[e.before], rank[e.after], e.before, e.after, e.nbytes
        )
        for k, e in enumerate(crossing)
    )
    programs = tuple(
        tuple(Step(StepKind.RUN, p.task) for p in placements if p.rank == r)
        for r in range(topology.ranks)
    )
    return Schedule(
        graph, topology, Policy.LEVELS, sync, tuple(placements), transfers, programs, (), ()
    )


def deck() -> TaskGraph:
    """The deck's three tasks: two on CPUs, one on a GPU that reads what both wrote."""
    tasks = (
        task("task1", CPU, "ab", "c"),
        task("task2", CPU, "ab", "d"),
        task("task3", GPU, "cd", "d", summary="gpu.launch 20"),
    )
    edges = (
        edge("task1", "task3", "c"),
        edge("task2", "task3", "d"),
        edge("task2", "task3", "d", Hazard.WRITE_AFTER_WRITE),
    )
    return TaskGraph(tasks, edges, *buffers("abcd"))


def machine(ranks: int, *, gpus: int = 0) -> Topology:
    """The same on every machine: the architecture is fixed."""
    return Topology.local(ranks, gpus=gpus, arch="x86_64")


def deck_schedule(*, sync: Sync = Sync.EDGES) -> Schedule:
    return schedule_by_hand(deck(), machine(3, gpus=1), sync=sync)


def layers(depth: int, width: int) -> TaskGraph:
    """`depth` levels of `width` tasks; each reads what two tasks of the level above wrote."""

    def name(level: int, k: int) -> str:
        return f"step{level}_block{k % width}"

    tasks, edges = [], []
    for level in range(depth):
        for k in range(width):
            target = GPU if k % 4 == 3 else CPU
            tasks.append(
                Task(
                    name(level, k),
                    target,
                    (access("a"),),
                    (access("b"),),
                    summary="scf.parallel 20",
                )
            )
            if level:
                above = dict.fromkeys((name(level - 1, k), name(level - 1, k + 1)))
                edges += [edge(before, name(level, k), "a") for before in above]
    return TaskGraph(tuple(tasks), tuple(edges), *buffers("ab"))


HEAT = """
func.func @heat(%A: memref<20xf64>, %B: memref<20xf64>) {
  affine.for %t = 0 to 5 {
    affine.for %i = 1 to 19 {
      %l = affine.load %A[%i - 1] : memref<20xf64>
      affine.store %l, %B[%i] : memref<20xf64>
    }
    affine.for %i = 1 to 19 {
      %x = affine.load %B[%i] : memref<20xf64>
      affine.store %x, %A[%i] : memref<20xf64>
    }
  }
}
"""


def heat_explanation(text: str = HEAT) -> Explanation:
    """Two phases in a loop."""

    def span(line: int) -> CellSpan:
        return CellSpan("In [2]", text, line, 5)

    why = "A[i - 1] is written by the previous iteration of t: line 10, as A[i]"
    return Explanation(
        (
            LoopReport("loop1", TaskKind.CONVERGE, 0, (why,), span(3)),
            LoopReport("S1", TaskKind.REPLICATE, 1, ("iterations of i touch nothing",), span(4)),
            LoopReport("S2", TaskKind.TASK, 1, ("too <short>",), span(8)),
        )
    )


def heat_nest() -> Nest:
    """
    t 0   S1  o o o o        S1 needs what both neighbours of S2 wrote one t before,
          S2  o o o o        S2 what S1 wrote
    t 1   S1  o o o o
          S2  o o o o
    """
    places = range(1, 5)
    cells = [Cell(t, lane, i) for t in range(3) for lane in range(2) for i in places]
    same = [(Order.FLOW, Cell(t, 0, i), Cell(t, 1, i)) for t in range(3) for i in places]
    later = [
        (Order.FLOW, Cell(t, 1, i), Cell(t + 1, 0, i + d))
        for t in range(2)
        for i in places
        for d in (-1, 0, 1)
        if i + d in places
    ]
    again = [(Order.OUTPUT, Cell(t, 0, i), Cell(t + 1, 0, i)) for t in range(2) for i in places]
    forbidding = frozenset((before, after) for _, before, after in [*later, *again])
    told = (
        Dependence(Order.FLOW, "B[i]", 6, "B[i]", 9, ("t",), ("0",), None, True),
        Dependence(Order.FLOW, "A[i]", 10, "A[i - 1]", 5, ("t",), ("1",), "t", True),
        Dependence(Order.OUTPUT, "B[i]", 6, "B[i]", 6, ("t", "i"), ("1", "0"), "t", True),
    )
    return Nest(
        "loop1", TaskKind.CONVERGE, "t", "i", ("S1", "S2"), tuple(cells),
        (*same, *later, *again), forbidding, told,
    )  # fmt: skip


def divided(name: str, reads: str, writes: str, *group: str) -> Task:
    """A replicate in loops."""
    read, written = (tuple(map(access, names)) for names in (reads, writes))
    return Task(name, Target("cpu"), read, written, kind=TaskKind.REPLICATE, group=group)


def heat_graph() -> TaskGraph:
    """
    zero ─►  loop1: S1: b from a ─► S2: a from b ─┐
                      └◄──────────────────────────┘
    """
    tasks = (
        replace(divided("zero", "", "b"), kind=TaskKind.TASK),
        divided("S1", "a", "b", "loop1"),
        divided("S2", "b", "a", "loop1"),
    )
    return build_dag(tasks, *buffers("ab"), [Group("loop1", "5 times")])


def heat_schedule(ranks: int = 3) -> Schedule:
    moves = neighbours(ranks).moves
    placed = {"zero": 1} if ranks > 1 else {}
    return schedule_phases(
        heat_graph(), machine(ranks), inputs=(), results=(), moves=moves, rank_of=placed
    )


def neighbours(ranks: int, phases: int = 2, *, begun: int = 5, complete: bool = True) -> Plan:
    """Every rank sends 8 bytes to the next one, for each phase each time it is begun; each reads an
    element of `a` more than it writes of `b`.
    """
    names = [f"S{k + 1}" for k in range(phases)]
    moves = tuple(
        Move(name, rank, rank + 1, begun, 8 * begun) for name in names for rank in range(ranks - 1)
    )
    counts = tuple(PhaseCount(name, begun, 8 * begun * (ranks - 1), 0) for name in names)
    held = tuple(160 + rank for rank in range(ranks))
    size = 10 * ranks
    footprints = tuple(
        Footprint(name, rank, storage, use, Box((10 * rank - low,), (10 * rank + 10,)))
        for name in (names if ranks <= 16 else ())
        for rank in range(ranks)
        for storage, use, low in (("a", Use.READ, int(rank > 0)), ("b", Use.WRITE, 0))
    )
    storages = tuple(Storage(name, (size,), 8, (name,)) for name in "ab")
    return Plan(ranks, (), (), moves, held, counts, complete, footprints, storages)


def deck_trace() -> Trace:
    """Two tasks, two messages, a wait, a task; times in microseconds."""

    def event(
        kind: EventKind,
        name: str,
        rank: int,
        device: str,
        start: float,
        end: float,
        nbytes: int = 0,
        message: int | None = None,
    ) -> Event:
        start_s, end_s = start * 1e-6, end * 1e-6
        return Event(kind, name, rank, device, start_s, end_s, nbytes, message=message)

    return Trace(
        3,
        (
            event(EventKind.TASK, "task1", 0, "cpu0", 0, 40),
            event(EventKind.TASK, "task2", 1, "cpu1", 2, 55),
            event(EventKind.POST, "ready to receive c from rank 0", 2, "", 0, 1),
            event(EventKind.POST, "ready to receive d from rank 1", 2, "", 1, 2),
            event(EventKind.WAIT, "wait for c from rank 0", 2, "", 2, 44, 0, 0),
            event(EventKind.SEND, "send c to rank 2", 0, "", 40, 43, 80, 0),
            event(EventKind.SEND, "send d to rank 2", 1, "", 55, 59, 80, 1),
            event(EventKind.WAIT, "wait for d from rank 1", 2, "", 44, 60, 0, 1),
            event(EventKind.TASK, "task3", 2, "gpu0", 60, 95),
            event(EventKind.BARRIER, "barrier", 0, "", 43, 96),
        ),
        "measured, GPU emulated",
    )


def words(picture: str) -> list[str]:
    """Every visible line of text of an SVG, in the order drawn."""
    texts = ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    return [element.text or "" for element in texts]
