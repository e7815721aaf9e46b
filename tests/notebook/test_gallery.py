"""The gallery's file is what this repository has."""

from __future__ import annotations

import json
from typing import Any

import nbformat
import pytest

from avial_lab.benchmarks.kernel_suite import kernel_names, kernel_program, kernel_sentences
from avial_lab.notebook.gallery import FILE, ROOT, SIZE, gallery
from tests.notebook.conftest import Page

AGAIN = "make it again: .venv/bin/python -m avial_lab.notebook.gallery"


def items(title: str) -> dict[str, Any]:
    sections = json.loads(FILE.read_text())["sections"]
    return {
        item["name"]: item for each in sections if each["title"] == title for item in each["items"]
    }


def test_every_lesson_is_in_it_as_it_is() -> None:
    lessons = list(items("Lessons").values())
    paths = sorted((ROOT / "notebooks").glob("*.ipynb"))
    assert len(lessons) == len(paths)
    for lesson, path in zip(lessons, paths, strict=True):
        there = [cell.source for cell in nbformat.read(path, as_version=4).cells]
        assert [cell["source"] for cell in lesson["cells"]] == there, AGAIN


def test_every_kernel_is_in_it_as_it_is() -> None:
    kernels, sentences = items("Kernels"), kernel_sentences()
    assert tuple(kernels) == kernel_names(), AGAIN
    for name, item in kernels.items():
        assert item["words"] == sentences[name], AGAIN
        assert item["cells"][2]["source"].endswith(kernel_program(name, size=SIZE).text), AGAIN


@pytest.mark.slow
def test_its_pictures_are_those_of_the_programs() -> None:
    assert json.loads(FILE.read_text()) == gallery(), AGAIN


def test_arrays_alone_make_no_cell(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    cells: list[str] = []
    monkeypatch.setattr(page.shell, "set_next_input", cells.append)
    assert page.run("%avial load trisolv --size=MINI --arrays") is None
    assert cells == []
    assert "L" in page.names
