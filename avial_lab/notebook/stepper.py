"""Stepping through a program's stages in the page: what the view asks, and its answers.

Program -> a widget; a stage edited in it -> the program that follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from avial_lab.core.errors import AvialError
from avial_lab.plot.views.stepper import language_of, stepper_data, text_data
from avial_lab.program.program import Program

if TYPE_CHECKING:
    from avial_lab.notebook.stepper_widget import StepperWidget

Answer = dict[str, Any]


def step(program: Program, *, stage: str | None = None) -> StepperWidget:
    """The stage stepper of `program`, at `stage` first."""
    return Stepping(program).widget(stage)


class Stepping:
    """A program and what was made of it by hand: `versions` are the program as it was compiled,
    then one for each time somebody went on from an edited stage.

    `drafts` is what was typed and not gone on from, by version and stage (those of the first are
    the caller's, to be given again to the next stepper); `on_version` is called with every new
    version.
    """

    def __init__(
        self,
        program: Program,
        *,
        drafts: dict[str, str] | None = None,
        on_version: Callable[[Program], None] | None = None,
    ) -> None:
        self.versions = [program]
        self.drafts: list[dict[str, str]] = [{} if drafts is None else drafts]
        self._on_version = on_version

    def widget(self, stage: str | None = None) -> StepperWidget:
        try:
            from avial_lab.notebook.stepper_widget import StepperWidget
        except ImportError as error:
            hint = "pip install 'avial-lab[lab]'; %avial stages shows the stages without it"
            raise AvialError(
                f"the stepper needs the package anywidget: {error}", hint=hint
            ) from None
        return StepperWidget(self, stage)

    def data(self, version: int = 0, *, inside: bool = False, at: str | None = None) -> Answer:
        """What the view shows; without `inside` it is there at once."""
        program = self.versions[version]
        before, edited, _ = program.edited or (program, None, "")
        data = stepper_data(
            program.stages.values(),
            program.inside if inside else None,
            source=program.question.source.shown,
            cell=program.cell,
            at=at,
            edited=edited,
            unedited=before.stages.values(),
        )
        return data | {"drafts": dict(self.drafts[version])}

    def answer(self, question: Mapping[str, Any]) -> Answer:
        """What the view asks, answered; a mistake in what was typed is an answer too."""
        answers = {
            "text": self._text,
            "inside": self._inside,
            "resume": self._resume,
            "keep": self._keep,
        }
        try:
            return answers[question["want"]](question)
        except AvialError as error:
            return {"error": _error_answer(error, question.get("text"))}

    def _text(self, question: Mapping[str, Any]) -> Answer:
        program = self.versions[question["version"]]
        stage = program.stages[question["stage"]]
        number: int | None = question["pass"]
        if number is None:
            return text_data(stage.text, stage.language)
        inside = {each.name: each for each in program.inside.stages}
        text = inside[stage.name].passes[number].text or ""
        return text_data(text, language_of(text, stage.language))

    def _inside(self, question: Mapping[str, Any]) -> Answer:
        return {"data": self.data(question["version"], inside=True)}

    def _resume(self, question: Mapping[str, Any]) -> Answer:
        made = self.versions[question["version"]].resume(question["stage"], question["text"])
        self.versions.append(made)
        self.drafts.append({})
        if self._on_version is not None:
            self._on_version(made)  # which may give it a name
        number = len(self.versions) - 1
        return {"version": number, "data": self.data(number), "name": made.name}

    def _keep(self, question: Mapping[str, Any]) -> Answer:
        drafts = self.drafts[question["version"]]
        drafts.pop(question["stage"], None)
        if question["text"] is not None:
            drafts[question["stage"]] = question["text"]
        return {}


def _error_answer(error: AvialError, typed: str | None) -> Answer:
    """An error as the view shows it: at its line, where that is a line of what was typed."""
    span = error.span
    if span is None or span.text != typed:
        where = "" if span is None else f"\n{span.excerpt()}"
        return {"message": error.message + where, "hint": error.hint}
    return {
        "message": error.message,
        "hint": error.hint,
        "line": span.line,
        "column": span.column,
    }
