"""The race's page and pictures: whole, escaped, and asking nobody for anything."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from avial_lab.benchmarks.charts import ratios_svg, roofline_svg
from avial_lab.benchmarks.html_report import report_html
from avial_lab.benchmarks.table import Report, Result, Round
from avial_lab.machine.host import CacheLevel, Machine
from avial_lab.machine.roofline import Ceilings
from avial_lab.plot.run.plane import Axis

CEILINGS = Ceilings(2, "f32", 100e9, 10e9, 256, ((2, 80e9), (3, 40e9)))
MACHINE = Machine("A <b>processor</b>", "x86_64", 2, 2, (CacheLevel(2, 1 << 20, 1),))
EVIL = "<script>alert(1)</script> & \"'"


def raced(kernel: str, *results: Result, flops: int = 4_000_000, nbytes: int = 1_000_000) -> Round:
    return Round(kernel, "f32", {"N": 10}, 1, 2, flops, nbytes, results, CEILINGS)


HEATS = (
    raced(
        "gemm", Result("avial", (0.001,), 0.3), Result("gcc", (0.002,)), Result("numba", fault=EVIL)
    ),
    raced("mvt", Result("avial", (0.004,)), Result("gcc", (0.001,)), flops=100_000),
    raced("lu", Result("avial", fault=EVIL), Result("gcc", (0.001,))),
)


@pytest.fixture(scope="module")
def page() -> str:
    wide = replace(HEATS[0], threads=1)
    notes = (f"left out: {EVIL}",)
    return report_html(Report("SMALL", (*HEATS, wide), (CEILINGS,), MACHINE, notes))


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_it_asks_nobody(page: str) -> None:
    reader = Reader()
    reader.feed(page)
    for tag, attributes in reader.tags:
        assert tag not in {"link", "iframe", "img", "object", "embed", "base", "form"}
        assert not {"src", "href", "action", "data", "srcset"} & set(attributes), (tag, attributes)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest", page)
    assert "default-src 'none'" in page


def test_what_comes_from_outside_is_text(page: str) -> None:
    assert EVIL not in page
    assert "<script>alert" not in page
    assert "A <b>" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_every_race_has_a_section(page: str) -> None:
    assert page.count("<h2") == 3
    assert "f32, 1 rank × 2 threads" in page
    assert "f32, 1 rank × 1 thread<" in page


@pytest.mark.parametrize("picture", [ratios_svg(HEATS), roofline_svg(HEATS, CEILINGS)])
def test_pictures_are_xml(picture: str) -> None:
    root = ElementTree.fromstring(picture)
    for element in root.iter():
        assert not any(key.endswith("href") for key in element.attrib)


def tips(picture: str) -> list[str]:
    return [e.text or "" for e in ElementTree.fromstring(picture).iter() if e.tag.endswith("title")]


def test_ratios_are_told() -> None:
    shown = tips(ratios_svg(HEATS))
    assert "gemm, gcc: 2.000 ms, 2.00 × ours" in shown
    assert "mvt, gcc: 1.000 ms, 0.25 × ours" in shown
    assert not any(tip.startswith("lu") for tip in shown)
    assert "no time for avial_lab: lu" in ratios_svg(HEATS)


def test_the_roofline_has_everybody() -> None:
    shown = tips(roofline_svg(HEATS, CEILINGS))
    assert "gemm, avial: 4 GFLOP/s, 10% of the roofline" in shown
    assert "lu, gcc: 4 GFLOP/s, 10% of the roofline" in shown
    assert sum(": " in tip and "GFLOP/s" in tip for tip in shown) == 5


def test_axes_are_logarithmic() -> None:
    axis = Axis(0.1, 1000.0, start=0.0, end=400.0)
    assert [axis.at(tick) for tick in axis.ticks(10)] == pytest.approx([0, 100, 200, 300, 400])
    assert axis.at(1e-9) == 0.0
