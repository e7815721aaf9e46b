"""The plan of a program: what each phase or task uses, moves and holds, rank by rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from avial_lab.artifact.device_memory import Stay, most_bytes, stays_of_tasks
from avial_lab.artifact.plan_facts import moves_summary, plan_text
from avial_lab.core.buffers import Storage
from avial_lab.core.paged import paged_bytes
from avial_lab.core.regions import Box, size, union
from avial_lab.core.runtime_constants import PAGED_PLACES, Use
from avial_lab.core.table import PRINTED_ROWS
from avial_lab.core.words import MOST_ROWS, brief, count, format_bytes
from avial_lab.planning.schedule import PhaseRun, Piece, Schedule
from avial_lab.trace import Copy, Move


@dataclass(frozen=True)
class Footprint:
    """What a rank (-1: every rank alike) touches in a phase, the first time it touches anything."""

    phase: str
    rank: int
    storage: str
    use: Use
    box: Box

    def __repr__(self) -> str:
        who = "every rank" if self.rank < 0 else f"rank {self.rank}"
        return brief(self, f"in {self.phase}: {who} {self.use.verb} {self.storage}{self.box}")


@dataclass(frozen=True)
class PhaseCount:
    """How often a phase was begun, what moved for it, how often it could not be split, and the
    barriers right after it.
    """

    phase: str
    begun: int
    nbytes: int
    whole: int
    barriers: int = 0

    def __repr__(self) -> str:
        words = (
            f"{self.phase}: begun {count(self.begun, 'time')}, {format_bytes(self.nbytes)} moved"
        )
        whole = f", {count(self.whole, 'time')} not divided" if self.whole else ""
        return brief(self, words + whole)


@dataclass(frozen=True)
class EventTotal:
    """All events of one kind (a `RunEvent`) for one phase, on this rank.

    The copies, before sending and after receiving, are part of them.
    """

    phase: str
    kind: int
    events: int
    ns: int
    nbytes: int
    copies: int
    copies_ns: int
    copies_nbytes: int


@dataclass(frozen=True)
class Plan:
    """What a program will do on a number of ranks, before it runs.

    inputs: what each rank has to be given. results: the last version of all that is written.
    held_bytes[r]: what rank r ever holds, each element once; paged_bytes: the pages that it touches
    for that, where they were counted. Where the plan is not `complete`,
    control depends on data: everything was then given to somebody, and moves are a sample.
    Of loops alone there are footprints, of the first 64 phases, and only for up to 16 ranks;
    carried: for each of `moves` the arrays whose elements it brings; the 64th is for all from there
    on. copies: between ranks and their devices, which ever hold `device_bytes`. stays: the memory
    that they take for it; none where the plan is not complete. launched: the places of the devices
    that phases run on, as far as there are footprints.
    """

    ranks: int
    inputs: tuple[Piece, ...]
    results: tuple[Piece, ...]
    moves: tuple[Move, ...]
    held_bytes: tuple[int, ...]
    phases: tuple[PhaseCount, ...]
    complete: bool
    footprints: tuple[Footprint, ...] = ()
    storages: tuple[Storage, ...] = ()
    carried: tuple[tuple[str, ...], ...] = ()
    copies: tuple[Copy, ...] = ()
    device_bytes: tuple[int, ...] = ()
    stays: tuple[Stay, ...] = ()
    launched: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    paged_bytes: tuple[int, ...] = ()

    @property
    def touched_bytes(self) -> tuple[int, ...]:
        """Of each rank's memory: whole pages, as far as they are known."""
        pairs = zip(self.held_bytes, self.paged_bytes or self.held_bytes, strict=True)
        return tuple(max(each) for each in pairs)

    @property
    def taken_bytes(self) -> tuple[tuple[str, int], ...]:
        """The most bytes of memory that each device has taken at once."""
        return most_bytes(self.stays, self.ranks)

    @property
    def bytes_moved(self) -> int:
        """Bytes that cross between ranks."""
        return sum(move.nbytes for move in self.moves)

    @property
    def runs(self) -> tuple[PhaseRun, ...]:
        """What a schedule knows of the phases."""
        return tuple(
            PhaseRun(count.phase, count.begun, count.barriers)
            if self.complete
            else PhaseRun(count.phase, 0, min(count.barriers, 1))
            for count in self.phases
        )

    def __str__(self) -> str:
        return plan_text(self, storages=self.storages, most=PRINTED_ROWS)

    def __repr__(self) -> str:
        """A line for each of the first phases: how often it is begun, and what moves for it."""
        rows = (
            f"{phase.phase}: begun {count(phase.begun, 'time')}, {format_bytes(phase.nbytes)} moved"
            for phase in self.phases[:MOST_ROWS]
        )
        return brief(self, f"of {moves_summary(self)}", rows, len(self.phases))


def plan_of_tasks(schedule: Schedule) -> Plan:
    """Of a program of tasks, by its schedule: each task is a phase that is begun once."""
    storages = {storage.name: storage for storage in schedule.graph.storages}
    sums: dict[tuple[str, int, int, str], tuple[int, int]] = {}
    for each in schedule.transfers:
        key = each.consumer, each.source, each.dest, each.devices(schedule.topology.ranks)
        messages, nbytes = sums.get(key, (0, 0))
        sums[key] = messages + 1, nbytes + each.nbytes
    moves = tuple(
        Move(phase, source, dest, *amounts, devices)
        for (phase, source, dest, devices), amounts in sums.items()
    )
    received: dict[str, int] = {}
    for move in moves:
        received[move.phase] = received.get(move.phase, 0) + move.nbytes
    ranks = schedule.topology.ranks
    places = list(_boxes_by_place(schedule, ranks + len(schedule.drivers)))
    held = [
        sum(size(union(boxes)) * storages[name].itemsize for name, boxes in place.items())
        for place in places
    ]
    paged = [
        sum(paged_bytes(storages[name], union(boxes)) for name, boxes in place.items())
        for place in (places if ranks <= PAGED_PLACES else ())
    ]
    return Plan(
        ranks=ranks,
        inputs=schedule.inputs,
        results=schedule.results,
        moves=moves,
        held_bytes=tuple(held[:ranks]),
        phases=tuple(
            PhaseCount(t.name, 1, received.get(t.name, 0), 1) for t in schedule.graph.tasks
        ),
        complete=True,
        storages=schedule.graph.storages,
        copies=schedule.copied,
        device_bytes=tuple(held[ranks:]),
        stays=stays_of_tasks(schedule),
        paged_bytes=tuple(paged[:ranks]),
    )


def _boxes_by_place(schedule: Schedule, places: int) -> list[dict[str, list[Box]]]:
    """What each place ever holds, by storage."""
    found: list[dict[str, list[Box]]] = [{} for _ in range(places)]

    def holds(place: int, storage: str, *boxes: Box) -> None:
        found[place].setdefault(storage, []).extend(boxes)

    topology = schedule.topology
    for piece in (*schedule.inputs, *schedule.results):
        holds(piece.rank, piece.storage, piece.box)
    for each in schedule.transfers:
        for place in each.places or (each.source, each.dest):
            holds(place, each.storage, each.box)
    for each in schedule.copies:
        holds(each.source, each.storage, each.box)
        holds(each.dest, each.storage, each.box)
    for task in schedule.graph.tasks:
        placement = schedule.placement_of[task.name]
        own = topology.place_of(placement.device) if schedule.drivers else placement.rank
        for access in task.accesses:
            holds(own, access.storage, *access.region)
    return found
