"""A person's session in JupyterLab, from the first notebook to a kernel that is gone.

Asserted is what stands in the page and what runs on the machine; every page is watched for errors
and for requests to other hosts (conftest.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from avial_lab.notebook.export import page
from tests.browser.lab import Lab, Notebook
from tests.browser.pages import serious_faults

pytestmark = pytest.mark.mpi

FIRST_LIGHT = "00_first_light"
EXPLORED = "application/vnd.avial+json"
ENGINE = "avial_lab.runtime.rank.engine"
OUTPUTS = ".jp-OutputArea-output > *"
"""What our cells show, without JupyterLab's own frame."""

SETUP = """%load_ext avial_lab
import numpy as np
a, b, c, d = (np.arange(20, dtype=np.int32) for _ in range(4))"""

TWO_TASKS = """avial.schedule %a, %b, %c {
  %cpu = avial.target {arch = "cpu"}
  %first = avial.task %cpu, %a, %b {
    scf.parallel %i = 0 to 20 {
      %x = memref.load %a[%i]
      memref.store %x, %b[%i]
    }
  }
  %second = avial.task %cpu, %b, %c {
    scf.parallel %i = 0 to 20 {
      %x = memref.load %b[%i]
      memref.store %x, %c[%i]
    }
  }
}"""

ENDLESS = """avial.schedule %a, %b, %c {
  %cpu = avial.target {arch = "cpu"}
  %quick = avial.task %cpu, %a, %b {
    scf.parallel %i = 0 to 20 {
      %x = memref.load %a[%i]
      memref.store %x, %b[%i]
    }
  }
  %endless = avial.task %cpu, %b, %c {
    %k = arith.constant 3 : index
    scf.while : () -> () {
      %yes = arith.constant true
      scf.condition(%yes)
    } do {
      %x = memref.load %b[%k]
      memref.store %x, %c[%k]
      scf.yield
    }
  }
}"""

START = "%avial cluster start --cpu=2 --gpu=0"
EQUAL = "equal to the sequential reference"

Open = Callable[..., Notebook]


def graph(notebook: Notebook, cell: int) -> Locator:
    """The task graph to explore, in a cell's output."""
    return notebook.output(cell).locator(".avial-graph")


def task(notebook: Notebook, cell: int, name: str) -> Locator:
    return graph(notebook, cell).get_by_role("button", name=re.compile(rf"^{name},"))


def pictures(notebook: Notebook) -> Locator:
    return notebook.panel.locator("figure img")


def assert_drawn(picture: Locator) -> None:
    """It is there, not only its frame, and is described."""
    size = picture.evaluate("image => image.decode().then(() => image.naturalWidth)")
    assert size > 100
    assert len(picture.get_attribute("alt") or "") > 20


def test_first_light_from_the_first_cell_to_a_stranger(
    lab: Lab, open_notebook: Open, tmp_path: Path
) -> None:
    """Run, looked at in both themes, saved, and opened by somebody who does not trust it, with our
    extension and without, and who has no Jupyter.
    """
    notebook = open_notebook(FIRST_LIGHT)
    compiled, ran = notebook.code_cell("%%avial -o first"), notebook.code_cell("%avial cluster")
    notebook.run_all()
    expect(graph(notebook, compiled)).to_contain_text("3 tasks in 2 levels")
    expect(notebook.output(ran)).to_contain_text(EQUAL)
    expect(notebook.output(ran).locator(".avial-timeline")).to_be_visible()
    lab.wait_for_none(ENGINE)

    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        notebook.theme(theme)
        assert serious_faults(notebook.page, OUTPUTS) == [], theme
    notebook.save()
    views = notebook.panel.locator(".avial-graph, .avial-timeline").count()
    stranger = open_notebook(copy_of(lab, notebook.path))
    expect(stranger.panel.locator(".avial-graph, .avial-timeline")).to_have_count(views)
    assert stranger.page.evaluate("window.canary") is None, "this notebook is trusted"
    expect(task(stranger, compiled, "task3")).to_be_visible()

    elsewhere = open_notebook(copy_of(lab, notebook.path, with_views=False))
    expect(pictures(elsewhere)).not_to_have_count(0)
    assert elsewhere.page.evaluate("window.canary") is None, "this notebook is trusted"
    for picture in pictures(elsewhere).all():
        assert_drawn(picture)
    expect(elsewhere.output(ran)).to_contain_text(EQUAL)

    exported = tmp_path / "first_light.html"
    exported.write_text(page(lab.read(notebook.path), solutions=False))
    notebook.page.goto(exported.as_uri())
    expect(notebook.page.locator("figure img")).not_to_have_count(0)
    for picture in notebook.page.locator("figure img").all():
        assert_drawn(picture)
    assert serious_faults(notebook.page, "figure", "details") == []


