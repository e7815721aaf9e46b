"""The gallery: what is in it, and that one click leads to a notebook that runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from avial_lab.benchmarks.kernel_suite import kernel_names
from tests.browser.lab import Lab, Notebook
from tests.browser.pages import serious_faults
from tests.notebooks.course import NOTEBOOKS

pytestmark = pytest.mark.slow  # `make test-browser` and `make test-full` have it

Open = Callable[..., Notebook]


def test_every_kernel_and_lesson_is_a_card(open_notebook: Open, page: Page) -> None:
    page.set_viewport_size({"width": 900, "height": 900})
    open_notebook("beside", ["1 + 1"]).command("launcher:create")
    page.locator(".jp-LauncherCard[title='Avial gallery']").click()
    gallery = page.locator("#avial-gallery .avial-gallery")
    cards = gallery.get_by_role("button")
    expect(cards).to_have_count(len(kernel_names()) + len(NOTEBOOKS))
    assert serious_faults(page, "#avial-gallery .avial-gallery") == []
    drawn = gallery.locator("img").evaluate_all(
        "all => all.filter(each => each.complete && each.naturalWidth > 0).length"
    )
    assert drawn == cards.count()


def test_a_click_in_the_panel_makes_a_notebook_that_runs(
    lab: Lab, open_notebook: Open, page: Page
) -> None:
    notebook = open_notebook("beside", ["1 + 1"])
    notebook.command("avial:panel")
    page.get_by_text("Gallery: lessons and kernels").click()
    page.locator("#avial-panel").get_by_role("button", name="trisolv").click()
    page.wait_for_function("() => jupyterapp.shell.currentWidget.context?.path.includes('trisolv')")
    made = Notebook(lab, page, "trisolv.ipynb")
    made.wait_until_ready()
    sources = [cell.source for cell in lab.read(made.path).cells]
    assert len(sources) == 4
    made.run(1)
    expect(made.run(2)).to_contain_text("to the sequential reference")


def test_a_line_in_a_block_is_indented(open_notebook: Open, page: Page) -> None:
    notebook = open_notebook("indented", ["%%avial\nfunc.func @f(%a) {"])
    notebook.cell(0).locator(".cm-content").click()
    page.keyboard.press("ControlOrMeta+End")
    page.keyboard.press("Enter")
    page.keyboard.type("affine.for %i = 0 to 8 {")
    page.keyboard.press("Enter")
    page.keyboard.type("%x = affine.load %a[%i]")
    page.keyboard.press("Enter")
    page.keyboard.type("}")
    lines = notebook.cell(0).locator(".cm-line").all_inner_texts()
    assert lines[2:5] == ["  affine.for %i = 0 to 8 {", "    %x = affine.load %a[%i]", "  }"]
