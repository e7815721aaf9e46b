"""What every rank holds: the regions that its tasks touch, from when they are first touched to the
end of the run.

TaskGraph, who runs what -> bytes by rank, and who holds too much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from avial_lab.core.errors import ScheduleError
from avial_lab.core.piece_map import PieceMap
from avial_lab.core.regions import Box
from avial_lab.core.words import format_bytes, listed
from avial_lab.machine.topology import Topology
from avial_lab.planning.schedule import Schedule, StepKind
from avial_lab.planning.task_graph import Task, TaskGraph


class HeldMemory:
    """Bytes of each rank, as tasks are given to it one by one."""

    def __init__(self, graph: TaskGraph, ranks: int) -> None:
        self.nbytes = [0] * ranks
        self._itemsize = {storage.name: storage.itemsize for storage in graph.storages}
        self._dims = {storage.name: len(storage.shape) for storage in graph.storages}
        self._there: list[dict[str, PieceMap[bool]]] = [{} for _ in range(ranks)]

    def after(self, task: Task) -> np.ndarray:
        """What each rank would hold with that task; (ranks,)."""
        found = np.array(self.nbytes) + self._new(task, {})
        touched = {access.storage for access in task.accesses}
        for rank, there in enumerate(self._there):
            if not touched.isdisjoint(there):
                found[rank] = self.nbytes[rank] + self._new(task, there)
        return found

    def add(self, task: Task, rank: int) -> None:
        for access in task.accesses:
            for box in access.region:
                self.receive(access.storage, box, rank)

    def receive(self, storage: str, box: Box, rank: int) -> None:
        """What a message brings to it."""
        there = self._map(rank, storage)
        self.nbytes[rank] += self._missing(there, box) * self._itemsize[storage]
        there.remove(box)
        there.add(box, True)

    def by_storage(self, rank: int) -> dict[str, int]:
        """What the rank holds of each storage."""
        return {
            name: sum(box.size for box, _ in there) * self._itemsize[name]
            for name, there in self._there[rank].items()
        }

    def _new(self, task: Task, there: Mapping[str, PieceMap[bool]]) -> int:
        """Bytes of the task that are not there. (What two of its accesses share counts once.)"""
        seen: dict[str, PieceMap[bool]] = {}
        total = 0
        for access in task.accesses:
            dims = self._dims[access.storage]
            own = seen.setdefault(access.storage, PieceMap(dims))
            held = there[access.storage] if access.storage in there else PieceMap[bool](dims)
            for box in access.region:
                both = self._missing(held, box) - sum(
                    self._missing(held, part) for part, _ in own.overlapping(box)
                )
                total += both * self._itemsize[access.storage]
                own.remove(box)
                own.add(box, True)
        return total

    def _map(self, rank: int, storage: str) -> PieceMap[bool]:
        if storage not in self._there[rank]:
            self._there[rank][storage] = PieceMap(self._dims[storage])
        return self._there[rank][storage]

    @staticmethod
    def _missing(there: PieceMap[bool], box: Box) -> int:
        return box.size - sum(part.size for part, _ in there.overlapping(box))


def held_bytes(schedule: Schedule) -> tuple[int, ...]:
    """What each rank holds in the end, which is the most that it holds."""
    return tuple(_held(schedule).nbytes)


def _held(schedule: Schedule) -> HeldMemory:
    held = HeldMemory(schedule.graph, schedule.topology.ranks)
    for placement in schedule.placements:
        held.add(schedule.graph.by_name[placement.task], placement.rank)
    return held


def first_touched(schedule: Schedule) -> dict[str, int]:
    """Bytes of each task on a CPU that its rank neither touched nor received before."""
    graph, topology = schedule.graph, schedule.topology
    held = HeldMemory(graph, topology.ranks)
    own = {device.name: not device.kind.apart for device in topology.devices}
    found: dict[str, int] = {}
    for rank, program in enumerate(schedule.programs):
        for step in program:
            if step.kind is StepKind.WAIT_RECEIVED:
                brought = schedule.transfers[step.transfer]
                if not brought.places:
                    held.receive(brought.storage, brought.box, rank)
            elif step.kind is StepKind.RUN and own[schedule.placement_of[step.task].device]:
                before = held.nbytes[rank]
                held.add(graph.by_name[step.task], rank)
                found[step.task] = held.nbytes[rank] - before
    return found


def check_memory(
    schedule: Schedule, *, hint: str = "use more nodes, or --policy min-memory"
) -> None:
    """ScheduleError where the ranks of a node hold more than its memory: which, and of what."""
    topology: Topology = schedule.topology
    held = _held(schedule)
    total: Counter[str] = Counter()
    for rank, node in enumerate(topology.node_of):
        total[node] += held.nbytes[rank]
    for node, nbytes in total.items():
        room = topology.speeds.node(node).memory_bytes
        if room and nbytes > room:
            raise ScheduleError(
                f"node '{node}' has {format_bytes(room)} of memory, and its ranks would hold "
                f"{format_bytes(nbytes)}: {_of_what(held, topology, node)}",
                hint=hint,
            )


def _of_what(held: HeldMemory, topology: Topology, node: str) -> str:
    """`rank 0 holds 3 GiB (a 2 GiB, b 1 GiB), …`, the fullest first."""
    ranks = [r for r, where in enumerate(topology.node_of) if where == node]
    ranks.sort(key=lambda rank: -held.nbytes[rank])
    told: list[str] = []
    for rank in ranks[:3]:
        parts = sorted(held.by_storage(rank).items(), key=lambda part: -part[1])
        words = listed([f"{name} {format_bytes(nbytes)}" for name, nbytes in parts], most=3)
        told.append(f"rank {rank} holds {format_bytes(held.nbytes[rank])} ({words})")
    return ", ".join(told)
