"""Memory of what micro-batches hand on: as many places as are in flight at a time.

Jobs in order, with about when they run -> a `Rotation` for each memory that micro-batches can
share.

    turns of a value in 1f1b, p - s = 2 in flight      memory
    F0 F1 .  B0 F2 B1 F3 B2 B3                          slot 0: 0 0 0 0 2 2 2 2 .
    0: |--------|   2: |-----|                          slot 1: . 1 1 1 1 1 3 3 3
       1: |--------|   3: |-----|

Left edge, Hashimoto and Stevens 1971: turns in the order in which they begin, each in the first
slot that is free; no fewer would do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest

from avial_lab.compiler.passes.distir.memories import Memory, Rotation
from avial_lab.compiler.passes.distir.task_order import Job, Part


@dataclass
class _Turn:
    """When a micro-batch's values are there, in time and in the order of jobs; where they lie along
    the dimension that turns divide.
    """

    begins: int
    ends: int
    first: int
    last: int
    written: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    touched: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])


def rotate_turns(jobs: Sequence[Job], kept: Iterable[Memory]) -> None:
    """Give memory of turns a rotation, where all that reads or writes it does so turn by turn; not
    what is `kept` for somebody behind the last job.
    """
    alone = set(kept)
    turns: dict[Memory, dict[int, _Turn]] = {}
    for k, job in enumerate(jobs):
        for parts, writes in ((job.reads, False), (job.writes, True)):
            for part in parts:
                memory = part.memory[0]
                if memory.turned < 0 or job.turn < 0:
                    alone.add(memory)
                else:
                    _count(turns.setdefault(memory, {}), k, job, part, writes=writes)
    for memory, of_memory in turns.items():
        if memory not in alone:
            memory.rotation = _rotation(memory, of_memory)


def _count(turns: dict[int, _Turn], k: int, job: Job, part: Part, *, writes: bool) -> None:
    turn = turns.setdefault(job.turn, _Turn(job.begins, job.ends, k, k))
    turn.begins, turn.ends = min(turn.begins, job.begins), max(turn.ends, job.ends)
    turn.last = k
    dim = part.memory[0].turned
    along = part.box.start[dim], part.box.stop[dim]
    (turn.written if writes else turn.touched).add(along)


def _rotation(memory: Memory, turns: dict[int, _Turn]) -> Rotation | None:
    """None where turns read what others have written, or all are there at a time."""
    if not _is_apart(list(turns.values())):
        return None
    slot_of, slots = _slots(turns)
    if slots == len(turns):
        return None
    lengths = ([stop - start for start, stop in sorted(t.written)] for t in turns.values())
    extents = [max(each) for each in zip_longest(*lengths, fillvalue=0)]
    begins = [sum(extents[:k]) for k in range(len(extents))]
    places = {
        start: (slot_of[number], begins[k])
        for number, turn in turns.items()
        for k, (start, _) in enumerate(sorted(turn.written))
    }
    shape = list(memory.shape)
    shape[memory.turned] = sum(extents)
    return Rotation(memory.turned, slots, tuple(shape), places)


def _is_apart(turns: Sequence[_Turn]) -> bool:
    """Whether each turn reads blocks of its own alone, and no two of all blocks overlap."""
    blocks = sorted(block for turn in turns for block in turn.written)
    if any(left[1] > right[0] for left, right in pairwise(blocks)):
        return False
    return all(
        any(start <= low and high <= stop for start, stop in turn.written)
        for turn in turns
        for low, high in turn.touched
    )


def _slots(turns: dict[int, _Turn]) -> tuple[dict[int, int], int]:
    """The slot of every turn, and how many there are."""
    slot_of: dict[int, int] = {}
    last_of: list[_Turn] = []
    for number in sorted(turns, key=lambda each: turns[each].first):
        turn = turns[number]
        free = (
            slot
            for slot, last in enumerate(last_of)
            if last.last < turn.first and last.ends <= turn.begins
        )
        slot = next(free, len(last_of))
        last_of[slot : slot + 1] = [turn]
        slot_of[number] = slot
    return slot_of, len(last_of)
