"""The divisions of a model: one is picked in the table, another in the cloud, each simulated."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from avial_lab.compiler.requests import Source
from avial_lab.core.buffers import bind_arrays
from avial_lab.machine.topology import Topology
from avial_lab.notebook.parallel_widget import ParallelWidget
from avial_lab.program.divisions import Divisible
from avial_lab.program.model_search import search
from tests.browser.pages import serious_faults
from tests.compiler.passes.distir.training_step import arrays_of, training_step

pytestmark = pytest.mark.slow  # `make test-browser` and `make test-full` have it


@pytest.mark.parametrize("width", [1280, 900])
def test_a_division_is_picked_and_run(bare_page: Callable[..., Page], width: int) -> None:
    source = Source(training_step(8, (4, 4, 4)), "t", bind_arrays(arrays_of(8, (4, 4, 4))))
    asked = Divisible("<i>mine</i>", source, Topology.local(2), lambda words: 0.25)
    widget = ParallelWidget(asked, search(source, asked.topology, simulated=0))
    page = bare_page("parallel", dict(widget.data), ask=widget.answer)
    page.set_viewport_size({"width": width, "height": 900})
    expect(page.get_by_role("heading", name="<i>mine</i>: ")).to_be_visible()
    assert serious_faults(page, ".avial-parallel") == []
    said = page.get_by_role("status")
    run = page.get_by_role("button", name="run it")
    expect(run).to_be_disabled()
    page.get_by_role("button", name="pipeline 2 x 4 gpipe", exact=True).click()
    expect(said).to_contain_text("pipeline 2 x 4 gpipe: ")
    expect(said).to_contain_text("the fullest rank holds")
    expect(page.locator(".avial-picture svg")).to_contain_text("rank 1")
    expect(page.locator(".avial-memory")).to_contain_text("Memory by rank")
    expect(page.locator(".avial-moves")).to_contain_text("distir.send")
    assert serious_faults(page, ".avial-parallel") == []
    run.click()
    expect(said).to_contain_text("250 ms in the run")
    expect(page.locator("tr", has=page.locator('[aria-pressed="true"]'))).to_contain_text("250 ms")
    page.locator(".avial-point").first.click()
    expect(page.locator(".avial-picked")).to_have_count(1)
    expect(said).to_contain_text("predicted")
    inside = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert inside, "the page is wider than the window"
    page.evaluate("view.lose('it was restarted')")
    expect(said).to_contain_text("it was restarted")
    expect(run).to_be_disabled()
