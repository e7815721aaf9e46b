"""In which order devices do what they have to do: as written, or a pipeline's order.

Jobs with what they read and write -> the same in an order that respects it.

    gpipe        F0 F1 F2 F3 .  .  B0 B1 B2 B3      all forward passes first
    1f1b         F0 F1 .  .  B0 F2 B1 F3 B2 B3      at most p - s micro-batches in flight on stage s
    interleaved  F0 F1 f0 f1 .  b0 ...              each device has several stages: F and f
    zero-bubble  F0 F1 .  B0 F2 B1 W0 F3 B2 W1 ...  gradients of weights, W, when nothing else waits

Sources: Huang et al., GPipe, 2019; Narayanan et al., PipeDream-2BW, 2021 (1F1B with flushes) and
Megatron-LM, 2021, section 2.2 (interleaved); Qi et al., Zero Bubble Pipeline Parallelism, 2024
(H1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from avial_lab.core.regions import Box
from avial_lab.planning.foreseen import Way

SCHEDULES = ("1f1b", "gpipe", "interleaved", "zero-bubble")


@dataclass(frozen=True)
class PipelineOrder:
    """`stages` on how many `devices`; `flight`: the most micro-batches in flight on one, 0: as the
    schedule has them.
    """

    schedule: str = "1f1b"
    stages: int = 1
    devices: int = 1
    flight: int = 0

    @property
    def strict(self) -> bool:
        """Whether the order of forward and backward passes on a device is fixed."""
        return self.schedule != "gpipe"

    @property
    def in_flight(self) -> int | None:
        """The most that a device may have begun; None: any number, or the order sees to it."""
        own = self.devices if self.schedule == "zero-bubble" else None
        return min(own or self.flight, self.flight) if self.flight and not self.turned else own

    @property
    def turned(self) -> bool:
        return self.schedule in ("1f1b", "interleaved")

    def begun_first(self, place: int) -> int:
        """Forward passes before the first that alternates with a backward pass."""
        chunks, later = self.stages // self.devices, self.devices - 1 - place
        first = later if chunks == 1 else 2 * later + (chunks - 1) * self.devices
        return min(first, self.flight - 1) if self.flight else first

    def way(self, job: Job, last: int) -> Way:
        """`last`: the depth at which the last stage begins, which goes back, too."""
        if job.late or job.depth > last:
            return Way.BACK
        return Way.BOTH if job.depth == last and job.stage == self.stages - 1 else Way.FORTH

    def seconds(self, job: Job, last: int) -> int:
        """About how long a job takes, in forward passes of a stage; `last`: the depth at which the
        last stage begins.
        """
        if job.turn < 0:
            return 0
        apart = self.schedule == "zero-bubble"
        back = 1 if apart else 2
        if job.late:
            return 1
        if job.depth == last and job.stage == self.stages - 1:
            return 1 + back
        return back if job.depth > last else 1


@dataclass(frozen=True)
class Part:
    """Elements of a memory; `memory` is whatever tells memories apart."""

    memory: Any
    box: Box


@dataclass
class Job:
    """What one device does at once. `depth` is that of its segment, `turn` its micro-batch, -1 for
    what is done once; `task`: what it becomes; `late`: no other device waits for it. `hop`: of a
    sum on its way round, how far it is. `begins`, `ends`: about when, in forward passes of a stage,
    and on which `way`, once it has its place in the order.
    """

    name: str
    device: int
    depth: int
    turn: int
    reads: list[Part]
    writes: list[Part]
    task: Any
    terms: int = 0
    before: set[int] = field(default_factory=set)
    stage: int = 0
    late: bool = False
    hop: int = 0
    begins: int = 0
    ends: int = 0
    way: Way = Way.FORTH


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


def living(jobs: Sequence[Job], results: Iterable[object]) -> list[Job]:
    """Without those whose values nobody reads; `results` are memories that the caller reads."""
    wanted: dict[object, dict[Box, None] | None] = dict.fromkeys(results)
    kept: list[Job] = []
    for job in reversed(jobs):
        if not any(_is_wanted(part, wanted) for part in job.writes):
            continue
        kept.append(job)
        for part in job.reads:
            known = wanted.setdefault(part.memory, {})
            if known is not None:
                known[part.box] = None
    return kept[::-1]


def _is_wanted(part: Part, wanted: Mapping[object, Mapping[Box, None] | None]) -> bool:
    if part.memory not in wanted:
        return False
    boxes = wanted[part.memory]
    return boxes is None or part.box in boxes or any(box.overlaps(part.box) for box in boxes)


def in_pipeline_order(
    jobs: Sequence[Job], place_of: Mapping[int, int], order: PipelineOrder
) -> list[Job]:
    """A list schedule: of what could begin first, what the schedule names first. `place_of` numbers
    devices along the pipeline. Where limits cannot be kept it goes on as written.
    """
    last = min((j.depth for j in jobs if j.stage == order.stages - 1 and j.turn >= 0), default=0)
    back = any(job.depth > last and job.turn >= 0 for job in jobs)
    for job in jobs:
        job.way = order.way(job, last) if back else Way.FORTH
    turns = _turns_taken(jobs, place_of, order, last) if order.strict else {}
    state = _Progress(jobs, place_of, order, turns)
    found: list[Job] = []
    while state.waiting:
        k = state.chosen()
        found.append(jobs[k])
        state.take(k, order.seconds(jobs[k], last))
    return found


class _Progress:
    """What is ready, when it could begin, and what is in flight."""

    def __init__(
        self,
        jobs: Sequence[Job],
        place_of: Mapping[int, int],
        order: PipelineOrder,
        turns: Mapping[int, int],
    ) -> None:
        self.jobs, self.order, self.turns = jobs, order, turns
        self.waiting = {k: set(job.before) for k, job in enumerate(jobs)}
        self.after: dict[int, list[int]] = {}
        self.ends: dict[int, int] = {}
        self.left: Counter[tuple[int, int]] = Counter((job.device, job.turn) for job in jobs)
        self.most = {job.device: order.in_flight for job in jobs}
        self.begun: dict[int, set[int]] = {device: set() for device in self.most}
        self.free = dict.fromkeys(sorted(self.most), 0)
        self.ready: dict[int, dict[int, int]] = {device: {} for device in self.free}
        self.coming: dict[int, list[tuple[int, int]]] = {
            device: sorted((turns[k], k) for k in turns if jobs[k].device == device)[::-1]
            for device in self.free
        }
        for k, job in enumerate(jobs):
            for before in job.before:
                self.after.setdefault(before, []).append(k)
            if not job.before:
                self.ready[job.device][k] = 0

    def chosen(self) -> int:
        best: tuple[int, int] | None = None
        for device, free in self.free.items():
            mine = [(k, at) for k, at in self.ready[device].items() if self._may_begin(k)]
            if not mine:
                continue
            begin = max(free, min(at for _, at in mine))
            k = min((k for k, at in mine if at <= begin), key=self._rank)
            if best is None or begin < best[0]:
                best = (begin, k)
        return best[1] if best else min(k for each in self.ready.values() for k in each)

    def _rank(self, k: int) -> tuple[int, ...]:
        job = self.jobs[k]
        if self.order.strict:
            return (job.turn >= 0, job.late, self.turns.get(k, 0), job.depth, k)
        return (job.turn >= 0, job.depth, job.turn, k)

    def _may_begin(self, k: int) -> bool:
        job = self.jobs[k]
        if job.turn < 0:
            return True
        if k in self.turns:
            coming = self.coming[job.device]
            while coming and coming[-1][1] not in self.waiting:
                coming.pop()
            if self.turns[k] > coming[-1][0]:
                return False
        most, begun = self.most[job.device], self.begun[job.device]
        if most is None or job.turn in begun:
            return True
        return sum(1 for turn in begun if self.left[job.device, turn]) < most

    def take(self, k: int, seconds: int) -> None:
        job = self.jobs[k]
        begin = max(self.free[job.device], self.ready[job.device].pop(k))
        self.free[job.device] = end = begin + seconds
        job.begins, job.ends = begin, end
        del self.waiting[k]
        self.left[job.device, job.turn] -= 1
        if job.turn >= 0:
            self.begun[job.device].add(job.turn)
        for other in self.after.get(k, ()):
            self.waiting[other].discard(k)
            if not self.waiting[other]:
                its = self.jobs[other]
                at = max(self.ends[b] for b in its.before if b != k) if len(its.before) > 1 else 0
                self.ready[its.device][other] = max(at, end)
        self.ends[k] = end


def _turns_taken(
    jobs: Sequence[Job], place_of: Mapping[int, int], order: PipelineOrder, last: int
) -> dict[int, int]:
    """When each job has its turn on its device: as many forward passes as fill the pipeline, then
    one forward, one backward; of all stages of a device, p micro-batches of each after the other.
    """
    parts = order.devices

    def group(job: Job, *, back: bool) -> tuple[int, ...]:
        chunk = job.stage // parts
        return (job.turn // parts, -chunk if back else chunk, job.turn % parts)

    found: dict[int, int] = {}
    for device in {job.device for job in jobs}:
        mine = [
            k
            for k, job in enumerate(jobs)
            if job.device == device and job.turn >= 0 and not job.late
        ]
        back = {k for k in mine if jobs[k].depth > last}
        forward = {group(jobs[k], back=False) for k in mine if k not in back}
        # The last stage goes back at once: what it does is both.
        both = {k for k in mine if jobs[k].stage == order.stages - 1}
        backward = {group(jobs[k], back=True) for k in back | both}
        first = order.begun_first(place_of.get(device, 0))
        turn_of = _alternating(sorted(forward), sorted(backward), first)
        found.update({k: turn_of[k in back, group(jobs[k], back=k in back)] for k in mine})
    return found


def _alternating(
    forward: Sequence[tuple[int, ...]], back: Sequence[tuple[int, ...]], first: int
) -> dict[tuple[bool, tuple[int, ...]], int]:
    """`first` of the one, then one of each by turns, then the rest."""
    queue = [(False, each) for each in forward[:first]]
    rest = list(forward[first:])
    others = list(back)
    while rest or others:
        queue += [(False, rest.pop(0))] if rest else []
        queue += [(True, others.pop(0))] if others else []
    return {each: k for k, each in enumerate(queue)}
