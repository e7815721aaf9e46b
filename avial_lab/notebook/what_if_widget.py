"""The sliders of a predicted run as an anywidget: nothing is fetched from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from avial_lab.core.errors import AvialError
from avial_lab.planning.what_if import WhatIf
from avial_lab.plot import views
from avial_lab.plot.views.what_if import answer_data, what_if_data

_SCRIPT, _STYLE = views.source("what_if")
_ASKING = Path(__file__).with_name("asking.js").read_text("utf-8")


class WhatIfWidget(anywidget.AnyWidget):
    """Answers for each change of the machine what the run would be."""

    # One module: a browser has nowhere to import a second one from.
    _esm = _SCRIPT + _ASKING
    _css = _STYLE
    data = traitlets.Dict().tag(sync=True)

    def __init__(self, asked: WhatIf, title: str) -> None:
        self.asked = asked
        super().__init__(data=what_if_data(asked, title))
        self.on_msg(self._receive)

    def _repr_mimebundle_(self, **kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """With what is shown where the widget cannot be: in a notebook that was saved, or is not
        trusted.
        """
        shown: Any = super()._repr_mimebundle_(**kwargs)
        data, metadata = shown if isinstance(shown, tuple) else (shown or {}, {})
        answer = self.data["answer"]
        words = f"{self.data['title']}: {'; '.join(answer['words'])}"
        kept = {"text/plain": words, "text/html": answer["picture"]}
        return {**data, **kept}, metadata

    def _receive(self, _: object, message: Mapping[str, Any], __: object) -> None:
        try:
            answer = answer_data(self.asked, message["question"]["values"])
        except AvialError as error:
            answer = {"error": {"message": error.message, "hint": error.hint}}
        except Exception as error:  # sent to the page, which waits for it; then as loud as any
            told = {"message": f"{type(error).__name__}: {error}", "hint": None}
            self.send({"id": message["id"], "answer": {"error": told}})
            raise
        self.send({"id": message["id"], "answer": answer})
