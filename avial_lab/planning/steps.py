"""What each rank does, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from avial_lab.core.piece_map import PieceMap
from avial_lab.core.regions import Region
from avial_lab.machine.topology import Topology
from avial_lab.planning.schedule import Placement, RankProgram, Step, StepKind, Sync, Transfer
from avial_lab.planning.task_graph import Task, TaskGraph

# What each rank does ------------------------------------------------------------------------------


def rank_programs(
    graph: TaskGraph,
    topology: Topology,
    placements: tuple[Placement, ...],
    transfers: list[Transfer],
    sync: Sync,
) -> tuple[RankProgram, ...]:
    """The steps of every rank, deadlock-free by construction.

    Give each task its position in the order of `placements`: any that respects the graph. A rank at
    position p waits only for messages whose other side needs nothing later than p to do its part: a
    message is sent right after its producer, its receive is posted before its consumer at the
    latest, and the wait for a send to complete is no earlier than that message's consumer. By
    induction over positions the least blocked rank can always go on. A barrier is at the same
    position on every rank, wherever the level of the tasks changes.
    """
    position = {placement.task: k for k, placement in enumerate(placements)}
    level_ends = [
        k + 1
        for k, placement in enumerate(placements)
        if k + 1 == len(placements) or placements[k + 1].level != placement.level
    ]
    barriers = level_ends if sync is Sync.LEVELS and topology.ranks > 1 else []
    dims = {storage.name: len(storage.shape) for storage in graph.storages}
    programs: list[_RankProgram] = [
        _RankProgram(graph, rank, position, dims) for rank in range(topology.ranks)
    ]
    incoming: dict[str, list[Transfer]] = {}
    outgoing: dict[str, list[Transfer]] = {}
    for transfer in transfers:
        incoming.setdefault(transfer.consumer, []).append(transfer)
        outgoing.setdefault(transfer.producer, []).append(transfer)
    for k, placement in enumerate(placements):
        task = graph.by_name[placement.task]
        program = programs[placement.rank]
        program.run(task, incoming.get(task.name, ()), outgoing.get(task.name, ()))
        if k + 1 in barriers:
            for program in programs:
                program.barrier(k)
    return tuple(program.finish() for program in programs)


_T = TypeVar("_T")


class _Maps(dict[str, PieceMap[_T]]):
    """A map for each storage, made when it is first asked for: most ranks touch few of them."""

    def __init__(self, dims: Mapping[str, int]) -> None:
        super().__init__()
        self._dims = dims

    def __missing__(self, storage: str) -> PieceMap[_T]:
        # (Not PieceMap[_T], which takes longer than all else here.)
        made: PieceMap[_T] = PieceMap(self._dims[storage])
        self[storage] = made
        return made


class _RankProgram:
    """Builds one rank's steps; each is keyed by the position it belongs to, so that receives can be
    posted early.
    """

    # Within one position: what must be over before the task, the task, what it sends, receives
    # posted after it.
    _BEFORE, _RECEIVED, _RUN, _SEND, _POST, _BARRIER = range(6)

    def __init__(
        self, graph: TaskGraph, rank: int, position: Mapping[str, int], dims: Mapping[str, int]
    ) -> None:
        self._graph = graph
        self._rank = rank
        self._position = position
        self._steps: list[tuple[int, int, int, Step]] = []
        # Where each element was last touched by this rank's tasks and messages: position.
        self._touched: dict[str, PieceMap[int]] = _Maps(dims)
        self._sending: dict[str, PieceMap[Transfer]] = _Maps(dims)
        self._unsent: dict[int, Transfer] = {}
        self._sent_at: dict[int, int] = {}

    def run(self, task: Task, incoming: Iterable[Transfer], outgoing: Iterable[Transfer]) -> None:
        now = self._position[task.name]
        for transfer in incoming:
            self._receive(transfer, now)
        for access in task.writes:
            self._finish_sends(access.storage, access.region, now)
        self._add(now, self._RUN, Step(StepKind.RUN, task=task.name))
        for access in (*task.reads, *task.writes):
            self._touch(access.storage, access.region, now)
        for transfer in outgoing:
            self._add(now, self._SEND, Step(StepKind.SEND, transfer=transfer.index))
            self._sending[transfer.storage].add(transfer.box, transfer)
            self._unsent[transfer.index] = transfer

    def barrier(self, position: int) -> None:
        self._add(position, self._BARRIER, Step(StepKind.BARRIER))

    def finish(self) -> RankProgram:
        end = len(self._position)
        for index in sorted(self._unsent):
            self._add(end, self._BEFORE, Step(StepKind.WAIT_SENT, transfer=index))
        self._steps.sort()  # (no two have the same number: steps are never compared)
        return tuple([step for *_, step in self._steps])

    def _receive(self, transfer: Transfer, now: int) -> None:
        """Post as soon as this rank has no more use for what is there, wait right before the
        consumer.
        """
        region = (transfer.box,)
        last_use = max(
            (at for _, at in self._touched[transfer.storage].overlapping(transfer.box)), default=-1
        )
        after_sends = self._finish_sends(transfer.storage, region, now, early=True)
        post_at = max(last_use, after_sends)
        self._add(post_at, self._POST, Step(StepKind.POST, transfer=transfer.index))
        self._add(now, self._RECEIVED, Step(StepKind.WAIT_RECEIVED, transfer=transfer.index))
        self._touch(transfer.storage, region, now)

    def _finish_sends(self, storage: str, region: Region, now: int, *, early: bool = False) -> int:
        """Wait for this rank's sends from `region` before it is overwritten; the position where the
        last wait is.

        `early`: not at `now` but as soon as the message's own consumer is past, before a receive is
        posted.
        """
        latest = -1
        sending = self._sending[storage]
        for box in region:
            for _, transfer in sending.overlapping(box):
                if transfer.index in self._unsent:
                    del self._unsent[transfer.index]
                    at = self._position[transfer.consumer] if early else now
                    self._sent_at[transfer.index] = at
                    order = self._POST if early else self._BEFORE
                    self._add(at, order, Step(StepKind.WAIT_SENT, transfer=transfer.index))
                # The wait may be there already, for another part of the same message.
                latest = max(latest, self._sent_at[transfer.index])
            sending.remove(box)
        return latest

    def _touch(self, storage: str, region: Region, at: int) -> None:
        for box in region:
            self._touched[storage].replace(box, at)

    def _add(self, position: int, order: int, step: Step) -> None:
        self._steps.append((position, order, len(self._steps), step))
