"""Sums of partial results that are waited for later than they are begun.

Jobs in order -> the same, each hop of a sum behind another segment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

from avial_lab.compiler.passes.distir.task_order import Job
from avial_lab.core.words import count, format_bytes


@dataclass
class LateSums:
    """`waiting`: of each sum its hops that have no place yet. A message goes when what it carries
    is there, and is waited for by the job that reads it: whatever stands between is computed
    meanwhile.
    """

    waiting: list[list[list[Job]]] = field(default_factory=list)
    sums: int = 0
    nbytes: int = 0
    alone: int = 0
    """Bytes of sums with hops for which nothing was left to compute."""
    sizes: list[int] = field(default_factory=list)

    def put_off(self, jobs: list[Job], begun: int, nbytes: int) -> None:
        """The jobs of one sum, which stand last, wait."""
        mine = jobs[begun:]
        del jobs[begun:]
        if not mine:
            return
        # A further axis begins again with its first hop.
        rounds = [list(group) for _, group in groupby(_by_round(mine), key=lambda each: each[0])]
        self.waiting.append([[job for _, job in each] for each in rounds])
        self.sizes.append(nbytes)
        self.sums += 1
        self.nbytes += nbytes

    def go_on(self, jobs: list[Job]) -> None:
        """Behind a segment: each sum that was begun before goes on by one hop."""
        for hops in self.waiting:
            jobs += hops.pop(0)
        self._drop()

    def finish(self, jobs: list[Job]) -> None:
        """What comes next needs them all."""
        self.alone += sum(self.sizes)
        while self.waiting:
            self.go_on(jobs)

    def _drop(self) -> None:
        left = [k for k, hops in enumerate(self.waiting) if hops]
        self.waiting = [self.waiting[k] for k in left]
        self.sizes = [self.sizes[k] for k in left]

    def told(self, segments: int) -> str:
        hidden = self.nbytes - self.alone
        return (
            f"overlap: {count(segments, 'segment')}, {count(self.sums, 'sum')} of partial results "
            f"({format_bytes(self.nbytes)}): {format_bytes(hidden)} move while the next segment is "
            f"computed, for {format_bytes(self.alone)} nothing is left to compute"
        )


def _by_round(jobs: list[Job]) -> list[tuple[int, Job]]:
    """Jobs with the number of their round: those of one hop, along one axis, do not wait for each
    other.
    """
    axis, seen, found = 0, 0, list[tuple[int, Job]]()
    names = dict[str, int]()
    for job in jobs:
        ring = job.name.split("_", 1)[0]
        if ring not in names:
            axis, names[ring] = axis + seen, axis + seen
            seen = 0
        seen = max(seen, job.hop)
        found.append((names[ring] + job.hop, job))
    return sorted(found, key=lambda each: each[0])
