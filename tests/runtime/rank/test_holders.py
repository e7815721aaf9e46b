"""Who holds what after a program whose messages are known has written a part of an array."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.core.regions import Box, size
from avial_lab.planning.schedule import Piece
from avial_lab.ptensor.namespace import Namespace
from avial_lab.runtime.rank.exchange import holders_of
from avial_lab.runtime.rank.holders import keep_layouts, new_resident
from avial_lab.runtime.rank.own_ranks import own_ranks


@pytest.mark.parametrize("writer", [0, 1])
def test_what_is_not_written_stays(writer: int) -> None:
    """Rank 0 holds rows 0 to 4 and 1 the rest, both row 4; element (4, 2) is written."""
    made = new_resident((8, 5), 8)
    name = made.storage.name
    made.pieces = (Piece(0, name, Box((0, 0), (5, 5))), Piece(1, name, Box((4, 0), (8, 5))))
    written = Piece(writer, "x", Box((4, 2), (5, 3)))
    keep_layouts({"x": made}, [written], known=True)
    held = np.zeros((2, 8, 5), int)
    for piece in made.pieces:
        held[(piece.rank, *piece.box.slices)] += 1
    want = np.zeros((2, 8, 5), int)
    want[0, :5] = want[1, 4:] = 1
    want[1 - writer, 4, 2] = 0
    np.testing.assert_array_equal(held, want)
    keep_layouts({"x": made}, [], known=True)
    assert len(made.pieces) >= 2


def test_an_element_that_is_written_by_compiled_code() -> None:
    xp = Namespace(own_ranks())
    xp.connection.always_compiled = True
    x, want = xp.asarray(np.arange(20.0).reshape(4, 5)), np.arange(20.0).reshape(4, 5)
    for place in ((2, 4), (0, 0)):
        x[place] = want[place] = 77.0
        np.testing.assert_array_equal(np.asarray(x), want)


def test_each_element_is_one_ranks() -> None:
    """Also where a box of one is a part of a box of another."""
    ends = ((0, 2, 4), (1, 0, 10), (2, 0, 10))
    chosen = holders_of([Piece(rank, "x", Box((low,), (high,))) for rank, low, high in ends])
    assert sum(size(boxes) for boxes in chosen.values()) == 10
    assert chosen[0] == (Box((2,), (4,)),)
