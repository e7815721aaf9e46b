"""Numbers that the C runtime, the compiler and the engines share.

They have their home here; `header` writes the same numbers for C (`ownership/constants.h`, which
is generated for each build and is in no folder). Members of an enumeration are called
PREFIX_MEMBER there.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from enum import Enum, IntEnum

MAX_DIMS = 32
"""Dimensions of an array."""

GRANULE = 2 << 20
"""Bytes of a device's memory that are mapped at a time: the least that NVIDIA's drivers map, on
every GPU so far.
"""

LEAST_MAPPED = 4 * GRANULE
"""Bytes of an array from which on a device maps those granules alone that it uses; smaller ones are
there as a whole.
"""

PAGE = mmap.PAGESIZE
"""Bytes of a host's memory that are there or not."""

PAGED_PLACES = 16
"""Places for which a plan counts the pages that they touch."""

SMALL_REDUCTION = 4096
"""Elements of partial results up to which every rank gets the result; of more, each rank gets the
rows that are its own by default.
"""

FOOTPRINT_PHASES = 64
FOOTPRINT_RANKS = 16
FOOTPRINT_BOXES = 4096
"""A plan keeps footprints to look at of so many phases, for so many ranks, so many in a phase."""

EVENT_PARTIAL = 16
"""Added to a `RunEvent` that moves partial results of a reduction."""

ELEMENT_BITS = 4
KEY_SHIFT = 16
"""A reduction's code is `Reduction` << ELEMENT_BITS | `ElementCode`. A payload's is
`Reduction.PAYLOAD` << ELEMENT_BITS | (number of the key's array + 1) << KEY_SHIFT.
"""

EVENT_FIELDS = (
    "phase", "turn", "kind", "start", "mid", "end", "bytes", "peer", "array", "count", "low",
    "high", "number",
)  # fmt: skip
"""The words of an event in a rank's trace, in this order; `Event` in `ownership.h` says more."""

EVENT_WORDS = len(EVENT_FIELDS)


class PhaseKind(IntEnum):
    """How a phase is divided, as `avial_begin` takes it.

    REPLICATE: its iterations among the ranks. TASK: all on one rank. EVERYWHERE: all on every rank.
    WIDE: as REPLICATE, and a rank writes beyond its part what others write, too.
    """

    REPLICATE = 0
    TASK = 1
    EVERYWHERE = 2
    WIDE = 3


class Use(Enum):
    """`update`: not every element is written for sure, so that old values are needed."""

    READ = 0
    WRITE = 1
    UPDATE = 2
    REDUCE = 3

    @property
    def writes(self) -> bool:
        return self is not Use.READ

    @property
    def verb(self) -> str:
        """`reads`, `updates`, …"""
        return {Use.REDUCE: "adds to"}.get(self, f"{self.name.lower()}s")

    @property
    def mark(self) -> str:
        """Printed behind a box that is used so; empty where the table says it already."""
        return {Use.UPDATE: " in part", Use.REDUCE: " combined"}.get(self, "")


class SpaceWord(IntEnum):
    """Of each split dimension of a phase: its loop, and the slots that are divided.

    Iteration v, of LOWER, LOWER + STEP, … below UPPER, lies in slot v + OFFSET of EXTENT; where
    EXTENT is not positive the slots are the iterations themselves.
    """

    LOWER = 0
    UPPER = 1
    STEP = 2
    OFFSET = 3
    EXTENT = 4


SPACE_WORDS = len(SpaceWord)


class Reduction(IntEnum):
    """What partial results are combined by. MINIMUM and MAXIMUM are MLIR's `minimumf`, where NaN
    wins; …_NUMBER its `minnumf`, where NaN loses.

    A key (ARG…) is the least or greatest of all, and the first of those alike; its payloads, such
    as the index it was found at, are replaced whenever it is.
    """

    SUM = 0
    PRODUCT = 1
    MINIMUM = 2
    MAXIMUM = 3
    AND = 4
    OR = 5
    XOR = 6
    UNSIGNED_MINIMUM = 7
    UNSIGNED_MAXIMUM = 8
    MINIMUM_NUMBER = 9
    MAXIMUM_NUMBER = 10
    ARGMIN = 11
    ARGMAX = 12
    UNSIGNED_ARGMIN = 13
    UNSIGNED_ARGMAX = 14
    PAYLOAD = 15


class ElementCode(IntEnum):
    """Element types of what is reduced. The runtime has no arithmetic for F16 and BF16: it runs
    such a phase on one rank.
    """

    I1 = 0
    I8 = 1
    I16 = 2
    I32 = 3
    I64 = 4
    F16 = 5
    BF16 = 6
    F32 = 7
    F64 = 8


