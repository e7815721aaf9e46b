"""A browser that is there, pages that are watched, and one JupyterLab for all tests.

`page` is a watched page; `bare_page(view, data)` one view alone; `lab` the server;
`open_notebook(name)` or `open_notebook(name, cells)` a notebook, ready to be run:

    def test_a_sum(open_notebook):
        notebook = open_notebook("mine", ["6 * 7"])
        expect(notebook.run(0)).to_contain_text("42")
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.lab import Lab, Notebook
from tests.browser.pages import Watch, mount_view

HERE = Path(__file__).parent
expect.set_options(timeout=30_000)  # milliseconds; a machine that does much else is slow, not wrong
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is in this folder needs a browser."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def executable() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the PATH")
    return found


@pytest.fixture(scope="module")
def browser(executable: str) -> Iterator[Browser]:
    """Of a module, not of the session: while it is there its event loop is the thread's, and
    `asyncio.run` in other tests would refuse to work.
    """
    as_root = os.name == "posix" and os.geteuid() == 0
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if as_root else []  # chromium refuses root in its sandbox
        running = playwright.chromium.launch(executable_path=executable, args=arguments)
        yield running
        running.close()


@pytest.fixture
def watch() -> Watch:
    """What the test's page asked for and complained of."""
    return Watch()


@pytest.fixture
def browser_context(browser: Browser, watch: Watch) -> Iterator[BrowserContext]:
    """Of this test alone: no cookie, no cache, no download of another. Fails the test on an error
    in the page and on a request to another host.
    """
    context = browser.new_context(
        accept_downloads=False, viewport={"width": 1280, "height": 900}, reduced_motion="reduce"
    )
    context.set_default_timeout(30_000)
    watch.follow(context)
    yield context
    context.close()
    assert watch.faults() == []


@pytest.fixture
def page(browser_context: BrowserContext, request: pytest.FixtureRequest) -> Iterator[Page]:
    """With AVIAL_SCREENSHOTS=FOLDER in the environment, what it showed last is kept there."""
    opened = browser_context.new_page()
    yield opened
    folder = os.environ.get("AVIAL_SCREENSHOTS")
    if folder is not None:
        name = re.sub(r"\W+", "-", request.node.name).strip("-")
        opened.screenshot(path=Path(folder) / f"{name}.png")


@pytest.fixture
def bare_page(page: Page) -> Callable[..., Page]:
    """`bare_page(view, data, ask=None)`: the page with that view mounted (see `mount_view`)."""

    def mount(view: str, data: Any, *, ask: Callable[[Any], Any] | None = None) -> Page:
        return mount_view(page, view, data, ask=ask)

    return mount


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory, executable: str) -> Iterator[Lab]:
    """One server for all; whatever it started is gone when it is. Not without a browser."""
    del executable
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed: pip install -e '.[lab]'")
    running = Lab(tmp_path_factory.mktemp("lab"))
    left = ["the server"]
    try:
        yield running
    finally:
        left = running.stop()
    assert left == []


@pytest.fixture
def open_notebook(lab: Lab, page: Page, watch: Watch) -> Iterator[Callable[..., Notebook]]:
    """`open_notebook("00_first_light")` for a copy of a notebook of the course,
    `open_notebook("mine", [text, …])` for one of these cells. Its kernel ends with the test.
    """

    # JupyterLab's own, where a kernel ends while it is asked whether it is being debugged, or for a
    # shell beside its own.
    watch.forgive("Could not restore the debugger state: Canceled future")
    watch.forgive("Canceled future for create_subshell_request message before replies were done")
    # anywidget's own (0.9.18 to 0.11): a page that takes over 2 seconds for a widget's module is
    # told so, and the widget shows its first state. Tests of the live view see whether it does.
    watch.forgive(r"uncaught: .*\[anywidget\] Failed to initialize model")

    def open_one(name: str, cells: Sequence[str] | None = None, *, page: Page = page) -> Notebook:
        path = name if name.endswith(".ipynb") else lab.add(name, cells)
        notebook = Notebook(lab, page, path)
        page.goto(lab.address(path))
        notebook.wait_until_ready()
        return notebook

    yield open_one
    lab.stop_kernels()
