"""The directories of `native/ownership` against a model with a set of ranks for every element."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from avial_lab.core.buffers import Storage
from avial_lab.core.regions import Box
from tests.quick import examples
from tests.runtime.native.ownership.books import (
    EVERYWHERE,
    NOT_COMBINED,
    REDUCE,
    REPLICATE,
    TASK,
    Access,
    Books,
    Model,
    Phase,
    Range,
    Space,
    dense,
)

F64_SUM, F64_MAX, I32_SUM = 8, 3 * 16 + 8, 3


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    lb = draw(st.integers(-2, 4))
    return Space(
        lb,
        lb + draw(st.integers(0, 12)),
        draw(st.sampled_from([1, 1, 1, 2, 3])),
        draw(st.integers(-2, 3)),
        draw(st.sampled_from([0, 5, 8, 11])),
    )


@st.composite
def accesses(draw: st.DrawFn, storages: tuple[Storage, ...], uses: str) -> Access:
    array = draw(st.integers(0, len(storages) - 1))
    sides = []
    for length in storages[array].shape:
        kind = draw(st.sampled_from(["rows", "rows", "columns", "whole", "some"]))
        low, high = draw(st.integers(-2, 1)), draw(st.integers(0, 2))
        start = draw(st.integers(0, length))
        sides.append((kind, low, high, start))

    def place(part: Range) -> Box:
        ends = [_side(part, side, n) for side, n in zip(sides, storages[array].shape, strict=True)]
        return Box(tuple(a for a, _ in ends), tuple(b for _, b in ends))

    use = draw(st.sampled_from(uses.split()))
    op = draw(st.sampled_from([F64_SUM, F64_SUM, F64_MAX, NOT_COMBINED])) if use == REDUCE else 0
    return Access(array, use, place, op)


def _side(part: Range, side: tuple[str, int, int, int], length: int) -> tuple[int, int]:
    kind, low, high, start = side
    if kind == "rows":
        return part[0] + low, part[1] + high
    if kind == "columns":
        return part[2], part[3]
    return (0, length) if kind == "whole" else (start, start + high)


@st.composite
def phases(draw: st.DrawFn, storages: tuple[Storage, ...], ranks: int) -> Phase:
    kind = draw(st.sampled_from([REPLICATE] * 5 + [TASK, EVERYWHERE]))
    uses = "read read read write write update" + (" reduce" if draw(st.booleans()) else "")
    members = draw(st.sampled_from([(), (), (ranks - 1,), tuple(range(0, ranks, 2))]))
    return Phase(
        draw(st.integers(0, 3)),
        kind,
        tuple(draw(st.lists(accesses(storages, uses), min_size=1, max_size=4))),
        draw(spaces()),
        draw(st.one_of(st.just(Space(0, 1)), spaces())),
        block=draw(st.sampled_from([0, 0, 0, 1, 3])),
        grid=draw(st.sampled_from([0, 0, 0, 2])) if len(members) != 1 else 0,
        members=members,
        weights=tuple(draw(st.one_of(st.just([]), st.lists(st.integers(0, 9), max_size=6)))),
    )


@st.composite
def programs(draw: st.DrawFn) -> tuple[tuple[Storage, ...], int, frozenset[str], list[Phase]]:
    shapes = draw(st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=1, max_size=3))
    storages = tuple(
        Storage(name, tuple(shape), draw(st.sampled_from([1, 8])), (name,))
        for name, shape in zip("abc", shapes, strict=False)
    )
    ranks = draw(st.sampled_from([1, 2, 3, 4, 5, 7, 70]))
    temporary = frozenset(draw(st.sampled_from([[], [], ["a"]])))
    found = draw(st.lists(phases(storages, ranks), min_size=1, max_size=6))
    times = draw(st.integers(1, 2))
    return storages, ranks, temporary, found * times


@settings(max_examples=examples(150), deadline=None)
@given(programs())
def test_the_books_are_right_about_every_element(program):
    storages, ranks, temporary, steps = program
    books, model = Books(storages, ranks, temporary), Model(storages, ranks, temporary)
    for phase in steps:
        books.run(phase)
        model.run(phase)
        assert not books.ownership.error
        for (writer, holds), (want_writer, want_holds) in zip(
            dense(books), model.book(), strict=True
        ):
            np.testing.assert_array_equal(writer, want_writer)
            np.testing.assert_array_equal(holds, want_holds)
    moved = Counter({(m.phase, m.source, m.dest): m.nbytes for m in books.ownership.moves(ranks)})
    assert moved == Counter({(str(p), s, d): n for (p, s, d), n in model.moved.items()})
    check_tables(books, model)


def check_tables(books: Books, model: Model) -> None:
    got = [np.zeros_like(needed, np.int64) for needed in model.needed]
    number = {storage.name: k for k, storage in enumerate(books.storages)}
    for piece in books.ownership.inputs():
        got[number[piece.storage]][(*piece.box.slices, piece.rank)] += 1
    for one, needed in zip(got, model.needed, strict=True):
        np.testing.assert_array_equal(one, needed)
    written = [np.full(storage.shape, -1) for storage in books.storages]
    for piece in books.ownership.results():
        assert (written[number[piece.storage]][piece.box.slices] == -1).all()
        written[number[piece.storage]][piece.box.slices] = piece.rank
    for storage, one, writer in zip(books.storages, written, model.writer, strict=True):
        if storage.name not in books.temporary:
            np.testing.assert_array_equal(one, writer)
    held = [
        sum(
            int(ever[..., rank].sum()) * storage.itemsize
            for storage, ever in zip(books.storages, model.ever, strict=True)
        )
        for rank in range(books.ranks)
    ]
    assert list(books.ownership.held_bytes()) == held
    whole = {count.phase: count.whole for count in books.ownership.counts() if count.whole}
    assert whole == {str(phase): times for phase, times in model.whole.items()}
