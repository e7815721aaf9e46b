"""Level by level, in turn over the devices that fit; of several nodes, on the one that has most of
a task's inputs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from avial_lab.machine.topology import Device, Target, Topology
from avial_lab.planning.candidates import fitting_devices
from avial_lab.planning.costs import Costs
from avial_lab.planning.schedule import Placement
from avial_lab.planning.task_graph import Hazard, Task, TaskGraph


def place(graph: TaskGraph, topology: Topology, _costs: Costs) -> tuple[Placement, ...]:
    """Round-robin within each level over the devices that satisfy the target (Avial's slides,
    "Parallel Execution per Level"); tasks with different targets are counted apart, so that each
    kind of device is used evenly. Where the devices are on several nodes they get as many tasks
    each, but those whose inputs are there.
    """
    fitting: dict[Target, tuple[int, tuple[Device, ...]]] = {}
    groups: dict[tuple[Device, ...], int] = {}  # numbered: to hash all devices takes long
    placed: dict[str, Placement] = {}
    inputs = _inputs(graph) if len(set(topology.node_of)) > 1 else {}
    for level, tasks in enumerate(graph.levels):
        turns: dict[int, list[Task]] = {}
        for task in tasks:
            if task.target not in fitting:
                there = fitting_devices(task, topology)
                fitting[task.target] = groups.setdefault(there, len(groups)), there
            turns.setdefault(fitting[task.target][0], []).append(task)
        found: dict[str, Placement] = {}
        for those in turns.values():
            devices = fitting[those[0].target][1]
            found |= _in_turn(those, level, devices, placed, inputs, topology)
        placed |= {task.name: found[task.name] for task in tasks}
    return tuple(placed.values())


_Inputs = dict[str, list[tuple[str, int]]]
"""Of a task, which tasks write what it reads, and how many bytes."""


def _inputs(graph: TaskGraph) -> _Inputs:
    found: _Inputs = {}
    for edge in graph.dependencies:
        if edge.hazard is Hazard.READ_AFTER_WRITE and edge.nbytes:
            found.setdefault(edge.after, []).append((edge.before, edge.nbytes))
    return found


def _in_turn(
    tasks: Sequence[Task],
    level: int,
    devices: tuple[Device, ...],
    placed: dict[str, Placement],
    inputs: _Inputs,
    topology: Topology,
) -> dict[str, Placement]:
    """Each turn goes to one task: the next on the node with most of its inputs, else the next."""
    free: dict[str, deque[int]] = {}
    for turn in range(len(tasks)):
        free.setdefault(devices[turn % len(devices)].node, deque()).append(turn)
    found: dict[str, Placement] = {}
    taken = [False] * len(tasks)
    first = 0
    for task in tasks:
        held: Counter[str] = Counter()
        for before, nbytes in inputs.get(task.name, ()):
            held[topology.device(placed[before].device).node] += nbytes
        near = [node for node in held if free.get(node)]
        while taken[first]:
            first += 1
        where = devices[first % len(devices)].node
        node = min(near, key=lambda node: (-held[node], free[node][0]), default=where)
        turn = free[node].popleft()
        taken[turn] = True
        device = devices[turn % len(devices)]
        reason = _reason(task, level, turn, devices)
        if near:
            reason += f"; on {node}, which has inputs of it"
        found[task.name] = Placement(task.name, device.name, device.rank, level, reason)
    return found


def _reason(task: Task, level: int, turn: int, devices: tuple[Device, ...]) -> str:
    if len(devices) == 1:
        return f"the only device for {task.target}"
    return (
        f"round-robin in level {level}: number {turn + 1} "
        f"on {len(devices)} devices for {task.target}"
    )
