"""Pictures to explore: each is a module of JavaScript with its style, and the plain data it draws.

Graphs, stages, traces -> JSON. `NAME.js` exports `mount(host, data, {ask, say})`, has no
dependencies and asks no other host for anything, so that a cell, JupyterLab's renderer and a
page of its own can all use it.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def source(kind: str) -> tuple[str, str]:
    """The JavaScript and the CSS of the view called `kind`; FileNotFoundError where there is
    none.
    """
    folder = files(__name__)
    script, style = (folder.joinpath(f"{kind}.{ending}") for ending in ("js", "css"))
    return script.read_text(encoding="utf-8"), style.read_text(encoding="utf-8")
