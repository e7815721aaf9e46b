"""Boxes and unions of boxes against sets of index tuples."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from avial_lab.core.piece_map import PieceMap
from avial_lab.core.regions import Box, difference, intersection, overlaps, size, union
from tests.strategies import boxes

SHAPE = (5, 4)


def elements(region: object) -> set[tuple[int, ...]]:
    boxes_of = (region,) if isinstance(region, Box) else region
    return {
        index
        for box in boxes_of  # type: ignore[attr-defined]
        for index in product(*(range(a, b) for a, b in zip(box.start, box.stop, strict=True)))
    }


def disjoint(region: tuple[Box, ...]) -> bool:
    return sum(box.size for box in region) == len(elements(region))


@given(boxes(SHAPE), boxes(SHAPE))
def test_box_algebra_is_set_algebra(a: Box, b: Box) -> None:
    common = a.intersection(b)
    assert elements(common) if common else not elements(a) & elements(b)
    assert (elements(common) if common else set()) == elements(a) & elements(b)
    assert elements(a.difference(b)) == elements(a) - elements(b)
    assert disjoint(a.difference(b))
    assert a.contains(b) == (elements(b) <= elements(a))
    assert a.overlaps(b) == bool(elements(a) & elements(b))


@given(st.lists(boxes(SHAPE), max_size=5), st.lists(boxes(SHAPE), max_size=5))
def test_region_algebra_is_set_algebra(left: list[Box], right: list[Box]) -> None:
    a, b = union(left), union(right)
    assert elements(a) == elements(left)
    assert disjoint(a)
    assert size(a) == len(elements(a))
    assert elements(intersection(a, b)) == elements(a) & elements(b)
    assert elements(difference(a, b)) == elements(a) - elements(b)
    assert overlaps(a, b) == bool(elements(a) & elements(b))


def test_touching_boxes_do_not_overlap_and_join() -> None:
    left, right = Box((0, 0), (2, 4)), Box((2, 0), (5, 4))
    assert not left.overlaps(right)
    assert union([left, right]) == (Box((0, 0), (5, 4)),)


def test_a_0d_array_has_one_element() -> None:
    point = Box((), ())
    assert (point.size, point.empty) == (1, False)
    assert point.overlaps(point)
    assert point.difference(point) == ()


@given(st.lists(boxes(SHAPE), max_size=12), st.lists(st.integers(0, 11), max_size=6))
def test_to_replace_is_to_remove_and_to_add(written: list[Box], again: list[int]) -> None:
    """Also in which order pieces are found: what is sent follows it."""
    quick: PieceMap[int] = PieceMap(len(SHAPE))
    plain: PieceMap[int] = PieceMap(len(SHAPE))
    for number, box in enumerate([*written, *(written[k] for k in again if k < len(written))]):
        quick.replace(box, number)
        plain.remove(box)
        plain.add(box, number)
        assert list(quick) == list(plain)
        assert quick.overlapping(Box.whole(SHAPE)) == plain.overlapping(Box.whole(SHAPE))


@given(st.lists(st.tuples(st.booleans(), boxes(SHAPE)), max_size=12), boxes(SHAPE))
def test_piece_map_remembers_the_last_write(writes: list[tuple[bool, Box]], probe: Box) -> None:
    pieces: PieceMap[int] = PieceMap(len(SHAPE))
    expected: dict[tuple[int, ...], int] = {}
    for number, (forget_only, box) in enumerate(writes):
        pieces.remove(box)
        for index in elements(box):
            expected.pop(index, None)
        if not forget_only:
            pieces.add(box, number)
            expected.update(dict.fromkeys(elements(box), number))
    found = {index: value for box, value in pieces.overlapping(probe) for index in elements(box)}
    assert found == {index: value for index, value in expected.items() if index in elements(probe)}
