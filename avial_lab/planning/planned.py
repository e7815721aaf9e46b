"""A plan: tasks placed on a machine by a policy, with what that is predicted to take.

Workflow or TaskGraph, Topology, policy -> PlannedSchedule.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from avial_lab.core.errors import AvialError, OptionError, ScheduleError
from avial_lab.core.table import Table
from avial_lab.core.words import brief, format_bytes, format_seconds, listed
from avial_lab.machine.topologies import topology_called
from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.imports.workflow import Workflow
from avial_lab.planning.memory import check_memory, held_bytes
from avial_lab.planning.placement import schedule_tasks
from avial_lab.planning.policies import Policy
from avial_lab.planning.schedule import Schedule, Sync
from avial_lab.planning.simulator.ranks import simulated
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.trace import EventKind, Trace


@dataclass(frozen=True)
class PlannedSchedule(Schedule):
    """A schedule that knows what its tasks cost. planning_s: what it took to find it."""

    costs: Costs = field(default_factory=Costs)
    planning_s: float = 0.0

    def simulate(self) -> Trace:
        """What would happen when."""
        return self._trace

    @cached_property
    def _trace(self) -> Trace:
        return simulated(self, self.costs)

    @property
    def makespan_s(self) -> float:
        """From the first start to the last end, simulated."""
        return self._trace.makespan_s

    @property
    def busy(self) -> float:
        """The part of the time that the devices compute, all of them taken together."""
        tasks = (e.duration_s for e in self._trace.events if e.kind is EventKind.TASK)
        whole = self.makespan_s * len(self.topology.devices)
        return sum(tasks) / whole if whole else 0.0

    @cached_property
    def held_bytes(self) -> int:
        """What the fullest rank holds at most."""
        return max(held_bytes(self), default=0)

    def __repr__(self) -> str:
        return brief(self, f"by {self.policy.value}: {format_seconds(self.makespan_s)} predicted")


def plan(
    graph: Workflow | TaskGraph,
    topology: Topology | str | Path,
    *,
    policy: Policy | str = Policy.HEFT,
    seed: int = 0,
    budget_s: float | None = None,
    costs: Costs | None = None,
    sync: Sync = Sync.EDGES,
    place: Mapping[str, str] | None = None,
) -> PlannedSchedule:
    """The tasks of `graph` placed on `topology` (one that is there, a file, or `preset:…`).

    `costs` are by default those that came with the graph. `seed` and `budget_s` (seconds) are for
    the policy `search`. place: devices that tasks are pinned to, by the tasks' names; every policy
    keeps to that. Raises ScheduleError for a target or a pin without a device, and where a node's
    ranks would hold more than its memory.
    """
    policy = _policy(policy)
    tasks, given = (graph.graph, graph.costs) if isinstance(graph, Workflow) else (graph, Costs())
    costs, machine = costs or given, topology_called(topology)
    tasks = _pinned(tasks, machine, place or {})
    how: dict[str, object] = {}
    if policy is Policy.SEARCH:
        how["seed"] = seed
        if budget_s is not None:
            how["budget_s"] = budget_s
    started = time.perf_counter()
    made = schedule_tasks(tasks, machine, policy=policy, sync=sync, costs=costs, **how)
    took = time.perf_counter() - started
    if not costs.given:  # (what comes with times comes with files, which lie on disks)
        check_memory(made)
    parts = {each.name: getattr(made, each.name) for each in fields(Schedule)}
    return PlannedSchedule(**parts, costs=costs, planning_s=took)


def _pinned(graph: TaskGraph, topology: Topology, place: Mapping[str, str]) -> TaskGraph:
    """With the pins as part of the tasks' targets."""
    devices = [device.name for device in topology.devices]
    for task, device in place.items():
        for what, name, there in (("task", task, list(graph.by_name)), ("device", device, devices)):
            if name in there:
                continue
            near = get_close_matches(name, there, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are: {listed(there, most=8)}"
            wrong = f"'{task}' is pinned to '{device}', and there is no {what} '{name}'"
            raise ScheduleError(wrong, hint=hint)
    if not place:
        return graph
    return replace(
        graph,
        tasks=tuple(
            replace(task, target=replace(task.target, device=place[task.name]))
            if task.name in place
            else task
            for task in graph.tasks
        ),
    )


Tried = PlannedSchedule | tuple[Policy, AvialError]
"""What a policy found, or why it did not."""


def plan_by_each(
    graph: Workflow | TaskGraph,
    topology: Topology | str | Path,
    policies: Iterable[Policy] = (),
    *,
    costs: Costs | None = None,
    seed: int = 0,
    budget_s: float | None = None,
    place: Mapping[str, str] | None = None,
) -> list[Tried]:
    """The plan of each policy, by default of all but the exact one, which is for few tasks and
    needs OR-tools. Raises what stands in the way of all of them.
    """
    chosen = list(policies) or [policy for policy in Policy if policy is not Policy.EXACT]
    found: list[Tried] = []
    for policy in chosen:
        try:
            made = plan(
                graph,
                topology,
                policy=policy,
                costs=costs,
                seed=seed,
                budget_s=budget_s,
                place=place,
            )
            found.append(made)
        except AvialError as error:
            found.append((policy, error))
    if not any(isinstance(each, PlannedSchedule) for each in found):
        raise next(each[1] for each in found if isinstance(each, tuple))
    return found


def best_of(found: Iterable[Tried]) -> PlannedSchedule:
    """The one with the shortest makespan."""
    plans = (each for each in found if isinstance(each, PlannedSchedule))
    return min(plans, key=lambda each: each.makespan_s)


def _policy(policy: Policy | str) -> Policy:
    try:
        return Policy(policy)
    except ValueError:
        known = ", ".join(each.value for each in Policy)
        raise OptionError(f"unknown policy '{policy}'", hint=f"there are: {known}") from None


def policy_table(plans: Iterable[Tried], title: str) -> Table:
    """One row a policy, the shortest makespan first; what could not plan says why."""
    found = list(plans)
    good = [each for each in found if isinstance(each, PlannedSchedule)]
    rows: list[tuple[str, ...]] = [
        (
            each.policy.value,
            format_seconds(each.makespan_s),
            f"{100 * each.busy:.1f} %",
            format_bytes(each.bytes_moved),
            format_bytes(each.held_bytes),
            format_seconds(each.planning_s),
        )
        for each in sorted(good, key=lambda each: each.makespan_s)
    ]
    failed = [each for each in found if isinstance(each, tuple)]
    rows += [(policy.value, f"no: {error.message}", "", "", "", "") for policy, error in failed]
    head = ("policy", "makespan", "busy", "bytes moved", "fullest rank", "to plan")
    return Table(title, head, tuple(rows), frozenset(head[2:]))
