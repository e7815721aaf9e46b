"""Task graph: which task must finish before which may start, and why.

Tasks with the regions they touch -> TaskGraph: RAW, WAR and WAW edges in program order, with
buffer, region, bytes.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from avial_lab.arrays import Buffer, Storage
from avial_lab.errors import CellSpan
from avial_lab.piecemap import PieceMap
from avial_lab.regions import Box, Region, size, union
from avial_lab.topology import Target


class Hazard(enum.Enum):
    READ_AFTER_WRITE = "RAW"
    WRITE_AFTER_READ = "WAR"
    WRITE_AFTER_WRITE = "WAW"
    EXPLICIT = "after"


class TaskKind(enum.Enum):
    TASK = "task"
    REPLICATE = "replicate"
    CONVERGE = "converge"


@dataclass(frozen=True)
class Access:
    """What a task reads or writes of one storage, through the buffer it names.

    `region` counts in the storage's index space and holds every element that may be touched. For a
    write, `exact` says that every element of the region is certainly written; where it is not, the
    old values have to be there first.
    """

    buffer: str
    storage: str
    region: Region
    exact: bool = True


@dataclass(frozen=True)
class Task:
    """One task in program order; `summary` says in a few words what its body does (`scf.parallel
    20`).
    """

    name: str
    target: Target
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    after: tuple[str, ...] = ()
    kind: TaskKind = TaskKind.TASK
    summary: str = ""
    span: CellSpan | None = None


@dataclass(frozen=True)
class Dependency:
    """`after` may not start before `before` has finished: they touch `region` of `buffer`, `nbytes`
    in all.

    An explicit edge (`after %task1`) has no buffer, an empty region and 0 bytes.
    """

    before: str
    after: str
    hazard: Hazard
    buffer: str
    region: Region
    nbytes: int


@dataclass(frozen=True)
class TaskGraph:
    """Tasks in program order, and every dependency between two of them."""

    tasks: tuple[Task, ...]
    dependencies: tuple[Dependency, ...]
    buffers: tuple[Buffer, ...]
    storages: tuple[Storage, ...]

    @cached_property
    def level_of(self) -> dict[str, int]:
        """Longest-path depth of every task; 0 where it waits for none."""
        waits_for: dict[str, list[str]] = {task.name: [] for task in self.tasks}
        for edge in self.dependencies:
            waits_for[edge.after].append(edge.before)
        levels: dict[str, int] = {}
        # Every edge points forward in program order, so one pass in that order is enough.
        for task in self.tasks:
            levels[task.name] = 1 + max((levels[name] for name in waits_for[task.name]), default=-1)
        return levels

    @cached_property
    def levels(self) -> tuple[tuple[Task, ...], ...]:
        """The tasks by level, in program order within each."""
        rows: list[list[Task]] = [[] for _ in range(max(self.level_of.values(), default=-1) + 1)]
        for task in self.tasks:
            rows[self.level_of[task.name]].append(task)
        return tuple(map(tuple, rows))

    @cached_property
    def by_name(self) -> dict[str, Task]:
        return {task.name: task for task in self.tasks}

    def storage(self, name: str) -> Storage:
        return next(storage for storage in self.storages if storage.name == name)


def build_dag(
    tasks: Sequence[Task], buffers: Sequence[Buffer], storages: Sequence[Storage]
) -> TaskGraph:
    """The dependencies of `tasks`, given in program order.

    For every element the last task that wrote it and those that read it since are known; a task
    that reads it comes after the writer (RAW), one that writes it after the readers (WAR) and the
    writer (WAW).
    """
    histories = {storage.name: _History(len(storage.shape)) for storage in storages}
    itemsize = {storage.name: storage.itemsize for storage in storages}
    dependencies: list[Dependency] = []
    for position, task in enumerate(tasks):
        found: dict[tuple[int, Hazard, str], list[Box]] = {}
        for access in task.reads:
            writers = histories[access.storage].writers
            _collect(found, writers, access, Hazard.READ_AFTER_WRITE)
        for access in task.writes:
            history = histories[access.storage]
            _collect(found, history.readers, access, Hazard.WRITE_AFTER_READ)
            _collect(found, history.writers, access, Hazard.WRITE_AFTER_WRITE)
        for access in task.writes:
            histories[access.storage].write(access.region, position)
        for access in task.reads:
            histories[access.storage].read(access.region, position)
        storage_of = {access.buffer: access.storage for access in (*task.reads, *task.writes)}
        for (before, hazard, buffer), boxes in sorted(found.items(), key=_edge_order):
            region = union(boxes)
            nbytes = size(region) * itemsize[storage_of[buffer]]
            name = tasks[before].name
            dependencies.append(Dependency(name, task.name, hazard, buffer, region, nbytes))
        dependencies.extend(
            Dependency(name, task.name, Hazard.EXPLICIT, "", (), 0) for name in task.after
        )
    return TaskGraph(tuple(tasks), tuple(dependencies), tuple(buffers), tuple(storages))


_HAZARD_ORDER = {hazard: k for k, hazard in enumerate(Hazard)}


def _edge_order(item: tuple[tuple[int, Hazard, str], list[Box]]) -> tuple[int, int, str]:
    (before, hazard, buffer), _ = item
    return before, _HAZARD_ORDER[hazard], buffer


def _collect(
    found: dict[tuple[int, Hazard, str], list[Box]],
    earlier: PieceMap[int],
    access: Access,
    hazard: Hazard,
) -> None:
    for box in access.region:
        for common, position in earlier.overlapping(box):
            found.setdefault((position, hazard, access.buffer), []).append(common)


class _History:
    """For every element of a storage: who wrote it last, and who has read it since."""

    def __init__(self, rank: int) -> None:
        self.writers: PieceMap[int] = PieceMap(rank)
        self.readers: PieceMap[int] = PieceMap(rank)

    def write(self, region: Region, position: int) -> None:
        for box in region:
            self.readers.remove(box)
            self.writers.remove(box)
        # Remove first: the boxes of one region are disjoint, but adding splits nothing.
        for box in region:
            self.writers.add(box, position)

    def read(self, region: Region, position: int) -> None:
        for box in region:
            self.readers.add(box, position)
