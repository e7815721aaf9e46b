"""Task graph: which task must finish before which may start, and why.

Tasks with the regions they touch -> TaskGraph: RAW, WAR and WAW edges in program order, with
buffer, region, bytes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from avial_lab.core.buffers import Buffer, Storage
from avial_lab.core.errors import CellSpan
from avial_lab.core.piece_map import PieceMap
from avial_lab.core.regions import Box, Region, size, union
from avial_lab.core.table import PRINTED_ROWS
from avial_lab.core.words import MOST_ROWS, brief, format_bytes, listed
from avial_lab.machine.topology import Target
from avial_lab.planning.critical_path import Critical, critical_path
from avial_lab.planning.graph_facts import access_words, graph_summary, graph_text, region_words


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

    Where places depend on numbers that have no value yet, `region` is all they can reach, `anchor`
    names in each dimension the sum that is not known (empty where there is none), and `relative` is
    the region counted from there.
    """

    buffer: str
    storage: str
    region: Region
    exact: bool = True
    anchor: tuple[str, ...] = ()
    relative: Region = ()

    def __repr__(self) -> str:
        words = f"{self.buffer}{region_words(self.region)}"
        if any(self.anchor):
            words += f", {region_words(self.relative)} from ({', '.join(self.anchor)})"
        return brief(self, words if self.exact else f"{words}, perhaps not all of it")


@dataclass(frozen=True)
class Group:
    """A loop (or a condition) around tasks; `around` names the groups it is in, outermost first.

    `words` say how often it runs: `20 times`, `until e < 0.001`, `if a condition holds`. What it
    touches depends on the round; its tasks' regions hold what any round may touch.
    """

    name: str
    words: str
    loop: bool = True
    around: tuple[str, ...] = ()
    span: CellSpan | None = None

    def __repr__(self) -> str:
        inside = f", inside {' '.join(self.around)}" if self.around else ""
        return brief(self, f"{self.name}: {self.words}{inside}")


@dataclass(frozen=True)
class Task:
    """One task in program order; `summary` says in a few words what its body does (`scf.parallel
    20`), `group` the groups it is in, outermost first. `in_bounds`: no index whose range is
    known leaves its array.
    """

    name: str
    target: Target
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    after: tuple[str, ...] = ()
    kind: TaskKind = TaskKind.TASK
    summary: str = ""
    span: CellSpan | None = None
    group: tuple[str, ...] = ()
    in_bounds: bool = True

    @property
    def accesses(self) -> tuple[Access, ...]:
        """What it reads, then what it writes."""
        return (*self.reads, *self.writes)

    def __repr__(self) -> str:
        kind = "" if self.kind is TaskKind.TASK else f"{self.kind.value} "
        touched = f"reads {access_words(self.reads) or 'nothing'}, "
        touched += f"writes {access_words(self.writes) or 'nothing'}"
        return brief(self, f"{self.name}: {kind}for {self.target}, {touched}")


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

    def __repr__(self) -> str:
        what = self.hazard.value
        if self.buffer:
            what += f" {self.buffer}{region_words(self.region)}, {format_bytes(self.nbytes)}"
        return brief(self, f"{self.before} → {self.after}: {what}")


