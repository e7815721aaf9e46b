"""A notebook as one file for people who have no Jupyter, or are to find the answers themselves.

Notebook -> a page of HTML that asks nothing of any other place: no script, no fonts from outside,
figures within, whoever wrote it (`sanitized.py`). Cells tagged `solution` are left out, or folded;
`student_copy` leaves them out of a notebook and takes its outputs away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert.exporters.html import HTMLExporter
from nbconvert.filters import Highlight2HTML
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from avial_lab.core.errors import AvialError, BindError
from avial_lab.core.words import escape
from avial_lab.notebook.sanitized import POLICY, sanitized, tame
from avial_lab.plot.page.lexers import MLIRLexer

SOLUTION = "solution"
"""The tag of a cell that the reader is to write himself first."""

_NOWHERE = ("require_js_url", "mathjax_url", "mermaid_js_url", "mermaid_layout_elk_js_url",
            "jquery_url", "jupyter_widgets_base_url", "widget_renderer_url")  # fmt: skip
"""What nbconvert would fetch from other hosts."""

_WIDGET = "application/vnd.jupyter.widget-view+json"

# nbconvert's page without its scripts; a solution is folded, and wide pictures scroll.
_TEMPLATE = """{%- extends 'lab/index.html.j2' -%}
{% block html_head_js %}
<meta http-equiv="Content-Security-Policy" content="POLICY">
<meta name="referrer" content="no-referrer">
{% endblock %}
{% block html_head_js_mathjax %}{% endblock %}
{% block html_head_js_mermaidjs %}{% endblock %}
{% block jupyter_widgets %}{% endblock %}
{% block html_head_css %}
<style>
body { max-width: 60rem; margin: 0 auto; padding: 1rem; }
figure img { max-width: 100%; height: auto; }
details.avial-solution > summary { cursor: pointer; padding: 4px 0 4px 64px;
  font-family: var(--jp-content-font-family); font-size: var(--jp-content-font-size1); }
</style>
{% endblock %}
{% block codecell %}
{%- if 'solution' in cell.metadata.get('tags', []) -%}
<details class="avial-solution"><summary>Solution</summary>{{ super() }}</details>
{%- else -%}{{ super() }}{%- endif -%}
{% endblock %}
""".replace("POLICY", POLICY)


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """The notebook in the file, or BindError that says what is wrong with it."""
    try:
        found = nbformat.read(path, as_version=4)
    except OSError as error:
        raise BindError(f"cannot read {path}: {error.strerror}") from None
    except Exception:  # whatever a hostile file makes nbformat raise
        raise BindError(f"{path} is not a notebook") from None
    if not all(map(_is_cell, found.cells)):
        raise BindError(f"{path} is not a notebook: a cell of it is neither code nor text")
    return found


def _is_cell(cell: nbformat.NotebookNode) -> bool:
    """nbformat lets the others pass, which Jupyter does not open."""
    tags = cell.metadata.get("tags", [])
    return cell.cell_type in ("code", "markdown", "raw") and isinstance(tags, list)


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run all cells, in place, as Jupyter would in `folder`; a cell tagged `raises-exception` may
    fail.
    """
    client = NotebookClient(notebook, timeout=None, resources={"metadata": {"path": str(folder)}})
    try:
        client.execute()
    except CellExecutionError as error:
        raise AvialError(
            f"a cell of the notebook failed with {error.ename}: {error.evalue}",
            hint="fix the cell, or tag it raises-exception if it is meant to fail",
        ) from None


def page(notebook: nbformat.NotebookNode, *, solutions: bool, name: str = "notebook") -> str:
    """The notebook as HTML; the same notebook gives the same page."""
    shown = _copy(notebook, solutions=solutions)
    for cell in shown.cells:
        if cell.cell_type == "code":
            cell.outputs = [plain for output in cell.outputs if (plain := _static(output))]
        else:
            cell.source = re.sub(r"(\]\([\w./-]+)\.ipynb\)", r"\1.html)", cell.source)
    tame(shown)
    shown.metadata.pop("widgets", None)
    shown.metadata.title = _title(shown.cells) or name
    exporter: Any = HTMLExporter(
        raw_template=_TEMPLATE,
        sanitize_html=True,
        filters={"highlight_code": _coloured},
        **dict.fromkeys(_NOWHERE, ""),
    )
    exporter.register_filter("clean_html", sanitized)
    html, _ = exporter.from_notebook_node(shown)
    return html


_MAGIC = re.compile(r"\s*%%avial(?!\S)[^\n]*\n?")
_PYTHON = Highlight2HTML(pygments_lexer="ipython3")


def _coloured(source: str, language: str | None = None, metadata: Any = None) -> str:  # noqa: ANN401
    """A cell's text in the classes of nbconvert's page: that of `%%avial` as a program, all others
    as Python.
    """
    magic = _MAGIC.match(source)
    if magic is None:
        said = (metadata or {}).get("magics_language", language)
        return _PYTHON(source, said if _is_known(said) else None)
    head, program = magic[0].rstrip("\n"), source[magic.end() :]
    formatter: Any = HtmlFormatter(nowrap=True)
    body = highlight(program, MLIRLexer(stripnl=False), formatter) if program else ""
    first = f'<span class="nt">{escape(head)}</span>\n'
    return f'<div class="highlight hl-avial"><pre><span></span>{first}{body}</pre></div>\n'


def _is_known(language: object) -> bool:
    """Whether Pygments has such a language: a notebook may call its own anything."""
    try:
        get_lexer_by_name(str(language))
    except ClassNotFound:
        return False
    return True


def student_copy(notebook: nbformat.NotebookNode, *, solutions: bool = False) -> str:
    """The notebook, ready to be worked on: without outputs, and with the solutions only if asked
    for.
    """
    copy = _copy(notebook, solutions=solutions)
    for cell in copy.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return nbformat.writes(copy) + "\n"


def has_outputs(notebook: nbformat.NotebookNode) -> bool:
    return any(cell.get("outputs") for cell in notebook.cells)


def _copy(notebook: nbformat.NotebookNode, *, solutions: bool) -> nbformat.NotebookNode:
    copy: nbformat.NotebookNode = nbformat.from_dict(notebook)
    copy.cells = [
        cell for cell in copy.cells if solutions or SOLUTION not in cell.metadata.get("tags", ())
    ]
    return copy


def _static(output: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    """The output without what needs a kernel; None where nothing else is in it.

    A widget's own text (`Stepper()`) is no picture of it: what it shows precedes it.
    """
    if output.get("data", {}).pop(_WIDGET, None) is None:
        return output
    shown = any(data for kind, data in output.data.items() if kind != "text/plain")
    return output if shown else None


def _title(cells: Iterable[nbformat.NotebookNode]) -> str:
    """The first heading."""
    found = (re.match(r"#+ (.+)", cell.source) for cell in cells if cell.cell_type == "markdown")
    return next((match.group(1) for match in found if match), "")
