"""What each device works on, in words.

Jobs in memory, the roles of memories -> lines for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.compiler.passes.distir.memories import Memory
from avial_lab.compiler.passes.distir.task_order import Job
from avial_lab.core.regions import Box, union
from avial_lab.core.words import format_bytes


def held_by_devices(jobs: Sequence[Job], roles: Mapping[Memory, str]) -> Iterator[str]:
    """The memory that the jobs of each device touch, but for what they allocate themselves;
    of memory that has a role, as weights, gradients or state, how much has it.
    """
    touched: dict[int, dict[tuple[Memory, int], dict[Box, None]]] = {}
    written: dict[int, set[object]] = {}
    for job in jobs:
        of_device = touched.setdefault(job.device, {})
        for part in (*job.reads, *job.writes):
            of_device.setdefault(part.memory, {})[part.box] = None
        written.setdefault(job.device, set()).update(part.memory for part in job.writes)
    for device, memories in sorted(touched.items()):
        nbytes = sum(
            _held_elements(memory, boxes) * itemsize_of(memory.element)
            for (memory, _), boxes in memories.items()
        )
        yield f"device {device} works on {format_bytes(nbytes)} of arrays"
        if roles:
            yield _state_held(device, memories, written[device], roles)


def _held_elements(memory: Memory, boxes: Iterable[Box]) -> int:
    """Of those boxes, where turns that share memory count once."""
    if memory.rotation is None:
        return sum(box.size for box in union(boxes))
    slots: dict[int, list[Box]] = {}
    for slot, box in map(memory.rotation.located, boxes):
        slots.setdefault(slot, []).append(box)
    return sum(box.size for each in slots.values() for box in union(each))


def _state_held(
    device: int,
    memories: Mapping[tuple[Memory, int], Iterable[Box]],
    own: set[object],
    roles: Mapping[Memory, str],
) -> str:
    """Of these, what a training step holds of weights, gradients and for its optimizer."""
    nbytes: dict[str, int] = {"weights": 0, "gradients": 0, "state": 0}
    for (memory, slot), boxes in memories.items():
        kind = roles.get(memory)
        # What is on its way round a ring lies in slots of others.
        if kind is not None and (memory.slots == 1 or (memory, slot) in own):
            size = sum(box.size for box in union(boxes))
            nbytes[kind] += size * itemsize_of(memory.element)
    told = ", ".join(f"{format_bytes(n)} of {kind}" for kind, n in nbytes.items())
    return f"device {device} holds {told} of the optimizer"
