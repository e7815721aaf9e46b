"""The JupyterLab extension as a user meets it: colours, completion, help, mistakes, the panel."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.lab import Lab, Notebook
from tests.browser.pages import Watch, serious_faults

SETUP = """import numpy as np
a, b = np.arange(20.0), np.zeros(20)
%load_ext avial_lab"""

GOOD = """%%avial -o copy --show=dag
avial.schedule %a, %b {
  %cpu = avial.target {arch = "cpu"}
  %first = avial.task %cpu, %a, %b {
    scf.parallel %i = 0 to 20 {
      %x = memref.load %a[%i]
      memref.store %x, %b[%i]
    }
  }
}"""

BAD = GOOD.replace("%cpu, %a, %b {", "%cpu, %a {")

OPEN_MS = 60_000

Open = Callable[..., Notebook]


def panel_of(page: Page) -> Locator:
    page.get_by_role("tab", name="Avial").click()
    return page.get_by_role("region", name="Avial")


def text_with_colour(cell: Locator, text: str) -> str:
    """The colour that the first piece of exactly this text is drawn in."""
    piece = cell.locator(".cm-line span", has_text=re.compile(f"^{re.escape(text)}$")).first
    return piece.evaluate("span => getComputedStyle(span).color")


def test_colours_follow_the_first_line(open_notebook: Open) -> None:
    notebook = open_notebook("colours", [GOOD, "import os\nfor n in range(3): pass"])
    cell, python = notebook.cell(0), notebook.cell(1)
    colours = {text: text_with_colour(cell, text) for text in ("avial.task", '"cpu"', "to", "%a")}
    assert len(set(colours.values())) == 4
    assert text_with_colour(python, "import") == colours["to"]
    expect(python.locator(".cm-line span", has_text="os")).to_have_count(0)  # Python's own

    notebook.write(1, "for n in range(3): pass")
    expect(python.locator(".cm-line span", has_text="pass")).to_have_count(1)
    notebook.write(1, "%%avial\nfor n in range(3): pass")
    expect(python.locator(".cm-line span", has_text="pass")).to_have_count(0)
    notebook.write(1, "for n in range(3): pass")
    expect(python.locator(".cm-line span", has_text="pass")).to_have_count(1)


@pytest.mark.slow
def test_files_have_colours(lab: Lab, page: Page) -> None:
    (lab.folder / "deck.mlir").write_text("// one\nfunc.func @f(%a: memref<20xf32>) { return }\n")
    page.goto(lab.address("deck.mlir"))
    editor = page.locator(".jp-FileEditor .cm-content")
    expect(editor.locator("span", has_text="// one")).to_be_visible(timeout=OPEN_MS)
    expect(editor.locator("span", has_text=re.compile("^func.func$"))).to_be_visible()


def test_completion_and_help(open_notebook: Open, page: Page) -> None:
    notebook = open_notebook("words", [SETUP, "%%avial\navial.schedule %a {\n  %t = avial.ta"])
    notebook.run(0)
    notebook.cell(1).locator(".cm-line").last.click()
    page.keyboard.press("End")
    page.keyboard.press("Tab")
    words = page.locator(".jp-Completer-item")
    expect(words).to_have_text([re.compile("avial.target"), re.compile("avial.task")])
    page.keyboard.press("Enter")
    expect(notebook.cell(1).locator(".cm-line").last).to_have_text("  %t = avial.target")
    page.keyboard.press("Shift+Tab")
    expect(page.locator(".jp-Tooltip")).to_contain_text("A constraint on the device")


def test_a_mistake_is_marked_until_its_line_is_edited(open_notebook: Open, page: Page) -> None:
    notebook = open_notebook("mistake", [SETUP, "\n" + BAD])
    notebook.run(0)
    notebook.run(1)
    cell = notebook.cell(1)
    mark = cell.locator(".avial-mistake")
    expect(mark).to_have_text("%b")
    line = cell.locator(".cm-line", has=page.locator(".avial-mistake"))
    expect(line).to_have_text("      memref.store %x, %b[%i]")
    sign = cell.locator(".avial-mistake-sign")
    expect(sign).to_have_attribute("title", re.compile("task 'first' writes %b, which it does not"))
    mark.hover()
    card = page.locator(".avial-mistake-card")
    expect(card).to_contain_text("Hint: add %b to the buffers of 'first'")
    assert serious_faults(page, ".avial-mistake-card") == []

    cell.locator(".cm-line").nth(1).click()  # another line: the mark moves with its text
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(line).to_have_text("      memref.store %x, %b[%i]")
    line.click()
    page.keyboard.press("End")
    page.keyboard.type(" ")
    expect(mark).to_have_count(0)
    expect(sign).to_have_count(0)


@pytest.mark.slow
def test_a_mistake_goes_when_the_cell_runs_again(open_notebook: Open) -> None:
    without_b = SETUP.replace("a, b =", "a, c =")
    notebook = open_notebook("mended", [without_b, GOOD, "b = np.zeros(20)"])
    notebook.run(0)
    notebook.run(1)
    mark = notebook.cell(1).locator(".avial-mistake")
    expect(mark).to_have_text("%b")
    notebook.run(2)
    expect(mark).to_have_text("%b")
    notebook.run(1)
    expect(mark).to_have_count(0)


def test_panel_says_what_to_do(open_notebook: Open, page: Page) -> None:
    notebook = open_notebook("panel", ["1 + 1", SETUP])
    panel = panel_of(page)
    expect(panel.get_by_role("status")).to_contain_text("%load_ext avial_lab")
    notebook.run(0)
    expect(panel.get_by_role("status")).to_contain_text("%load_ext avial_lab")
    notebook.run(1)
    expect(panel.get_by_role("status")).to_be_hidden()
    expect(panel.get_by_label("Programs")).to_contain_text("None yet")
    notebook.restart()
    expect(panel.get_by_role("status")).to_contain_text("%load_ext avial_lab")


@pytest.mark.mpi
def test_panel_starts_and_stops_a_cluster(open_notebook: Open, page: Page, lab: Lab) -> None:
    notebook = open_notebook("cluster", [SETUP, GOOD])
    panel = panel_of(page)
    notebook.run(0)
    panel.get_by_label("CPU ranks").fill("1")
    panel.get_by_label("GPU ranks").fill("1")
    panel.get_by_label("GPU ranks").press("Enter")  # by the keyboard alone
    expect(panel.locator(".avial-state")).to_contain_text("ready", timeout=90_000)
    expect(panel.get_by_role("row")).to_have_count(4)  # the head, two CPUs, a GPU
    notebook.run(1)
    program = panel.get_by_role("button", name="copy")
    expect(program).to_be_visible()
    program.click()
    shown = page.locator(".avial-program")
    expect(shown.locator(".avial-view").first).to_contain_text("copy")
    expect(shown).to_contain_text("first")
    assert serious_faults(page, ".avial-panel") == []
    panel.get_by_role("button", name="Stop the cluster").click()
    expect(panel.locator(".avial-state")).to_contain_text("none is running", timeout=60_000)
    lab.wait_for_none("mpiexec")


@pytest.mark.quick("False")
@pytest.mark.parametrize("trusted", [False, True])
def test_pictures_without_a_kernel(lab: Lab, page: Page, watch: Watch, trusted: bool) -> None:
    """A notebook from elsewhere, its outputs as they are; one view is of a later version."""
    views = [
        {"kind": "html", "data": "<p>kept <b>bold</b></p><script>window.ran = true</script>"},
        {"kind": "unheard", "data": {}},
        {"kind": "../../panel", "data": {}},
        {"kind": "html", "data": "<p onclick='window.ran = true'>the last</p>"},
    ]
    bundle = {"version": 1, "title": "t", "views": views}
    path = lab.add(f"elsewhere-{trusted}", ["1"])
    notebook = nbformat.read(lab.folder / path, as_version=4)
    notebook.cells[0].metadata.trusted = trusted
    data = {"text/plain": "plain", "text/html": "<p>html</p>", "application/vnd.avial+json": bundle}
    notebook.cells[0].outputs = [nbformat.v4.new_output("display_data", data)]
    nbformat.write(notebook, lab.folder / path)
    watch.forgive("404")
    page.goto(lab.address(path))
    output = page.locator(".avial-output")
    expect(output.locator("b", has_text="bold")).to_be_visible(timeout=OPEN_MS)
    expect(output).to_contain_text("The view “unheard” cannot be shown here")
    expect(output).to_contain_text("The view “../../panel” cannot be shown here")
    output.get_by_text("the last").click()
    assert page.evaluate("window.ran") is None
    expect(page.locator(".jp-RenderedHTML", has_text="html")).to_have_count(0)


@pytest.mark.slow
def test_themes(open_notebook: Open, page: Page) -> None:
    notebook = open_notebook("dark", [SETUP, BAD, GOOD])
    panel = panel_of(page)
    for number in range(3):
        notebook.run(number)
    expect(panel.get_by_role("button", name="copy")).to_be_visible()
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        notebook.theme(theme)
        assert serious_faults(page, ".avial-panel") == []


@pytest.fixture
def disabled(lab: Lab) -> Iterator[None]:
    """As `jupyter labextension disable jupyterlab-avial`."""
    config = lab.folder.parent / "config" / "labconfig" / "page_config.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('{"disabledExtensions": {"jupyterlab-avial": true}}')
    yield
    config.unlink()


@pytest.mark.usefixtures("disabled")
def test_without_the_extension(open_notebook: Open, page: Page) -> None:
    """Outputs are the static figures, mistakes are in the text."""
    notebook = open_notebook("without", [SETUP, GOOD, BAD])
    notebook.run(0)
    expect(notebook.run(1).locator("img[alt]").first).to_be_visible()
    expect(notebook.run(2)).to_contain_text("memref.store %x, %b[%i]")
    expect(notebook.cell(2).locator(".avial-mistake")).to_have_count(0)
    expect(page.get_by_role("tab", name="Avial")).to_have_count(0)
