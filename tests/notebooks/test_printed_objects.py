"""In a notebook the last line of a cell shows the picture of whatever it is: a real kernel."""

from __future__ import annotations

import nbformat
import pytest
from nbclient import NotebookClient

SETUP = '''
%load_ext avial_lab
import numpy as np, avial_lab
from avial_lab.lessons.demo import deck_text
arrays = {name: np.zeros(20, np.int32) for name in "abcd"}
deck = avial_lab.compile(deck_text(), arrays=arrays, ranks=3, cell="deck.avial", name="deck")
deck.run(avial_lab.OneProcess("for this test", deck.schedule.topology))
x, y = np.zeros(40), np.zeros(40)
loops = avial_lab.compile("""func.func @copy(%x: memref<40xf64>, %y: memref<40xf64>) {
  affine.for %i = 0 to 40 {
    %v = affine.load %x[%i] : memref<40xf64>
    affine.store %v, %y[%i] : memref<40xf64>
  }
  return
}""", arrays={"x": x, "y": y}, ranks=2, cell="copy.mlir", name="copy")
'''

PICTURES = {
    "deck": "<figure",
    "deck.graph": "<figure",
    "deck.schedule": "<figure",
    "avial_lab.analyse(deck_text(), arrays=arrays)": "<figure",
    "loops.plan": "<figure",
    "loops.nests[0]": "<figure",
    "loops.explain()": "<table",
    "deck.stages": "<table",
    "deck.stages['mpi']": "<details",
    "deck.schedule.topology": "<table",
    "deck.binary": "<pre>binary ",
    "deck.binary.manifest": "<pre>3 ranks",
    "avial_lab.OneProcess('no MPI', deck.schedule.topology)": "<pre>no ranks",
}

LINES = {
    "deck.graph.tasks[0]": "<Task task1: for cpu, reads a[0:20], b[0:20], writes c[0:20]>",
    "deck.graph.tasks[0].reads[0].region": "(Box[0:20],)",
    "deck.graph.tasks[0].span": "<CellSpan deck.avial:4:3>",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What each last line shows, as a MIME bundle."""
    cells = [nbformat.v4.new_code_cell(text) for text in (SETUP, *PICTURES, *LINES)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    folder = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
    client = NotebookClient(notebook, kernel_name="python3", timeout=180, resources=folder)
    executed = client.execute().cells[1:]
    return {cell.source: cell.outputs[-1].data for cell in executed}


@pytest.mark.parametrize("expression", PICTURES)
def test_the_last_line_shows_it(expression: str, outputs: dict[str, dict[str, str]]) -> None:
    assert PICTURES[expression] in outputs[expression]["text/html"]
    assert " object at 0x" not in outputs[expression]["text/plain"]


@pytest.mark.parametrize("expression", LINES)
def test_its_parts_are_a_line(expression: str, outputs: dict[str, dict[str, str]]) -> None:
    assert outputs[expression]["text/plain"] == LINES[expression]
