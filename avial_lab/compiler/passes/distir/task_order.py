"""In which order devices do what they have to do: as written, or a pipeline's order.

Jobs with what they read and write -> the same in an order that respects it.

    gpipe    F0 F1 F2 F3 .  .  B0 B1 B2 B3      all forward passes first
    1f1b     F0 F1 .  .  B0 F2 B1 F3 B2 B3      at most p - s micro-batches in flight on stage s

Sources: Huang et al., GPipe, 2019; Narayanan et al., PipeDream-2BW, 2021 (1F1B with flushes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from avial_lab.core.regions import Box

SCHEDULES = ("1f1b", "gpipe")


@dataclass(frozen=True)
class Part:
    """Elements of a memory; `memory` is whatever tells memories apart."""

    memory: Any
    box: Box


@dataclass
class Job:
    """What one device does at once. `depth` is that of its segment, `turn` its micro-batch, -1 for
    what is done once.
    """

    name: str
    device: int
    depth: int
    turn: int
    reads: list[Part]
    writes: list[Part]
    write: Callable[[], None]
    terms: int = 0
    before: set[int] = field(default_factory=set)


def link(jobs: Sequence[Job]) -> None:
    """Fill in `before`: the jobs that one waits for, as they stand in order."""
    touched: dict[object, list[tuple[Box, int, bool]]] = {}
    for k, job in enumerate(jobs):
        for parts, writes in ((job.reads, False), (job.writes, True)):
            for part in parts:
                for box, earlier, wrote in touched.get(part.memory, ()):
                    if earlier != k and (wrote or writes) and box.overlaps(part.box):
                        job.before.add(earlier)
        for parts, writes in ((job.reads, False), (job.writes, True)):
            for part in parts:
                touched.setdefault(part.memory, []).append((part.box, k, writes))


def living(jobs: Sequence[Job], results: set[object]) -> list[Job]:
    """Without those whose values nobody reads; `results` are memories that the caller reads."""
    wanted: dict[object, list[Box] | None] = dict.fromkeys(results)
    kept: list[Job] = []
    for job in reversed(jobs):
        if not any(_is_wanted(part, wanted) for part in job.writes):
            continue
        kept.append(job)
        for part in job.reads:
            known = wanted.setdefault(part.memory, [])
            if known is not None:
                known.append(part.box)
    return kept[::-1]


def _is_wanted(part: Part, wanted: dict[object, list[Box] | None]) -> bool:
    if part.memory not in wanted:
        return False
    boxes = wanted[part.memory]
    return boxes is None or any(box.overlaps(part.box) for box in boxes)


def in_pipeline_order(jobs: Sequence[Job], stage_of: dict[int, int], schedule: str) -> list[Job]:
    """A list schedule in steps of one job a device. With 1f1b what was begun is ended first, and a
    stage begins no more micro-batches than there are stages from it on; gpipe begins all first.
    """
    stages = max(stage_of.values(), default=0) + 1
    waiting = {k: set(job.before) for k, job in enumerate(jobs)}
    left: dict[tuple[int, int], int] = {}
    for job in jobs:
        left[job.device, job.turn] = left.get((job.device, job.turn), 0) + 1
    begun: dict[int, set[int]] = {}
    devices = sorted({job.device for job in jobs})
    order: list[int] = []

    def rank(k: int) -> tuple[int, ...]:
        job = jobs[k]
        deep = -job.depth if schedule == "1f1b" else job.depth
        return (job.turn >= 0, deep, job.turn, k)

    def may_begin(job: Job) -> bool:
        if job.turn < 0 or job.turn in begun.get(job.device, ()) or schedule != "1f1b":
            return True
        flying = sum(1 for turn in begun.get(job.device, ()) if left[job.device, turn])
        return flying < stages - stage_of.get(job.device, 0)

    while waiting:
        ready = [k for k, before in waiting.items() if not before]
        taken: list[int] = []
        for device in devices:
            mine = [k for k in ready if jobs[k].device == device]
            allowed = [k for k in mine if may_begin(jobs[k])]
            if allowed:
                taken.append(min(allowed, key=rank))
        if not taken:  # the limit cannot be kept: go on as written
            taken = [min(ready)]
        for k in taken:
            job = jobs[k]
            del waiting[k]
            order.append(k)
            left[job.device, job.turn] -= 1
            if job.turn >= 0:
                begun.setdefault(job.device, set()).add(job.turn)
        done = set(taken)
        for before in waiting.values():
            before -= done
    return [jobs[k] for k in order]
