"""Which bytes go between a rank's memory and its devices', derived from who wrote last.

The steps of every rank -> the same with copies between them. What a device wrote goes to a device
of another rank as it is; other messages go from host to host. What a rank has to copy for its tasks
and messages follows from its own steps alone.

    run t1 on gpu0      copy c cpu0 → gpu0 first, where the host holds it and gpu0 does not
    send c to rank 1    copy c gpu0 → cpu0 first, where a task on rank 1's CPU needs it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from avial_lab.core.piece_map import PieceMap
from avial_lab.core.regions import Box
from avial_lab.machine.topology import Topology
from avial_lab.planning.schedule import (
    DeviceCopy,
    Piece,
    Placement,
    RankProgram,
    Step,
    StepKind,
    Transfer,
)
from avial_lab.planning.task_graph import Task, TaskGraph
from avial_lab.planning.transfers import needed_accesses


def between_places(
    topology: Topology, placements: Sequence[Placement], transfers: Sequence[Transfer]
) -> list[Transfer]:
    """The transfers, each with its places where it goes from device to device."""
    place_of = {placed.task: topology.place_of(placed.device) for placed in placements}
    found: list[Transfer] = []
    for each in transfers:
        ends = place_of[each.producer], place_of[each.consumer]
        found.append(replace(each, places=ends) if min(ends) >= topology.ranks else each)
    return found


def with_copies(
    graph: TaskGraph,
    topology: Topology,
    placements: Sequence[Placement],
    programs: Sequence[RankProgram],
    transfers: Sequence[Transfer],
    results: Sequence[Piece],
    homes: Mapping[str, int],
) -> tuple[tuple[RankProgram, ...], tuple[DeviceCopy, ...]]:
    """The programs with their copies; both as they are where no task is on a device with memory of
    its own. homes: where the caller has an array on a device, by storage; its results go there.
    """
    place_of = {placed.task: topology.place_of(placed.device) for placed in placements}
    if all(place < topology.ranks for place in place_of.values()):
        return tuple(programs), ()
    copies: list[DeviceCopy] = []
    found = [
        _Rank(graph, rank, place_of, transfers, copies, homes).walk(program, results)
        for rank, program in enumerate(programs)
    ]
    return tuple(found), tuple(copies)


@dataclass
class _Rank:
    """Walks the steps of one rank and keeps which of its places hold the last version that it has;
    none hold what was never there.
    """

    graph: TaskGraph
    rank: int
    place_of: Mapping[str, int]
    transfers: Sequence[Transfer]
    copies: list[DeviceCopy]
    homes: Mapping[str, int]
    steps: list[Step] = field(default_factory=list[Step])
    held: dict[str, PieceMap[frozenset[int]]] = field(
        default_factory=dict[str, PieceMap[frozenset[int]]]
    )

    def __post_init__(self) -> None:
        self._itemsize = {storage.name: storage.itemsize for storage in self.graph.storages}
        temporary = {b.storage for b in self.graph.buffers if b.temporary}
        for storage in self.graph.storages:
            first = self.homes.get(storage.name, self.rank)
            holders = frozenset[int]() if storage.name in temporary else frozenset({first})
            self.held[storage.name] = PieceMap(len(storage.shape))
            self.held[storage.name].add(Box.whole(storage.shape), holders)

    def walk(self, program: RankProgram, results: Sequence[Piece]) -> RankProgram:
        for step in program:
            if step.kind is StepKind.RUN:
                self._run(step, self.graph.by_name[step.task])
                continue
            if step.kind is StepKind.SEND:
                sent = self.transfers[step.transfer]
                place = sent.places[0] if sent.places else self.rank
                self._bring(sent.storage, sent.box, place, sent.producer)
            elif step.kind is StepKind.WAIT_RECEIVED:
                received = self.transfers[step.transfer]
                place = received.places[1] if received.places else self.rank
                self._written(received.storage, received.box, place)
            self.steps.append(step)
        for piece in results:
            if piece.rank == self.rank:
                to = self.homes.get(piece.storage, self.rank)
                self._bring(piece.storage, piece.box, to, "")
        return tuple(self.steps)

    def _run(self, step: Step, task: Task) -> None:
        place = self.place_of[task.name]
        for access in needed_accesses(task):
            for box in access.region:
                self._bring(access.storage, box, place, task.name)
        self.steps.append(step)
        for access in task.writes:
            for box in access.region:
                self._written(access.storage, box, place)

    def _bring(self, storage: str, box: Box, place: int, task: str) -> None:
        """See to it that `place` holds what the rank has of the box."""
        pieces = self.held[storage]
        for part, holders in pieces.overlapping(box):
            if place in holders or not holders:
                continue
            source = self.rank if self.rank in holders else min(holders)
            nbytes = part.size * self._itemsize[storage]
            copy = DeviceCopy(len(self.copies), storage, part, source, place, task, nbytes)
            self.copies.append(copy)
            self.steps.append(Step(StepKind.COPY, copy=copy.index))
            pieces.remove(part)
            pieces.add(part, holders | {place})

    def _written(self, storage: str, box: Box, place: int) -> None:
        self.held[storage].remove(box)
        self.held[storage].add(box, frozenset({place}))
