"""The harness itself notices what it is there to notice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.lab import Lab, Notebook
from tests.browser.pages import Watch, serious_faults


def watched(browser: Browser, html: str) -> Watch:
    watch = Watch()
    context = browser.new_context()
    watch.follow(context)
    page = context.new_page()
    page.set_content(html)
    page.evaluate("() => new Promise(done => setTimeout(done))")
    context.close()
    return watch


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<p>nothing</p>", ""),
        ("<script>console.error('a complaint')</script>", "a complaint"),
        ("<script>throw new Error('a mistake')</script>", "a mistake"),
        ("<img src='https://example.org/a.png' alt=''>", "https://example.org/a.png"),
    ],
    ids=["quiet", "console", "thrown", "request"],
)
def test_a_page_is_watched(browser: Browser, html: str, found: str) -> None:
    faults = watched(browser, html).faults()
    assert (faults == []) == (found == "")
    assert found in "\n".join(faults)


def test_a_socket_is_watched(browser: Browser) -> None:
    watch = Watch()
    context = browser.new_context()
    watch.follow(context)
    page = context.new_page()
    with page.expect_websocket():
        page.set_content("<script>new WebSocket('ws://example.org/socket')</script>")
    context.close()
    assert "asked another host: ws://example.org/socket" in watch.faults()


def test_what_is_meant_is_forgiven(browser: Browser) -> None:
    watch = watched(browser, "<script>console.error('a complaint')</script>")
    watch.forgive("complaint")
    assert watch.faults() == []


def test_axe_finds_a_serious_fault(page: Page) -> None:
    page.set_content("<main><p id='pale' style='color: #ccc; background: #fff'>pale</p></main>")
    assert "color-contrast" in "\n".join(serious_faults(page, "#pale"))


def test_axe_looks_where_it_is_told(page: Page) -> None:
    page.set_content("<main><p id='pale' style='color: #ccc'>pale</p><p id='dark'>dark</p></main>")
    assert serious_faults(page, "#dark") == []
    with pytest.raises(AssertionError, match="nothing to look at: #missing"):
        serious_faults(page, "#missing")


def test_a_cell_runs_in_lab(lab: Lab, open_notebook: Callable[..., Notebook]) -> None:
    notebook = open_notebook("harness", ["6 * 7", "raise ValueError('on purpose')"])
    expect(notebook.run(0)).to_contain_text("42")
    expect(notebook.run(1)).to_contain_text("ValueError: on purpose")
    notebook.write(0, "6 * 8")
    expect(notebook.run(0)).to_contain_text("48")
    notebook.start(0)
    notebook.wait_for(0)
    notebook.restart()
    notebook.save()
    assert lab.read(notebook.path).cells[0].source == "6 * 8"
    assert lab.processes("ipykernel")


@pytest.mark.slow
def test_all_cells_run(open_notebook: Callable[..., Notebook]) -> None:
    notebook = open_notebook(
        "harness", ["import threading", "threading.Event().wait(0.5)", "'last'"]
    )
    for _ in range(2):
        notebook.run_all()
        expect(notebook.output(2)).to_contain_text("last")
    notebook.theme("JupyterLab Dark")


def test_what_outlives_its_kernel_is_found(
    lab: Lab, open_notebook: Callable[..., Notebook]
) -> None:
    """A process that has lost its parent, and never was in its session."""
    start = "import subprocess; subprocess.Popen(['sleep', '31415'], start_new_session=True).pid"
    notebook = open_notebook("orphan", [start])
    notebook.run(0)
    notebook.close()
    lab.stop_kernels()
    lab.wait_for_none("ipykernel")
    (orphan,) = lab.processes("sleep 31415")
    with pytest.raises(AssertionError, match="still there after 0 s"):
        lab.wait_for_none("sleep 31415", timeout_s=0)
    orphan.kill()
    lab.wait_for_none("sleep 31415")
