"""Level by level, in turn over the devices that fit."""

from __future__ import annotations

from avial_lab.machine.topology import Device, Target, Topology
from avial_lab.planning.candidates import fitting_devices
from avial_lab.planning.costs import Costs
from avial_lab.planning.schedule import Placement
from avial_lab.planning.task_graph import Task, TaskGraph


def place(graph: TaskGraph, topology: Topology, _costs: Costs) -> tuple[Placement, ...]:
    """Round-robin within each level over the devices that satisfy the target (Avial's slides,
    "Parallel Execution per Level"); tasks with different targets are counted apart, so that each
    kind of device is used evenly.
    """
    fitting: dict[Target, tuple[int, tuple[Device, ...]]] = {}
    groups: dict[tuple[Device, ...], int] = {}  # numbered: to hash all devices takes long
    placements: list[Placement] = []
    for level, tasks in enumerate(graph.levels):
        turns: dict[int, int] = {}
        for task in tasks:
            if task.target not in fitting:
                there = fitting_devices(task, topology)
                fitting[task.target] = groups.setdefault(there, len(groups)), there
            group, devices = fitting[task.target]
            turn = turns.get(group, 0)
            turns[group] = turn + 1
            device = devices[turn % len(devices)]
            reason = _reason(task, level, turn, devices)
            placements.append(Placement(task.name, device.name, device.rank, level, reason))
    return tuple(placements)


def _reason(task: Task, level: int, turn: int, devices: tuple[Device, ...]) -> str:
    if len(devices) == 1:
        return f"the only device for {task.target}"
    return (
        f"round-robin in level {level}: number {turn + 1} "
        f"on {len(devices)} devices for {task.target}"
    )
