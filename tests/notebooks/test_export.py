"""A notebook as one page: nothing is asked of another place, pictures and their words are there,
and the answers are not, unless they are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

from avial_lab.cli.main import main
from avial_lab.core.errors import BindError
from avial_lab.notebook import export
from avial_lab.plot import Film, film_figure
from tests.notebooks.course import NOTEBOOKS, WIDGET, read, tagged

MOST_BYTES = 2_000_000

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


class Page(HTMLParser):
    """What a browser would fetch, and what a person is told of the pictures."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.scripts = 0
        self.pictures: list[str | None] = []
        self.title = ""
        self._in = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self._in = tag
        self.scripts += tag == "script"
        if tag == "img":
            self.pictures.append(known.get("alt"))
        named = [known.get("src"), known.get("srcset"), known.get("data"), known.get("poster")]
        if tag == "link":
            named.append(known.get("href"))
        self.fetched += [name for name in named if name is not None]

    def handle_data(self, data: str) -> None:
        if self._in == "title":
            self.title += data.strip()
        if self._in == "style":
            self.fetched += re.findall(r"url\(['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)", data)

    @property
    def outside(self) -> list[str]:
        named = [name if isinstance(name, str) else "".join(name) for name in self.fetched]
        return [name for name in named if not name.startswith(("data:", "#"))]


def ran(path: Path) -> nbformat.NotebookNode:
    """The notebook with outputs like those of a run: a picture, a widget, an error."""
    notebook = read(path)
    picture = film_figure(Film([[[0.0, 1.0]], [[1.0, 0.0]]], title="seen"))  # type: ignore[list-item]
    output = nbformat.v4.new_output
    outputs = [
        output("display_data", {"text/html": picture, "text/plain": "seen"}),
        output("display_data", {WIDGET: {"model_id": "x"}, "text/plain": "a widget's address"}),
        output("error", ename="CheckError", evalue="1 of 1", traceback=["\x1b[31mCheckError"]),
    ]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = 1, outputs
    notebook.metadata.widgets = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    return notebook


@pytest.mark.quick("*-00_first_light", "*-09_planning", "*-12_gpu")
@each
@pytest.mark.parametrize("solutions", [False, True])
def test_the_page_asks_nothing_of_any_other_place(path: Path, solutions: bool) -> None:
    html = export.page(ran(path), solutions=solutions)
    page = Page(html)
    assert page.outside == []
    assert page.scripts == 0
    assert page.pictures
    assert all(page.pictures)
    assert "a widget's address" not in html
    assert len(html.encode()) < MOST_BYTES
    assert page.title == read(path).cells[0].source.splitlines()[0].removeprefix("# ")


@pytest.mark.quick("00_first_light", "02_*", "09_planning")
@each
def test_solutions_are_left_out_or_folded(path: Path) -> None:
    notebook = ran(path)
    (solution,) = tagged(notebook, "solution")
    mark = solution.source.splitlines()[0].removeprefix("# ")
    without, with_them = (export.page(notebook, solutions=asked) for asked in (False, True))
    assert mark in with_them
    assert "<summary>Solution</summary>" in with_them
    assert mark not in without
    assert (
        len(re.findall(r"jp-CodeCell ", without)) == len(re.findall(r"jp-CodeCell ", with_them)) - 1
    )
    assert tagged(notebook, "solution") == [solution]  # the notebook itself is as it was


@each
def test_a_students_copy_is_to_be_worked_on(path: Path) -> None:
    copy = nbformat.reads(export.student_copy(ran(path)), as_version=4)
    nbformat.validate(copy)
    assert tagged(copy, "solution") == []
    assert len(tagged(copy, "exercise")) == len(tagged(copy, "check")) == 1
    assert not export.has_outputs(copy)
    kept = export.student_copy(read(path), solutions=True)
    assert nbformat.reads(kept, as_version=4) == read(path)


def test_links_lead_to_pages() -> None:
    html = export.page(read(NOTEBOOKS[0]), solutions=False)
    assert 'href="01_the_dialect.html"' in html


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., Path]:
    """Writes a notebook of these cells; the last one is a solution."""

    def write(*sources: str) -> Path:
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        cells[-1].metadata.tags = ["solution"]
        path = tmp_path / "small.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        return path

    return write


def test_the_command_runs_it_and_writes_beside_it(
    small: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = small("print('6 times', 7, 'is', 6 * 7)", "print('the', 'answer')")
    stored = path.read_bytes()
    assert main(["export", str(path), "--execute"]) == 0
    page = path.with_suffix(".html")
    assert capsys.readouterr().out == f"{page}\n"
    assert "6 times 7 is 42" in page.read_text()
    assert "the answer" not in page.read_text()
    assert main(["export", str(path), "--execute", "--solutions", "-o", f"{page}2"]) == 0
    assert "the answer" in Path(f"{page}2").read_text()
    assert main(["export", str(path), "--to", "ipynb"]) == 0
    assert len(read(path.with_suffix(".student.ipynb")).cells) == 1
    assert path.read_bytes() == stored


def test_mistakes_are_told(
    small: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = small("1 / 0", "")
    assert main(["export", str(path), "--execute"]) == 1
    assert "a cell of the notebook failed with ZeroDivisionError" in capsys.readouterr().err
    assert not path.with_suffix(".html").exists()
    assert main(["export", str(path)]) == 0
    assert "has no outputs, so the page has no pictures" in capsys.readouterr().err
    assert main(["export", str(path), "-o", str(path)]) == 1
    assert "would overwrite the notebook" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "none.ipynb")]) == 1
    assert "cannot read" in capsys.readouterr().err
    (tmp_path / "text.ipynb").write_text("no notebook")
    assert main(["export", str(tmp_path / "text.ipynb")]) == 1
    assert "is not a notebook" in capsys.readouterr().err
    assert main(["export", str(path), "-o", str(tmp_path / "none" / "page.html")]) == 1
    assert "there is no folder" in capsys.readouterr().err


def test_cells_of_programs_are_coloured_as_programs() -> None:
    cells = [
        nbformat.v4.new_code_cell("%%avial -o <b>\n%x = arith.addi %y, %z // <i>"),
        nbformat.v4.new_code_cell("x = 1  # %%avial"),
    ]
    html = export.page(nbformat.v4.new_notebook(cells=cells), solutions=False)
    assert html.count("hl-avial") == 1
    assert '<span class="nt">%%avial -o &lt;b&gt;</span>' in html
    assert '<span class="nf">arith.addi</span>' in html
    assert '<span class="c1">// &lt;i&gt;</span>' in html
    assert '<span class="c1"># %%avial</span>' in html


_CELLS = '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": '


@pytest.mark.parametrize(
    "text",
    [
        "[]", "null", "[" * 100_000, _CELLS + "3}",
        '{"nbformat": "x", "metadata": {}, "cells": []}',
        '{"nbformat": 99, "nbformat_minor": 0, "metadata": {}, "cells": []}',
        '{"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": 3}',
        _CELLS + '[{"cell_type": "x", "metadata": {}, "source": "", "id": "a"}]}',
        _CELLS + '[{"cell_type": "raw", "metadata": {"tags": 3}, "source": "", "id": "a"}]}',
    ],
    ids=lambda text: text[-30:],
)  # fmt: skip
def test_json_that_is_no_notebook(text: str, tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(text)
    with pytest.raises(BindError, match="is not a notebook"):
        export.read_notebook(path)
