"""The sliders of a predicted run, as a page shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from avial_lab.plot.views.what_if import answer_data, what_if_data
from tests.browser.pages import serious_faults
from tests.planning.test_what_if import asked

pytestmark = pytest.mark.slow  # `make test-browser` and `make test-full` have it


@pytest.mark.parametrize("width", [1280, 900])
def test_a_slider_moves_the_prediction(bare_page: Callable[..., Page], width: int) -> None:
    what_if = asked()

    def answer(question: Any) -> Any:
        return answer_data(what_if, question["values"])

    page = bare_page("what_if", what_if_data(what_if, "What if? <b>three</b>"), ask=answer)
    page.set_viewport_size({"width": width, "height": 900})
    expect(page.get_by_role("heading", name="What if? <b>three</b>")).to_be_visible()
    assert serious_faults(page, ".avial-what-if") == []
    said = page.get_by_role("status")
    expect(said).to_have_text("2.5 s predicted")
    bandwidth = page.get_by_label("links: bandwidth")
    for _ in range(4):
        bandwidth.press("ArrowLeft")
    expect(said).to_contain_text("3 s predicted, 1.20 ×")
    expect(bandwidth).to_have_attribute("aria-valuetext", "0.0625 ×")
    page.get_by_role("button", name="as it is").click()
    expect(said).to_have_text("2.5 s predicted")
    page.evaluate("view.lose('it was restarted')")
    expect(said).to_contain_text("it was restarted")
    expect(bandwidth).to_be_disabled()
