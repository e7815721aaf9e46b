"""The one-file report as a reader has it: from a disk, no network, with and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

import avial_lab
from avial_lab.lessons.demo import deck_text
from tests.browser.pages import Watch, serious_faults


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the deck's program, after a run."""
    arrays = {name: np.arange(20, dtype=np.int32) for name in "abcd"}
    program = avial_lab.compile(deck_text(), arrays=arrays, ranks=3, gpus=1, name="first light")
    program.run(check=True)
    return program.report(tmp_path_factory.mktemp("report") / "r.html")


@pytest.fixture
def offline(browser_context: BrowserContext) -> BrowserContext:
    browser_context.set_offline(True)
    return browser_context


@pytest.fixture
def opened(offline: BrowserContext, page: Page, report: Path) -> Page:
    page.goto(report.as_uri())
    return page


@pytest.fixture
def without_scripts(browser: Browser, watch: Watch, report: Path) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=False, offline=True)
    watch.follow(context)
    page = context.new_page()
    page.goto(report.as_uri())
    yield page
    context.close()
    assert watch.faults() == []


VIEWS = ("graph", "stepper", "timeline")


@pytest.mark.mpi
def test_views_take_the_place_of_their_figures(opened: Page, watch: Watch) -> None:
    for kind in VIEWS:
        view = opened.locator(f"[data-view={kind}]")
        expect(view).to_be_visible()
        expect(view.locator("xpath=..").locator("details.figure")).not_to_have_attribute("open", "")
    assert len(watch.requests) == 1, "the file itself"


@pytest.mark.mpi
def test_without_scripts_every_figure_is_there(without_scripts: Page) -> None:
    for kind in VIEWS:
        view = without_scripts.locator(f"[data-view={kind}]")
        expect(view).to_be_hidden()
        expect(view.locator("xpath=..").locator("details.figure > :nth-child(2)")).to_be_visible()
    expect(without_scripts.locator("#run")).to_contain_text("rank 2")
    expect(without_scripts.locator("#made")).to_contain_text("avial-lab run first-light.avial")


@pytest.mark.mpi
def test_the_policy_stops_what_is_not_ours(browser: Browser, report: Path) -> None:
    """As a hostile name would do it, had it become an element."""
    context = browser.new_context(offline=True)  # not watched: what it asks for is meant
    page = context.new_page()
    page.goto(report.as_uri())
    page.evaluate(
        """() => {
            window.stopped = [];
            document.addEventListener("securitypolicyviolation", event =>
                stopped.push(event.effectiveDirective));
            const script = document.createElement("script");
            script.textContent = "window.pwned = true";
            document.body.append(script);
            const image = new Image();
            image.src = "https://example.org/pixel.png";
            fetch("https://example.org/").catch(() => {});
        }"""
    )
    page.wait_for_function("window.stopped.length === 3")
    assert page.evaluate("stopped.sort()") == ["connect-src", "img-src", "script-src-elem"]
    assert page.evaluate("window.pwned") is None
    context.close()


@pytest.mark.quick("light-420")
@pytest.mark.mpi
@pytest.mark.parametrize(("scheme", "width"), [("dark", 1280), ("light", 420)])
def test_nobody_is_shut_out(opened: Page, scheme: str, width: int) -> None:
    """With everything unfolded."""
    opened.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    opened.set_viewport_size({"width": width, "height": 900})
    # Of long texts the beginning: there is nothing new in the rest, and axe looks at each word.
    opened.evaluate(
        """() => {
            document.querySelectorAll("pre").forEach(text =>
                text.replaceChildren(...[...text.childNodes].slice(0, 200)));
            document.querySelectorAll("details").forEach(each => { each.open = true; });
        }"""
    )
    assert serious_faults(opened) == []
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert opened.evaluate(overflow) == 0, "the page itself scrolls sideways"


@pytest.mark.mpi
def test_keys_go_from_section_to_section(opened: Page) -> None:
    heads = opened.locator("section > h2")
    opened.keyboard.press("j")
    expect(heads.first).to_be_focused()
    for _ in range(heads.count() + 3):
        opened.keyboard.press("j")
    expect(heads.last).to_be_focused()
    opened.keyboard.press("k")
    expect(heads.nth(-2)).to_be_focused()


@pytest.mark.mpi
def test_on_paper_the_figures_are_shown(opened: Page) -> None:
    opened.emulate_media(media="print")
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    for kind in VIEWS:
        view = opened.locator(f"[data-view={kind}]")
        expect(view).to_be_hidden()
        expect(view.locator("xpath=..").locator("details.figure > :nth-child(2)")).to_be_visible()
    opened.emulate_media(media="screen")
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(opened.locator("details.figure[open]")).to_have_count(0)
