"""A machine that is changed in the page, saved, and set back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from avial_lab.machine.topologies import topology_called
from avial_lab.notebook.topology_widget import TopologyWidget
from avial_lab.program import session
from tests.browser.pages import serious_faults

pytestmark = pytest.mark.slow  # `make test-browser` and `make test-full` have it


@pytest.fixture(autouse=True)
def _no_machine_of_the_session() -> Iterator[None]:
    yield
    session.use_machine(None)


@pytest.mark.parametrize("width", [1280, 900])
def test_a_machine_is_changed_saved_and_set_back(
    bare_page: Callable[..., Page], width: int, tmp_path: Path
) -> None:
    widget = TopologyWidget(topology_called("preset:laptop"))
    page = bare_page("topology", dict(widget.data), ask=widget.answer)
    page.set_viewport_size({"width": width, "height": 900})
    expect(page.get_by_role("heading", name="a laptop: 4 CPUs on laptop")).to_be_visible()
    assert serious_faults(page, ".avial-machine") == []
    said = page.get_by_role("status")
    page.get_by_label("nodes", exact=True).fill("3")
    page.get_by_label("bandwidth").fill("2 GB/s")
    page.get_by_role("button", name="change").click()
    expect(said).to_contain_text("simulate() now take this machine")
    expect(page.get_by_role("heading", name="a laptop, edited: 12 CPUs")).to_be_visible()
    expect(page.locator(".avial-picture")).to_contain_text("laptop2")
    machine = session.machine()
    assert machine is not None
    assert machine.speeds.link("shared memory").bandwidth_bytes_per_s == 2e9
    inside = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert inside, "the page is wider than the window"

    page.get_by_label("file").fill(str(tmp_path / "mine.yaml"))
    page.get_by_role("button", name="save").click()
    expect(said).to_contain_text("Written: ")
    assert topology_called(tmp_path / "mine.yaml").ranks == 12

    page.get_by_label("nodes", exact=True).fill("<b>")
    page.get_by_label("nodes", exact=True).press("Enter")
    expect(said).to_have_text("✗ nodes is a whole number, not '<b>'")
    page.get_by_role("button", name="as it was").click()
    expect(page.get_by_role("heading", name="a laptop: 4 CPUs on laptop")).to_be_visible()
    assert session.machine() is None
    page.evaluate("view.lose('it was restarted')")
    expect(said).to_contain_text("it was restarted")
    expect(page.get_by_label("bandwidth")).to_be_disabled()
