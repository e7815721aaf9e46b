"""A predicted run again and again, each time on a machine that is a little different.

A plan of tasks, or a program of loops, and a Change -> Answer. Everything that a change leaves
alone is as it was: measured where it was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.planned import PlannedSchedule, plan
from avial_lab.planning.policies import Policy
from avial_lab.planning.scaling import powers
from avial_lab.planning.schedule import Schedule
from avial_lab.trace import Trace

MOST_RANKS = 64
"""The plan of loops on more ranks takes longer than somebody waits who moves a slider."""

SEARCHED_TASKS = 200
SEARCH_S = 0.05


@dataclass(frozen=True)
class Change:
    """How many times as fast the links, the cores and the memories are, how many times as long a
    message takes to begin; on the first `ranks` of the machine (0: on all of them).
    """

    bandwidth: float = 1.0
    latency: float = 1.0
    speed: float = 1.0
    memory: float = 1.0
    ranks: int = 0

    @property
    def of_nodes(self) -> bool:
        """Whether tasks take another time than they were measured to take."""
        return (self.speed, self.memory) != (1.0, 1.0)

    def of(self, machine: Topology) -> Topology:
        """Raises OptionError for factors that are not positive, and where there are fewer ranks."""
        if self.ranks:
            machine = machine.first(self.ranks)
        if (self.bandwidth, self.latency) != (1.0, 1.0):
            machine = machine.with_links(bandwidth=self.bandwidth, latency=self.latency)
        if self.of_nodes:
            machine = machine.with_nodes(speed=self.speed, memory=self.memory)
        return machine


@dataclass(frozen=True)
class Answer:
    """The run on the changed machine. kept_s: with every task where it was before the change, if it
    can stay there. moved: how many tasks are elsewhere now, as that is faster.
    """

    trace: Trace
    schedule: Schedule | None = None
    kept_s: float | None = None
    moved: int = 0


@dataclass(frozen=True)
class WhatIf:
    """`answer` predicts the run on a changed machine; `ranks` are the numbers of them to choose
    from.
    """

    machine: Topology
    ranks: tuple[int, ...]
    answer: Callable[[Change], Answer] = field(repr=False)

    @cached_property
    def unchanged(self) -> Answer:
        """The run on the machine as it is, on the most ranks to choose from."""
        return self.answer(Change(ranks=self.ranks[-1]))


def what_if_placed(planned: PlannedSchedule) -> WhatIf:
    """Tasks are placed anew, unless they are as fast where they were: few of them by a short
    search, as no list scheduler gathers tasks for the sake of a later one; many by `heft`.
    """
    few = len(planned.graph.tasks) <= SEARCHED_TASKS
    policy, budget_s = (Policy.SEARCH, SEARCH_S) if few else (Policy.HEFT, None)
    machine = planned.topology

    def answer(change: Change) -> Answer:
        changed, costs = change.of(machine), _changed_costs(planned.costs, change)
        if changed is machine:
            return Answer(planned.simulate(), planned, planned.makespan_s)
        stays = changed.devices == machine.devices
        kept = replace(planned, topology=changed, costs=costs) if stays else None
        anew = plan(
            planned.graph, changed, policy=policy, budget_s=budget_s, costs=costs, sync=planned.sync
        )
        if kept is None:
            return Answer(anew.simulate(), anew)
        if kept.makespan_s <= anew.makespan_s:
            return Answer(kept.simulate(), kept, kept.makespan_s)
        was = planned.placement_of
        moved = sum(was[each.task].device != each.device for each in anew.placements)
        return Answer(anew.simulate(), anew, kept.makespan_s, moved)

    return WhatIf(machine, tuple(powers(machine.ranks)), answer)


def what_if_of_loops(simulate: Callable[[Topology], Trace], machine: Topology) -> WhatIf:
    """`simulate` predicts the program's run on any machine; its iterations are divided anew."""
    return WhatIf(
        machine,
        tuple(powers(min(machine.ranks, MOST_RANKS))),
        lambda change: Answer(simulate(change.of(machine))),
    )


def what_if_divided(
    simulate: Callable[[Topology], Trace], schedule: Schedule, machine: Topology
) -> WhatIf:
    """Of a program whose tasks know their ranks: `simulate` predicts it on any machine that has as
    many.
    """
    needed = 1 + max((placed.rank for placed in schedule.placements), default=0)
    ranks = tuple(n for n in powers(machine.ranks) if n >= needed)
    return WhatIf(machine, ranks, lambda change: Answer(simulate(change.of(machine))))


def _changed_costs(costs: Costs, change: Change) -> Costs:
    """What was measured holds as long as the nodes are what they were; seconds that were given are
    of the fastest core, which is as many times as fast.
    """
    if not change.of_nodes:
        return costs
    given = {task: seconds / change.speed for task, seconds in costs.given.items()}
    return replace(costs, profile={}, given=given)
