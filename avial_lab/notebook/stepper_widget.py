"""The stepper's view as an anywidget: nothing is fetched from anywhere.

A `Stepping` -> a widget whose messages it answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from avial_lab.notebook.display import View, show_view
from avial_lab.plot import views

if TYPE_CHECKING:
    from avial_lab.notebook.stepper import Stepping
    from avial_lab.program.program import Program

_SCRIPT, _STYLE = views.source("stepper")
_ASKING = Path(__file__).with_name("asking.js").read_text("utf-8")


class StepperWidget(anywidget.AnyWidget):
    """Steps through the stages of `versions[0]`, and of what was made of it by hand."""

    # One module: a browser has nowhere to import a second one from.
    _esm = _SCRIPT + _ASKING
    _css = _STYLE
    data = traitlets.Dict().tag(sync=True)

    def __init__(self, stepping: Stepping, stage: str | None = None) -> None:
        self.stepping = stepping
        super().__init__(data=stepping.data(at=stage))
        self.on_msg(self._receive)

    @property
    def versions(self) -> list[Program]:
        """The program, and what was made of it from an edited stage."""
        return self.stepping.versions

    def _repr_mimebundle_(self, **kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """With what is shown where the widget cannot be: in a notebook that was saved, or is not
        trusted.
        """
        shown: Any = super()._repr_mimebundle_(**kwargs)
        data, metadata = shown if isinstance(shown, tuple) else (shown or {}, {})
        bundle = show_view(View(self.versions[0], ("stages",), explored=False))
        kept = {kind: bundle[kind] for kind in ("text/html", "text/plain")}
        return {**data, **kept}, metadata

    def _receive(self, _: object, message: Mapping[str, Any], __: object) -> None:
        try:
            answer = self.stepping.answer(message["question"])
        except Exception as error:  # sent to the page, which waits for it; then as loud as any
            told = {"message": f"{type(error).__name__}: {error}", "hint": None}
            self.send({"id": message["id"], "answer": {"error": told}})
            raise
        self.send({"id": message["id"], "answer": answer})
