"""What the pictures must show at two widths, on a machine whose only font is DejaVu."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from avial_lab.artifact.stages import Stage
from avial_lab.plot.graph.dag import dag_svg
from avial_lab.plot.run.timeline import timeline_svg
from avial_lab.plot.views.graph import graph_data
from avial_lab.plot.views.stepper import stepper_data
from avial_lab.plot.views.timeline import timeline_data
from tests.browser.pages import mount_view
from tests.plot.by_hand import deck_schedule, deck_trace

pytestmark = pytest.mark.slow  # `make test-browser` and `make test-full` have it

DEJAVU = Path("/usr/share/fonts/truetype/dejavu")
FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{fonts}</dir><cachedir>{cache}</cachedir>
<include ignore_missing="yes">/etc/fonts/conf.d</include></fontconfig>"""
WIDTHS = pytest.mark.parametrize("width", [1280, 900])

LINES = "\n".join(f"  %v{k} = arith.constant {k} : i32" for k in range(60))
NAMES = ("avial", "placed", "mpi", "gpu", "ptx:task3", "loops", "host", "llvm", "llvmir", "object")


@pytest.fixture(scope="module")
def plain_browser(executable: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One that knows no other fonts."""
    if not DEJAVU.is_dir():
        pytest.skip(f"no DejaVu fonts in {DEJAVU}")
    folder = tmp_path_factory.mktemp("fonts")
    (folder / "fonts.conf").write_text(FONTS.format(fonts=DEJAVU, cache=folder / "cache"))
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=executable,
            args=arguments,
            env={**os.environ, "FONTCONFIG_FILE": str(folder / "fonts.conf")},
        )
        yield running
        running.close()


@pytest.fixture
def plain_page(plain_browser: Any, width: int) -> Iterator[Page]:
    page = plain_browser.new_page(viewport={"width": width, "height": 900})
    yield page
    page.close()


def in_sight(page: Page, inner: str, outer: str) -> int:
    """How many of `inner` are wholly within the box that shows them."""
    return page.evaluate(
        """([inner, outer]) => {
            const box = document.querySelector(outer).getBoundingClientRect();
            return [...document.querySelectorAll(inner)].filter(each => {
                const own = each.getBoundingClientRect();
                return own.height && own.top >= box.top - 1 && own.bottom <= box.bottom + 1;
            }).length;
        }""",
        [inner, outer],
    )


@WIDTHS
def test_the_stepper_shows_nine_stages_and_twenty_lines_on_both_sides(
    plain_page: Page, width: int
) -> None:
    stages = [
        Stage(name, f"the {name}", "mlir", LINES, f"mlir-opt x.mlir -o {name}.mlir", 0.01)
        for name in NAMES
    ]
    data = stepper_data(stages, None, source=LINES, cell="In [2]")
    page = mount_view(plain_page, "stepper", data)
    expect(page.locator(".avial-stage")).to_have_count(len(NAMES))
    assert in_sight(page, ".avial-stage", ".avial-list") >= 9
    assert in_sight(page, ".avial-cell .avial-line", ".avial-cell .avial-lines") >= 20
    page.get_by_role("button", name="Side by side").click()
    page.get_by_role("button", name="next stage").click()
    for side in ("a", "b"):
        lines = page.locator(f".avial-main .avial-lines:has([id*='-{side}-'])")
        expect(lines).to_be_visible()
        height = lines.evaluate("element => element.clientHeight")
        assert height >= 20 * 18, side


@WIDTHS
def test_labels_are_beside_their_arrows(plain_page: Page, width: int) -> None:
    schedule = deck_schedule()
    page = mount_view(plain_page, "graph", graph_data(schedule.graph, schedule))
    expect(page.locator(".avial-label")).to_have_count(3)
    crossed = page.evaluate(
        """() => [...document.querySelectorAll('.avial-label')].filter(label => {
            const box = label.getBBox();
            return [...document.querySelectorAll('.avial-edge path')].some(path => {
                const length = path.getTotalLength();
                for (let at = 0; at <= length; at += 1) {
                    const { x, y } = path.getPointAtLength(at);
                    if (x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height)
                        return true;
                }
                return false;
            });
        }).map(label => label.textContent)"""
    )
    assert crossed == []


@WIDTHS
def test_three_tasks_need_no_toolbar(plain_page: Page, width: int) -> None:
    schedule = deck_schedule()
    page = mount_view(plain_page, "graph", graph_data(schedule.graph, schedule))
    expect(page.locator(".avial-heading").get_by_role("button", name="Lanes")).to_be_visible()
    expect(page.get_by_role("toolbar")).to_have_count(0)


@WIDTHS
def test_every_task_has_a_colour_and_can_be_zoomed_to(plain_page: Page, width: int) -> None:
    data = timeline_data(deck_trace(), deck_schedule())
    assert len({colour for colour, _ in data["tasks"].values()}) == len(data["tasks"]) == 3
    page = mount_view(plain_page, "timeline", data)
    page.get_by_role("button", name="task3").click()
    chart = page.get_by_role("application")
    start, end = (float(chart.get_attribute(f"data-{edge}") or "nan") for edge in ("from", "to"))
    index = data["events"]["name"].index(data["names"].index("task3"))
    assert 0.3 < data["events"]["length"][index] / (end - start) < 0.4
    expect(page.locator(".avial-timeline-detail")).to_contain_text("task3")


@WIDTHS
def test_nothing_is_cut_where_helvetica_is_missing(plain_page: Page, width: int) -> None:
    """Every word of the pictures that stay in a notebook is within its card."""
    schedule, trace = deck_schedule(), deck_trace()
    for picture in (dag_svg(schedule.graph, schedule, trace), timeline_svg(trace, schedule)):
        plain_page.set_content(picture)
        outside = plain_page.evaluate(
            """() => {
                const card = document.querySelector('svg').getBoundingClientRect();
                return [...document.querySelectorAll('text')].filter(text => {
                    const box = text.getBoundingClientRect();
                    return box.right > card.right || box.left < card.left;
                }).map(text => text.textContent);
            }"""
        )
        assert outside == []


@WIDTHS
def test_what_an_empty_field_says_is_not_cut(plain_page: Page, width: int) -> None:
    stages = [Stage(name, name, "mlir", LINES, "", 0.01) for name in NAMES]
    views = {
        "stepper": stepper_data(stages, None, source=LINES, cell="In [2]"),
        "timeline": timeline_data(deck_trace(), deck_schedule()),
    }
    for kind, data in views.items():
        cut = mount_view(plain_page, kind, data).evaluate(
            """() => [...document.querySelectorAll('input[placeholder]')].filter(field => {
                const style = getComputedStyle(field);
                const context = document.createElement('canvas').getContext('2d');
                context.font = `${style.fontSize} ${style.fontFamily}`;
                const room = field.clientWidth - parseFloat(style.paddingLeft)
                    - parseFloat(style.paddingRight);
                return field.clientWidth && context.measureText(field.placeholder).width > room;
            }).map(field => field.placeholder)"""
        )
        assert cut == [], kind


@pytest.mark.parametrize("width", [1280])
def test_the_graph_can_be_saved(plain_page: Page, width: int) -> None:
    schedule = deck_schedule()
    page = mount_view(plain_page, "graph", graph_data(schedule.graph, schedule))
    page.evaluate(
        """() => {
            window.saved = [];
            HTMLAnchorElement.prototype.click = function () {
                window.saved.push(fetch(this.href).then(async (answer) => {
                    const blob = await answer.blob();
                    return [this.download, blob.type, blob.size, await blob.text()];
                }));
            };
        }"""
    )
    page.get_by_role("button", name="Save SVG").click()
    page.get_by_role("button", name="Save PNG").click()
    page.wait_for_function("window.saved.length === 2")
    picture, pixels = page.evaluate("Promise.all(window.saved)")
    assert picture[:2] == ["graph.svg", "image/svg+xml"]
    assert picture[3].startswith("<svg")
    assert ">task3<" in picture[3]
    assert "fill:rgb(" in picture[3]
    assert pixels[:2] == ["graph.png", "image/png"]
    assert pixels[2] > 3000