def copy_of(lab: Lab, path: str, *, with_views: bool = True) -> str:
    """A notebook that this server did not sign, with a script that runs where it is trusted; its
    figures as our extension shows them, or as they are without it.
    """
    notebook = lab.read(path)
    if not with_views:
        for cell in notebook.cells:
            for output in cell.get("outputs", ()):
                output.get("data", {}).pop(EXPLORED, None)
    canary = "<p>canary</p><script>window.canary = 'sings'</script>"
    output = nbformat.v4.new_output("display_data", {"text/html": canary})
    notebook.cells.append(nbformat.v4.new_code_cell("", outputs=[output]))
    copy = path.replace(".ipynb", f"-{with_views}.ipynb")
    nbformat.write(notebook, lab.folder / copy)
    return copy


def test_the_canary_sings_where_it_is_trusted(lab: Lab, open_notebook: Open) -> None:
    """What the test above relies on."""
    notebook = open_notebook(copy_of(lab, lab.add("canary", ["1"])))
    expect(notebook.panel).to_contain_text("canary")
    assert notebook.page.evaluate("window.canary") is None
    notebook.command("notebook:trust", wait=False)
    notebook.page.get_by_role("button", name="Trust").click()
    notebook.page.wait_for_function("window.canary === 'sings'")


@pytest.mark.slow
def test_an_edge_says_why_it_is_there(open_notebook: Open) -> None:
    notebook = open_notebook("edge", [SETUP, "%%avial --show=dag\n" + TWO_TASKS])
    notebook.run_all()
    details = graph(notebook, 1).get_by_role("complementary", name="details")
    # In the middle of its line, as one points; the middle of its box may be beside it.
    graph(notebook, 1).locator(".avial-picture .avial-edge").scroll_into_view_if_needed()
    x, y = (
        graph(notebook, 1)
        .locator(".avial-picture .avial-stroke")
        .evaluate(
            """path => {
            const { x, y } = path.getPointAtLength(path.getTotalLength() / 4);
            const at = new DOMPoint(x, y).matrixTransform(path.getScreenCTM());
            return [at.x, at.y];
        }"""
        )
    )
    notebook.page.mouse.move(x, y)
    expect(details).to_contain_text("RAW")
    expect(details).to_contain_text("[0:20]")
    notebook.page.mouse.move(0, 0)
    expect(details).not_to_contain_text("[0:20]")


def test_a_program_is_looked_at_by_keyboard_alone(open_notebook: Open) -> None:
    """Into the graph, from task to task; into the stepper, from stage to stage."""
    notebook = open_notebook(
        "keys", [SETUP, "%%avial -o two --show=dag\n" + TWO_TASKS, "%avial step two"]
    )
    keys = notebook.page.keyboard
    notebook.select(0)
    for number in range(3):
        keys.press("Shift+Enter")
        notebook.wait_for(number)
    area = graph(notebook, 1).get_by_role("region", name=re.compile("arrow keys"))
    expect(area).to_be_visible()
    notebook.select(1)
    tab_to(notebook, area)
    keys.press("ArrowDown")
    expect(task(notebook, 1, "first")).to_be_focused()
    keys.press("ArrowDown")
    expect(task(notebook, 1, "second")).to_be_focused()
    keys.press("Enter")
    expect(task(notebook, 1, "second")).to_have_attribute("aria-pressed", "true")

    stepper = notebook.output(2).locator(".avial-stepper")
    heading = stepper.locator(".avial-heading")
    expect(heading).to_contain_text("avial")
    tab_to(notebook, stepper.get_by_role("listbox", name="the text of this step"))
    for stage in ("placed", "mpi"):
        keys.press("ArrowRight")
        expect(heading).to_contain_text(stage)
    keys.press("ArrowLeft")
    expect(heading).to_contain_text("placed")
    assert serious_faults(notebook.page, ".avial-stepper") == []


def tab_to(notebook: Notebook, place: Locator) -> None:
    """By Tab alone, and not without end."""
    for _ in range(60):
        if place.evaluate("element => element === document.activeElement"):
            return
        notebook.page.keyboard.press("Tab")
    raise AssertionError("the Tab key does not lead there")


@pytest.mark.slow
def test_a_mistake_is_shown_at_its_place(open_notebook: Open) -> None:
    cell = "%%avial --show=dag\n" + TWO_TASKS
    notebook = open_notebook("mistake", [SETUP, cell])
    notebook.run_all()
    expect(graph(notebook, 1)).to_be_visible()
    notebook.write(1, cell.replace("memref.load %b", "memref.laod %b"))
    told = notebook.run(1)
    expect(told).to_contain_text("ParseError: unknown operation 'memref.laod'")
    expect(told).to_contain_text(re.compile(r"In \[\d+\]:12:12"))
    expect(told).to_contain_text("did you mean memref.load?")
    expect(told).not_to_contain_text("Traceback")
    expect(notebook.cell(1).locator(".cm-content .avial-mistake")).to_have_text("memref.laod")
    assert serious_faults(notebook.page, ".cm-content .avial-mistake", ".avial-mistakes") == []
    notebook.write(1, cell)
    notebook.run(1)
    expect(graph(notebook, 1)).to_be_visible()
    expect(notebook.cell(1).locator(".avial-mistake")).to_have_count(0)


