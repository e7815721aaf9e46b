"""The gallery of JupyterLab's side panel and launcher: every kernel and every lesson of this
repository, with a picture of its tasks, as a notebook that runs.

Kernels, notebooks -> `extensions/jupyterlab-avial/static/gallery.json`, which gallery.js shows:

    python -m avial_lab.notebook.gallery

    {version, sections: [{title, items: [{name, words, picture, cells}]}]}
    cells    as a notebook has them: [{cell_type, source, metadata}]
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import numpy as np

from avial_lab.benchmarks.kernel_suite import kernel_names, kernel_program, kernel_sentences
from avial_lab.planning.task_graph import Task, TaskGraph
from avial_lab.plot import svg
from avial_lab.plot.palette import look_of
from avial_lab.program.compilation import analyse

ROOT = Path(__file__).parents[2]
FILE = ROOT / "extensions" / "jupyterlab-avial" / "static" / "gallery.json"
SIZE = "SMALL"

WIDTH, ROW, MOST_ROWS, MOST_IN_ROW = 232.0, 30.0, 4, 3

Json = dict[str, Any]


def gallery() -> Json:
    """All that the gallery shows; the same sources give the same text."""
    return {
        "version": 1,
        "sections": [
            {"title": "Lessons", "items": list(_lessons())},
            {"title": "Kernels", "items": list(_kernels())},
        ],
    }


def _kernels() -> Iterator[Json]:
    sentences = kernel_sentences()
    for name in kernel_names():
        kernel = kernel_program(name, size=SIZE)
        cells = [
            _cell("markdown", f"# {name}\n\n{sentences[name]}"),
            _cell("code", f"%load_ext avial_lab\n%avial load {name} --size={SIZE} --arrays"),
            _cell("code", f"%%avial -o program --fn {kernel.function} --check\n{kernel.text}"),
            _cell("code", "%avial step program"),
        ]
        yield _item(name, sentences[name], _graph_of_kernel(name), cells)


def _graph_of_kernel(name: str) -> TaskGraph:
    kernel = kernel_program(name, size="MINI")
    return analyse(
        kernel.text, arrays=kernel.arrays, scalars=kernel.scalars, function=kernel.function
    ).graph


def _lessons() -> Iterator[Json]:
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = [
            {"cell_type": c.cell_type, "source": c.source, "metadata": dict(c.metadata)}
            for c in nbformat.read(path, as_version=4).cells
        ]
        first = re.match(r"# (.+)\n+((?:.+\n?)+)", cells[0]["source"])
        assert first is not None, f"{path} begins with no heading"
        paragraph = " ".join(first[2].split()).replace("**", "")
        sentence = re.split(r"(?<=[.?])\s", paragraph)[0]
        yield _item(f"{path.stem[:2]} {first[1]}", sentence, _graph_of(cells), cells)


def _graph_of(cells: list[Json]) -> TaskGraph:
    """The tasks of a lesson's first program; of one that writes none itself, what its heat equation
    becomes.
    """
    text = next((c["source"] for c in cells if c["source"].startswith("%%avial")), None)
    if text is None:
        return _graph_of_kernel("jacobi-2d")
    program = text.partition("\n")[2]
    names = dict.fromkeys(re.findall(r"%(\w+)", program.partition("{")[0]))
    element = np.float64 if "arith.mulf" in program else np.int32
    longest = max((int(end) for end in re.findall(r" to (\d+) \{", program)), default=24)
    shape = (48, 48) if "[%i, %j]" in program else (max(longest, 24),)
    arrays = {
        name: np.zeros(shape, element)
        for name in names
        if name != "steps" and "memref<" not in program.partition("{")[0]
    }
    scalars = {"steps": 6} if "steps" in names else {}
    return analyse(program, arrays=arrays, scalars=scalars).graph


def _item(name: str, words: str, graph: TaskGraph, cells: list[Json]) -> Json:
    return {"name": name, "words": words, "picture": thumbnail(graph), "cells": cells}


def _cell(kind: str, source: str) -> Json:
    return {"cell_type": kind, "source": source, "metadata": {}}


def thumbnail(graph: TaskGraph) -> str:
    """The first levels of a graph, a box for each task with what it reads and writes."""
    levels = graph.levels[:MOST_ROWS]
    place: dict[str, tuple[float, float]] = {}
    shapes: list[str] = []
    for row, tasks in enumerate(levels):
        shown = tasks[:MOST_IN_ROW]
        width = (WIDTH - 8) / len(shown) - 6
        for k, task in enumerate(shown):
            x, y = 4 + k * (width + 6), 4 + row * (ROW + 12)
            place[task.name] = x + width / 2, y
            shapes.append(_box(task, x, y, width))
    lines = [
        svg.line(place[e.before][0], place[e.before][1] + ROW, *place[e.after])
        for e in graph.dependencies
        if e.before in place and e.after in place
    ]
    height = 4 + len(levels) * (ROW + 12)
    left = len(graph.tasks) - len(place)
    if left:
        shapes.append(svg.text(6, height + 6, f"and {left} more", size=10, fill=svg.QUIET))
        height += 12
    drawn = "".join([*lines, *shapes])
    size = f'viewBox="0 0 {svg.number(WIDTH)} {svg.number(height)}"'
    font = f'font-family="{svg.FONT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>{drawn}</svg>'


def _box(task: Task, x: float, y: float, width: float) -> str:
    look = look_of(task.target)
    reads, writes = (
        ", ".join(dict.fromkeys(access.storage for access in accesses))
        for accesses in (task.reads, task.writes)
    )
    name = svg.shorten(task.name, width - 12, 10, bold=True)
    words = svg.shorten(f"{reads} → {writes}", width - 12, 9)
    return (
        svg.rectangle(x, y, width, ROW, fill=look.tint, stroke=look.colour, radius=4)
        + svg.text(x + 6, y + 12, name, size=10, bold=True)
        + svg.text(x + 6, y + 24, words, size=9, fill=svg.QUIET)
    )


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(gallery(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
