"""The catalogue of passes for people: as a table, one pass by itself, or as facts.

Catalogue -> text, JSON. Nothing is loaded for it but the catalogue: neither MLIR nor a pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from avial_lab.compiler.catalogue import CATALOGUE, rows
from avial_lab.compiler.pass_rows import Pipeline, Row, documentation
from avial_lab.core.errors import AvialError

_NAME = max(len(row.name) for row in rows())
_RUN, _LEAST = 24, 30
"""Widths of the second column, and the least of the last two, in characters."""

_HEAD = ("pass", "when it is run", "what it does", "why it is there")


def passes_text(width: int = 160) -> str:
    """Every pass in its order, stage by stage, in lines of about `width` characters."""
    each = max(_LEAST, (width - _NAME - _RUN - 3) // 2)
    widths = (_NAME, _RUN, each, each)
    lines = list(_cells(_HEAD, widths))
    for pipeline in CATALOGUE:
        lines += ["", f"{pipeline.stage}: {pipeline.title}", ""]
        for row in pipeline.rows:
            lines += _cells((row.name, _run(row), row.what, row.why), widths)
    return "\n".join(lines)


def pass_text(name: str) -> str:
    """One pass: the places where it runs, and its documentation with the IR before and after.

    AvialError where there is no pass of that name.
    """
    found = [(pipeline, row) for pipeline in CATALOGUE for row in pipeline.rows if row.name == name]
    if not found:
        near = get_close_matches(name, [row.name for row in rows()], n=1)
        hint = f"did you mean '{near[0]}'?" if near else "avial-lab passes lists all"
        raise AvialError(f"there is no pass '{name}'", hint=hint)
    lines = [name, ""]
    for pipeline, row in found:
        lines += [f"  {line}" for line in _place(pipeline, row)]
    row = found[0][1]
    if not row.is_ours:
        return "\n".join([*lines, "", f"One of MLIR's own: mlir-opt --help, under --{name}."])
    said = documentation(row.at)
    return "\n".join([*lines, "", said.module, "", said.cls])


def passes_facts() -> list[dict[str, Any]]:
    """Every row for another program to read, in its order."""
    return [
        {
            "stage": pipeline.stage,
            "pipeline": pipeline.title,
            "name": row.name,
            "ours": row.is_ours,
            "class": row.at or None,
            "optional": row.optional,
            "when": row.when or None,
            "sizes": {key: str(size) for key, size in row.sizes.items()},
            "what": row.what,
            "why": row.why,
        }
        for pipeline in CATALOGUE
        for row in pipeline.rows
    ]


def _run(row: Row) -> str:
    """Whether it can be left out, what of it can be chosen, and under which condition it is run."""
    words = ["optional"] if row.optional else []
    words += [f"sizes {', '.join(row.sizes)}"] if row.sizes else []
    words += [row.when] if row.when else []
    return "; ".join(words) or "always"


def _place(pipeline: Pipeline, row: Row) -> Iterator[str]:
    yield f"{pipeline.stage}: {pipeline.title}; {_run(row)}"
    yield f"  what: {row.what}"
    yield f"  why:  {row.why}"
    for key, size in row.sizes.items():
        yield f"  {key}: {size}"


def _cells(texts: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """The lines of one row of the table."""
    columns = [wrap(text, width) for text, width in zip(texts, widths, strict=True)]
    for parts in zip_longest(*columns, fillvalue=""):
        cells = (f"{part:{width}}" for part, width in zip(parts, widths, strict=True))
        yield " ".join(cells).rstrip()
