"""The course: its notebooks, and running one as a reader would."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

WIDGET = "application/vnd.jupyter.widget-view+json"


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def run(
    path: Path, folder: Path, *, environment: Mapping[str, str] | None = None
) -> nbformat.NotebookNode:
    """The notebook with its outputs; `folder` is where it runs, so that nothing is left behind.

    A cell that fails ends it, unless it is tagged `raises-exception`.
    """
    notebook = read(path)
    client = NotebookClient(
        notebook, kernel_name="python3", timeout=180, resources={"metadata": {"path": str(folder)}}
    )
    return client.execute(env={**os.environ, **(environment or {})})


def tagged(notebook: nbformat.NotebookNode, tag: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", ())]


def said(cell: nbformat.NotebookNode) -> str:
    """All that a cell shows, as plain text."""
    return "".join(map(_text, cell.get("outputs", ())))


def shown(notebook: nbformat.NotebookNode) -> list[str]:
    """What each cell says, without what differs from run to run: durations, speeds, process ids,
    the events of a trace, and into how many outputs a busy machine divides what is printed.
    """
    return [
        "\n".join(filter(None, (_without_times(_text(o)) for o in cell.get("outputs", ()))))
        for cell in notebook.cells
    ]


def _text(output: nbformat.NotebookNode) -> str:
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}\n"
    data = output.get("data", {})
    if WIDGET in data:  # its text is a Python object's address
        return ""
    return output.get("text", "") or data.get("text/plain", "") + "\n"


def _without_times(text: str) -> str:
    """`text` of one output: a run's events end it, or the beginning of a comparison of a run with
    its prediction; and only a run that takes its time is shown while it runs.
    """
    text, *_ = re.split("^predicted [0-9]|Where the time went", text, maxsplit=1, flags=re.M)
    text = re.sub(r"^critical path: .*$", "", text, flags=re.M)  # of the times measured
    text = re.sub(
        r"[\d.]+ (ns|µs|ms|s|%|×|GFLOP/s|GB/s|runs)(?!\w)|pid \d+|cluster [0-9a-f]+,", "#", text
    )
    text = re.sub(r"^ *rank \d+: finished$|^\w+: #: .* done$", "", text, flags=re.M)
    return re.sub(r" +", " ", text).strip("\n")  # columns are as wide as their times
