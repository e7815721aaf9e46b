"""Which rank writes and reads which part of each array."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from avial_lab.artifact.plan import Footprint, Plan
from avial_lab.core.buffers import Storage
from avial_lab.core.regions import Box
from avial_lab.planning.schedule import Piece
from avial_lab.plot import split_figure, split_svg, split_table
from avial_lab.plot.svg import text_width
from avial_lab.runtime.native.ownership import Use
from tests.plot.by_hand import neighbours, words


def titles(picture: str) -> list[str]:
    """The tooltips of all parts."""
    return [
        title.text or ""
        for group in ET.fromstring(picture).iter()
        if group.get("data-kind") == "part"
        for title in group
        if title.tag.endswith("title")
    ]


def plan(*footprints: Footprint, shape: tuple[int, ...], ranks: int = 2) -> Plan:
    names = dict.fromkeys(each.storage for each in footprints)
    storages = tuple(Storage(name, shape, 8, (name,)) for name in names)
    return Plan(ranks, (), (), (), (0,) * ranks, (), True, footprints, storages)


def test_a_part_for_each_owner_and_each_halo() -> None:
    """
    b  0000000000 1111111111      written
    a  000000000# 1111111111      element 9 is read by both
    """
    picture = split_svg(neighbours(2, phases=1))
    assert titles(picture) == snapshot(
        [
            "b[0:10]: rank 0 writes it",
            "b[10:20]: rank 1 writes it",
            "a[0:9]: rank 0 has it",
            "a[9:10]: ranks 0, 1 read it",
            "a[10:20]: rank 1 has it",
        ]
    )
    assert {"0", "1", "S1", "5×, 2 ranks", "a  20", "written"} <= set(words(picture))


def test_whoever_wrote_it_last_is_its_owner() -> None:
    whole = neighbours(2, phases=1)
    owned = replace(
        whole, results=(Piece(0, "a", Box((0,), (10,))), Piece(1, "a", Box((10,), (20,))))
    )
    assert titles(split_svg(owned))[2:] == snapshot(
        [
            "a[0:9]: rank 0 has it",
            "a[9:10]: rank 0 has it, rank 1 reads it",
            "a[10:20]: rank 1 has it",
        ]
    )


def test_two_dimensions_and_a_tile_each() -> None:
    tiles = [(0, 0), (0, 4), (4, 0), (4, 4)]
    footprints = [
        Footprint("S", rank, "a", Use.WRITE, Box((y, x), (y + 4, x + 4)))
        for rank, (y, x) in enumerate(tiles)
    ]
    shown = titles(split_svg(plan(*footprints, shape=(8, 8), ranks=4)))
    assert shown == [f"a[{y}:{y + 4}, {x}:{x + 4}]: rank {k} writes it"
                     for k, (y, x) in enumerate(tiles)]  # fmt: skip


def test_what_is_read_by_many_or_added_up_by_all_is_said() -> None:
    whole = Box((0,), (8,))
    reads = [Footprint("S", rank, "x", Use.READ, whole) for rank in range(5)]
    sums = [Footprint("S", rank, "s", Use.REDUCE, whole) for rank in range(5)]
    picture = split_svg(plan(*reads, *sums, shape=(8,), ranks=5))
    assert titles(picture) == snapshot(
        ["s[0:8]: ranks 0–4 add to it; combined at the end", "x[0:8]: ranks 0–4 read it"]
    )
    assert {"Σ", "read by three or more other ranks", "Σ partial results, then combined"} <= set(
        words(picture)
    )


def test_scalars_and_empty_arrays_have_a_picture() -> None:
    one = plan(Footprint("S", 0, "e", Use.WRITE, Box((), ())), shape=())
    assert titles(split_svg(one)) == ["e[]: rank 0 writes it"]
    assert {"on rank 0" in word for word in words(split_svg(one))} == {True, False}
    ET.fromstring(split_svg(plan(Footprint("S", 0, "e", Use.READ, Box((0,), (0,))), shape=(0,))))


def test_what_every_rank_does_alike_is_not_drawn_but_said() -> None:
    alike = Footprint("zero", -1, "a", Use.WRITE, Box((0,), (1,)))
    both = split_svg(plan(alike, Footprint("S", 0, "a", Use.READ, Box((0,), (4,))), shape=(4,)))
    assert "zero" not in words(both)
    assert any("every rank executes in full" in line for line in words(both))
    assert "no phase is divided" in words(split_svg(plan(alike, shape=(4,))))


@pytest.mark.parametrize("divided", [0, 1, 2])
def test_of_three_dimensions_the_divided_one_is_drawn(divided: int) -> None:
    def box(rank: int) -> Box:
        start, stop = [0, 0, 0], [4, 4, 4]
        start[divided], stop[divided] = 2 * rank, 2 * rank + 2
        return Box(tuple(start), tuple(stop))

    footprints = [Footprint("S", rank, "a", Use.WRITE, box(rank)) for rank in range(2)]
    picture = split_svg(plan(*footprints, shape=(4, 4, 4)))
    assert len(titles(picture)) == 2
    assert all(f"rank {rank} writes it" in titles(picture)[rank] for rank in range(2))
    heading = next(word for word in words(picture) if word.startswith("a  "))
    assert heading.count("(4)") == 1
    assert heading.split(" × ")[divided].removeprefix("a  ") == "4"
    assert "Dimensions in brackets are not drawn." in words(picture)


def test_phases_stand_in_the_programs_order() -> None:
    whole = neighbours(2, phases=3)
    late_first = replace(whole, footprints=whole.footprints[::-1])
    uneven = [f for f in late_first.footprints if not (f.phase == "S2" and f.rank == 1)]
    shown = words(split_svg(replace(whole, footprints=tuple(uneven))))
    assert shown.index("S1, S3") < shown.index("S2")


def cyclic(size: int, ranks: int) -> Plan:
    """Element i to rank i % ranks, and each reads both neighbours."""
    footprints = [
        Footprint("S", i % ranks, name, use, Box((max(0, i - low),), (min(size, i + 1 + low),)))
        for i in range(size)
        for name, use, low in (("b", Use.WRITE, 0), ("a", Use.READ, 1))
    ]
    return plan(*footprints, shape=(size,), ranks=ranks)


def test_many_pieces_are_cut_off_openly() -> None:
    picture = split_svg(cyclic(1000, 16))
    assert len(picture) < 200_000
    assert any("only the first are drawn" in line for line in words(picture))
    assert not any("only the first are drawn" in line for line in words(split_svg(cyclic(20, 3))))


def test_phases_alike_share_a_row() -> None:
    shown = words(split_svg(neighbours(16, phases=30)))
    assert "30 identical phases" in shown
    assert sum("16 ranks" in word for word in shown) == 1 + 1  # the row's and the summary's


@pytest.mark.parametrize("phases", [1, 30, 60])
def test_sixteen_ranks_and_many_phases_fit(phases: int) -> None:
    """Each phase on arrays of its own, so that none are alike."""
    one = neighbours(16, phases=1)
    many = [
        replace(each, phase=f"S{k}", storage=f"{each.storage}{k}")
        for k in range(phases)
        for each in one.footprints
    ]
    storages = [replace(s, name=f"{s.name}{k}") for k in range(phases) for s in one.storages]
    picture = split_svg(replace(one, footprints=tuple(many), storages=tuple(storages)))
    ET.fromstring(picture)
    assert len(picture) < 300_000
    hidden = [line for line in words(picture) if line.startswith("Hidden")]
    rows = picture.count('data-kind="phase"')
    assert (rows == phases) == (not hidden)
    assert rows >= min(phases, 15)


def test_of_more_ranks_the_picture_says_that_there_is_none() -> None:
    assert "drawn for up to 16 ranks" in words(split_svg(neighbours(17)))


def test_hostile_names_stay_text() -> None:
    hostile = Footprint('<script>"', 0, "<b>&", Use.WRITE, Box((0,), (4,)))
    picture = split_svg(plan(hostile, shape=(4,)))
    ET.fromstring(picture)
    assert "<script" not in picture + split_figure(plan(hostile, shape=(4,)))


def test_the_table_has_every_box() -> None:
    assert split_table(neighbours(2, phases=1)).rows == snapshot(
        (("S1", "0", "b[0:10]", "a[0:10]"), ("S1", "1", "b[10:20]", "a[9:20]"))
    )


def test_headings_never_run_into_each_other() -> None:
    wide = Footprint("S", 0, "a_very_long_name_of_an_array", Use.WRITE, Box((0,), (4,)))
    other = Footprint("S", 0, "b", Use.WRITE, Box((0,), (4,)))
    picture = split_svg(plan(wide, other, shape=(4,)))
    at = {
        text.text: float(group.get("transform", "").split("(")[1].split()[0])
        for group in ET.fromstring(picture).iter()
        for text in group
        if text.tag.endswith("text") and group.get("transform", "").startswith("translate(")
    }
    first = "a_very_long_name_of_an_array  4"
    assert at["b  4"] >= at[first] + text_width(first, 11, bold=True)
