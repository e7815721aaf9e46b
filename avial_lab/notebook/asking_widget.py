"""A view as an anywidget that answers what the view asks: nothing is fetched from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from avial_lab.plot import views

_ASKING = Path(__file__).with_name("asking.js").read_text("utf-8")


def script_and_style(kind: str) -> tuple[str, str]:
    """Of the view called `kind`, as one module: a browser has nowhere to import a second one
    from.
    """
    script, style = views.source(kind)
    return script + _ASKING, style


class AskingWidget(anywidget.AnyWidget):
    """`data` is what the view begins with."""

    data = traitlets.Dict().tag(sync=True)

    def __init__(self, data: dict[str, Any]) -> None:
        super().__init__(data=data)
        self.on_msg(self._receive)

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """To what the view asked; a user's mistake is an answer, too."""
        raise NotImplementedError

    def still(self) -> dict[str, str]:
        """The text and HTML of it where the widget cannot be."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """With what is shown where the widget cannot be: in a notebook that was saved, or is not
        trusted.
        """
        shown: Any = super()._repr_mimebundle_(**kwargs)
        data, metadata = shown if isinstance(shown, tuple) else (shown or {}, {})
        return {**data, **self.still()}, metadata

    def _receive(self, _: object, message: Mapping[str, Any], __: object) -> None:
        try:
            answer = self.answer(message["question"])
        except Exception as error:  # sent to the page, which waits for it; then as loud as any
            told = {"message": f"{type(error).__name__}: {error}", "hint": None}
            self.send({"id": message["id"], "answer": {"error": told}})
            raise
        self.send({"id": message["id"], "answer": answer})
