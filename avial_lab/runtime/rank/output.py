"""What ranks print: kept by rank, printed with equal lines as one.

Files that the ranks write to (RANK.out, of C's stdout and stderr) -> Printed.

    [0-2]  step 1
    [0]    residual 0.5
    [1-2]  residual 0.25
    [2]    … 1,204 more lines
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from avial_lab.core.words import brief, count

MOST_LINES = 100
"""Of each rank; a loop that prints would otherwise fill the page."""

MOST_CHARACTERS = 400
"""Of a line."""

_MOST_BYTES = 32 << 20
"""A file that is longer is emptied, so that a loop that prints does not fill the disk."""

_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Printed:
    """The first lines of each rank, and how many more there were."""

    lines: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, "tuple[str, ...]"])
    more: Mapping[int, int] = field(default_factory=dict[int, int])

    def __bool__(self) -> bool:
        return any(self.lines.values())

    def __str__(self) -> str:
        longest = max((len(lines) for lines in self.lines.values()), default=0)
        rows: list[tuple[str, str]] = []
        for k in range(longest):
            rows += _merged({r: lines[k] for r, lines in self.lines.items() if k < len(lines)})
        rows += _merged({rank: f"… {n:,} more lines" for rank, n in self.more.items() if n})
        width = max((len(ranks) for ranks, _ in rows), default=0)
        return "\n".join(f"{ranks:{width}}  {line}" for ranks, line in rows)

    def __repr__(self) -> str:
        lines = sum(map(len, self.lines.values())) + sum(self.more.values())
        return brief(self, f"by ranks: {count(lines, 'line')}" if lines else "nothing")


def ranks_text(ranks: Iterable[int]) -> str:
    """Ranks in short.

    >>> ranks_text([0, 1, 2, 5])
    '[0-2,5]'
    """
    runs = [
        [rank for _, rank in run]
        for _, run in groupby(enumerate(sorted(ranks)), key=lambda pair: pair[1] - pair[0])
    ]
    return f"[{','.join(str(r[0]) if len(r) == 1 else f'{r[0]}-{r[-1]}' for r in runs)}]"


def _merged(lines: Mapping[int, str]) -> list[tuple[str, str]]:
    """Each line once, with all ranks that have it, by the first of them."""
    ranks: dict[str, list[int]] = {}
    for rank in sorted(lines):
        ranks.setdefault(lines[rank], []).append(rank)
    return [(ranks_text(those), line) for line, those in ranks.items()]


def output_path(folder: Path, rank: int) -> Path:
    return folder / f"{rank}.out"


def last_printed(folder: Path, rank: int) -> str:
    """The end of what that rank printed, in so far as it is here."""
    try:
        with output_path(folder, rank).open("rb") as file:
            file.seek(max(0, _size(output_path(folder, rank)) - _LAST_BYTES))
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


_LAST_BYTES = 4096


class Output:
    """What the ranks print from now on, in so far as they write to files here."""

    def __init__(self, folder: Path, ranks: int) -> None:
        self._files = [_File(output_path(folder, rank)) for rank in range(ranks)]

    def printed(self) -> Printed:
        """Everything until now."""
        for file in self._files:
            file.read()
        return Printed(
            {rank: tuple(file.lines) for rank, file in enumerate(self._files) if file.lines},
            {rank: file.more for rank, file in enumerate(self._files) if file.more},
        )


class _File:
    """One rank's; what is after the cap is counted, not kept."""

    def __init__(self, path: Path) -> None:
        self._path, self._at, self._begun = path, _size(path), b""
        self.lines: list[str] = []
        self.more = 0

    def read(self) -> None:
        size = _size(self._path)
        if size <= self._at:
            return
        with self._path.open("rb") as file:
            file.seek(self._at)
            while data := file.read(_AT_ONCE):
                self._at += len(data)
                self._take(data)
        if size > _MOST_BYTES:
            # Those who write append: what comes next is at the file's new beginning.
            os.truncate(self._path, 0)
            self._at = 0

    def _take(self, data: bytes) -> None:
        room = MOST_LINES - len(self.lines)
        *lines, self._begun = (self._begun + data).split(b"\n", room)
        self.lines += [_shown(line) for line in lines]
        if len(self.lines) >= MOST_LINES:
            self.more += self._begun.count(b"\n")
            self._begun = b""
        elif len(self._begun) > _AT_ONCE:  # a line without end
            self.lines.append(_shown(self._begun))
            self._begun = b""


def _shown(line: bytes) -> str:
    text = line.decode(errors="replace").rstrip("\r")
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
