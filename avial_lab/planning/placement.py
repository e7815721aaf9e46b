"""Schedules: each task on a device, in an order that respects the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from avial_lab.core.errors import ScheduleError
from avial_lab.machine.topology import Topology
from avial_lab.planning.candidates import fitting_devices
from avial_lab.planning.costs import Costs
from avial_lab.planning.device_copies import between_places, with_copies
from avial_lab.planning.homes import homes_of
from avial_lab.planning.policies import Policy
from avial_lab.planning.schedule import PhaseRun, Piece, Placement, Schedule, Sync
from avial_lab.planning.steps import rank_programs
from avial_lab.planning.task_graph import TaskGraph, TaskKind
from avial_lab.planning.transfers import derive_transfers
from avial_lab.trace import Move

BY_HAND = "by hand"
"""The reason of a placement that no policy decided."""


def schedule_tasks(
    graph: TaskGraph,
    topology: Topology,
    *,
    policy: Policy = Policy.LEVELS,
    sync: Sync = Sync.EDGES,
    costs: Costs | None = None,
    **how: object,
) -> Schedule:
    """Place the tasks of `graph` on the devices of `topology`, and derive what has to move.

    `costs` are what policies look at that look at any; without them a task costs what its arrays
    take to go through. `how` is for `search`: seed, budget_s, progress.

    Raises ScheduleError for a target that no device satisfies.
    """
    placements = policy.place(graph, topology, costs or Costs(), **how)
    _check_order(graph, [placement.task for placement in placements])
    return _scheduled(graph, topology, placements, policy, sync)


def schedule_by_hand(
    graph: TaskGraph,
    topology: Topology,
    devices: Mapping[str, str],
    *,
    order: Sequence[str] | None = None,
    sync: Sync = Sync.EDGES,
) -> Schedule:
    """Every task on the device that `devices` names for it, in `order` (by default level by level);
    messages and steps follow from that.

    Raises ScheduleError for a device that is not there, or that the task's target forbids, and for
    an order in which a task comes before one that it depends on.
    """
    if order is None:
        order = [task.name for tasks in graph.levels for task in tasks]
    _check_order(graph, order)
    placements: list[Placement] = []
    for task in (graph.by_name[name] for name in order):
        fitting = fitting_devices(task, topology)
        device = next((d for d in fitting if d.name == devices[task.name]), None)
        if device is None:
            raise ScheduleError(
                f"task '{task.name}' cannot run on '{devices[task.name]}'",
                span=task.span,
                hint=f"the devices for {task.target} are: {', '.join(d.name for d in fitting)}",
            )
        level = graph.level_of[task.name]
        placements.append(Placement(task.name, device.name, device.rank, level, BY_HAND))
    return _scheduled(graph, topology, tuple(placements), Policy.LEVELS, sync)


def is_by_hand(schedule: Schedule) -> bool:
    """Whether no policy decided where its tasks run: meshes, a division, an edited stage did."""
    return all(placed.reason == BY_HAND for placed in schedule.placements)


def on_the_same_ranks(schedule: Schedule, topology: Topology) -> Schedule:
    """A schedule made by hand on another machine: every task on the rank that it had, in the same
    order.

    Raises ScheduleError where that machine has fewer ranks, or its rank no device for a task.
    """
    graph, needed = schedule.graph, 1 + max((p.rank for p in schedule.placements), default=0)
    if needed > topology.ranks:
        raise ScheduleError(
            f"the program is divided over {needed} ranks, and {topology.speeds.label} has "
            f"{topology.ranks}",
            hint="a topology says how many ranks each node has (`ranks:`)",
        )
    devices: dict[str, str] = {}
    for placed in schedule.placements:
        task, kind = graph.by_name[placed.task], schedule.topology.device(placed.device).kind
        there = [d for d in fitting_devices(task, topology) if d.rank == placed.rank]
        if not there:
            raise ScheduleError(
                f"task '{task.name}' is on rank {placed.rank}, which has no device for "
                f"{task.target} on {topology.speeds.label}",
                span=task.span,
            )
        devices[task.name] = next((d for d in there if d.kind is kind), there[0]).name
    order = [placed.task for placed in schedule.placements]
    return schedule_by_hand(graph, topology, devices, order=order, sync=schedule.sync)


def _check_order(graph: TaskGraph, order: Sequence[str]) -> None:
    """ScheduleError where `order` does not name every task once, or goes against an edge."""
    position = {name: k for k, name in enumerate(order)}
    unknown = [name for name in position if name not in graph.by_name]
    missing = [task.name for task in graph.tasks if task.name not in position]
    twice = [name for k, name in enumerate(order) if position[name] != k]
    for names, what in ((unknown, "unknown"), (missing, "missing"), (twice, "named twice")):
        if names:
            raise ScheduleError(
                f"an order names every task once, and '{names[0]}' is {what} in this one"
            )
    for edge in graph.dependencies:
        if position[edge.before] > position[edge.after]:
            what = f" ({edge.hazard.value} of {edge.buffer})" if edge.buffer else ""
            raise ScheduleError(
                f"task '{edge.after}' comes before '{edge.before}' in the order, "
                f"and depends on it{what}",
                span=graph.by_name[edge.after].span,
                hint="order the tasks along the edges of the graph; program order always does",
            )


def _scheduled(
    graph: TaskGraph,
    topology: Topology,
    placements: tuple[Placement, ...],
    policy: Policy,
    sync: Sync,
) -> Schedule:
    """The schedule that follows from where every task runs, in the order of `placements`."""
    flow = derive_transfers(graph, placements)
    transfers = between_places(topology, placements, flow.transfers)
    programs = rank_programs(graph, topology, placements, transfers, sync)
    results = tuple(flow.results())
    on = (topology.place_of(placed.device) for placed in placements)
    drivers = topology.drivers if any(place >= topology.ranks for place in on) else ()
    homes = homes_of(graph, topology.ranks, drivers)
    programs, copies = with_copies(graph, topology, placements, programs, transfers, results, homes)
    return Schedule(
        graph=graph,
        topology=topology,
        policy=policy,
        sync=sync,
        placements=placements,
        transfers=tuple(transfers),
        programs=programs,
        inputs=tuple(piece for piece in flow.inputs() if piece.storage not in homes),
        results=tuple(piece for piece in results if piece.storage not in homes),
        copies=copies,
    )


def schedule_phases(
    graph: TaskGraph,
    topology: Topology,
    *,
    inputs: Sequence[Piece],
    results: Sequence[Piece],
    moves: Sequence[Move] = (),
    phases: Sequence[PhaseRun] = (),
    rank_of: Mapping[str, int] | None = None,
    sync: Sync = Sync.EDGES,
) -> Schedule:
    """The schedule of a structured program: a replicate is on every device that fits its target.

    What moves is found while it runs (`native/ownership`): `inputs`, `results`, `moves`, `phases`
    and the rank that a task runs on first (`rank_of`) are those of its plan.
    """
    first = rank_of or {}
    placements: list[Placement] = []
    for level, tasks in enumerate(graph.levels):
        for task in tasks:
            devices, reason = fitting_devices(task, topology), "a part of its iterations"
            if task.kind is TaskKind.TASK:
                there = [d for d in devices if d.rank == first.get(task.name)] or devices
                devices, reason = there[:1], "the rank that holds most of what it reads"
            placements += [
                Placement(task.name, device.name, device.rank, level, reason) for device in devices
            ]
    return Schedule(
        graph=graph,
        topology=topology,
        policy=Policy.LEVELS,
        sync=sync,
        placements=tuple(placements),
        transfers=(),
        programs=((),) * topology.ranks,
        inputs=tuple(inputs),
        results=tuple(results),
        moves=tuple(moves),
        phases=tuple(phases),
    )
