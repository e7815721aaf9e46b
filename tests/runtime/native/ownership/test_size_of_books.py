"""Books stay short: what programs do over and over leaves as many pieces as the first time."""

from __future__ import annotations

import pytest

from avial_lab.core.buffers import Storage
from avial_lab.core.regions import Box
from tests.runtime.native.ownership.books import (
    EVERYWHERE,
    READ,
    REPLICATE,
    WRITE,
    Access,
    Books,
    Phase,
    Range,
    Space,
)

N = 200
ARRAYS = tuple(Storage(name, (N, N), 8, (name,)) for name in "ab")
ROWS = Space(1, N - 1, extent=N)


def rows(array: int, use: str, below: int = 0, above: int = 0) -> Access:
    return Access(array, use, lambda r: Box((r[0] - below, 0), (r[1] + above, N)))


def columns(array: int, use: str) -> Access:
    return Access(array, use, lambda r: Box((0, r[0]), (N, r[1])))


def sizes(phases: tuple[Phase, ...], ranks: int, rounds: int) -> list[int]:
    """Pieces after every round."""
    books = Books(ARRAYS, ranks)
    found: list[int] = []
    for _ in range(rounds):
        for phase in phases:
            books.run(phase)
        found.append(len(books.ownership.directory(ranks)))
    return found


@pytest.mark.parametrize("ranks", [2, 4, 16])
def test_of_a_stencil(ranks: int) -> None:
    sweep = Phase(0, REPLICATE, (rows(0, READ, 1, 1), rows(1, WRITE)), ROWS)
    back = Phase(1, REPLICATE, (rows(1, READ, 1, 1), rows(0, WRITE)), ROWS)
    found = sizes((sweep, back), ranks, 20)
    assert len(set(found[2:])) == 1
    # Of each array a block a rank, and of the one just read a shared row at each side of it.
    assert found[-1] <= 4 * ranks + 4


@pytest.mark.parametrize("ranks", [2, 4, 16])
def test_of_rows_and_columns_in_turn(ranks: int) -> None:
    across = Phase(0, REPLICATE, (columns(0, READ), columns(0, WRITE)), Space(0, N, extent=N))
    down = Phase(1, REPLICATE, (rows(0, READ), rows(0, WRITE)), Space(0, N, extent=N))
    found = sizes((across, down), ranks, 6)
    assert set(found) == {ranks + 1}


def test_of_what_all_ranks_write_alike() -> None:
    everyone = Phase(0, EVERYWHERE, (rows(0, READ), rows(0, WRITE)), Space(0, N))
    assert set(sizes((everyone,), 7, 3)) == {2}


@pytest.mark.parametrize("ranks", [3, 8])
def test_of_an_elimination(ranks: int) -> None:
    """A few pieces for every row that is done, at most."""

    def pivot(k: int) -> Access:
        return Access(0, READ, lambda r: Box((k, k), (k + 1, N)))

    def rest(k: int, use: str) -> Access:
        def place(r: Range) -> Box:
            return Box((r[0], k), (r[1], N))

        return Access(0, use, place)

    steps = tuple(
        Phase(0, REPLICATE, (pivot(k), rest(k, READ), rest(k, WRITE)), Space(k + 1, N, extent=N))
        for k in range(N - 1)
    )
    assert sizes(steps, ranks, 1)[-1] <= 2 * N + 4 * ranks
