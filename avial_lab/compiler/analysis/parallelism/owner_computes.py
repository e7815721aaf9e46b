"""Which elements the iterations of a split loop belong to: the owner computes.

The statements of a nest and their chosen loops -> the array whose element number v + offset, in one
of its dimensions, is what the iterations of value v are about. Loops that are anchored to one array
are dealt out alike, whatever their bounds, so that what one leaves where it is the next one finds.

    for i = 1 to N - 1: B[i] = …        anchor B, dimension 0, offset 0: v = 1 is about B[1]
    for i = 0 to N - 2: B[i + 1] = …    offset 1: v = 0 is about B[1]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from avial_lab.compiler.analysis.polyhedral.scop import Access, Array, ArrayKind, Loop, Statement


@dataclass(frozen=True)
class Anchor:
    """Iterations of value v are about the elements v + `offset` of `array` in `dimension`.

    `written`: they write them; otherwise they only read them, as where all is summed up.
    """

    array: Array
    dimension: int
    offset: int
    written: bool

    def __str__(self) -> str:
        return f"{self.array} dimension {self.dimension} offset {self.offset:+d}"


def anchor(
    statements: Sequence[Statement],
    chosen: Mapping[str, Loop],
    *,
    without: Collection[Array] = (),
) -> Anchor | None:
    """The first write with the chosen variable as a subscript, else the first such read.

    Arrays of more dimensions come first: there are more elements to leave in place. Those in
    `without` belong to no rank.
    """
    found: list[tuple[bool, int, int, Anchor]] = []
    for statement in statements:
        loop = chosen[statement.name]
        for access in statement.accesses:
            if access.array.kind is ArrayKind.MEMORY and access.array not in without:
                found += [
                    (not access.writes, -access.array.rank, len(found), each)
                    for each in _anchors(access, loop)
                ]
    return min(found, key=lambda each: each[:3])[3] if found else None


def _anchors(access: Access, loop: Loop) -> list[Anchor]:
    return [
        Anchor(access.array, dim, form.constant, access.writes)
        for dim, form in enumerate(access.forms or ())
        if form is not None and form.terms == ((loop.name, 1),)
    ]
