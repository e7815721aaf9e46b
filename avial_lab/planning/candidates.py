"""Devices that may run a task."""

from __future__ import annotations

from avial_lab.core.errors import ScheduleError
from avial_lab.machine.topology import Device, Topology
from avial_lab.planning.task_graph import Task


def fitting_devices(task: Task, topology: Topology) -> tuple[Device, ...]:
    devices = topology.satisfying(task.target)
    if devices:
        return devices
    there = "; ".join(map(str, topology.devices)) or "none"
    hint, kind = f"the devices are: {there}", task.target.kind
    if kind.option and not any(device.kind.family == kind.family for device in topology.devices):
        hint += f". Ask for a {kind.noun} device ({kind.option})"
    raise ScheduleError(
        f"no device satisfies target %{task.target.name} ({task.target}) of task '{task.name}'",
        span=task.span,
        hint=hint,
    )
