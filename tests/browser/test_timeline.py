"""The timeline to explore: what it says, by keyboard, by pointer and to whom cannot see it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Locator, Page, expect

from avial_lab.plot.views.timeline import timeline_data
from avial_lab.trace import Event, EventKind, Trace
from tests.browser.pages import serious_faults
from tests.plot.by_hand import deck_schedule, deck_trace

pytestmark = pytest.mark.slow  # `make test-browser` and `make test-full` have it

_DARKEST = """async () => {
  const picture = new Image();
  picture.src = window.saved.href;
  await picture.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.width, picture.height];
  const context = canvas.getContext("2d");
  context.drawImage(picture, 0, 0);
  const { data } = context.getImageData(0, 24, 100, picture.height - 24);
  return [picture.width, Math.min(...data.filter((_, k) => k % 4 < 3))];
}"""
"""The width of a picture, and the darkest of its points left of the bars."""

BarePage = Callable[..., Page]


@pytest.fixture
def deck(bare_page: BarePage) -> Page:
    return bare_page("timeline", timeline_data(deck_trace(), deck_schedule()))


def chart(page: Page) -> Locator:
    return page.locator(".avial-timeline-chart")


def detail(page: Page) -> Locator:
    return page.locator(".avial-timeline-detail")


def window(page: Page) -> tuple[float, float]:
    """The time that is shown, in nanoseconds, once it is drawn."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    there = chart(page)
    return float(there.get_attribute("data-from") or 0), float(there.get_attribute("data-to") or 0)


def picture(page: Page) -> str:
    window(page)
    return page.evaluate("document.querySelector('.avial-timeline-plot').toDataURL()")


def press(page: Page, keys: str) -> None:
    chart(page).focus()
    for key in keys.split():
        page.keyboard.press(key)


def test_events_are_read_out_by_keyboard(deck: Page) -> None:
    press(deck, "j")
    expect(detail(deck)).to_have_text("task1 · task on rank 0, cpu0 · 40 µs from 0 ns")
    press(deck, "n")
    expect(detail(deck)).to_have_text(
        "send c to rank 2 · send on rank 0, cpu0 · 3 µs from 40 µs · 80 B · with rank 2 at 2 µs"
    )
    assert deck.evaluate("window.said.length") == 2
    press(deck, "j j")
    expect(detail(deck)).to_contain_text("ready to receive d from rank 1")
    press(deck, "p k k Escape")
    expect(detail(deck)).to_have_text("Nothing is selected.")


def test_keys_zoom_and_pan_and_come_back(deck: Page) -> None:
    assert window(deck) == (0, 96_000)
    press(deck, "+")
    assert window(deck) == (24_000, 72_000)
    press(deck, "ArrowRight")
    assert window(deck) == (33_600, 81_600)
    press(deck, "- -")
    assert window(deck) == (0, 96_000)
    press(deck, "j n Enter")
    assert window(deck) == (37_000, 46_000), "the send from 40 to 43 µs in the middle"
    press(deck, "0")
    assert window(deck) == (0, 96_000)


def test_the_wheel_is_the_page_s_until_the_chart_is_asked(deck: Page) -> None:
    chart(deck).hover()
    deck.mouse.wheel(0, -200)
    assert window(deck) == (0, 96_000)
    chart(deck).focus()
    deck.mouse.wheel(0, -200)
    start, end = window(deck)
    assert end - start == 48_000


def test_what_is_under_the_pointer_is_told(deck: Page) -> None:
    place = deck.locator(".avial-timeline-plot").bounding_box()
    assert place is not None
    middle = place["x"] + 190 + (place["width"] - 190) * 0.25, place["y"] + 18
    deck.mouse.move(*middle)
    tip = deck.locator(".avial-timeline-tip")
    expect(tip).to_contain_text("task1")
    expect(tip).to_contain_text("40 µs from 0 ns")
    deck.mouse.click(*middle)
    expect(detail(deck)).to_contain_text("task1")
    deck.mouse.move(0, 0)
    expect(tip).to_be_hidden()
    deck.mouse.move(*middle)
    deck.mouse.down()
    deck.mouse.move(middle[0] + 50, middle[1])
    deck.mouse.up()
    assert window(deck) == (0, 96_000), "all is shown: there is nothing to pan to"


def test_messages_and_the_critical_path_are_drawn_on_demand(deck: Page) -> None:
    plain = picture(deck)
    deck.get_by_label("messages", exact=True).check()
    arrows = picture(deck)
    assert arrows != plain
    deck.get_by_label("messages", exact=True).uncheck()
    deck.get_by_label("critical path", exact=True).check()
    assert picture(deck) not in (plain, arrows)
    deck.get_by_label("critical path", exact=True).uncheck()
    assert picture(deck) == plain


def test_kinds_can_be_left_out_and_names_found(deck: Page) -> None:
    plain = picture(deck)
    deck.get_by_label("task", exact=True).uncheck()
    assert picture(deck) != plain
    press(deck, "j")
    expect(detail(deck)).to_contain_text("send c to rank 2")
    deck.get_by_label("task", exact=True).check()
    search = deck.get_by_label("Find events by name")
    search.fill("task3")
    expect(detail(deck)).to_have_text("1 found")
    search.press("Enter")
    expect(detail(deck)).to_contain_text("task3 · task on rank 2, gpu0")


def test_the_tables_have_the_same_facts(deck: Page) -> None:
    data = timeline_data(deck_trace(), deck_schedule())
    deck.get_by_text("as tables").click()
    for table in data["tables"]:
        there = deck.get_by_role("region", name=table["title"]).locator("tbody tr")
        assert [row.locator("td").all_inner_texts() for row in there.all()] == table["rows"]
    shares = deck.get_by_role("img", name="compute 42 %, send 3 %, wait 55 %")
    expect(shares).to_be_visible()


