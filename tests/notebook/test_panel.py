"""What JupyterLab's panel and editors are told: a page that writes down what it hears, on a real
shell.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import avial_lab
from avial_lab.core.errors import CellSpan, ClusterError, ParseError
from avial_lab.machine.topology import Topology
from avial_lab.notebook import background
from avial_lab.notebook.clusters import StartOptions
from avial_lab.notebook.magics import AvialMagics
from avial_lab.program.reference_run import OneProcess
from tests.notebook.conftest import Page, recorded_program
from tests.waiting import LONG_S

BAD = "%%avial\navial.schedule %größe {\n  %x = memref.load %äb[%i]\n}"


class Comm:
    """A page's end of the comm: what it was sent, and how it asks."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.news = threading.Condition()

    def on_msg(self, callback: Callable[[Any], None]) -> None:
        self._ask = callback

    def on_close(self, callback: Callable[[Any], None]) -> None:
        self.close = callback

    def send(self, message: dict[str, Any]) -> None:
        with self.news:
            self.heard.append(message)
            self.news.notify_all()

    def ask(self, **question: Any) -> None:
        self._ask({"content": {"data": question}})

    @property
    def state(self) -> dict[str, Any]:
        return next(m for m in reversed(self.heard) if m["kind"] == "state")

    def wait(self, wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Until the state is so."""
        with self.news:
            assert self.news.wait_for(lambda: wanted(self.state), timeout=LONG_S)


class Kernel:
    """As much of ipykernel's as the extension uses."""

    def __init__(self) -> None:
        self.comm_manager = self
        self.targets: dict[str, Callable[[Any, Any], None]] = {}

    def register_target(self, name: str, opened: Callable[[Any, Any], None]) -> None:
        self.targets[name] = opened

    def do_inspect(self, *_: Any) -> None: ...
    def do_shutdown(self, restart: bool) -> None: ...


@pytest.fixture
def comm(page: Page) -> Comm:
    """A page that looks at a kernel with the extension loaded."""
    kernel = Kernel()
    page.shell.kernel = kernel  # pyright: ignore[reportAttributeAccessIssue]
    page.run("%reload_ext avial_lab")
    page.run("%reload_ext avial_lab")  # nothing is told twice
    comm = Comm()
    kernel.targets["avial"](comm, {})
    return comm


def magics_of(page: Page) -> AvialMagics:
    return page.shell.magics_manager.registry["AvialMagics"]


def fail_with(monkeypatch: pytest.MonkeyPatch, error: Callable[[str, str], Exception]) -> None:
    def compile_cell(text: str, *, cell: str, **_: Any) -> None:
        raise error(text, cell)

    monkeypatch.setattr(avial_lab, "compile", compile_cell, raising=False)


def unknown_buffer(text: str, cell: str) -> Exception:
    line = next(n for n, each in enumerate(text.split("\n"), 1) if "%äb" in each)
    column = text.split("\n")[line - 1].index("%äb") + 1
    span = CellSpan(cell, text, line, column)
    return ParseError("%äb is not defined", span=span, hint="list it")


def run_cell(page: Page, text: str, cell: str) -> None:
    page.shell.run_cell(text, cell_id=cell, store_history=True)


def diagnostics(comm: Comm) -> list[tuple[str, list[Any]]]:
    return [(m["cell"], m["items"]) for m in comm.heard if m["kind"] == "diagnostics"]


def test_tells_a_page_that_comes(comm: Comm) -> None:
    assert [m["kind"] for m in comm.heard] == ["state"]
    assert comm.state["cluster"] is None
    assert comm.state["programs"] == []


def test_tells_of_a_program_once(comm: Comm, page: Page) -> None:
    page.names["deck"] = recorded_program("deck")
    page.run("1 + 1")
    page.run("2 + 2")
    assert len(comm.heard) == 2
    (program,) = comm.state["programs"]
    assert (program["name"], program["tasks"], program["run"]) == (
        "deck",
        3,
        "compiled, not run yet",
    )


@pytest.mark.parametrize("blank_lines", ["", "\n \n"])
def test_a_mistake_is_told_with_its_cell_and_place(
    comm: Comm, page: Page, monkeypatch: pytest.MonkeyPatch, blank_lines: str
) -> None:
    fail_with(monkeypatch, unknown_buffer)
    run_cell(page, "1", "cell-a")
    run_cell(page, blank_lines + BAD, "cell-b")
    ((cell, (item,)),) = diagnostics(comm)
    assert cell == "cell-b"
    shown = (blank_lines + BAD).split("\n")[item["line"] - 1]
    assert shown == item["source"]
    assert shown[item["column"] - 1 :][: item["length"]] == "%äb"
    assert (item["title"], item["message"]) == ("ParseError", "%äb is not defined")
    assert item["hint"] == "list it"


def test_columns_are_those_of_a_browser(
    comm: Comm, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(monkeypatch, unknown_buffer)
    run_cell(page, '%%avial\n  "𝛼𝛽" %äb', "cell")
    ((_, (item,)),) = diagnostics(comm)
    assert item["column"] == 1 + len('  "𝛼𝛽" ') + 2  # those two letters are two units each


def test_a_mistake_in_an_earlier_cell_is_told_there(
    comm: Comm, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(monkeypatch, unknown_buffer)
    run_cell(page, BAD, "compiled")
    number = page.shell.execution_count - 1
    page.names["late"] = unknown_buffer("\n" + BAD, f"In [{number}]")
    run_cell(page, "raise late", "ran")
    assert [cell for cell, _ in diagnostics(comm)] == ["compiled", "compiled"]


def test_running_again_takes_it_back(
    comm: Comm, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(monkeypatch, unknown_buffer)
    run_cell(page, BAD, "cell")
    run_cell(page, "1", "cell")
    run_cell(page, "1", "cell")
    assert [items == [] for _, items in diagnostics(comm)] == [False, True]


def test_an_expected_error_is_no_mistake(
    comm: Comm, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(monkeypatch, unknown_buffer)
    run_cell(page, BAD.replace("%%avial", "%%avial --expect-error"), "cell")
    assert diagnostics(comm) == []


def test_a_page_that_comes_late_is_told_what_is_wrong(
    comm: Comm, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(monkeypatch, unknown_buffer)
    run_cell(page, BAD, "cell")
    late = Comm()
    page.shell.kernel.targets["avial"](late, {})  # pyright: ignore[reportAttributeAccessIssue]
    assert diagnostics(late) == diagnostics(comm)


def test_shows_a_program(comm: Comm, page: Page) -> None:
    page.names["deck"] = recorded_program("deck")
    comm.ask(do="show", name="deck")
    (answer,) = [m for m in comm.heard if m["kind"] == "program"]
    assert "application/vnd.avial+json" in answer["data"]
    assert "text/html" in answer["data"]
    comm.ask(do="show", name="gone")
    assert "no program 'gone'" in comm.heard[-1]["message"]


def test_starts_and_stops_a_cluster(
    comm: Comm, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def open_cluster(options: StartOptions, *, tell: Callable[[str], None]) -> Any:
        tell(f"{options.cpu} engines")
        assert go_on.wait(LONG_S)
        return OneProcess("a test", Topology.local(options.ranks, gpus=options.gpu)), "Started"

    monkeypatch.setattr(background, "open_cluster", open_cluster)
    comm.ask(do="start", cpu=2, gpu=1)
    comm.wait(lambda state: state["starting"] == "2 engines")
    assert page.run("1 + 1") is None  # the kernel is there meanwhile
    comm.ask(do="start", cpu=5, gpu=0)  # once is enough
    go_on.set()
    comm.wait(lambda state: state["cluster"] is not None)
    assert comm.state["starting"] is None
    assert [device["name"] for device in comm.state["cluster"]["devices"]] == [
        "cpu0",
        "cpu1",
        "cpu2",
        "gpu0",
    ]
    comm.ask(do="stop")
    assert comm.state["cluster"] is None


def test_a_start_that_fails_is_told_and_said_once(
    comm: Comm, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_cluster(*_: Any, **__: Any) -> Any:
        raise ClusterError("no mpiexec", hint="install one")

    monkeypatch.setattr(background, "open_cluster", open_cluster)
    assert page.run("%avial cluster start --background --cpu=1 --gpu=0") is None
    comm.wait(lambda state: state["failed"] is not None)
    assert "no mpiexec" in comm.state["failed"]
    monkeypatch.setattr(avial_lab, "compile", lambda *_, name, **__: recorded_program(name))
    assert page.run("%%avial --show=none\navial.schedule %a {}") is None
    assert "no mpiexec" in page.text
    assert page.run("%%avial --show=none\navial.schedule %a {}") is None
    assert "no mpiexec" not in page.text


def test_a_page_that_went_is_told_nothing(comm: Comm, page: Page) -> None:
    comm.close({})
    page.names["deck"] = recorded_program("deck")
    page.run("1")
    assert len(comm.heard) == 1
    assert magics_of(page).known_programs()
