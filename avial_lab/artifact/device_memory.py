"""The memory that devices need of a program's arrays, and for how long.

A schedule of tasks, or what the ownership runtime says of loops -> Stays; bytes by device; what
does not fit, told by array and device.

    moment        1    2    3    4        bytes of gpu0
    a  gpu0       ■────■                  an array that has its last use behind it makes room
    b  gpu0            ■────■────■        3 × 800: two of three are there at once, at moment 2
    c  gpu0                 ■────■
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from avial_lab.artifact.kernels import KernelRow
from avial_lab.core.buffers import Storage, row_major
from avial_lab.core.errors import RunError
from avial_lab.core.regions import Box
from avial_lab.core.runtime_constants import GRANULE, LEAST_MAPPED
from avial_lab.core.words import brief, format_bytes, listed
from avial_lab.machine.devices import place_name
from avial_lab.planning.homes import homes_of
from avial_lab.planning.schedule import Schedule, StepKind

WAY_OUT = "use smaller arrays, GPUs with more memory, or --on cpu"


Runs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Stay:
    """An array's memory on the device at `place`, from the first to the last moment at which it is
    used there. The moments of tasks are steps of the rank that drives the device; those of loops
    phases that were begun, from 1.

    granules: of an array that is mapped by them (`LEAST_MAPPED`) those that are used there, from
    and to, ascending; else none, and the whole array is there. Where the array is the caller's own
    memory, it is a copy of what was there before the run, for one that fails.
    """

    place: int
    storage: str
    nbytes: int
    first: int
    last: int
    granules: Runs = ()

    @staticmethod
    def of(place: int, storage: Storage, first: int, last: int, granules: Runs) -> Stay:
        nbytes = sum(stop - start for start, stop in granules) * GRANULE
        return Stay(place, storage.name, nbytes or storage.nbytes, first, last, granules)

    def __repr__(self) -> str:
        when = f"from {self.first} to {self.last}"
        return brief(
            self, f"{self.storage} at place {self.place}: {format_bytes(self.nbytes)}, {when}"
        )


def stays_of_tasks(schedule: Schedule) -> tuple[Stay, ...]:
    """By place and array, in that order."""
    if not schedule.drivers:
        return ()
    ranks = schedule.topology.ranks
    homes = homes_of(schedule.graph, ranks, schedule.drivers)
    found: dict[tuple[int, str], list[int]] = {}
    boxes: dict[tuple[int, str], list[Box]] = {}

    def uses(place: int, storage: str, step: int, region: Iterable[Box], *, writes: bool) -> None:
        if place < ranks:
            return
        if homes.get(storage) != place:
            found.setdefault((place, storage), []).append(step)
            boxes.setdefault((place, storage), []).extend(region)
        elif writes:
            end = len(schedule.programs[schedule.drivers[place - ranks]])
            found.setdefault((place, storage), []).extend((step, end))

    for program in schedule.programs:
        for number, step in enumerate(program):
            if step.kind is StepKind.COPY:
                copy = schedule.copies[step.copy]
                uses(copy.source, copy.storage, number, (copy.box,), writes=False)
                uses(copy.dest, copy.storage, number, (copy.box,), writes=True)
            if step.kind in (StepKind.SEND, StepKind.WAIT_RECEIVED):
                moved = schedule.transfers[step.transfer]
                received = step.kind is StepKind.WAIT_RECEIVED
                place = moved.places[received] if moved.places else 0
                uses(place, moved.storage, number, (moved.box,), writes=received)
            if step.kind is StepKind.RUN:
                place = schedule.topology.place_of(schedule.placement_of[step.task].device)
                task = schedule.graph.by_name[step.task]
                for access in task.reads:
                    uses(place, access.storage, number, access.region, writes=False)
                for access in task.writes:
                    uses(place, access.storage, number, access.region, writes=True)
    storages = {storage.name: storage for storage in schedule.graph.storages}
    return tuple(
        Stay.of(place, storage, min(steps), max(steps), granules)
        for (place, name), steps in sorted(found.items())
        for storage in (storages[name],)
        for granules in (granules_of(storage, boxes.get((place, name), ())),)
    )


def without_copies(
    stays: tuple[Stay, ...],
    homes: Collection[tuple[str, int]],
    kernels: Sequence[KernelRow],
    begun: Iterable[tuple[str, int]],
) -> tuple[Stay, ...]:
    """`stays` but for those of the caller's own arrays, where all that a program does is one
    launch: what fails before it has written nothing, and afterwards nothing is done that fails.

    begun: how often each phase is; 0 where only the run knows.
    """
    one_phase = [times for _, times in begun] == [1]
    if not (one_phase and len(kernels) == 1 and kernels[0].launches == 1):
        return stays
    if len({place for _, place in homes} | {stay.place for stay in stays}) > 1:
        return stays
    return tuple(stay for stay in stays if (stay.storage, stay.place) not in homes)


def granules_of(storage: Storage, boxes: Iterable[Box]) -> Runs:
    """Those that the boxes touch; none of an array that is there as a whole.

    >>> from avial_lab.core.regions import Box
    >>> rows = Storage("a", (4096, 1024), 8, ("a",))  # 256 rows a granule
    >>> granules_of(rows, [Box((255, 0), (257, 1024)), Box((4095, 5), (4096, 6))])
    ((0, 2), (15, 16))
    """
    if storage.nbytes < LEAST_MAPPED:
        return ()
    used = np.zeros(storage.nbytes // GRANULE + 1, bool)
    strides = [each * storage.itemsize for each in row_major(storage.shape)]
    for box in boxes:
        for first, last in _spans(storage.itemsize, strides, box.start, box.stop, 0):
            used[first // GRANULE : last // GRANULE + 1] = True
    edges = np.flatnonzero(np.diff(np.concatenate(([0], used.view(np.int8), [0]))))
    return tuple((int(start), int(stop)) for start, stop in edges.reshape(-1, 2))


def _spans(
    itemsize: int, strides: Sequence[int], start: Sequence[int], stop: Sequence[int], at: int
) -> Iterator[tuple[int, int]]:
    """The first and last byte of the parts of a box whose rows begin at most a granule apart."""
    if any(high <= low for low, high in zip(start, stop, strict=True)):
        return
    if strides and strides[0] > GRANULE:
        for index in range(start[0], stop[0]):
            there = at + index * strides[0]
            yield from _spans(itemsize, strides[1:], start[1:], stop[1:], there)
        return
    first = at + sum(low * stride for low, stride in zip(start, strides, strict=True))
    last = at + sum((high - 1) * stride for high, stride in zip(stop, strides, strict=True))
    yield first, last + itemsize - 1


def fullest(stays: Sequence[Stay]) -> dict[int, tuple[Stay, ...]]:
    """The arrays that are on each device when it holds the most bytes; the first such moment's."""
    found: dict[int, tuple[Stay, ...]] = {}
    for place in sorted({stay.place for stay in stays}):
        own = [stay for stay in stays if stay.place == place]
        change: Counter[int] = Counter()
        for stay in own:
            change[stay.first] += stay.nbytes
            change[stay.last + 1] -= stay.nbytes
        held = most = at = 0
        for moment in sorted(change):
            held += change[moment]
            if held > most:
                most, at = held, moment
        found[place] = tuple(stay for stay in own if stay.first <= at <= stay.last)
    return found


def most_bytes(stays: Sequence[Stay], ranks: int) -> tuple[tuple[str, int], ...]:
    """The most bytes that each device holds, of those that hold any."""
    return tuple(
        (place_name(place, ranks), nbytes)
        for place, there in fullest(stays).items()
        if (nbytes := sum(stay.nbytes for stay in there))
    )


def told(stays: Iterable[Stay]) -> str:
    """`a 800 B, b 80 B`, the largest first."""
    parts = sorted(stays, key=lambda stay: -stay.nbytes)
    return listed([f"{stay.storage} {format_bytes(stay.nbytes)}" for stay in parts], most=6)


def refuse_too_large(stays: Sequence[Stay], ranks: int, place: int, free: int, total: int) -> None:
    """RunError where the program takes more on the device at `place` than is free there."""
    there = fullest(stays).get(place, ())
    needed = sum(stay.nbytes for stay in there)
    if needed <= free:
        return
    raise RunError(
        f"{place_name(place, ranks)} has {free:,} bytes of memory free of {total:,}, and the "
        f"program needs {needed:,} there at once: {told(there)}",
        hint=WAY_OUT,
    )