def test_names_are_text_whatever_they_are(bare_page: BarePage) -> None:
    name = "<img src=x onerror=\"console.error('run')\">"
    page = bare_page(
        "timeline", timeline_data(Trace(1, (Event(EventKind.TASK, name, 0, name, 0, 1),)))
    )
    press(page, "j")
    expect(detail(page)).to_contain_text(name)
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(bare_page: BarePage, page: Page, theme: Any) -> None:
    page.emulate_media(color_scheme=theme)
    shown = bare_page("timeline", timeline_data(deck_trace(), deck_schedule()))
    shown.get_by_text("as tables").click()
    press(shown, "j n")
    assert serious_faults(shown, "#host") == []


def test_two_on_a_page_do_not_meet_and_one_can_go(deck: Page) -> None:
    deck.evaluate(
        """data => {
          const host = document.createElement("div");
          document.querySelector("main").append(host);
          window.second = window.mounted(host, data);
        }""",
        timeline_data(deck_trace()),
    )
    ids = deck.eval_on_selector_all("[id]", "all => all.map(each => each.id)")
    assert len(ids) == len(set(ids))
    deck.evaluate("window.second.dispose()")
    expect(deck.locator(".avial-timeline")).to_have_count(1)
    press(deck, "j")
    expect(detail(deck)).to_contain_text("task1")


def test_newer_data_takes_the_place_of_older(deck: Page) -> None:
    press(deck, "j +")
    one = Trace(1, (Event(EventKind.TASK, "alone", 0, "cpu0", 0.0, 2e-3),))
    deck.evaluate("data => window.view.update(data)", timeline_data(one))
    assert window(deck) == (0, 2_000_000)
    expect(deck.locator(".avial-timeline-name:visible")).to_have_text(["rank 0 · cpu0"])
    press(deck, "j")
    expect(detail(deck)).to_contain_text("alone")


def test_nothing_at_all_can_be_shown(bare_page: BarePage) -> None:
    page = bare_page("timeline", timeline_data(Trace(2, ())))
    press(page, "j n + 0 Enter")
    expect(detail(page)).to_have_text("Nothing is selected.")


def test_100000_events_are_drawn_together_and_it_says_so(bare_page: BarePage) -> None:
    events = tuple(
        Event(list(EventKind)[k % 2], f"t{k % 9}", k % 4, "", k * 1e-7, (k + 3) * 1e-7)
        for k in range(100_000)
    )
    page = bare_page("timeline", timeline_data(Trace(4, events)))
    expect(page.locator(".avial-timeline-notes")).to_contain_text(
        re.compile(r"1?\d{2},\d{3} events")
    )
    press(page, "j")
    expect(detail(page)).to_contain_text("events (task)")


@pytest.mark.parametrize("form", ["png", "svg"])
def test_the_picture_is_saved_with_the_names_of_its_rows(deck: Page, form: str) -> None:
    window(deck)
    deck.evaluate("HTMLAnchorElement.prototype.click = function () { window.saved = this; }")
    deck.evaluate("URL.revokeObjectURL = () => {}")
    deck.get_by_role("button", name=f"{form.upper()} file").click()
    deck.wait_for_function("window.saved !== undefined")
    width, darkest = deck.evaluate(_DARKEST)
    assert deck.evaluate("window.saved.download") == f"timeline.{form}"
    shown = chart(deck).bounding_box()
    assert shown is not None
    assert width >= shown["width"] - 4
    assert darkest < 120, "no ink where the ranks are named"


_DIFFERENCE = """async () => {
  const points = async (href) => {
    const picture = new Image();
    picture.src = href;
    await picture.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.width, picture.height];
    const context = canvas.getContext("2d");
    context.drawImage(picture, 0, 0);
    return context.getImageData(0, 0, picture.width, picture.height).data;
  };
  const [png, svg] = await Promise.all(window.all.map(points));
  let far = 0;
  for (let k = 0; k < png.length; k++) far += Math.abs(png[k] - svg[k]) > 60;
  return [png.length, svg.length, far / png.length];
}"""
"""Sizes of both pictures, and the share of their points' colours that are far apart."""


def test_both_pictures_are_the_same(deck: Page) -> None:
    window(deck)
    deck.get_by_label("messages", exact=True).check()
    press(deck, "n n")
    deck.evaluate(
        "window.all = []; URL.revokeObjectURL = () => {};"
        "HTMLAnchorElement.prototype.click = function () { window.all.push(this.href); };"
        "null"  # a function would be called
    )
    for form in ("a PNG", "an SVG"):
        deck.get_by_role("button", name=f"Save the picture as {form} file").click()
    deck.wait_for_function("window.all.length === 2")
    png, svg, far = deck.evaluate(_DIFFERENCE)
    assert png == svg
    assert far < 0.02


def test_what_is_saved_is_xml_whatever_names_are(bare_page: BarePage) -> None:
    name = "<b>&\"\x01\U0001f600'"
    events = (Event(EventKind.TASK, name, 0, name, 0.0, 1e-3),)
    page = bare_page("timeline", timeline_data(Trace(1, events)))
    window(page)
    page.evaluate(
        "window.made = []; URL.createObjectURL = blob => (window.made.push(blob), 'x:'); null"
    )
    page.evaluate("HTMLAnchorElement.prototype.click = URL.revokeObjectURL = () => {}; null")
    page.get_by_role("button", name="Save the picture as an SVG file").click()
    text = page.evaluate("window.made[0].text()")
    assert "<b>" not in text
    assert ElementTree.fromstring(text).tag.endswith("svg")
