"""The sliders of a predicted run as a widget."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from avial_lab.core.errors import AvialError
from avial_lab.notebook.asking_widget import AskingWidget, script_and_style
from avial_lab.planning.what_if import WhatIf
from avial_lab.plot.views.what_if import answer_data, what_if_data


class WhatIfWidget(AskingWidget):
    """Answers for each change of the machine what the run would be."""

    _esm, _css = script_and_style("what_if")

    def __init__(self, asked: WhatIf, title: str) -> None:
        self.asked = asked
        super().__init__(what_if_data(asked, title))

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return answer_data(self.asked, question["values"])
        except AvialError as error:
            return {"error": {"message": error.message, "hint": error.hint}}

    def still(self) -> dict[str, str]:
        answer = self.data["answer"]
        words = f"{self.data['title']}: {'; '.join(answer['words'])}"
        html = f"<p>{escape(words)}</p>{answer['picture']}"
        return {"text/plain": words, "text/html": html}
