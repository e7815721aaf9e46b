"""Pictures to explore: each is a module of JavaScript with its style, and the plain data it draws.

Graphs, stages, traces -> JSON. `NAME.js` exports `mount(host, data, {ask, say})`, has no
dependencies and asks no other host for anything, so that a cell, JupyterLab's renderer and a
page of its own can all use it.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

_SHARED = 'import { element } from "./element.js";'
"""Of views as files, which a browser finds beside each other; in a page there is nothing beside."""


@cache
def source(kind: str) -> tuple[str, str]:
    """The JavaScript and the CSS of the view called `kind`; FileNotFoundError where there is
    none.
    """
    folder = files(__name__)
    names = (f"{kind}.js", f"{kind}.css", "element.js")
    script, style, shared = (folder.joinpath(name).read_text(encoding="utf-8") for name in names)
    return script.replace(_SHARED, shared.replace("export ", "")), style
