"""What the ranks of a program of loops will send each other, as comments in the text they run.

Text of stage "mpi", Plan -> the same text. A call of the ownership runtime says which messages are
foreseen for its phase, and a table at the end has them all.

    %9 = llvm.call @avial_begin(…) … // ownership runtime, S1: 0 -> 1: A, 9 messages of 448 bytes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from avial_lab.artifact.plan import Plan
from avial_lab.trace import Move

MARK = " // ownership runtime, "
TABLE = "// What the ranks send each other through the ownership runtime"

MOST_PAIRS = 4
"""Pairs of ranks in the comment at a call."""

MOST_ROWS = 400
"""Rows of the table."""

_BEGIN = "llvm.call @avial_begin("

Carried = tuple[Move, tuple[str, ...]]
"""What goes from a rank to another for a phase, and the arrays that are in it."""


def with_messages(text: str, plan: Plan, phases: Sequence[str]) -> str:
    """`phases` by their numbers: the calls that begin them stand in that order."""
    found: dict[str, list[Carried]] = {phase: [] for phase in phases}
    for move, arrays in zip(plan.moves, plan.carried, strict=True):
        found[move.phase].append((move, arrays))
    lines: list[str] = []
    begun = iter(phases)
    for line in without_messages(text).splitlines():
        phase = next(begun, None) if _BEGIN in line else None
        told = "" if phase is None else f"{MARK}{phase}: {_at_call(found[phase])}"
        lines.append(line + told)
    return "\n".join([*lines, *_table(plan), ""])


def without_messages(text: str) -> str:
    """The text as it was before."""
    kept = text.partition(TABLE)[0].splitlines()
    return "\n".join([*(line.partition(MARK)[0] for line in kept), ""])


def _at_call(sent: Sequence[Carried]) -> str:
    if not sent:
        return "no messages"
    pairs = [
        f"{move.source} -> {move.dest}: {_words(arrays)}, {_size(move)}"
        for move, arrays in sent[:MOST_PAIRS]
    ]
    more = f"; and {len(sent) - MOST_PAIRS} more pairs" if len(sent) > MOST_PAIRS else ""
    return "; ".join(pairs) + more


def _size(move: Move) -> str:
    """`9 messages of 448 bytes`, or of so many in all where they differ."""
    if move.messages == 1:
        return f"1 message of {move.nbytes:,} bytes"
    each, rest = divmod(move.nbytes, move.messages)
    size = f"{move.nbytes:,} bytes in all" if rest else f"{each:,} bytes"
    return f"{move.messages:,} messages of {size}"


def _words(arrays: Sequence[str]) -> str:
    return ", ".join(arrays)


def _table(plan: Plan) -> Iterator[str]:
    if not plan.moves:
        return
    sure = "as planned" if plan.complete else "a sample: control depends on data"
    yield f"{TABLE}, {sure}:"
    rows = [("phase", "from", "to", "what", "messages", "bytes in all")]
    for move, arrays in zip(plan.moves[:MOST_ROWS], plan.carried, strict=False):
        numbers = (str(move.source), str(move.dest))
        rows.append(
            (move.phase, *numbers, _words(arrays), f"{move.messages:,}", f"{move.nbytes:,}")
        )
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"//   {'  '.join(cells)}".rstrip()
    if len(plan.moves) > MOST_ROWS:
        yield f"//   and {len(plan.moves) - MOST_ROWS:,} more"
