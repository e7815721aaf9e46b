"""The view of a run that goes on, as an anywidget: nothing is fetched from anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from avial_lab.plot.views import source

_WATCHING = Path(__file__).with_name("watching.js").read_text("utf-8")


def _as_function(kind: str) -> str:
    """A view's module as the value `KIND`, its `mount`, so that another can follow it."""
    script = source(kind)[0].replace("export function mount", "function mount")
    return f"const {kind} = (() => {{\n{script}\nreturn mount;\n}})();\n"


class LiveWidget(anywidget.AnyWidget):
    """`state` is updated during the run; `data` does not change."""

    # One module: a browser has nowhere to import a second one from.
    _esm = _as_function("graph") + source("live")[0] + _WATCHING
    _css = source("graph")[1] + source("live")[1]
    data = traitlets.Dict().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)

    def __init__(self, data: dict[str, Any]) -> None:
        state = data.pop("state")
        super().__init__(data=data, state=state)

    def __repr__(self) -> str:
        """What a notebook shows that was saved while the run went on."""
        return "the view of a run, while it goes on"
