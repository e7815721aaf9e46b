"""The stepper's answers, its widget, and `%avial step`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from avial_lab.artifact.stages import Inside, PassStep, Stage, StageInside
from avial_lab.core.errors import CellSpan, VerifyError
from avial_lab.notebook.magics import AvialMagics
from avial_lab.notebook.stepper import Stepping, step
from avial_lab.program.program import Program
from tests.notebook.conftest import Page, recorded_program

pytest.importorskip("anywidget", reason="the page's widgets need anywidget: the extra `lab`")

INSIDE = Inside(
    (
        StageInside("avial", ((2,),)),
        StageInside("ptx", (), (PassStep("fold", "", 0.1, 1, 1, "after fold\n"),)),
    )
)


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands for the compiler's process: a wrong text is refused at its second line."""

    def resume(program: Program, stage: str, text: str) -> Program:
        if "wrong" in text:
            where = CellSpan("edited ptx", text, 2, 5)
            raise VerifyError("this is wrong", span=where, hint="do it right")
        made = recorded_program(program.name)
        made.edited = (program, stage, text)
        return made

    monkeypatch.setattr(Program, "inside", INSIDE)
    monkeypatch.setattr(Program, "resume", resume, raising=False)


@pytest.fixture
def stepping(program: Program) -> Stepping:
    return Stepping(program)


def test_texts_are_answered(stepping: Stepping) -> None:
    question: dict[str, Any] = {"want": "text", "version": 0, "stage": "ptx", "pass": None}
    whole = stepping.answer(question)
    assert whole["lines"] == [".target sm_90"]
    assert whole["text"] == [0, 1] * 500
    assert stepping.answer(question | {"pass": 0})["lines"] == ["after fold"]


def test_what_stages_are_made_of_is_asked_for(stepping: Stepping) -> None:
    assert not stepping.data()["inside"]
    data = stepping.answer({"want": "inside", "version": 0})["data"]
    assert data["inside"]
    assert [each["name"] for each in data["stages"][1]["passes"]] == ["fold"]
    assert data["source"]["name"] == "In [1]"


def test_going_on_from_an_edited_stage(program: Program) -> None:
    made: list[Program] = []
    stepping = Stepping(program, on_version=made.append)
    question = {"want": "resume", "version": 0, "stage": "ptx", "text": "better\n"}
    answer = stepping.answer(question)
    assert answer["version"] == 1
    assert answer["data"]["edited"] == "ptx"
    assert stepping.versions == [program, made[0]]
    assert stepping.data(0)["edited"] is None
    json.dumps(answer)


def test_a_mistake_is_told_at_its_line(stepping: Stepping) -> None:
    question = {"want": "resume", "version": 0, "stage": "ptx", "text": "fine\nwrong\n"}
    error = stepping.answer(question)["error"]
    assert error == {"message": "this is wrong", "hint": "do it right", "line": 2, "column": 5}
    assert len(stepping.versions) == 1


