"""Who holds what of arrays that stay with ranks."""

from __future__ import annotations

from avial_lab.core.regions import Box, size
from avial_lab.planning.schedule import Piece
from avial_lab.runtime.rank.exchange import holders_of
from avial_lab.runtime.rank.holders import keep_layouts, new_resident


def _piece(rank: int, low: int, high: int) -> Piece:
    return Piece(rank, "a", Box((low,), (high,)))


def test_what_a_run_leaves_as_it_is_stays_where_it_was() -> None:
    """Where messages are known, the results are what was written, and no more."""
    resident = new_resident((10,), 8)
    resident.pieces = (_piece(0, 0, 5), _piece(1, 5, 10), _piece(1, 0, 5))
    keep_layouts({"a": resident}, [_piece(0, 2, 3)], known=True)
    held = _by_rank(resident.pieces)
    assert held[0] == [(0, 2), (2, 3), (3, 5)]
    assert held[1] == [(0, 2), (3, 5), (5, 10)]  # its copy of [2] is none any more


def test_each_element_is_one_ranks() -> None:
    """Also where a box of one is a part of a box of another."""
    chosen = holders_of([_piece(0, 2, 4), _piece(1, 0, 10), _piece(2, 0, 10)])
    assert sum(size(boxes) for boxes in chosen.values()) == 10
    assert chosen[0] == (Box((2,), (4,)),)


def _by_rank(pieces: tuple[Piece, ...]) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = {}
    for piece in pieces:
        found.setdefault(piece.rank, []).append((piece.box.start[0], piece.box.stop[0]))
    return {rank: sorted(ends) for rank, ends in found.items()}
