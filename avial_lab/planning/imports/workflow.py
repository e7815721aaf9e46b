"""A task graph with the times that came with it, made of tasks, files and who waits for whom.

Tasks and files as a format has them -> Workflow, in an order that respects the graph.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from pathlib import Path

from avial_lab.core.buffers import Buffer, Storage
from avial_lab.core.errors import AvialError
from avial_lab.core.regions import Box
from avial_lab.core.words import brief, count, listed
from avial_lab.machine.topology import Target
from avial_lab.planning.costs import Costs
from avial_lab.planning.graph_facts import graph_summary
from avial_lab.planning.task_graph import Access, Task, TaskGraph, build_dag

_ANYWHERE = Target("any")


@dataclass(frozen=True)
class Workflow:
    """`costs` are the times given with the graph; `name` that of its file."""

    name: str
    graph: TaskGraph
    costs: Costs

    def __str__(self) -> str:
        return str(self.graph)

    def __repr__(self) -> str:
        return brief(self, f"{self.name}: {graph_summary(self.graph)}")


@dataclass(frozen=True)
class Given:
    """A task as a file has it: its time, what it reads and makes, what else it waits for."""

    name: str
    seconds: float
    reads: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def workflow(path: Path, tasks: Sequence[Given], sizes: Mapping[str, int]) -> Workflow:
    """sizes: bytes of the files. Raises AvialError for what cannot be a graph."""
    _check(path, tasks)
    maker: dict[str, str] = {}
    for task in tasks:
        for file in task.makes:
            if file in maker:
                raise AvialError(
                    f"{path}: the file '{file}' is made twice, by '{maker[file]}' and '{task.name}'"
                )
            maker[file] = task.name
    waits = {
        task.name: dict.fromkeys(
            [*(maker[f] for f in task.reads if maker.get(f, task.name) != task.name), *task.after]
        )
        for task in tasks
    }
    ordered = _in_order(path, tasks, waits)
    files = dict.fromkeys(file for task in ordered for file in (*task.reads, *task.makes))
    extent = {file: (max(1, sizes.get(file, 0)),) for file in files}
    storages = tuple(Storage(file, extent[file], 1, (file,)) for file in files)
    buffers = tuple(Buffer(file, extent[file], "i8", file, (1,)) for file in files)

    def access(file: str) -> Access:
        return Access(file, file, (Box((0,), extent[file]),))

    made = [
        Task(
            task.name,
            _ANYWHERE,
            tuple(access(file) for file in task.reads if maker.get(file) != task.name),
            tuple(map(access, task.makes)),
            tuple(k for k in waits[task.name] if not _hands_over(k, task, maker)),
        )
        for task in ordered
    ]
    given = {task.name: task.seconds for task in tasks}
    return Workflow(path.name, build_dag(made, buffers, storages), Costs(given=given))


def _hands_over(before: str, task: Given, maker: Mapping[str, str]) -> bool:
    """Whether an edge follows from a file."""
    return any(maker.get(file) == before for file in task.reads)


def _check(path: Path, tasks: Sequence[Given]) -> None:
    known: set[str] = set()
    for task in tasks:
        if task.name in known:
            raise AvialError(f"{path}: the task '{task.name}' stands twice")
        known.add(task.name)
        if not (math.isfinite(task.seconds) and task.seconds >= 0):
            raise AvialError(
                f"{path}: the task '{task.name}' takes {task.seconds} s, not 0 or more"
            )
    for task in tasks:
        for name in task.after:
            if name not in known:
                raise AvialError(f"{path}: the task '{task.name}' waits for '{name}', unknown here")
    if not tasks:
        raise AvialError(f"{path} holds no tasks")


def _in_order(
    path: Path, tasks: Sequence[Given], waits: Mapping[str, Mapping[str, None]]
) -> list[Given]:
    """Along the edges, and else as the file has them."""
    position = {task.name: k for k, task in enumerate(tasks)}
    left = {name: len(before) for name, before in waits.items()}
    after: dict[str, list[str]] = {task.name: [] for task in tasks}
    for name, before in waits.items():
        for each in before:
            after[each].append(name)
    ready = [position[name] for name, number in left.items() if not number]
    heapify(ready)
    ordered: list[Given] = []
    while ready:
        task = tasks[heappop(ready)]
        ordered.append(task)
        for name in after[task.name]:
            left[name] -= 1
            if not left[name]:
                heappush(ready, position[name])
    if len(ordered) < len(tasks):
        stuck = [name for name, number in left.items() if number]
        raise AvialError(
            f"{path}: {count(len(stuck), 'task')} wait for each other in a circle, or for those "
            f"that do: {listed(stuck, most=4)}"
        )
    return ordered
