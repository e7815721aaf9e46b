"""What the steps of a message are called in a trace, measured or simulated.

Step, Transfer -> name, what is carried, who is at the other end.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from avial_lab.core.buffers import Storage
from avial_lab.machine.devices import place_name
from avial_lab.planning.schedule import DeviceCopy, Step, StepKind, Transfer
from avial_lab.trace import EventKind

_WORDS = {
    StepKind.POST: ("ready to receive {what} from rank {peer}", False),
    StepKind.SEND: ("send {what} to rank {peer}", True),
    StepKind.WAIT_RECEIVED: ("wait for {what} from rank {peer}", False),
    StepKind.WAIT_SENT: ("wait until {what} is sent to rank {peer}", True),
}
"""What a message's step is called, and whether this rank is its sender."""


class MessageStep(NamedTuple):
    """A step of a message, as a trace has it. number: the message's, where this step begins or ends
    it: it is one between its send and the end of the wait for it.
    """

    name: str
    what: str
    peer: int
    nbytes: int
    number: int | None


def copy_words(copy: DeviceCopy, ranks: int) -> tuple[str, str]:
    """What a copy to a device or from one is called, and what is copied."""
    what = f"{copy.storage}{copy.box}"
    source, dest = (place_name(place, ranks) for place in (copy.source, copy.dest))
    return f"copy {what} {source} → {dest}", what


def message_step(step: Step, transfer: Transfer) -> MessageStep:
    """What `step`, which is one of `transfer`'s, is in a trace."""
    what = transfer.what
    words, mine = _WORDS[step.kind]
    peer = transfer.dest if mine else transfer.source
    ends = step.kind in (StepKind.SEND, StepKind.WAIT_RECEIVED)
    number = step.transfer if ends else None
    return MessageStep(words.format(what=what, peer=peer), what, peer, transfer.nbytes, number)


# Of phases ----------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def phase_words(
    phase: str, kind: EventKind, combining: bool, peer: int, storage: str
) -> tuple[str, str]:
    """What an event of a phase's message is called, and the copy that is part of it; peer: -1 for
    all ranks.
    """
    part = "partial " * combining + (f"{storage} " if storage else "")
    message = part if storage else "partial results " if combining else "messages "
    other = f"rank {peer}" if peer >= 0 else "all ranks"
    if kind is EventKind.COPY:
        return "", f"copy {part}for {phase}"
    if kind is EventKind.SEND:
        return f"send {message}to {other} for {phase}", f"pack {part}for {phase}"
    verb = "combine" if combining else "unpack"
    wait = f"wait for {message}from {other}, for {phase}"
    return wait, f"{verb} {part}for {phase}"


def part_words(storage: Storage, count: int, low: int, high: int) -> str:
    """What a message carries: `A`, and as far as it is known `A[49:50, …]`."""
    more = f" and {count - 1} more" if count > 1 else ""
    if high < low:
        return f"{storage.name}{more}"
    rest = ", …" if len(storage.shape) > 1 else ""
    return f"{storage.name}[{low}:{high}{rest}]{more}"
