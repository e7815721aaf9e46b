"""The stepper's view as a widget.

A `Stepping` -> a widget whose messages it answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from avial_lab.notebook.asking_widget import AskingWidget, script_and_style
from avial_lab.notebook.display import View, show_view

if TYPE_CHECKING:
    from avial_lab.notebook.stepper import Stepping
    from avial_lab.program.program import Program


class StepperWidget(AskingWidget):
    """Steps through the stages of `versions[0]`, and of what was made of it by hand."""

    _esm, _css = script_and_style("stepper")

    def __init__(self, stepping: Stepping, stage: str | None = None) -> None:
        self.stepping = stepping
        super().__init__(stepping.data(at=stage))

    @property
    def versions(self) -> list[Program]:
        """The program, and what was made of it from an edited stage."""
        return self.stepping.versions

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        return self.stepping.answer(question)

    def still(self) -> dict[str, str]:
        bundle = show_view(View(self.versions[0], ("stages",), explored=False))
        return {kind: bundle[kind] for kind in ("text/html", "text/plain")}
