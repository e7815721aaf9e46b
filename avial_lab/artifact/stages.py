"""A stage of the lowering as a person reads it: the IR's text and the command that makes it.

The facts that travel from the compiler to the page; what makes the stages is
`compiler/lowering/lower.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from avial_lab.core.table import PRINTED_ROWS, Table, left_out
from avial_lab.core.words import MOST_ROWS, brief, count, format_seconds, listed

Lines = tuple[int, ...]
"""Lines of the cell, from 1, ascending; () where nothing is known."""

LINE_LIMIT = 400
COLUMN_LIMIT = 400


@dataclass(frozen=True)
class Stage:
    """The program after one named step.

    name is short and stable (`avial`, `mpi`, `gpu`, `llvm`, `llvmir`, `object`, `ptx`); language is
    what colours it (`mlir`, `llvm`, `ptx`, `asm`). `command` is the exact line that makes it from
    the file of the stage before, empty where its input is in no file. seconds is the time
    it took. `edited` is the stage changed by hand that this one is, or is made from.
    """

    name: str
    title: str
    language: str
    text: str
    command: str = ""
    seconds: float = 0.0
    edited: str = ""

    @property
    def lines(self) -> int:
        """Lines of its text."""
        return self.text.count("\n") + bool(self.text and not self.text.endswith("\n"))

    def __str__(self) -> str:
        return stage_text(self)

    def __repr__(self) -> str:
        took = f", made in {format_seconds(self.seconds)}" if self.seconds else ""
        edited = ", edited by hand" if self.edited else ""
        size = count(self.lines, "line")
        return brief(self, f"{self.name} ({self.title}): {size} of {self.language}{took}{edited}")


class Stages(dict[str, Stage]):
    """The stages of a lowering by name, in order; printed as a table of them."""

    def table(self, *, commands: bool = True, most: int = PRINTED_ROWS) -> Table:
        """What each is, its size and, with `commands`, what makes it."""
        rows = tuple(
            (
                stage.name,
                stage.title,
                f"{stage.lines:,}",
                format_seconds(stage.seconds),
                *((stage.command or "passes of avial_lab",) if commands else ()),
            )
            for stage in list(self.values())[:most]
        )
        head = ("stage", "what it is", "lines", "time", *(("made by",) if commands else ()))
        note = left_out(len(self), "stage", most)
        return Table("Stages", head, rows, frozenset({"lines", "time"}), note)

    def __str__(self) -> str:
        return self.table(commands=False).to_text()

    def __repr__(self) -> str:
        rows = (
            f"{stage.name}: {stage.title}, {count(stage.lines, 'line')}"
            for stage in list(self.values())[:MOST_ROWS]
        )
        return brief(self, f"of the lowering, {len(self)} in all", rows, len(self))


@dataclass(frozen=True)
class PassStep:
    """One pass within a stage: what it changed, counted as a diff would.

    `command` is the exact line that runs it alone, empty where it needs input that is in no file.
    `text` is the IR after it, None where nothing changed.
    """

    name: str
    command: str
    seconds: float
    added: int
    removed: int
    text: str | None

    def __repr__(self) -> str:
        changed = f"+{self.added:,} −{self.removed:,} lines" if self.text else "nothing changed"
        return brief(self, f"{self.name}: {changed}, {format_seconds(self.seconds)}")


@dataclass(frozen=True)
class Part:
    """A task, function or kernel in a stage's text: its lines, half-open, counted from 0."""

    name: str
    first: int
    last: int

    def __repr__(self) -> str:
        return brief(self, f"{self.name}: lines {self.first + 1} to {self.last}")


@dataclass(frozen=True)
class StageInside:
    """What a stage is made of, beside its text.

    `origins[k]` are the cell's lines (from 1, as the editor counts) that line k of `Stage.text`
    comes from, () where that is not known. `counts` are operations by dialect (`arith`, `scf`),
    instructions in machine code; `facts` whatever else is known, by name, with its unit in the
    value (`flops`: `2.1 k`, `registers`: `24`).
    """

    name: str
    origins: tuple[tuple[int, ...], ...]
    passes: tuple[PassStep, ...] = ()
    parts: tuple[Part, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    facts: Mapping[str, str] = field(default_factory=dict[str, str])

    def __repr__(self) -> str:
        size = f"{count(len(self.passes), 'pass')}, {count(len(self.parts), 'part')}"
        facts = listed([f"{name} {value}" for name, value in self.facts.items()])
        return brief(self, f"of {self.name}: {size}" + (f", {facts}" if facts else ""))


@dataclass(frozen=True)
class Inside:
    """All stages of a program from within, in order; made on demand (`Program.inside`)."""

    stages: tuple[StageInside, ...]

    def __repr__(self) -> str:
        rows = (
            f"{stage.name}: {count(len(stage.passes), 'pass')}, {count(len(stage.parts), 'part')}"
            for stage in self.stages[:MOST_ROWS]
        )
        return brief(self, f"of {count(len(self.stages), 'stage')}", rows, len(self.stages))


def stage_text(stage: Stage, *, line_limit: int = LINE_LIMIT) -> str:
    """Its title, what makes it and its text, for a terminal."""
    made = f"\n// made by {stage.command}" if stage.command else ""
    return f"// {stage.name}: {stage.title}{made}\n{elided(stage.text, line_limit=line_limit)}"


def elided(text: str, *, line_limit: int = LINE_LIMIT, column_limit: int = COLUMN_LIMIT) -> str:
    r"""The first two thirds and the last third of the lines allowed, and long lines cut, both
    said openly.

    >>> print(elided("a\nb\nc\nd\ne", line_limit=3))
    a
    b
    // … 2 of 5 lines left out …
    e
    """
    lines = [
        line
        if len(line) <= column_limit
        else f"{line[:column_limit]} … ({len(line) - column_limit:,} more characters)"
        for line in text.splitlines()
    ]
    if len(lines) <= line_limit:
        return "\n".join(lines)
    first = line_limit * 2 // 3
    last = line_limit - first
    gap = f"// … {len(lines) - line_limit:,} of {len(lines):,} lines left out …"
    return "\n".join([*lines[:first], gap, *lines[len(lines) - last :]])
