"""The way to the roof: where points stand, what a step was worth, and what is not known."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from inline_snapshot import snapshot

import avial_lab
from avial_lab.core.errors import BindError
from avial_lab.machine.roofline import Ceilings
from avial_lab.plot.run.plane import Plane, spread
from avial_lab.plot.run.roofline import Point, Roofline, roofline_svg, roofline_text

ONE = Ceilings(1, "f64", 50e9, 10e9, 256)
TWO = Ceilings(2, "f64", 100e9, 12.5e9, 256, ((2, 80e9), (3, 40e9)))
POINTS = (
    Point("product", "i j k", 200_000_000, 8_000_000, 0.2),
    Point("product", "interchange-loops", 200_000_000, 8_000_000, 0.02),
    Point("heat", "as <written>", 10_000_000, 40_000_000, 0.005),
    Point("product", "threads", 200_000_000, 8_000_000, 0.004, 2),
    Point("heat", "tile-time", 10_000_000, 40_000_000, 0.001),
)
ROOFLINE = Roofline(POINTS, [TWO, ONE])


def test_every_step_has_the_time_before_and_after() -> None:
    head, _, table = roofline_text(ROOFLINE).partition("Step by step\n")
    assert head.splitlines()[0] == (
        "Roofline: product: 200 ms at first, 4 ms at last, 50 % of the roof; "
        "heat: 5 ms at first, 1 ms at last, 400 % of the roof"
    )
    assert [line.strip() for line in head.splitlines()[1:]] == [str(ONE), str(TWO)]
    assert table == snapshot("""\
           step               threads  before   after   faster       speed  of the roof
  product  i j k                    1       –  200 ms        –   1 GFLOP/s          2 %
  product  interchange-loops        1  200 ms   20 ms  10.00 ×  10 GFLOP/s         20 %
  heat     as <written>             1       –    5 ms        –   2 GFLOP/s         80 %
  product  threads                  2   20 ms    4 ms   5.00 ×  50 GFLOP/s         50 %
  heat     tile-time                1    5 ms    1 ms   5.00 ×  10 GFLOP/s        400 %\
""")


def test_a_point_without_a_time_is_in_the_table_alone() -> None:
    """And what came before it is still before what comes after."""
    points = (POINTS[0], replace(POINTS[1], seconds=None), POINTS[3])
    roofline = Roofline(points, ONE)
    rows = roofline_text(roofline).splitlines()[-3:]
    assert rows[1].split() == ["product", "interchange-loops", "1", *"–––––"]
    assert rows[2].split()[2:8] == ["2", "200", "ms", "4", "ms", "50.00"]
    assert "interchange-loops" not in roofline_svg(roofline)


def test_without_times_there_is_the_roof() -> None:
    roofline = Roofline([replace(point, seconds=None) for point in POINTS], TWO)
    assert "product: no times; heat: no times" in roofline_text(roofline)
    assert "memory 12 GB/s" in roofline_svg(roofline)


def circles(picture: str) -> list[tuple[float, float]]:
    found = [e for e in ElementTree.fromstring(picture).iter() if e.tag.endswith("circle")]
    return [(float(e.attrib["cx"]), float(e.attrib["cy"])) for e in found]


def test_faster_is_higher_and_more_work_for_a_byte_is_further_right() -> None:
    plane = Plane.around([25, 0.25], [1e9, 50e9], TWO)
    assert plane.at(25, 1e9)[0] > plane.at(0.25, 1e9)[0]
    assert plane.at(25, 50e9)[1] < plane.at(25, 1e9)[1]
    # Decades are equally long.
    heights = [plane.at(1, 10.0**k)[1] for k in (9, 10, 11)]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2])
    drawn = circles(roofline_svg(ROOFLINE))
    on_plane = [y for _, y in drawn[:3]]
    assert len(drawn) == 4  # three of the product, and its mark in the legend
    assert on_plane == sorted(on_plane, reverse=True)


def test_roofs_of_fewer_threads_are_drawn_and_told() -> None:
    assert "1 thread: 50 GFLOP/s" in roofline_svg(ROOFLINE)
    assert "with fewer threads" in roofline_svg(ROOFLINE)
    assert "with fewer threads" not in roofline_svg(Roofline(POINTS, TWO))


def test_a_point_is_held_against_the_roof_of_its_threads() -> None:
    assert ROOFLINE.share(POINTS[3]) == pytest.approx(0.5)  # of 100 GFLOP/s
    assert ROOFLINE.share(replace(POINTS[3], threads=1)) == pytest.approx(1.0)
    assert Roofline(POINTS, ONE).share(POINTS[3]) == pytest.approx(1.0)  # the only one there is
    assert ROOFLINE.share(POINTS[2]) == pytest.approx(0.8)  # 40 MB in 4 ms, at the least


def test_more_threads_can_do_what_fewer_did() -> None:
    """Whoever measured the second roof was disturbed."""
    low = replace(TWO, bytes_per_s=4e9)
    assert [roof.bytes_per_s for roof in Roofline(POINTS, [low, ONE]).roofs] == [10e9, 10e9]
    assert Roofline(POINTS, [low]).roofs == (low,)


def test_it_fits_a_notebook() -> None:
    width = float(ElementTree.fromstring(roofline_svg(ROOFLINE)).attrib["width"])
    assert width <= 850


def test_labels_do_not_meet() -> None:
    assert spread([5, 6, 7, 60], 13) == [5, 18, 31, 60]
    crowd = [replace(POINTS[0], step=f"s{k}", seconds=0.2 + k / 1e4) for k in range(6)]
    root = ElementTree.fromstring(roofline_svg(Roofline(crowd, ONE)))
    labels = [e for e in root.iter() if re.match(r"s\d: ", e.text or "")]
    heights = sorted(float(label.attrib["y"]) for label in labels)
    assert len(heights) == 6
    assert min(b - a for a, b in pairwise(heights)) >= 12.9


def test_names_are_text() -> None:
    assert "<written>" not in roofline_svg(ROOFLINE)
    assert "as &lt;written&gt;" in roofline_svg(ROOFLINE)


def test_what_has_no_place_is_refused() -> None:
    with pytest.raises(BindError, match="a roofline needs at least one ceiling"):
        Roofline(POINTS, ())
    with pytest.raises(BindError, match="cannot be drawn in a roofline"):
        Roofline([replace(POINTS[0], nbytes=0)], ONE)


def test_it_is_ours_to_take() -> None:
    assert avial_lab.Roofline is Roofline
    assert avial_lab.Point is Point
