"""Which bytes go from rank to rank, derived from who wrote last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from avial_lab.core.piece_map import PieceMap
from avial_lab.core.regions import Box, union
from avial_lab.planning.schedule import Piece, Placement, Transfer
from avial_lab.planning.task_graph import Access, Task, TaskGraph

# What has to move ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Version:
    """Who wrote some elements last (None: the caller), and which ranks hold that version, the
    writer's first.
    """

    producer: str | None
    holders: tuple[int, ...]


@dataclass
class _Flow:
    """Walks the tasks in execution order and keeps, for every element, its last version and where
    it is.

    A rank that needs elements it does not hold gets them from the writer's rank, once; what no task
    has written yet comes from the caller before the run.
    """

    graph: TaskGraph
    rank_of: Mapping[str, int]
    transfers: list[Transfer] = field(default_factory=list[Transfer])
    versions: dict[str, PieceMap[_Version]] = field(default_factory=dict[str, PieceMap[_Version]])
    given: dict[tuple[int, str], list[Box]] = field(
        default_factory=dict[tuple[int, str], list[Box]]
    )

    def __post_init__(self) -> None:
        self._itemsize = {storage.name: storage.itemsize for storage in self.graph.storages}
        self._temporary = {b.storage for b in self.graph.buffers if b.temporary}
        for storage in self.graph.storages:
            self.versions[storage.name] = PieceMap(len(storage.shape))
            self.versions[storage.name].add(Box.whole(storage.shape), _Version(None, ()))

    def run(self, task: Task) -> None:
        rank = self.rank_of[task.name]
        for access in needed_accesses(task):
            for box in access.region:
                self._fetch(access.storage, box, rank, task.name)
        for access in task.writes:
            for box in access.region:
                self.versions[access.storage].replace(box, _Version(task.name, (rank,)))

    def _fetch(self, storage: str, box: Box, rank: int, consumer: str) -> None:
        """See to it that `rank` holds the last version of `box`."""
        versions = self.versions[storage]
        missing: list[tuple[Box, _Version]] = []
        for part, version in versions.overlapping(box):
            if version.producer is None:
                self.given.setdefault((rank, storage), []).append(part)
            elif rank not in version.holders:
                missing.append((part, version))
        for (producer, holders), parts in _grouped(missing).items():
            for part in union(parts):
                nbytes = part.size * self._itemsize[storage]
                self.transfers.append(
                    Transfer(
                        len(self.transfers),
                        storage,
                        part,
                        holders[0],
                        rank,
                        producer,
                        consumer,
                        nbytes,
                    )
                )
        for part, version in missing:
            versions.replace(part, _Version(version.producer, (*version.holders, rank)))

    def inputs(self) -> Iterable[Piece]:
        for (rank, storage), boxes in sorted(self.given.items(), key=lambda item: item[0]):
            if storage not in self._temporary:
                yield from (Piece(rank, storage, box) for box in union(boxes))

    def results(self) -> Iterable[Piece]:
        for storage, versions in self.versions.items():
            written: dict[int, list[Box]] = {}
            for box, version in versions:
                if version.producer is not None and storage not in self._temporary:
                    written.setdefault(version.holders[0], []).append(box)
            for rank, boxes in sorted(written.items()):
                yield from (Piece(rank, storage, box) for box in union(boxes))


def needed_accesses(task: Task) -> tuple[Access, ...]:
    """What has to be there before `task` runs: all it reads, and what it writes only in part.

    An element of an inexact write keeps its old value where the task does not write it after all.
    """
    return (*task.reads, *(access for access in task.writes if not access.exact))


def _grouped(
    pieces: Iterable[tuple[Box, _Version]],
) -> dict[tuple[str, tuple[int, ...]], list[Box]]:
    groups: dict[tuple[str, tuple[int, ...]], list[Box]] = {}
    for box, version in pieces:
        groups.setdefault((version.producer or "", version.holders), []).append(box)
    return groups


def derive_transfers(graph: TaskGraph, placements: tuple[Placement, ...]) -> _Flow:
    flow = _Flow(graph, {placement.task: placement.rank for placement in placements})
    for placement in placements:
        flow.run(graph.by_name[placement.task])
    return flow