class RunEvent(IntEnum):
    """What an event in a rank's trace is. A copy by itself is COPY; one that is part of a message
    is in the message's event.
    """

    RUN = 0
    RECEIVED = 1
    SENT = 2
    COLLECTIVE_RECEIVED = 3
    COLLECTIVE_SENT = 4
    COPY = 5
    BARRIER = 6

    @property
    def collective(self) -> bool:
        return self in (RunEvent.COLLECTIVE_RECEIVED, RunEvent.COLLECTIVE_SENT)


class Table(IntEnum):
    """What `avial_table` can be asked for."""

    INPUTS = 0
    RESULTS = 1
    MOVES = 2
    HELD = 3
    PHASES = 4
    INCOMPLETE = 5
    DIRECTORY = 6
    FOOTPRINTS = 7
    TOTALS = 8
    CARRIED = 9
    COPIES = 10
    TURNS = 11
    PATTERNS = 12
    STAYS = 13
    GRANULES = 14


PATTERN_WORDS = 5
SHARE_WORDS = 8
MESSAGE_WORDS = 8
COPY_WORDS = 5
"""Words of a pattern's head, of each share, message and copy; `avial_table` in `ownership.h`."""


class PatternFlag(IntEnum):
    """Beside the kind of a phase. UNSPLIT: on one rank or on every one. PARTIAL: the messages that
    bring partial results together.
    """

    UNSPLIT = 16
    PARTIAL = 32


class MessageFlag(IntEnum):
    """How a message of a pattern goes. IN_PLACE: it need not be unpacked."""

    COLLECTIVE = 1
    PIPELINED = 2
    IN_PLACE = 4


class ErrorCode(IntEnum):
    """In the lower half of `avial_error`, beside MPI's own codes."""

    NO_MEMORY = 0x7FFFFF01
    TOO_MANY_DIMS = 0x7FFFFF02
    NOT_GIVEN = 0x7FFFFF03
    NO_SCRATCH = 0x7FFFFF04
    OUTSIDE = 0x7FFFFF05
    DEVICE = 0x7FFFFF06


ASSERTED = -1
"""In place of the dimension where no access left its array, but an assertion did not hold."""

HERE_ARRAYS = 24
"""The most arrays of a program that runs in the process that asks for it."""


class HereUse(IntEnum):
    """Of an array in such a run, as bits."""

    WRITTEN = 1
    TEMPORARY = 2
    FRESH = 4
    """Made for this run: nobody sees it where the run fails."""


class HereResult(IntEnum):
    """How it ended: `FAILED` with a text in `avial_failed`; `REFUSED` with nothing done that
    anybody sees; `STOPPED` by an interrupt.
    """

    DONE = 0
    FAILED = 1
    REFUSED = 2
    STOPPED = 3


PREFIXES: dict[type[Enum], str] = {
    PhaseKind: "PHASE",
    Use: "USE",
    SpaceWord: "SPACE",
    Reduction: "REDUCTION",
    ElementCode: "ELEMENT",
    RunEvent: "EVENT",
    Table: "TABLE",
    PatternFlag: "PATTERN",
    MessageFlag: "MESSAGE",
    ErrorCode: "ERROR",
    HereUse: "HERE",
    HereResult: "HERE",
}
"""What the members of each enumeration begin with in C; it is called by the class's name."""

_NUMBERS = (
    "MAX_DIMS", "GRANULE", "LEAST_MAPPED", "PAGE", "PAGED_PLACES", "SMALL_REDUCTION",
    "FOOTPRINT_PHASES", "FOOTPRINT_RANKS", "FOOTPRINT_BOXES",
    "EVENT_PARTIAL", "EVENT_WORDS", "ELEMENT_BITS", "KEY_SHIFT", "SPACE_WORDS",
    "PATTERN_WORDS", "SHARE_WORDS", "MESSAGE_WORDS", "COPY_WORDS", "ASSERTED", "HERE_ARRAYS",
)  # fmt: skip


def header() -> str:
    """`constants.h`: these numbers for C."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "/* Generated from avial_lab/core/runtime_constants.py, which says what each means. */"
    yield "#ifndef AVIAL_CONSTANTS_H"
    yield "#define AVIAL_CONSTANTS_H"
    yield "#include <stdint.h>"
    yield ""
    yield f"enum {{ {_listed((name, globals()[name]) for name in _NUMBERS)} }};"
    for kind, prefix in PREFIXES.items():
        members = ((f"{prefix}_{member.name}", member.value) for member in kind)
        yield f"enum {kind.__name__} {{ {_listed(members)} }};"
    yield f"enum {{ EVENT_KINDS = {len(RunEvent)} }};"
    yield f"typedef struct {{ int64_t {', '.join(EVENT_FIELDS)}; }} Event;"
    yield ""
    yield "#endif"


def _listed(members: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in members)
