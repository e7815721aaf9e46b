"""A person's session in JupyterLab, from the first notebook to a kernel that is gone.

Asserted is what stands in the page and what runs on the machine; every page is watched for errors
and for requests to other hosts (conftest.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable

import nbformat
import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from tests.browser.lab import Lab, Notebook
from tests.browser.pages import Watch, serious_faults

pytestmark = pytest.mark.mpi

FIRST_LIGHT = "00_first_light"
ENGINE = "avial_lab.runtime.engine"
OUTPUTS = ".jp-OutputArea-output .jp-RenderedHTMLCommon"
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

FOREVER = """avial.schedule %a, %b {
  %cpu = avial.target {arch = "cpu"}
  %t = avial.task %cpu, %a, %b {
    %k = arith.constant 3 : index
    scf.while : () -> () {
      %yes = arith.constant true
      scf.condition(%yes)
    } do {
      %x = memref.load %a[%k]
      memref.store %x, %b[%k]
      scf.yield
    }
  }
}"""


def images(notebook: Notebook, cell: int) -> Locator:
    """The figures of a cell that have a picture."""
    return notebook.output(cell).locator("figure img")


def assert_drawn(figure: Locator) -> None:
    """The picture is there, not only its frame, and is described."""
    size = figure.evaluate("image => image.decode().then(() => image.naturalWidth)")
    assert size > 100
    assert len(figure.get_attribute("alt") or "") > 20


def test_first_light_from_the_first_cell_to_a_reader(
    lab: Lab, open_notebook: Callable[..., Notebook]
) -> None:
    """Run, looked at, saved, and opened by somebody who does not trust it."""
    notebook = open_notebook(FIRST_LIGHT)
    notebook.run_all()
    expect(
        notebook.panel.locator("[data-mime-type='application/vnd.jupyter.stderr']")
    ).to_have_count(0)
    compiled, ran = (
        notebook.code_cell("%%avial -o first"),
        notebook.code_cell("%avial cluster start"),
    )
    assert images(notebook, compiled).count() == 2
    for figure in images(notebook, compiled).all():
        assert_drawn(figure)
    expect(notebook.output(ran)).to_contain_text("equal to the sequential reference")
    expect(notebook.output(notebook.code_cell("%avial cluster stop"))).to_contain_text("no cluster")
    lab.wait_for_none(ENGINE)

    assert serious_faults(notebook.page, OUTPUTS) == []
    notebook.theme("JupyterLab Dark")
    assert serious_faults(notebook.page, OUTPUTS) == []
    notebook.theme("JupyterLab Light")

    told = [figure.get_attribute("alt") for figure in notebook.panel.locator("figure img").all()]
    notebook.save()
    lab.stop_kernels()
    reader = open_notebook(changed(lab, notebook.path), ready=False)
    expect(reader.cells.first).to_be_visible()
    assert reader.page.evaluate("window.canary") is None, "this notebook is trusted"
    figures = reader.panel.locator("figure img")
    assert [figure.get_attribute("alt") for figure in figures.all()] == told
    for figure in figures.all():
        assert_drawn(figure)
    expect(reader.output(ran)).to_contain_text("equal to the sequential reference")


def changed(lab: Lab, path: str) -> str:
    """A copy that this server did not sign, with a script that runs where notebooks are trusted."""
    notebook = lab.read(path)
    canary = "<p>canary</p><script>window.canary = 'sings'</script>"
    output = nbformat.v4.new_output("display_data", {"text/html": canary})
    notebook.cells.append(nbformat.v4.new_code_cell("", outputs=[output]))
    copy = path.replace(".ipynb", "-copy.ipynb")
    nbformat.write(notebook, lab.folder / copy)
    return copy


def test_the_canary_sings_where_it_is_trusted(
    lab: Lab, open_notebook: Callable[..., Notebook]
) -> None:
    """What the test above relies on."""
    copy = changed(lab, lab.add("canary", ["1"]))
    open_notebook(copy)
    notebook = open_notebook(copy)
    notebook.command("notebook:trust")
    notebook.page.get_by_role("button", name="Trust").click()
    notebook.page.wait_for_function("window.canary === 'sings'")


def test_a_mistake_is_shown_at_its_place(open_notebook: Callable[..., Notebook]) -> None:
    cell = "%%avial --show=dag\n" + TWO_TASKS
    notebook = open_notebook("mistake", [SETUP, cell])
    notebook.run(0)
    notebook.run(1)
    expect(images(notebook, 1)).to_have_count(1)
    notebook.write(1, cell.replace("memref.load %b", "memref.laod %b"))
    told = notebook.run(1)
    expect(told).to_contain_text("ParseError: unknown operation 'memref.laod'")
    expect(told).to_contain_text(re.compile(r"In \[\d+\]:12:12"))
    expect(told).to_contain_text("did you mean memref.load?")
    expect(told).not_to_contain_text("Traceback")
    notebook.write(1, cell)
    notebook.run(1)
    expect(images(notebook, 1)).to_have_count(1)


def test_a_cluster_is_started_watched_and_stopped(
    lab: Lab, open_notebook: Callable[..., Notebook]
) -> None:
    notebook = open_notebook(
        "cluster",
        [
            SETUP,
            "%avial cluster start --cpu=2 --gpu=0",
            "%%avial -o two --run --check\n" + TWO_TASKS,
            "%avial cluster status",
            "%avial cluster stop",
        ],
    )
    notebook.run(0)
    expect(notebook.run(1)).to_contain_text("Started:")
    expect(notebook.run(2)).to_contain_text("equal to the sequential reference")
    expect(notebook.run(3)).to_contain_text("2")
    expect(notebook.run(4)).to_contain_text("no cluster is running")
    lab.wait_for_none("mpiexec")


def test_a_kernel_that_is_restarted_leaves_the_page_well(
    lab: Lab, open_notebook: Callable[..., Notebook]
) -> None:
    notebook = open_notebook(
        "restart", [SETUP, "%avial cluster start --cpu=2 --gpu=0", "%%avial --run\n" + TWO_TASKS]
    )
    notebook.run_all()
    figures = images(notebook, 2).count()
    assert figures
    notebook.restart()
    lab.wait_for_none("mpiexec")
    expect(images(notebook, 2)).to_have_count(figures)
    notebook.run(0)
    notebook.run(2)
    expect(images(notebook, 2)).to_have_count(figures)


def test_two_notebooks_at_once(
    lab: Lab, open_notebook: Callable[..., Notebook], browser_context: BrowserContext
) -> None:
    """Each has its own cluster; what one does, the other does not see."""
    cells = [
        SETUP,
        "%avial cluster start --cpu=2 --gpu=0",
        "%%avial -o two --run --check\n" + TWO_TASKS,
        "%avial cluster stop",
        "%avial cluster status",
    ]
    one = open_notebook("one", cells)
    other = open_notebook("other", cells, page=browser_context.new_page())
    for number in (0, 1):
        one.start(number)
        other.start(number)
        one.wait_for(number)
        other.wait_for(number)
    one.start(2)
    other.start(2)
    for notebook in (one, other):
        notebook.wait_for(2)
        expect(notebook.output(2)).to_contain_text("equal to the sequential reference")
    one.run(3)
    expect(other.run(4)).not_to_contain_text("no cluster is running")
    expect(other.run(2)).to_contain_text("equal to the sequential reference")


@pytest.mark.parametrize("how", ["the run's own ranks", "a cluster"])
def test_a_notebook_closed_in_the_middle_of_a_run_leaves_nothing(
    lab: Lab, open_notebook: Callable[..., Notebook], watch: Watch, how: str
) -> None:
    start = "%avial cluster start --cpu=2 --gpu=0" if how == "a cluster" else "pass"
    notebook = open_notebook("closed", [SETUP, start, "%%avial -q --run\n" + FOREVER])
    notebook.run(0)
    notebook.run(1)
    notebook.start(2)
    lab.wait_for_some(ENGINE)
    notebook.command("notebook:close-and-shutdown")
    notebook.page.get_by_role("button", name="Shut Down").click()
    lab.wait_for_none("ipykernel")
    lab.wait_for_none("avial_lab")
    lab.wait_for_none("mpiexec")
    watch.forgive("Canceled future for execute_request")