@dataclass(frozen=True)
class TaskGraph:
    """Tasks in program order, and every dependency between two of them.

    Of tasks in loops (`groups`) dependencies are those of one round of each; `carried` are those
    from a round to a later one, of the innermost loop around both.
    """

    tasks: tuple[Task, ...]
    dependencies: tuple[Dependency, ...]
    buffers: tuple[Buffer, ...]
    storages: tuple[Storage, ...]
    groups: tuple[Group, ...] = ()
    carried: tuple[Dependency, ...] = ()

    @cached_property
    def level_of(self) -> dict[str, int]:
        """Longest-path depth of every task; 0 where it waits for none."""
        levels = {task.name: 0 for task in self.tasks}
        position = {task.name: k for k, task in enumerate(self.tasks)}
        # Every edge points forward in program order, so one pass in that order is enough.
        for edge in sorted(self.dependencies, key=lambda edge: position[edge.after]):
            levels[edge.after] = max(levels[edge.after], levels[edge.before] + 1)
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

    @cached_property
    def critical(self) -> Critical:
        """The critical path as estimated: a task counts as many bytes as it touches, one at least,
        once and on one device.
        """
        itemsize = {storage.name: storage.itemsize for storage in self.storages}
        cost = {
            task.name: max(1, sum(size(a.region) * itemsize[a.storage] for a in task.accesses))
            for task in self.tasks
        }
        return critical_path(cost, ((edge.before, edge.after) for edge in self.dependencies))

    def storage(self, name: str) -> Storage:
        return next(storage for storage in self.storages if storage.name == name)

    def __str__(self) -> str:
        return graph_text(self, most=PRINTED_ROWS)

    def __repr__(self) -> str:
        """A line for each of the first tasks: where it is, and which tasks it waits for."""
        first = {task.name: list[str]() for task in self.tasks[:MOST_ROWS]}
        for edge in self.dependencies:
            if edge.after in first and edge.before not in first[edge.after]:
                first[edge.after].append(edge.before)
        rows = (
            f"{name}: level {self.level_of[name]}, {self.by_name[name].target}"
            + (f", after {listed(before, most=4)}" if before else "")
            for name, before in first.items()
        )
        return brief(self, f"of {graph_summary(self)}", rows, len(self.tasks))


def build_dag(
    tasks: Sequence[Task],
    buffers: Sequence[Buffer],
    storages: Sequence[Storage],
    groups: Sequence[Group] = (),
) -> TaskGraph:
    """The dependencies of `tasks`, given in program order, one round of each of the `groups`.

    For every element the last task that wrote it and those that read it since are known; a task
    that reads it comes after the writer (RAW), one that writes it after the readers (WAR) and the
    writer (WAW).
    """
    return TaskGraph(
        tuple(tasks),
        _dependencies(tasks, storages),
        tuple(buffers),
        tuple(storages),
        tuple(groups),
        tuple(dep for group in groups if group.loop for dep in _carried(group, tasks, storages)),
    )


def _carried(
    group: Group, tasks: Sequence[Task], storages: Sequence[Storage]
) -> Iterator[Dependency]:
    """From a round of the loop to the next: its tasks, and once more the same.

    S1 ─► S2        the second S1 reads what the first S2 has written:
    S1' ─► S2'      S2 ─► S1' is carried
    """
    depth = len(group.around)
    inside = [task for task in tasks if task.group[depth : depth + 1] == (group.name,)]
    position = {task.name: k for k, task in enumerate(inside)}
    again = [replace(task, name=f"{task.name}\0", after=()) for task in inside]
    for edge in _dependencies([*inside, *again], storages):
        after = edge.after.removesuffix("\0")
        if edge.after == after or edge.before not in position:
            continue
        first, second = inside[position[edge.before]].group, inside[position[after]].group
        if first[: depth + 2] == second[: depth + 2] and len(first) > depth + 1:
            continue  # a loop further in is around both
        yield replace(edge, after=after)


def _dependencies(tasks: Sequence[Task], storages: Sequence[Storage]) -> tuple[Dependency, ...]:
    histories = {storage.name: _History(storage.shape) for storage in storages}
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
            histories[access.storage].write(access, position)
        for access in task.reads:
            histories[access.storage].readers.add(access, position)
        storage_of = {access.buffer: access.storage for access in (*task.reads, *task.writes)}
        for (before, hazard, buffer), boxes in sorted(found.items(), key=_edge_order):
            region = union(boxes)
            nbytes = size(region) * itemsize[storage_of[buffer]]
            name = tasks[before].name
            dependencies.append(Dependency(name, task.name, hazard, buffer, region, nbytes))
        dependencies.extend(
            Dependency(name, task.name, Hazard.EXPLICIT, "", (), 0) for name in task.after
        )
    return tuple(dependencies)


_HAZARD_ORDER = {hazard: k for k, hazard in enumerate(Hazard)}


