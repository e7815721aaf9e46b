"""MLIR text while it is being written: pieces that remember where in the cell they come from.

Pieces -> one text, and from a place in that text back to the cell.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

from avial_lab.compiler.frontends.notation.source import Source, ascii_names
from avial_lab.compiler.ir.ptensor_types import full_types


@dataclass
class Output:
    """Pieces of text, each with the offset in the cell it stands for."""

    pieces: list[str] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)

    def put(self, text: str, origin: int) -> None:
        text = full_types(text)
        self.pieces.append(text if text.isascii() else ascii_names(text))
        self.origins.append(origin)

    def extend(self, other: Output) -> None:
        self.pieces += other.pieces
        self.origins += other.origins

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def origin(self, source: Source, line: int, column: int) -> int:
        """The offset in the cell of the text's `line` and `column`, from 1, in bytes.

        Within a piece it is exact as far as the piece repeats the cell word for word, which is up
        to the types that were added; beyond that it is the last place they agree.
        """
        text = self.text
        rows = text.split("\n")
        if not self.pieces or not 1 <= line <= len(rows):
            return 0
        before = len(rows[line - 1].encode()[: column - 1].decode(errors="ignore"))
        offset = sum(len(row) + 1 for row in rows[: line - 1]) + before
        ends = list(accumulate(map(len, self.pieces)))
        index = min(bisect_right(ends, offset), len(self.pieces) - 1)
        delta = offset - (ends[index] - len(self.pieces[index]))
        return self.origins[index] + _agreement(
            self.pieces[index], source.text, self.origins[index], delta
        )


def _agreement(piece: str, text: str, origin: int, wanted: int) -> int:
    """How many of the first `wanted` characters of the piece stand in the cell at `origin`, less
    blanks at the end.
    """
    count = 0
    while (
        count < min(wanted, len(piece))
        and origin + count < len(text)
        and piece[count] == text[origin + count]
    ):
        count += 1
    while 0 < count < wanted and (text[origin + count - 1].isspace()):
        count -= 1
    return count
