"""What the steps of a message are called in a trace, measured or simulated.

Step, Transfer -> name, what is carried, who is at the other end.
"""

from __future__ import annotations

from dataclasses import dataclass

from avial_lab.machine.devices import place_name
from avial_lab.planning.schedule import DeviceCopy, Step, StepKind, Transfer

_WORDS = {
    StepKind.POST: ("ready to receive {what} from rank {peer}", False),
    StepKind.SEND: ("send {what} to rank {peer}", True),
    StepKind.WAIT_RECEIVED: ("wait for {what} from rank {peer}", False),
    StepKind.WAIT_SENT: ("wait until {what} is sent to rank {peer}", True),
}
"""What a message's step is called, and whether this rank is its sender."""


@dataclass(frozen=True, slots=True)
class MessageStep:
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
    what = f"{transfer.storage}{transfer.box}"
    words, mine = _WORDS[step.kind]
    peer = transfer.dest if mine else transfer.source
    ends = step.kind in (StepKind.SEND, StepKind.WAIT_RECEIVED)
    number = step.transfer if ends else None
    return MessageStep(words.format(what=what, peer=peer), what, peer, transfer.nbytes, number)
