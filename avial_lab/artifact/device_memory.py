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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from avial_lab.core.errors import RunError
from avial_lab.core.words import brief, format_bytes, listed
from avial_lab.machine.devices import place_name
from avial_lab.planning.schedule import Schedule, StepKind

WAY_OUT = "use smaller arrays, GPUs with more memory, or --on cpu"


@dataclass(frozen=True)
class Stay:
    """An array's memory on the device at `place`, whole: from the first to the last moment at which
    it is used there. The moments of tasks are steps of the rank that drives the device; those of
    loops phases that were begun, from 1.
    """

    place: int
    storage: str
    nbytes: int
    first: int
    last: int

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
    found: dict[tuple[int, str], list[int]] = {}

    def uses(place: int, storage: str, step: int) -> None:
        if place >= ranks:
            found.setdefault((place, storage), []).append(step)

    for program in schedule.programs:
        for number, step in enumerate(program):
            if step.kind is StepKind.COPY:
                copy = schedule.copies[step.copy]
                uses(copy.source, copy.storage, number)
                uses(copy.dest, copy.storage, number)
            if step.kind is StepKind.RUN:
                place = schedule.topology.place_of(schedule.placement_of[step.task].device)
                for access in schedule.graph.by_name[step.task].accesses:
                    uses(place, access.storage, number)
    sizes = {storage.name: storage.nbytes for storage in schedule.graph.storages}
    return tuple(
        Stay(place, storage, sizes[storage], min(steps), max(steps))
        for (place, storage), steps in sorted(found.items())
    )


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
