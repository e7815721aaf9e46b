"""The stage stepper as a person uses it: by keyboard, by pointing, comparing, editing."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

import avial_lab
from avial_lab.artifact.stages import Inside, Part, PassStep, Stage, StageInside
from avial_lab.plot.views.stepper import stepper_data, text_data
from tests.browser.lab import Lab, Notebook
from tests.browser.pages import Watch, serious_faults

pytestmark = pytest.mark.slow  # `make test-browser` and `make test-full` have it

CELL = "\navial.schedule %a, %b {\n  %x = memref.load %a[%i]\n  memref.store %x, %b[%i]\n}\n"
AVIAL = "module {\n  func.func @one() {\n    %x = memref.load %a[%i]\n  }\n  func.func @two() {\n    memref.store %x, %b[%i]\n  }\n}\n"  # noqa: E501
MPI = AVIAL.replace("  %x = memref.load", "  %9 = memref.load").replace(
    "}\n}", "}\n  mpi.barrier\n}"
)
LLVM = "define void @one() {\n  %1 = load i32, ptr %0\n  ret void\n}\n"
STAGES = (
    Stage("avial", "as it was read", "mlir", AVIAL),
    Stage("mpi", "for each rank", "mlir", MPI, "avial-opt <avial.mlir> -o 'mpi.mlir'", 0.002),
    Stage("llvmir", "LLVM IR", "llvm", LLVM, "mlir-translate mpi.mlir -o llvmir.ll", 0.25),
)
INSIDE = Inside(
    (
        StageInside(
            "avial",
            ((2,), (), (3,), (), (), (4,), (), ()),
            parts=(Part("one", 1, 4), Part("two", 4, 7)),
            counts={"func": 2, "memref": 2},
            facts={"bytes loaded": "4"},
        ),
        StageInside(
            "mpi",
            ((2,), (), (3,), (), (), (3, 4), (), (), ()),
            (
                PassStep("rename", "", 0.001, 1, 1, AVIAL.replace("%x = ", "%9 = ")),
                PassStep("cse", "", 0.0, 0, 0, None),
                PassStep("tasks-to-mpi", "avial-opt", 0.001, 1, 0, MPI),
            ),
        ),
        StageInside("llvmir", ((), (3,), (), ()), parts=(Part("one", 0, 4),)),
    )
)


def recorded(*, at: str | None = None, budget: int = 10_000) -> dict[str, Any]:
    return stepper_data(STAGES, INSIDE, source=CELL, cell="In [4]", at=at, budget=budget)


class Kernel:
    """Stands for the kernel: answers as `notebook.stepper` does, and remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Any]] = []

    def __call__(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append(question)
        if question["want"] == "text":
            stage = next(each for each in STAGES if each.name == question["stage"])
            return text_data(stage.text, stage.language)
        if question["want"] == "resume":
            lines = question["text"].split("\n")
            wrong = next((k for k, line in enumerate(lines, 1) if "oops" in line), None)
            if wrong is not None:
                told = "custom op 'oops' is unknown"
                return {"error": {"message": told, "hint": "mend it", "line": wrong, "column": 3}}
            stages = (*STAGES[:1], Stage("mpi", "for each rank", "mlir", question["text"]))
            return {
                "version": 1,
                "data": stepper_data(stages, INSIDE, source=CELL, cell="In [4]", edited="mpi"),
            }
        return {}

    def of(self, want: str) -> list[Mapping[str, Any]]:
        return [question for question in self.asked if question["want"] == want]


Bare = Callable[..., Page]


def text_pane(page: Page) -> Locator:
    return page.get_by_role("listbox", name="the text of this step")


def lines(pane: Locator) -> list[str]:
    """The lines in sight, without numbers; `~` before one that is marked."""
    rows = pane.get_by_role("option").all()
    marked = ["~" if "◆" in row.locator(".avial-sign").inner_text() else "" for row in rows]
    return [
        mark + (row.locator(".avial-code").text_content() or "")
        for mark, row in zip(marked, rows, strict=True)
    ]


def heading(page: Page) -> Locator:
    return page.locator(".avial-heading")


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_stepping_by_keyboard(bare_page: Bare) -> None:
    page = bare_page("stepper", recorded())
    expect(heading(page)).to_contain_text("1 of 3 · avial – as it was read")
    text_pane(page).focus()
    press(page, "ArrowRight")
    expect(heading(page)).to_contain_text("2 of 3 · mpi")
    assert lines(text_pane(page)) == MPI.splitlines()
    press(page, "j", "j")  # the second finds no stage after the last
    expect(heading(page)).to_contain_text("3 of 3 · llvmir")
    assert page.evaluate("said.at(-1)") == "this is the last stage"
    press(page, "k")
    expect(heading(page)).to_contain_text("2 of 3 · mpi")
    press(page, "Shift+ArrowLeft")
    expect(heading(page)).to_contain_text("mpi after tasks-to-mpi")
    press(page, "Shift+ArrowLeft")  # over cse, which changed nothing
    expect(heading(page)).to_contain_text("mpi after rename")
    assert lines(text_pane(page))[2].strip() == "%9 = memref.load %a[%i]"
    current = page.locator("[aria-current=step]")
    expect(current).to_have_count(1)
    expect(current).to_contain_text("rename")


def test_the_list_folds_what_changed_nothing(bare_page: Bare) -> None:
    page = bare_page("stepper", recorded())
    nav = page.get_by_role("navigation")
    nav.get_by_text("3 passes, 2 changed").click()
    expect(nav.get_by_role("button", name="rename")).to_contain_text("+1−1")
    expect(nav.get_by_role("button", name="cse")).to_have_count(0)
    nav.get_by_text("1 unchanged").click()
    expect(nav.get_by_role("button", name="cse")).to_contain_text("unchanged")
    page.get_by_label("filter stages and passes by name").fill("tasks-to")
    expect(nav.get_by_role("button", name="tasks-to-mpi")).to_be_visible()
    expect(nav.get_by_role("button", name="rename")).to_have_count(0)
    page.get_by_label("filter stages and passes by name").fill("zzz")
    expect(nav).to_contain_text('no stage or pass is called "zzz"')


def test_facts_and_the_command(bare_page: Bare) -> None:
    page = bare_page("stepper", recorded(at="mpi"))
    facts = page.locator(".avial-facts")
    expect(facts).to_contain_text("time 2.0 ms")
    expect(facts).to_contain_text("lines 9")
    expect(page.locator(".avial-command code")).to_have_text("avial-opt <avial.mlir> -o 'mpi.mlir'")
    text_pane(page).focus()
    press(page, "k")
    expect(facts).to_contain_text("func 2")
    expect(facts).to_contain_text("bytes loaded 4")
    expect(page.locator(".avial-command code")).to_have_count(0)


def test_a_cell_line_shows_what_became_of_it(bare_page: Bare) -> None:
    page = bare_page("stepper", recorded(at="mpi"))
    cell = page.get_by_role("listbox", name="the cell")
    assert lines(cell)[0] == "%%avial …"  # the magic's own line is line 1, as the editor counts
    cell.get_by_role("option").nth(2).hover()
    marked = [line for line in lines(text_pane(page)) if line.startswith("~")]
    assert [line.strip("~ ") for line in marked] == [
        "%9 = memref.load %a[%i]",
        "memref.store %x, %b[%i]",
    ]
    expect(page.locator(".avial-marks")).to_have_text("cell line 3: 2 lines of mpi")
    badges = [badge.inner_text() for badge in page.locator(".avial-badge").all()]
    assert badges == ["◆ 1", "◆ 2", "◆ 1"]
    page.mouse.move(0, 0)
    assert not any(line.startswith("~") for line in lines(text_pane(page)))


def test_a_stage_line_shows_where_it_comes_from_by_keyboard(bare_page: Bare) -> None:
    page = bare_page("stepper", recorded(at="mpi"))
    cell = page.get_by_role("listbox", name="the cell")
    marks = page.locator(".avial-marks")
    text_pane(page).focus()
    press(page, *["ArrowDown"] * 5)
    expect(marks).to_have_text("line 6 comes from cell lines 3 and 4")
    assert [line[0] == "~" for line in lines(cell)] == [False, False, True, True, False]
    press(page, "ArrowDown")
    expect(marks).to_have_text("line 7 comes from no line of the cell")
    assert page.evaluate("said.at(-1)") == "line 7 comes from no line of the cell"
    press(page, "ArrowUp", "ArrowRight")  # what is marked stays marked in the next stage
    assert [line[0] == "~" for line in lines(text_pane(page))] == [False, True, False, False]
    press(page, "Escape")
    assert not any(line[0] == "~" for line in lines(cell))
    cell.focus()
    press(page, "Home", "ArrowDown", "ArrowDown")
    expect(marks).to_have_text("cell line 3: 1 line of llvmir")


def test_lines_of_a_pass_are_known_by_those_around_it(bare_page: Bare) -> None:
    page = bare_page("stepper", recorded(at="mpi"))
    text_pane(page).focus()
    press(page, "Shift+ArrowLeft", "Shift+ArrowLeft")
    page.get_by_role("listbox", name="the cell").get_by_role("option").nth(3).hover()
    marked = [line.strip("~ ") for line in lines(text_pane(page)) if line.startswith("~")]
    assert marked == ["memref.store %x, %b[%i]"]


def test_nothing_known_of_lines_is_said(bare_page: Bare) -> None:
    page = bare_page("stepper", stepper_data(STAGES, source=CELL))
    expect(page.locator(".avial-marks")).to_have_text("where lines come from is not known")
    text_pane(page).focus()
    press(page, "ArrowDown")
    expect(page.locator(".avial-marks")).to_contain_text("avial come from is not known")


def test_two_stages_side_by_side_and_unified(bare_page: Bare) -> None:
    page = bare_page("stepper", recorded(at="mpi"))
    text_pane(page).focus()
    press(page, "d")
    expect(heading(page)).to_contain_text("− avial + mpi (+2 −1)")
    left = page.get_by_role("listbox", name="the text compared with")
    signs = [row.inner_text().strip() for row in left.locator(".avial-sign").all()]
    assert signs == ["", "", "−", "", "", "", "", "", ""]
    right = [row.inner_text().strip() for row in text_pane(page).locator(".avial-sign").all()]
    assert right == ["", "", "+", "", "", "", "", "+", ""]
    expect(left.locator(".avial-differs")).to_have_text("x")
    press(page, "d")
    expect(left).to_be_hidden()
    rows = [
        row.locator(".avial-sign").inner_text().strip()
        + (row.locator(".avial-code").text_content() or "").strip()
        for row in text_pane(page).get_by_role("option").all()
    ]
    assert rows[2:4] == ["−%x = memref.load %a[%i]", "+%9 = memref.load %a[%i]"]
    page.get_by_label("ignore value names").check()
    expect(heading(page)).to_contain_text("(+1 −0)")
    expect(heading(page)).to_contain_text("value names ignored in both")


def test_any_two_stages_are_compared(bare_page: Bare) -> None:
    page = bare_page("stepper", recorded(at="llvmir"))
    page.get_by_label("compare with", exact=True).select_option("avial")
    expect(heading(page)).to_contain_text("− avial + llvmir")
    text_pane(page).focus()
    press(page, "k")  # what is compared with stays
    expect(heading(page)).to_contain_text("− avial + mpi")


def test_unchanged_lines_are_folded_and_opened(bare_page: Bare) -> None:
    text = "".join(f"line {k}\n" for k in range(30))
    stages = [Stage("a", "", "mlir", text), Stage("b", "", "mlir", text.replace("line 15\n", "\n"))]
    page = bare_page("stepper", stepper_data(stages, source="", at="b"))
    text_pane(page).evaluate(  # twice before the page is laid out
        """pane => {
          for (const key of "dd")
            pane.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
        }"""
    )
    folds = page.locator(".avial-line.avial-fold")
    expect(folds).to_have_count(2)
    expect(folds.first).to_contain_text("12 unchanged lines")
    folds.first.click()
    expect(folds).to_have_count(1)
    page.get_by_role("button", name="One").click()
    expect(folds).to_have_count(0)
    page.get_by_role("button", name="Unified").click()
    text_pane(page).focus()
    press(page, "End", "Enter")
    expect(folds).to_have_count(0)


def test_what_is_marked_is_seen_through_a_fold(bare_page: Bare) -> None:
    text = "".join(f"line {k}\n" for k in range(30))
    stages = [Stage("a", "", "mlir", text), Stage("b", "", "mlir", text + "more\n")]
    inside = Inside((StageInside("b", ((),) * 9 + ((1,),)),))
    page = bare_page("stepper", stepper_data(stages, inside, source="one", at="b"))
    text_pane(page).focus()
    press(page, "d")
    expect(text_pane(page).get_by_role("option")).to_have_count(5)
    page.get_by_role("listbox", name="the cell").get_by_role("option").first.hover()
    assert [line[0] for line in lines(text_pane(page))] == ["~", "l", "l", "l", "m"]


def test_a_task_alone(bare_page: Bare) -> None:
    page = bare_page("stepper", recorded())
    page.get_by_label("task or function").select_option("two")
    assert [line.strip() for line in lines(text_pane(page))] == [
        "func.func @two() {", "memref.store %x, %b[%i]", "}"
    ]  # fmt: skip
    numbers = [number.inner_text() for number in text_pane(page).locator(".avial-no").all()]
    assert numbers == ["5", "6", "7"]
    expect(heading(page)).to_contain_text("only two")
    text_pane(page).focus()
    press(page, "j", "j")
    expect(page.locator(".avial-notes")).to_contain_text("llvmir has no two: everything is shown")


def test_searching(bare_page: Bare) -> None:
    page = bare_page("stepper", recorded(at="mpi"))
    text_pane(page).focus()
    press(page, "/")
    page.keyboard.type("MEMREF")
    count = page.locator(".avial-count")
    expect(count).to_have_text("1 of 2 lines")
    expect(page.locator(".avial-found")).to_have_count(2)
    press(page, "Enter")
    expect(count).to_have_text("2 of 2 lines")
    press(page, "Escape")
    expect(page.locator(".avial-found")).to_have_count(0)
    press(page, "/")
    page.keyboard.type("%")
    text_pane(page).focus()
    press(page, "n")
    expect(count).to_have_text("2 of 2 lines")
    press(page, "N")
    expect(count).to_have_text("1 of 2 lines")


def test_what_is_typed_is_never_markup(bare_page: Bare) -> None:
    evil = "<img src=x onerror=alert(1)>\n</script><b>bold</b>\n"
    stages = [Stage("<i>a</i>", "<u>t</u>", "mlir", evil, "<b>cmd</b>")]
    page = bare_page("stepper", stepper_data(stages, source=evil, cell="<h1>"))
    assert lines(text_pane(page)) == evil.splitlines()
    assert page.locator(".avial-stepper :is(img, i, u, b:text('cmd'), h1)").count() == 0


def test_ten_thousand_lines_put_few_into_the_page(bare_page: Bare) -> None:
    text = "".join(f"%{k} = arith.addi %{k - 1}, %c : i32\n" for k in range(10_000))
    other = "".join(f"%{k} = arith.muli %{k - 1}, %c : i32\n" for k in range(9_000))
    stages = [Stage("a", "", "mlir", text), Stage("b", "", "mlir", other)]
    page = bare_page("stepper", stepper_data(stages, source="", at="b", budget=10**7))
    text_pane(page).focus()
    press(page, "d")
    expect(heading(page)).to_contain_text("(+9000 −10000)")
    press(page, "End")  # the page has what is in sight, and no more
    assert text_pane(page).get_by_role("option").count() < 200
    left = page.get_by_role("listbox", name="the text compared with")
    expect(left.get_by_role("option").last).to_contain_text("%9999 = arith.addi")


def test_without_a_kernel_what_is_left_out_is_said(bare_page: Bare) -> None:
    page = bare_page("stepper", recorded(at="avial", budget=150))
    notes = page.locator(".avial-notes")
    expect(notes).to_contain_text("of 8 lines are not included")
    expect(page.get_by_role("button", name="Edit")).to_be_hidden()


def test_with_a_kernel_texts_are_loaded_when_shown_and_neighbours_before(bare_page: Bare) -> None:
    kernel = Kernel()
    page = bare_page("stepper", recorded(at="avial", budget=0), ask=kernel)
    expect(text_pane(page).get_by_role("option")).to_have_count(8)
    text_pane(page).focus()
    press(page, "j")
    expect(text_pane(page).get_by_role("option")).to_have_count(9)
    expect(page.locator(".avial-notes")).to_be_empty()
    press(page, "j")
    expect(text_pane(page).get_by_role("option")).to_have_count(4)
    asked = [question["stage"] for question in kernel.of("text")]
    assert sorted(asked) == ["avial", "llvmir", "mpi"]  # each once


def test_what_a_large_program_is_made_of_is_looked_for_when_asked(bare_page: Bare) -> None:
    kernel = Kernel()
    large = Stage("avial", "", "mlir", "x" * 1_100_000)
    data = stepper_data([large], source="", budget=100)
    page = bare_page("stepper", data, ask=kernel)
    button = page.get_by_role("button", name="Inspect")
    button.click()
    expect(button).to_be_hidden()
    assert [question["want"] for question in kernel.asked].count("inside") == 1


def edit(page: Page) -> Locator:
    page.get_by_role("button", name="Edit").click()
    return page.get_by_label("text of mpi, editable")


def test_an_edited_stage_with_a_mistake_and_without(bare_page: Bare) -> None:
    kernel = Kernel()
    page = bare_page("stepper", recorded(at="mpi"), ask=kernel)
    area = edit(page)
    expect(area).to_be_focused()
    assert area.input_value() == MPI
    area.fill(MPI.replace("mpi.barrier", "oops"))
    press(page, "Control+Enter")
    problem = page.get_by_role("alert")
    expect(problem).to_contain_text("line 8, column 3: custom op 'oops' is unknown")
    expect(problem).to_contain_text("Hint: mend it")
    selected = "[area.selectionStart, area.selectionEnd]"
    start, end = area.evaluate(f"area => {selected}")
    assert area.input_value()[start:end] == "  oops"
    expect(page.locator(".avial-gutter")).to_contain_text("✗8")
    area.fill(MPI.replace("mpi.barrier", "mpi.better"))
    page.get_by_role("button", name="Compile from here").click()
    # What the edit changed is shown at once, beside the stage as it was.
    expect(heading(page)).to_contain_text(
        "2 of 2 · − mpi (as compiled) + mpi (edited by hand: mpi (1)) (+1 −1)"
    )
    expect(page.get_by_role("navigation")).to_contain_text("edited by hand")
    expect(text_pane(page)).to_contain_text("mpi.better")
    expect(page.locator(".avial-differs").last).to_have_text("ett")
    page.get_by_label("version").select_option("as compiled")  # the way back
    expect(text_pane(page)).to_contain_text("mpi.barrier")
    page.get_by_label("compare with", exact=True).select_option(
        "same stage, edited by hand: mpi (1)"
    )
    expect(heading(page)).to_contain_text("(+1 −1)")


def test_what_is_typed_is_kept(bare_page: Bare) -> None:
    kernel = Kernel()
    page = bare_page("stepper", recorded(at="mpi"), ask=kernel)
    edit(page).fill("half a thought")
    page.get_by_role("navigation").get_by_role("button", name="llvmir").click()
    expect(heading(page)).to_contain_text("llvmir")
    page.get_by_role("navigation").get_by_role("button", name="mpi").first.click()
    expect(page.locator(".avial-notes")).to_contain_text("has a draft of yours")
    area = edit(page)
    assert area.input_value() == "half a thought"
    page.get_by_role("button", name="Revert").click()
    expect(page.get_by_role("button", name="Keep it")).to_be_focused()
    press(page, "Enter")
    assert area.input_value() == "half a thought"
    page.get_by_role("button", name="Revert").click()
    page.get_by_role("button", name="Discard it").click()
    assert area.input_value() == MPI
    page.get_by_role("button", name="Close").click()
    expect(page.locator(".avial-notes")).to_be_empty()


def test_news_do_not_disturb_who_is_typing(bare_page: Bare) -> None:
    page = bare_page("stepper", recorded(at="mpi"), ask=Kernel())
    area = edit(page)
    area.fill("half a thought")
    area.evaluate("area => area.setSelectionRange(4, 6)")
    page.evaluate("data => view.update(data)", recorded())
    page.evaluate("view.lose('it was restarted')")
    expect(area).to_be_focused()
    assert area.evaluate("area => [area.value, area.selectionStart]") == ["half a thought", 4]
    page.get_by_role("button", name="Compile from here").click()
    expect(page.get_by_role("alert")).to_contain_text("what you typed is kept")
    assert area.input_value() == "half a thought"


def test_two_steppers_know_nothing_of_each_other(bare_page: Bare) -> None:
    page = bare_page("stepper", recorded())
    page.evaluate(
        """data => {
            const host = document.createElement("section");
            document.querySelector("main").append(host);
            window.second = mounted(host, data);
        }""",
        recorded(at="mpi"),
    )
    headings = heading(page)
    text_pane(page).first.focus()
    press(page, "j", "j")
    expect(headings.first).to_contain_text("llvmir")
    expect(headings.last).to_contain_text("mpi")
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    page.evaluate("second.dispose()")
    expect(headings).to_have_count(1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [420, 1280])
def test_nobody_is_shut_out(bare_page: Bare, page: Page, scheme: Any, width: int) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    bare_page("stepper", recorded(at="mpi"), ask=Kernel())
    text_pane(page).focus()
    assert serious_faults(page) == []
    press(page, "d", "ArrowDown", "ArrowDown")
    assert serious_faults(page) == []
    edit(page).fill("oops")
    press(page, "Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("oops")
    assert serious_faults(page) == []


DIFF = """async pairs => {
    const { diffLines } = await import("./stepper.js");
    return pairs.map(([a, b, work]) => diffLines(a, b, work));
}"""


def applied(a: list[int], b: list[int], hunks: list[list[int]]) -> list[int]:
    """`a` made into `b` by the hunks; what is outside them must be equal."""
    made: list[int] = []
    at = 0
    for a0, a1, b0, b1 in hunks:
        assert a0 >= at
        assert a1 > a0 or b1 > b0
        made += a[at:a0] + b[b0:b1]
        at = a1
    return made + a[at:]


def test_differences_make_one_text_of_the_other(bare_page: Bare) -> None:
    page = bare_page("stepper", recorded())
    rng = random.Random(4)
    pairs: list[list[Any]] = []
    for _ in range(600):
        letters = rng.choice([2, 4, 30])
        a = [rng.randrange(letters) for _ in range(rng.randrange(40))]
        b = [x for x in a if rng.random() > 0.2]
        for _ in range(rng.randrange(6)):
            b.insert(rng.randrange(len(b) + 1), rng.randrange(letters))
        pairs.append([a, b if rng.random() < 0.9 else b[::-1], rng.choice([3e6, 60, 5])])
    for _ in range(20):  # far apart, and no line stands once: matched at their rarest
        far = [[rng.randrange(20) for _ in range(400)] for _ in "ab"]
        pairs.append([*far, rng.choice([3e6, 3000])])
    for (a, b, _), hunks in zip(pairs, page.evaluate(DIFF, pairs), strict=True):
        assert applied(a, b, hunks) == b
        assert (hunks == []) == (a == b)


def test_near_texts_have_the_shortest_difference(bare_page: Bare) -> None:
    """Without lines that stand once in both, it is Myers' alone: no longer than a brute force."""
    page = bare_page("stepper", recorded())
    rng = random.Random(5)
    pairs: list[list[Any]] = []
    for _ in range(200):
        a = [rng.randrange(3) for _ in range(rng.randrange(1, 9))] * 2
        b = [rng.randrange(3) for _ in range(rng.randrange(1, 9))] * 2
        pairs.append([a, b, 3e6])
    for (a, b, _), hunks in zip(pairs, page.evaluate(DIFF, pairs), strict=True):
        cost = sum(a1 - a0 + b1 - b0 for a0, a1, b0, b1 in hunks)
        assert cost == len(a) + len(b) - 2 * longest_common(a, b)


def longest_common(a: list[int], b: list[int]) -> int:
    best = [0] * (len(b) + 1)
    for x in a:
        above = best[:]
        for k, y in enumerate(b, 1):
            best[k] = above[k - 1] + 1 if x == y else max(above[k], best[k - 1])
    return best[-1]


def test_differences_are_no_longer_than_difflib_says_by_much(bare_page: Bare) -> None:
    from difflib import SequenceMatcher

    page = bare_page("stepper", recorded())
    rng = random.Random(6)
    a = [rng.randrange(300) for _ in range(1500)]
    b = [x for x in a if rng.random() > 0.05]
    hunks = page.evaluate(DIFF, [[a, b, 3e6]])[0]
    assert applied(a, b, hunks) == b
    equal = sum(block.size for block in SequenceMatcher(None, a, b, False).get_matching_blocks())
    assert sum(a1 - a0 for a0, a1, _, _ in hunks) <= 1.1 * (len(a) - equal)


DECK = (Path(avial_lab.__file__).parent / "lessons" / "first_light.avial").read_text()
CELLS = (
    "%load_ext avial_lab\nimport numpy as np\n"
    "a = np.arange(20, dtype=np.int32); b = a + 1; c = a * 0; d = a * 0",
    f"%%avial --name=deck --show=none\n{DECK}",
    "%avial step deck --stage=mpi",
    "%avial list",
)


def test_in_a_notebook(open_notebook: Callable[..., Notebook]) -> None:
    """The real thing: a compiled program, its kernel, JupyterLab's own keys."""
    notebook = open_notebook("stepper", CELLS)
    notebook.run(0)
    notebook.run(1)
    output = notebook.run(2)
    page, stepper = notebook.page, output.locator(".avial-stepper")
    assert output.locator("table").count() >= 1  # the figure that stays
    expect(stepper.get_by_role("navigation")).to_contain_text("passes,", timeout=60_000)
    pane = stepper.get_by_role("listbox", name="the text of this step")
    pane.focus()
    press(page, "j", "ArrowRight", "ArrowLeft")
    expect(stepper.locator(".avial-heading")).to_contain_text("gpu – kernels")
    assert (
        page.evaluate("window.jupyterapp.shell.currentWidget.content.activeCellIndex") == 2
    )  # JupyterLab had no use of those keys
    press(page, "k")
    stepper.get_by_role("listbox", name="the cell").focus()
    press(page, "Home", *["ArrowDown"] * 8)
    expect(stepper.locator(".avial-marks")).to_have_text("cell line 9: 1 line of mpi")
    assert [line for line in lines(pane) if line.startswith("~")] == [
        "~      %z = arith.addi %x, %y : i32"
    ]
    pane.focus()
    press(page, "e")
    area = stepper.get_by_label("text of mpi, editable")
    text = area.input_value()
    area.fill(text.replace("arith.addi %x, %y", "arith.oops %x, %y", 1))
    press(page, "Control+Enter")
    expect(stepper.get_by_role("alert")).to_contain_text("arith.oops", timeout=60_000)
    area.fill(text.replace("arith.addi %x, %y", "arith.subi %x, %y", 1))
    press(page, "Control+Enter")
    expect(stepper.locator(".avial-heading")).to_contain_text("(+1 −1)", timeout=60_000)
    expect(notebook.run(3)).to_contain_text("deck-1")
    notebook.restart()
    expect(stepper.locator(".avial-notes")).to_contain_text("no kernel answers")
    pane.focus()
    press(page, "j")  # what was loaded stays
    expect(stepper.locator(".avial-heading")).to_contain_text("gpu")


@pytest.mark.parametrize("extension", [True, False], ids=["with-ours", "without-ours"])
def test_saved_and_opened_without_its_kernel(
    lab: Lab, open_notebook: Callable[..., Notebook], watch: Watch, extension: bool
) -> None:
    """What stands in place of the widgets, also where our extension is not installed; what runs
    again is alive again.
    """
    notebook = open_notebook("saved", (*CELLS[:-1], "%avial plan deck"))
    if not extension:
        notebook.page.route("**/jupyterlab-avial/static/remoteEntry.js*", without_our_extension)
    for number in range(3):
        notebook.run(number)
    sliders = notebook.run(3).get_by_role("slider")
    expect(sliders.first).to_be_visible(timeout=60_000)
    expect(notebook.output(3).locator(".avial-still")).to_be_hidden()
    notebook.save()
    lab.stop_kernels()
    watch.forgive("widget model not found")  # a trusted notebook, but nobody knows its widgets
    again = open_notebook(notebook.path)
    stepper, plan = again.output(2), again.output(3)
    for output in (stepper, plan):
        expect(output.locator(".avial-still")).to_be_visible()
        expect(output.get_by_text("displaying widget")).to_be_hidden()
        expect(output).to_contain_text("run this cell again")
    stepper.locator("summary", has_text="as saved").click()
    expect(stepper).to_contain_text("arith.addi %x, %y")
    expect(plan.locator(".avial-still").locator("svg, img").first).to_be_visible()
    expect(plan.get_by_text("What if?")).to_be_visible()
    again.run(0)
    again.run(1)
    expect(again.run(2).get_by_role("navigation")).to_contain_text("passes,", timeout=60_000)
    expect(stepper.locator(".avial-still")).to_be_hidden()


def without_our_extension(route: Route) -> None:
    """In place of its entry: an extension of the same name that brings nothing."""
    nothing = "{init: () => {}, get: async () => () => ({ __esModule: true, default: [] })}"
    body = f"(window._JUPYTERLAB ??= {{}})['jupyterlab-avial'] = {nothing};"
    route.fulfill(content_type="text/javascript", body=body)
