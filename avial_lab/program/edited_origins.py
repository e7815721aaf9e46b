"""The cell's lines behind a program whose stage was edited by hand.

The stages before the edit, and what is inside of those after it in lines of the edited text ->
Inside in lines of the cell. Needs no MLIR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from avial_lab.artifact.stages import Inside, Lines, Stage

MOST_COMPARED = 1_000
"""Lines of which each is compared with each."""


def carried_over(
    before: Inside, old: str, stages: Sequence[Stage], edited: str, after: Inside
) -> Inside:
    """Of all `stages`, in their order. `before` is what was inside of them when the edited one had
    the text `old`.
    """
    were = {stage.name: stage for stage in before.stages}
    are = {stage.name: stage for stage in after.stages}
    text = next(stage.text for stage in stages if stage.name == edited)
    lines = edited_origins(old, were[edited].origins, text)

    def behind(origin: Lines) -> Lines:
        return tuple(sorted({line for k in origin for line in lines[k - 1]}))

    return Inside(
        tuple(
            replace(are[stage.name], origins=tuple(map(behind, are[stage.name].origins)))
            if stage.name in are
            else were[stage.name]
            for stage in stages
        )
    )


def edited_origins(old: str, origins: Sequence[Lines], new: str) -> list[Lines]:
    r"""Of the edited text's lines: a line that stayed, or took one other's place, has that one's
    origins; what was put in has none.

    >>> edited_origins("a\nb\nc", [(1,), (2,), (3,)], "a\nB\nc\nd")
    [(1,), (2,), (3,), ()]
    """
    ours, theirs = old.splitlines(), new.splitlines()
    first = _alike(ours, theirs)
    last = _alike(ours[first:][::-1], theirs[first:][::-1])
    result: list[Lines] = [()] * len(theirs)
    result[:first] = origins[:first]
    result[len(theirs) - last :] = origins[len(ours) - last : len(ours)]
    changed, by = ours[first : len(ours) - last], theirs[first : len(theirs) - last]
    # Of thousands of lines those that are everywhere (`}`) are not compared with each other.
    matcher = SequenceMatcher(None, changed, by, autojunk=len(by) > MOST_COMPARED)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind == "equal" or (kind == "replace" and i_end - i == j_end - j):
            result[first + j : first + j_end] = origins[first + i : first + i_end]
    return result


def _alike(some: Sequence[str], others: Sequence[str]) -> int:
    """How many lines are the same before the first that is not."""
    pairs = enumerate(zip(some, others, strict=False))
    return next((k for k, (a, b) in pairs if a != b), min(len(some), len(others)))