def test_a_mistake_elsewhere_is_told_with_its_place(
    stepping: Stepping, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resume(*_: object) -> Program:
        raise VerifyError("no", span=CellSpan("In [1]", "a\nb", 2, 1))

    monkeypatch.setattr(Program, "resume", resume)
    question = {"want": "resume", "version": 0, "stage": "ptx", "text": "b\n"}
    error = stepping.answer(question)["error"]
    assert "line" not in error
    assert "In [1]:2:1" in error["message"]


def test_drafts_outlive_the_stepper(program: Program) -> None:
    drafts: dict[str, str] = {}
    keep = {"want": "keep", "version": 0, "stage": "ptx"}
    first = Stepping(program, drafts=drafts)
    assert first.answer(keep | {"text": "half a thou"}) == {}
    assert Stepping(program, drafts=drafts).data()["drafts"] == {"ptx": "half a thou"}
    first.answer(keep | {"text": None})
    assert drafts == {}


def test_the_widget_answers_messages(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    widget = step(program, stage="ptx")
    assert widget.data["at"] == "ptx"
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(widget, "send", sent.append)
    question = {"want": "text", "version": 0, "stage": "avial", "pass": None}
    widget._receive(widget, {"id": "7", "question": question}, [])
    assert sent[0]["id"] == "7"
    assert sent[0]["answer"]["lines"] == ["avial.schedule %a {}"]


def test_a_fault_is_told_to_the_page_and_is_loud(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    widget = step(program)
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(widget, "send", sent.append)
    with pytest.raises(KeyError):
        widget._receive(widget, {"id": "8", "question": {"want": "the moon"}}, [])
    assert "the moon" in sent[0]["answer"]["error"]["message"]


def test_the_widget_needs_nothing_from_outside(program: Program) -> None:
    widget = step(program)
    code = str(widget._esm) + str(widget._css)
    for word in ("http:", "https:", "import ", "innerHTML", "eval("):
        assert word not in code


def test_where_the_widget_cannot_be_its_stages_are(page: Page) -> None:
    """Saved, or not trusted: not an object's address."""
    page.shell.push({"widget": step(recorded_program())})
    assert page.run("widget") is None
    still, alive = page.bundles
    assert set(still) == {"text/html", "text/plain"}
    assert "<details><summary>the 2 stages as saved" in still["text/html"]
    assert "avial.schedule" in still["text/html"]
    assert "for the GPU" in still["text/plain"]
    assert alive.pop("application/vnd.jupyter.widget-view+json")["model_id"]
    assert alive == {"text/html": "", "text/plain": ""}


def test_a_terminal_gets_text(page: Page) -> None:
    magics(page).programs["deck"] = recorded_program()
    assert page.run("%avial step") is None
    assert [set(bundle) for bundle in page.bundles] == [{"text/html", "text/plain"}]
    assert "llc -march=nvptx64" in page.text


def test_the_stages_alone_can_be_stepped_through_without_a_kernel(page: Page) -> None:
    program = magics(page).programs["deck"] = recorded_program()
    page.run("%avial stages")
    view = page.bundles[-1]["application/vnd.avial+json"]["views"][-1]
    assert view["kind"] == "stepper"
    assert [stage["name"] for stage in view["data"]["stages"]] == ["avial", "ptx"]
    assert not view["data"]["inside"]
    vars(program)["_inside"] = INSIDE
    page.run("%avial stages")
    assert page.bundles[-1]["application/vnd.avial+json"]["views"][-1]["data"]["inside"]
    page.run("%avial show")
    kinds = [each["kind"] for each in page.bundles[-1]["application/vnd.avial+json"]["views"]]
    assert "stepper" not in kinds


def test_a_long_stage_is_held_in_part(page: Page) -> None:
    program = magics(page).programs["deck"] = recorded_program()
    long = Stage("llvm", "", "mlir", "".join(f"%{k} = {'x' * 60}\n" for k in range(20_000)))
    program.built = replace(program.built, stages=(long,))
    page.run("%avial stages")
    data = page.bundles[-1]["application/vnd.avial+json"]["views"][-1]["data"]
    assert data["stages"][0]["kept"] < data["stages"][0]["lines"] == 20_000


def test_a_notebook_gets_the_figure_and_then_the_widget(page: Page) -> None:
    magics(page).programs["deck"] = recorded_program()
    page.shell.kernel = object()  # pyright: ignore[reportAttributeAccessIssue]
    assert page.run("%avial step deck --stage=ptx") is None
    figure, widget = page.bundles
    assert "the 2 stages as saved" in figure["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in widget
    assert "did you mean 'ptx'" in str(page.run("%avial step deck --stage=pxt"))


def test_an_edited_program_is_kept_and_is_not_the_latest(page: Page) -> None:
    held = magics(page)
    held.programs["deck"] = recorded_program()
    held._keep(recorded_program())
    held._keep(recorded_program())
    assert list(held.programs) == ["deck-2", "deck-1", "deck"]
    assert held._program(None) is held.programs["deck"]


def magics(page: Page) -> AvialMagics:
    return page.shell.magics_manager.registry["AvialMagics"]
