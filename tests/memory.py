"""An abstract machine for task programs: memory whose elements remember how their value came about.

A task's written element becomes a number made of the task's name and of everything the task read:
two runs agree exactly where every task saw the same values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from avial_lab.core.regions import Box, Region
from avial_lab.planning.task_graph import Task, TaskGraph

Index = tuple[int, ...]


def indices(region: Region) -> Iterator[Index]:
    for box in region:
        yield from product(*(range(a, b) for a, b in zip(box.start, box.stop, strict=True)))


@dataclass
class Memory:
    """Value of every element of every storage; None where a rank has none."""

    graph: TaskGraph = field(compare=False, repr=False)
    values: dict[str, dict[Index, int | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for storage in self.graph.storages:
            whole = (Box.whole(storage.shape),)
            self.values[storage.name] = {
                index: hash((storage.name, index)) for index in indices(whole)
            }

    def forget(self) -> None:
        for elements in self.values.values():
            for index in elements:
                elements[index] = None


def run_task(memory: Memory, task: Task) -> None:
    """Write what `task` writes; an inexact write leaves every second element as it was."""
    seen = [
        (access.storage, index, memory.values[access.storage][index])
        for access in task.reads
        for index in indices(access.region)
    ]
    assert all(value is not None for _, _, value in seen), f"{task.name} reads what is not there"
    for access in task.writes:
        for number, index in enumerate(indices(access.region)):
            if access.exact or number % 2 == 0:
                new = hash((task.name, access.storage, index, tuple(seen)))
                memory.values[access.storage][index] = new