def test_a_run_is_watched_stopped_and_followed_by_another(lab: Lab, open_notebook: Open) -> None:
    notebook = open_notebook(
        "watched",
        [
            SETUP,
            START,
            "%%avial -q -o endless\n" + ENDLESS,
            "%avial run endless",
            "%%avial --run --check\n" + TWO_TASKS,
            "%avial cluster stop",
        ],
    )
    for number in range(3):
        notebook.run(number)
    expect(notebook.output(1)).to_contain_text("Started:")
    notebook.start(3)
    expect(task(notebook, 3, "quick")).to_have_accessible_name(re.compile("done"))
    expect(task(notebook, 3, "endless")).to_have_accessible_name(re.compile("running"))
    expect(notebook.output(3)).to_contain_text("1 of 2 tasks done; running: endless")
    notebook.page.wait_for_function(
        "() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'busy'"
    )  # also once the page's own messages have been answered beside the run
    assert serious_faults(notebook.page, ".avial-live") == []
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_for(3)
    expect(notebook.output(3)).to_contain_text("KeyboardInterrupt: the run was stopped")
    expect(notebook.output(3).locator(".avial-live")).to_have_count(0)  # a figure has its place
    assert_drawn(notebook.output(3).locator("figure img"))
    expect(notebook.run(4)).to_contain_text(EQUAL)
    expect(notebook.run(5)).to_contain_text("the cluster is stopped")
    lab.wait_for_none("mpiexec")
    lab.wait_for_none("ipyparallel")


@pytest.mark.slow
def test_a_restart_leaves_the_page_well_and_the_cluster_to_be_found(
    lab: Lab, open_notebook: Open
) -> None:
    notebook = open_notebook(
        "restart",
        [
            SETUP,
            START,
            "%%avial -o two --run\n" + TWO_TASKS,
            "%avial step two",
            "%avial cluster connect",
        ],
    )
    for number in range(4):
        notebook.run(number)
    stepper = notebook.output(3).locator(".avial-stepper")
    expect(stepper).to_be_visible()
    notebook.restart()
    expect(graph(notebook, 2)).to_be_visible()
    expect(notebook.output(3)).to_contain_text("the LLVM dialect")  # the stages, as text
    notebook.run(0)
    expect(notebook.run(4)).to_contain_text("2 engines")
    notebook.run(2)
    expect(graph(notebook, 2)).to_be_visible()
    lab.stop_kernels()
    lab.wait_for_none("ipyparallel")


@pytest.mark.slow
def test_two_notebooks_at_once(open_notebook: Open, browser_context: BrowserContext) -> None:
    """Each has its own cluster; what one does, the other does not see."""
    cells = [
        SETUP,
        START,
        "%%avial -o two --run --check\n" + TWO_TASKS,
        "%avial cluster stop",
        "%avial cluster status",
    ]
    both = [
        open_notebook("one", cells),
        open_notebook("other", cells, page=browser_context.new_page()),
    ]
    for number in range(3):
        for notebook in both:
            notebook.start(number)
        for notebook in both:
            notebook.wait_for(number)
    for notebook in both:
        expect(notebook.output(1)).to_contain_text("cluster of 2 engines, ready")
        expect(notebook.output(2)).to_contain_text(EQUAL)
    one, other = both
    one.run(3)
    expect(one.run(4)).to_contain_text("no cluster is running")
    expect(other.run(4)).to_contain_text("2 engines")
    expect(other.run(2)).to_contain_text(EQUAL)


@pytest.mark.quick("its own ranks")
@pytest.mark.parametrize("start", ["pass", START], ids=["its own ranks", "a cluster"])
def test_a_notebook_closed_in_the_middle_of_a_run_leaves_nothing(
    lab: Lab, open_notebook: Open, start: str
) -> None:
    notebook = open_notebook("closed", [SETUP, start, "%%avial -o endless --run\n" + ENDLESS])
    notebook.run(0)
    notebook.run(1)
    notebook.start(2)
    expect(task(notebook, 2, "endless")).to_have_accessible_name(re.compile("running"))
    assert lab.processes("mpiexec")
    notebook.close()
    lab.stop_kernels()
    lab.wait_for_none("ipykernel")
    lab.wait_for_none("mpiexec")
    lab.wait_for_none("avial_lab")
    lab.wait_for_none("ipyparallel")
