"""Every notebook runs from top to bottom, in a kernel of its own, without a word on stderr."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


SENSIBLE = {
    "00_first_light": ("task1", "equal to the sequential reference", "no cluster is running"),
    "04_drop_in": (
        "divided over the ranks",
        "rod[i - 1] is written by an earlier iteration of t: line 17",
        "160 bytes predicted, and sent; equal to the sequential reference",
        "in order on one rank",
        "counted in the run and as planned",
        "no cluster is running",
    ),
}
"""What a notebook has to say."""


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook with its outputs; `folder` is where it runs, so that nothing is left behind."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, kernel_name="python3", timeout=180, resources={"metadata": {"path": str(folder)}}
    )
    return client.execute()


def texts(notebook: nbformat.NotebookNode) -> Iterator[str]:
    """What the cells say, as plain text."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            yield output.get("text", "") or output.get("data", {}).get("text/plain", "")


def without_times(text: str) -> str:
    """`text` without what differs from run to run: durations, process ids, the trace's events."""
    told, _, _ = text.partition("from first start to last end")
    return re.sub(r"[\d.]+ (ns|µs|ms|s)\b|pid \d+", "#", told)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_stored_without_outputs(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


@pytest.mark.mpi
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_and_says_the_same_twice(path: Path, tmp_path: Path) -> None:
    first = run(path, tmp_path)
    for cell in first.cells:
        for output in cell.get("outputs", ()):
            assert output.get("name") != "stderr", output
    for sensible in SENSIBLE[path.stem]:
        assert sensible in "\n".join(texts(first)), sensible
    assert os.listdir(tmp_path) == []
    again = run(path, tmp_path)
    assert list(map(without_times, texts(again))) == list(map(without_times, texts(first)))
