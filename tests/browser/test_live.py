"""The bars of a run that goes on, as a page shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import serious_faults

pytestmark = pytest.mark.slow  # `make test-browser` and `make test-full` have it


def state(share: float | None, words: str) -> dict[str, Any]:
    rank = {"rank": 0, "words": words, "share": share, "finished": share == 1}
    told = {"line": words, "ended": "", "failed": False, "share": share, "status": {}}
    return {**told, "ranks": [rank]}


@pytest.mark.parametrize("width", [1280, 900])
def test_a_bar_is_as_full_as_is_known(bare_page: Callable[..., Page], width: int) -> None:
    page = bare_page(
        "live", {"title": "heat", "graph": None, "state": state(None, "in task 'S1', 3 steps done")}
    )
    page.set_viewport_size({"width": width, "height": 900})
    bars = page.get_by_role("progressbar")
    expect(bars).to_have_count(2)
    for bar in bars.all():  # nobody knows of how much
        expect(bar).not_to_have_attribute("aria-valuenow", "100")
        expect(bar).to_have_class("avial-bar avial-unknown")
    assert serious_faults(page, ".avial-live") == []
    page.evaluate("state => view.update({state})", state(0.25, "3 of 12 steps done"))
    for bar in bars.all():
        expect(bar).to_have_attribute("aria-valuenow", "25")
        expect(bar).to_have_class("avial-bar")
        filled = bar.locator(".avial-filled").bounding_box()
        whole = bar.bounding_box()
        assert filled is not None
        assert whole is not None
        assert abs(filled["width"] / whole["width"] - 0.25) < 0.02
    expect(page.get_by_text("3 of 12 steps done")).to_be_visible()
