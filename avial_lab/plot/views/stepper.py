"""What the stage stepper shows: texts with their colours, where each line comes from, what each
pass changed.

Stages (and what they are made of) -> plain JSON. Lines stand in it once, however many texts have
them: a text is a list of (first line, count) pairs, so that a pass that changes little costs
little.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from avial_lab.plot.code import ink_runs
from avial_lab.stages import Inside, PassStep, Stage, StageInside

BUDGET = 250_000
"""Characters of text that the data holds; the rest is loaded when it is asked for, or said to be
left out.
"""

_FILE_OF_A_STAGE = re.compile(r"(?<![\w.])([\w:-]+)\.(?:mlir|ll)\b")


def stepper_data(
    stages: Iterable[Stage],
    inside: Inside | None = None,
    *,
    source: str,
    cell: str = "cell",
    at: str | None = None,
    edited: str | None = None,
    budget: int = BUDGET,
) -> dict[str, Any]:
    """The view's data; same stages, same bytes.

    `source` is the cell's text, its lines counted from 1 as `inside` does; `at` the stage shown
    first, `edited` the one that a person wrote.
    """
    stages = tuple(stages)
    book = _Book()
    told = {} if inside is None else {each.name: each for each in inside.stages}
    cell_text = book.add(lines_of(source), "avial")
    shares = _shares([len(stage.text) for stage in stages], budget)
    shown = [
        _stage(stage, told.get(stage.name), _before(stages, k), book, shares[k])
        for k, stage in enumerate(stages)
    ]
    left = budget - sum(shares)
    for stage, entry in zip(stages, shown, strict=True):
        left = _add_passes(stage, told.get(stage.name), entry, book, left)
    return {
        "source": {"name": cell, "text": cell_text},
        "stages": shown,
        "inside": inside is not None,
        "at": at,
        "edited": edited,
        **book.to_json(),
    }


def text_data(text: str, language: str) -> dict[str, Any]:
    """One text by itself: what is sent when a text is asked for."""
    book = _Book()
    return {"text": book.add(lines_of(text), language), **book.to_json()}


def lines_of(text: str) -> list[str]:
    r"""The lines as MLIR and an editor count them: `\n` alone ends one.

    >>> lines_of("a\nb\n")
    ['a', 'b']
    """
    return text.removesuffix("\n").split("\n")


class _Book:
    """Lines written down once, with their colours."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}

    def add(self, lines: Sequence[str], language: str) -> list[int]:
        """Where the lines stand: `[first, count, first, count, …]`."""
        numbers = [self._numbers.setdefault((language, line), len(self._numbers)) for line in lines]
        spans: list[int] = []
        for number in numbers:
            if spans and number == spans[-2] + spans[-1]:
                spans[-1] += 1
            else:
                spans += [number, 1]
        return spans

    def to_json(self) -> dict[str, Any]:
        """`lines`, and of each its colours: `inks[ink[k]]`."""
        runs = [""] * len(self._numbers)
        of_language: dict[str, list[tuple[str, int]]] = {}
        for (language, line), number in self._numbers.items():
            of_language.setdefault(language, []).append((line, number))
        for language, lines in of_language.items():
            coloured = ink_runs([line for line, _ in lines], language)
            for (_, number), run in zip(lines, coloured, strict=True):
                runs[number] = run
        inks = {run: k for k, run in enumerate(dict.fromkeys(runs))}
        return {
            "lines": [line for _, line in self._numbers],
            "inks": list(inks),
            "ink": [inks[run] for run in runs],
        }


def _stage(
    stage: Stage, inside: StageInside | None, before: int | None, book: _Book, share: int
) -> dict[str, Any]:
    lines = lines_of(stage.text)
    kept = _first_lines(lines, share)
    return {
        "name": stage.name,
        "title": stage.title,
        "language": stage.language,
        "command": stage.command,
        "seconds": stage.seconds,
        "before": before,
        "lines": len(lines),
        "bytes": len(stage.text.encode("utf-8", "surrogatepass")),
        "text": book.add(lines[:kept], stage.language),
        "kept": kept,
        "origins": None if inside is None else _origins(inside.origins, len(lines)),
        "parts": [] if inside is None else [[p.name, p.first, p.last] for p in inside.parts],
        "counts": {} if inside is None else _largest_first(inside.counts),
        "facts": {} if inside is None else dict(inside.facts),
        "passes": [] if inside is None else [_pass(step) for step in inside.passes],
    }


def _pass(step: PassStep) -> dict[str, Any]:
    return {
        "name": step.name,
        "command": step.command,
        "seconds": step.seconds,
        "added": step.added,
        "removed": step.removed,
        "changed": step.text is not None,
        "lines": 0 if step.text is None else len(lines_of(step.text)),
        "text": None,
    }


def _add_passes(
    stage: Stage, inside: StageInside | None, entry: dict[str, Any], book: _Book, left: int
) -> int:
    """The texts of a stage's passes as far as the budget goes, each whole or not at all."""
    for step, shown in zip(() if inside is None else inside.passes, entry["passes"], strict=True):
        # What is new in it is about what it added; the rest stands in the book already.
        cost = 0 if step.text is None else len(step.text) * step.added // max(1, shown["lines"])
        if step.text is None or cost > left:
            continue
        shown["text"] = book.add(lines_of(step.text), stage.language)
        left -= cost
    return left


def _shares(sizes: Sequence[int], budget: int) -> list[int]:
    """What each text may have: small ones all they need, large ones an equal part of the rest.

    >>> _shares([10, 500, 300], 410)
    [10, 200, 200]
    """
    shares = [0] * len(sizes)
    for done, k in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[k] = min(sizes[k], budget // (len(sizes) - done))
        budget -= shares[k]
    return shares


def _first_lines(lines: Sequence[str], budget: int) -> int:
    """How many of the lines have at most so many characters together."""
    for number, line in enumerate(lines):
        budget -= len(line) + 1
        if budget < -1:  # the last line may have no end
            return number
    return len(lines)


def _before(stages: Sequence[Stage], k: int) -> int | None:
    """The stage that this one was made from: the one whose file its command reads, else the one
    before it in the list.
    """
    earlier = {stage.name: number for number, stage in enumerate(stages[:k])}
    read = [name for name in _FILE_OF_A_STAGE.findall(stages[k].command) if name in earlier]
    return earlier[read[0]] if read else (k - 1 if k else None)


def _origins(origins: Sequence[tuple[int, ...]], count: int) -> list[list[int]]:
    """`[how many lines, cell line, cell line, …]` for each stretch of equal ones."""
    padded = [*origins[:count], *[()] * (count - len(origins))]
    return [[len(list(run)), *lines] for lines, run in groupby(padded)]


def _largest_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