def _edge_order(item: tuple[tuple[int, Hazard, str], list[Box]]) -> tuple[int, int, str]:
    (before, hazard, buffer), _ = item
    return before, _HAZARD_ORDER[hazard], buffer


def _collect(
    found: dict[tuple[int, Hazard, str], list[Box]],
    earlier: _Touched,
    access: Access,
    hazard: Hazard,
) -> None:
    for common, position in earlier.overlapping(access):
        found.setdefault((position, hazard, access.buffer), []).append(common)


class _History:
    """For every element of a storage: who wrote it last, and who has read it since."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.writers = _Touched(shape)
        self.readers = _Touched(shape)

    def write(self, access: Access, position: int) -> None:
        self.readers.remove(access)
        self.writers.remove(access)
        # Remove first: the boxes of one region are disjoint, but adding splits nothing.
        self.writers.add(access, position)


_EVERYWHERE = (-(2**80), 2**80)


class _Touched:
    """Positions of tasks by the elements of a storage they touched, apart by anchor.

    In a dimension where two accesses count from the same sum of unknown numbers they are told apart
    exactly; where one counts from a sum and the other from another, or from 0, they may touch.

            k        k+50      k+100        anchor k:  [0:50] and [50:100] share nothing
        ----|---------|---------|----       anchor n:  may share something with both
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._no_anchor = ("",) * len(shape)
        self._maps: dict[tuple[str, ...], PieceMap[int]] = {}

    def add(self, access: Access, position: int) -> None:
        anchor, region = self._counted(access)
        if anchor not in self._maps:
            self._maps[anchor] = PieceMap(len(self._shape))
        for box in region:
            self._maps[anchor].add(box, position)

    def overlapping(self, access: Access) -> Iterator[tuple[Box, int]]:
        """(elements that may be common, position) of every earlier access that may touch."""
        own, region = self._counted(access)
        for anchor, pieces in self._maps.items():
            for box in region:
                if anchor == own == self._no_anchor:
                    yield from pieces.overlapping(box)
                else:
                    for common, position in pieces.overlapping(_seen_from(anchor, own, box)):
                        yield self._reached(anchor, common, own, box), position

    def remove(self, access: Access) -> None:
        """Forget what later accesses need not know: whatever touches it touches `access` too."""
        own, region = self._counted(access)
        for anchor, pieces in self._maps.items():
            for box in region:
                if anchor == own or self._covers(anchor, own, box):
                    pieces.remove(_seen_from(anchor, own, box))

    def _counted(self, access: Access) -> tuple[tuple[str, ...], Region]:
        return (
            (access.anchor, access.relative) if access.anchor else (self._no_anchor, access.region)
        )

    def _covers(self, anchor: tuple[str, ...], own: tuple[str, ...], box: Box) -> bool:
        """Whether the box holds all there is in each dimension that another anchor counts."""
        return all(
            theirs == ours or (not ours and start <= 0 and stop >= extent)
            for theirs, ours, start, stop, extent in zip(
                anchor, own, box.start, box.stop, self._shape, strict=True
            )
        )

    def _reached(self, anchor: tuple[str, ...], common: Box, own: tuple[str, ...], box: Box) -> Box:
        """The elements that `common`, counted from `anchor`, may be, if they are in `box`."""
        ends = [
            (common.start[d], common.stop[d])
            if not anchor[d]
            else (box.start[d], box.stop[d])
            if not own[d]
            else (0, extent)
            for d, extent in enumerate(self._shape)
        ]
        return Box(tuple(low for low, _ in ends), tuple(high for _, high in ends))


def _seen_from(anchor: tuple[str, ...], own: tuple[str, ...], box: Box) -> Box:
    """`box`, counted from `own`, as far as it is known when counted from `anchor`."""
    if anchor == own:
        return box
    ends = [
        (start, stop) if theirs == ours else _EVERYWHERE
        for theirs, ours, start, stop in zip(anchor, own, box.start, box.stop, strict=True)
    ]
    return Box(tuple(low for low, _ in ends), tuple(high for _, high in ends))
