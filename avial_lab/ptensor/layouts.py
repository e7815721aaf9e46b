"""Where the elements of an array are to lie: what `dist=` and `x.redistribute` take.

"rows", "columns", "split 2", "replicated", "cyclic 4", (2, 3) -> each rank's boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from avial_lab.core.regions import Box
from avial_lab.planning.schedule import Piece
from avial_lab.planning.tensor_placement import Along, Kind, Mesh, Placement

MOST_TURNS = 1024
"""Blocks in turn that a rank may have of an array."""

_DIVIDED = {"rows": "split 0", "columns": "split 1", "replicated": "copy"}
_EXPECTED = (
    'expected "rows", "columns", "split DIM", "replicated", "cyclic ROWS", or the parts of each '
    "dimension: (2, 3)"
)


@dataclass(frozen=True)
class Layout:
    """text: as somebody said it. placement: over the ranks; rows_in_turn: of block-cyclic ones,
    which have no placement.
    """

    text: str
    placement: Placement | None
    rows_in_turn: int = 0

    @staticmethod
    def of(dist: Any, ranks: int) -> Layout:
        """ValueError for what is none, or not for so many ranks."""
        if isinstance(dist, tuple | list):
            return _grid(tuple(dist), ranks)
        if not isinstance(dist, str):
            raise ValueError(f"{dist!r} does not say where an array lies: {_EXPECTED}")
        words = dist.split()
        if len(words) == 2 and words[0] == "cyclic" and words[1].isdecimal() and int(words[1]):
            return Layout(dist, None, int(words[1]))
        text = _DIVIDED.get(dist, dist)
        split = len(words) == 2 and words[0] == "split" and words[1].isdecimal()
        if dist not in _DIVIDED and not split:
            raise ValueError(f"'{dist}' does not say where an array lies: {_EXPECTED}")
        mesh = Mesh("ranks", (ranks,), tuple(range(ranks)))
        return Layout(dist, Placement(mesh, (Along.parse(text),)))

    def boxes(self, shape: Sequence[int], ranks: int) -> list[list[Box]]:
        """By rank, none of them empty; ValueError where the array has no such dimension."""
        if self.placement is None:
            return self._in_turn(shape, ranks)
        divided = [each.dim for each in self.placement.along if each.kind is Kind.SPLIT]
        if divided and max(divided) >= len(shape):
            raise ValueError(
                f"{self.text} divides dimension {max(divided)}, and the array has {len(shape)}"
            )
        found: list[list[Box]] = [[] for _ in range(ranks)]
        for point, rank in self.placement.mesh.points():
            box = self.placement.box(shape, point)
            if not box.empty:
                found[rank].append(box)
        return found

    def _in_turn(self, shape: Sequence[int], ranks: int) -> list[list[Box]]:
        if not shape:
            raise ValueError(f"{self.text} divides dimension 0, and the array has none")
        blocks = -(-shape[0] // self.rows_in_turn)
        if blocks > MOST_TURNS * ranks:
            raise ValueError(
                f"{self.text} of {shape[0]} rows: {blocks} blocks in turn are more than "
                f"{MOST_TURNS} for each of {ranks} ranks; take larger ones"
            )
        found: list[list[Box]] = [[] for _ in range(ranks)]
        rest = (0,) * (len(shape) - 1)
        for k in range(blocks if 0 not in shape else 0):
            low = k * self.rows_in_turn
            high = min(low + self.rows_in_turn, shape[0])
            found[k % ranks].append(Box((low, *rest), (high, *shape[1:])))
        return found


@dataclass(frozen=True)
class Redistribution:
    """What has to move before an array lies so."""

    layout: str
    messages: int
    nbytes: int

    def __str__(self) -> str:
        return f"to {self.layout}: {self.messages} messages, {self.nbytes:,} bytes"


DEFAULT = "unit"
"""The attribute of arrays in blocks of rows."""

AS_IT_LIES = '"as it lies"'
"""That of arrays that no words of creators say."""

FEW = 1 << 12
"""Elements, of which it is not worth another program how they lie."""


def attribute_of(pieces: Sequence[Piece], shape: Sequence[int], ranks: int, asked: str = "") -> str:
    """How an array lies, as the ptensor dialect says it: as it was `asked` for, if it does.

    >>> attribute_of([Piece(r, "a", Box((0, r), (2, r + 1))) for r in range(2)], (2, 2), 2)
    '"columns"'
    """
    if ranks == 1 or not shape or not pieces:
        return DEFAULT
    further = [f"split {d}" for d in range(2, len(shape))]
    grids = ["x".join(map(str, parts)) for parts in _grids(ranks, len(shape))]
    in_turn = max((p.box.stop[0] for p in pieces if p.rank == 0 and p.box.start[0] == 0), default=0)
    cyclic = [f"cyclic {in_turn}"] if in_turn and in_turn * ranks < shape[0] else []
    for text in (*([asked] if asked else []), "rows", "columns", *further, *grids, *cyclic):
        grid = tuple(map(int, text.split("x"))) if text[0].isdecimal() else text
        if _lies_as(pieces, shape, ranks, Layout.of(grid, ranks)):
            return DEFAULT if text in ("rows", "split 0") else f'"{text}"'
    return AS_IT_LIES if prod(shape) > FEW else DEFAULT


def _grids(ranks: int, dims: int) -> list[tuple[int, int]]:
    """Of two dimensions, both divided."""
    if dims < 2:
        return []
    return [(n, ranks // n) for n in range(2, ranks) if ranks % n == 0]


def _lies_as(pieces: Sequence[Piece], shape: Sequence[int], ranks: int, layout: Layout) -> bool:
    """Whether every rank has what it has so; it may have more."""
    try:
        boxes = layout.boxes(shape, ranks)
    except ValueError:
        return False
    held: list[dict[Box, None]] = [{} for _ in range(ranks)]
    for piece in pieces:
        held[piece.rank][piece.box] = None
    return all(
        box in held[rank] or any(each.contains(box) for each in held[rank])
        for rank, own in enumerate(boxes)
        for box in own
    )


def _grid(parts: tuple[Any, ...], ranks: int) -> Layout:
    if not 1 <= len(parts) <= 3 or any(not isinstance(n, int) or n < 1 for n in parts):
        raise ValueError(f"{parts} are not the parts of one to three dimensions")
    if prod(parts) != ranks:
        raise ValueError(f"{parts} are {prod(parts)} parts, and there are {ranks} ranks")
    mesh = Mesh("ranks", parts, tuple(range(ranks)))
    along = tuple(Along(Kind.SPLIT, dim) for dim in range(len(parts)))
    return Layout("x".join(map(str, parts)), Placement(mesh, along))


def picture(shape: Sequence[int], pieces: Sequence[Piece]) -> list[str]:
    """Who holds what of an array of one or two dimensions, in at most 8 lines; * are several ranks.

    >>> whole = [Piece(r, "a", Box((0, r), (2, r + 1))) for r in range(2)]
    >>> picture((2, 2), whole)
    ['0 1', '0 1']
    """
    if not 1 <= len(shape) <= 2 or 0 in shape:
        return []
    most = (8, 16)[-len(shape) :]
    lines = [
        [k * n // min(n, m) for k in range(min(n, m))] for n, m in zip(shape, most, strict=True)
    ]
    points = (
        [[(row, column) for column in lines[1]] for row in lines[0]]
        if len(shape) == 2
        else [[(column,) for column in lines[0]]]
    )
    width = len(str(max((piece.rank for piece in pieces), default=0)))
    return [" ".join(f"{_holder(point, pieces):>{width}}" for point in row) for row in points]


def _holder(point: Sequence[int], pieces: Sequence[Piece]) -> str:
    element = Box(tuple(point), tuple(at + 1 for at in point))
    ranks = {piece.rank for piece in pieces if piece.box.contains(element)}
    return "*" if len(ranks) > 1 else str(*ranks) if ranks else "."
