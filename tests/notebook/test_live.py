"""A run as the page shows it: a line that changes, a view where there are widgets, a figure that
stays.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from avial_lab.notebook import live
from avial_lab.notebook.live import LiveRun, TerminalRun, compiling, watched
from avial_lab.notebook.live_widget import LiveWidget
from avial_lab.plot.views import source
from avial_lab.plot.views.live import live_data, live_figure, live_state
from avial_lab.program.program import Program
from avial_lab.runtime.launch.progress import RankNow, RunState, TaskNow, TaskState
from avial_lab.runtime.rank.output import Printed
from tests.notebook.conftest import Page

BEGINS = RunState(0.0, waiting="new engines")
GOES = RunState(
    1.0,
    (TaskNow("task1", TaskState.DONE), TaskNow("<b>task2", TaskState.RUNNING, (1,), 3, 10)),
    (RankNow(0, "finished", 2, 2, 80, True), RankNow(1, "in task '<b>task2' on cpu1", 1, 2)),
    sent_bytes=80,
)
FAILED = replace(
    GOES, tasks=(GOES.tasks[0], replace(GOES.tasks[1], state=TaskState.FAILED)),
    ended="rank 1 of 2 died of <SIGSEGV>", failed=True,
)  # fmt: skip
DONE = replace(GOES, ended="done", ranks=GOES.ranks[:1])


class Shown:
    """Stands for an output that changes in place; all that it ever showed."""

    made: list[Shown]

    def __init__(self) -> None:
        self.contents: list[Any] = []
        self.made.append(self)

    def display(self, content: object, *, raw: bool = False) -> None:
        self.contents.append(content)

    update = display


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Shown]:
    Shown.made = []
    monkeypatch.setattr(live, "DisplayHandle", Shown)
    return Shown.made


def test_a_line_and_a_view_then_a_line_and_a_figure(program: Program, shown: list[Shown]) -> None:
    run = LiveRun(program)
    for state in (BEGINS, GOES, replace(GOES, elapsed_s=2.0), FAILED):
        run(state)
    line, picture = shown
    (widget,) = picture.contents
    assert isinstance(widget, LiveWidget)
    assert "0x" not in repr(widget)
    assert widget.state["line"] == str(replace(GOES, elapsed_s=2.0))
    run.close()
    assert len(line.contents) == 4
    assert line.contents[0]["text/plain"] == "deck: 0.0 s: waiting for new engines"
    assert (
        "1.0 s: 1 of 2 tasks done; running: <b>task2 (iteration 3 of 10)"
        in (line.contents[1]["text/plain"])
    )
    figure = picture.contents[-1]
    assert "<figure" in figure["text/html"]
    assert "rank 1: in task '<b>task2' on cpu1" in figure["text/plain"]
    assert widget.comm is None, "the widget is gone: a saved page would show that it is broken"
    for content in (*line.contents, figure):
        assert "<b>" not in content["text/html"]
        assert "<SIG" not in content["text/html"]


def test_what_is_too_short_to_watch_shows_nothing_unless_it_fails(
    program: Program, shown: list[Shown]
) -> None:
    run = LiveRun(program)
    run(DONE)
    run.close()
    assert shown == []
    run = LiveRun(program)
    run(FAILED)
    run.close()
    line, picture = shown
    assert "failed: <b>task2" in line.contents[0]["text/plain"]
    assert "<figure" in picture.contents[0]["text/html"]


def test_without_widgets_the_same_facts_are_text(
    program: Program, shown: list[Shown], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "widgets_there", lambda: False)
    run = LiveRun(program)
    for state in (GOES, DONE):
        run(state)
    run.close()
    _, picture = shown
    assert all("text/plain" in content for content in picture.contents)


def test_in_a_terminal_one_line_is_written_over(
    program: Program, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = TerminalRun(program)
    run(GOES)
    assert capsys.readouterr().out == "", "a file is no terminal"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for state in (GOES, DONE):
        run(state)
    written = capsys.readouterr().out
    assert written.count("\r") == 2
    assert written.endswith("done\n")


def test_what_ranks_printed_is_shown_also_when_the_run_fails(page: Page, program: Program) -> None:
    page.names["go"] = lambda: _fail_in(program, page)
    assert "it failed" in str(page.run("go()"))
    assert page.text == "The ranks printed:\n[0-1]  <i>hello"
    assert "<i>" not in page.html


def _fail_in(program: Program, page: Page) -> None:
    with watched(program, page.shell):
        program.printed = Printed({0: ("<i>hello",), 1: ("<i>hello",)})
        raise RuntimeError("it failed")


def test_the_data_are_plain_and_a_state_is_what_the_graph_understands(program: Program) -> None:
    data = live_data(program.graph, program.schedule, GOES, title="deck")
    assert json.loads(json.dumps(data)) == data
    assert data["state"]["status"] == {
        "task1": "done", "<b>task2": {"state": "running", "note": "iteration 3 of 10"},
    }  # fmt: skip
    stopped = replace(GOES, tasks=(TaskNow("task1", TaskState.STOPPED),))
    assert live_state(stopped)["status"] == {"task1": {"state": "failed", "note": "stopped"}}
    assert [rank["share"] for rank in data["state"]["ranks"]] == [1.0, 0.5]
    assert [rank["words"] for rank in data["state"]["ranks"]] == [
        "finished, 80 B sent", "in task '<b>task2' on cpu1, 1 of 2 steps done, 0 B sent",
    ]  # fmt: skip


def test_of_how_much_nobody_knows_there_is_no_share() -> None:
    state = live_state(replace(GOES, ranks=(RankNow(0, "in task 'S1' on cpu0", 12, 0),)))
    assert state["share"] is None
    assert state["ranks"][0]["share"] is None
    assert state["ranks"][0]["words"] == "in task 'S1' on cpu0, 12 steps done, 0 B sent"


def test_what_the_compiler_is_at_is_a_line_until_it_is_over(shown: list[Shown]) -> None:
    page: Any = SimpleNamespace(kernel=object())
    with compiling("deck", page) as tell:
        assert tell is not None
        assert shown == []  # nothing is told for half a second
        tell("after stage mpi, pass <tile-time>")
        tell("machine code")
    first, second, last = (content["text/html"] for content in shown[0].contents)
    assert re.fullmatch(
        r"<p>compiling deck … [\d.]+ s: after stage mpi, pass &lt;tile-time&gt;</p>", first
    )
    assert second.endswith("s: machine code</p>")
    assert last == ""
    terminal: Any = SimpleNamespace()
    for shell, quiet in ((page, True), (terminal, False)):
        with compiling("deck", shell, quiet=quiet) as tell:
            assert tell is None


def test_many_tasks_are_counted_not_listed(program: Program) -> None:
    many = RunState(1.0, tuple(TaskNow(f"t{k}", TaskState.RUNNING) for k in range(100_000)))
    state = live_state(many)
    assert len(json.dumps(state)) < 1000
    assert "running: t0, t1, t2 and 99997 more" in state["line"]
    assert len(live_figure(many, title="many")) < 100_000


def test_the_widget_is_one_module_that_asks_nobody() -> None:
    script = str(LiveWidget._esm)
    assert script.count("export ") == 2  # the view's mount, and anywidget's default
    assert "import " not in script.replace("important", "")
    assert "http" not in source("live")[0] + source("live")[1]
