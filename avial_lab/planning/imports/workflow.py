"""A task graph with the times that came with it, made of tasks, files and who waits for whom.

Tasks and files as a format has them -> Workflow, in an order that respects the graph.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from pathlib import Path

from avial_lab.core.buffers import Buffer, Storage
from avial_lab.core.errors import AvialError, CellSpan
from avial_lab.core.files import text_of
from avial_lab.core.regions import Box
from avial_lab.core.words import brief, count
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
                both = f"by '{maker[file]}' and '{task.name}'"
                raise AvialError(
                    f"{path}: the file '{file}' is made twice, {both}",
                    span=_place(path, task.name, file),
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
            raise AvialError(
                f"{path}: the task '{task.name}' stands twice",
                span=_place(path, task.name, again=True),
            )
        known.add(task.name)
        if not (math.isfinite(task.seconds) and task.seconds >= 0):
            raise AvialError(
                f"{path}: the task '{task.name}' takes {task.seconds} s, not 0 or more",
                span=_place(path, task.name, "runtime"),
            )
    for task in tasks:
        for name in task.after:
            if name not in known:
                raise AvialError(
                    f"{path}: the task '{task.name}' waits for '{name}', unknown here",
                    span=_place(path, task.name, name),
                )
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
        circle = _circle(waits, {name: number for name, number in left.items() if number})
        told = " → ".join([*circle[:MOST_NAMED], *["…"] * (len(circle) > MOST_NAMED), circle[0]])
        raise AvialError(
            f"{path}: {count(len(circle), 'task')} wait for each other in a circle: {told}",
            span=_place(path, circle[0], circle[-1]),
        )
    return ordered


MOST_NAMED = 6
"""Tasks of a circle."""


def _circle(waits: Mapping[str, Mapping[str, None]], stuck: Collection[str]) -> list[str]:
    """Each waits for the one before it, and the first for the last. stuck: all that wait for a
    circle, or are in one.
    """
    seen: dict[str, int] = {}
    task = next(iter(stuck))
    while task not in seen:
        seen[task] = len(seen)
        task = next(each for each in waits[task] if each in stuck)
    return list(seen)[seen[task] :][::-1]


def _place(path: Path, task: str, inside: str = "", *, again: bool = False) -> CellSpan | None:
    """Where the file tells that of a task: the first of its entries in which `inside` stands, else
    the first, or the second. None where names are not in the file as they are here.
    """
    text, json_file = text_of(path), path.suffix == ".json"
    name = re.escape(json.dumps(task)) if json_file else re.escape(task.removeprefix("t"))
    key = rf'"(?:id|name)"\s*:\s*{name}' if json_file else rf"^[ \t]*{name}\b"
    found = list(re.finditer(key, text, re.MULTILINE))
    for match in found:
        begin, end = _entry(text, match.start(), json_file)
        at = text.find(inside, begin, end) if inside else -1
        if at >= 0:
            return CellSpan.at(at, text, str(path))
    if not found:
        return None
    return CellSpan.at(found[min(int(again), len(found) - 1)].start(), text, str(path))


def _entry(text: str, at: int, json_file: bool) -> tuple[int, int]:
    """From where to where the object of the JSON goes that the place is in; of others nothing."""
    depth = 0
    for begin in range(at if json_file else -1, -1, -1):
        depth += (text[begin] == "}") - (text[begin] == "{")
        if depth < 0:
            try:
                return begin, json.JSONDecoder().raw_decode(text, begin)[1]
            except ValueError:
                break
    return at, at
