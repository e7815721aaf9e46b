"""A run as the page shows it while it goes on: a line of text, and below it the view, if there can
be one.

Program, RunStates -> outputs that change in place, and stay as figures when the run has ended.
Whoever closes the page loses what is shown, not the run: nothing here waits for an answer.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import DisplayHandle, display

from avial_lab.notebook.display import Note, escape_lines
from avial_lab.plot.svg import escape
from avial_lab.plot.views.live import live_data, live_figure, live_state
from avial_lab.program.program import Program
from avial_lab.runtime.launch.progress import RunState

if TYPE_CHECKING:
    from avial_lab.notebook.live_widget import LiveWidget


@contextmanager
def compiling(
    name: str, shell: InteractiveShell, *, quiet: bool = False
) -> Iterator[Callable[[str], None] | None]:
    """What takes the words that `avial_lab.compile` tells of its progress: in a page they are a
    line that is gone when it is over.
    """
    if quiet or getattr(shell, "kernel", None) is None:
        yield None
        return
    began, shown = time.monotonic(), list[DisplayHandle]()

    def tell(words: str) -> None:
        line = f"compiling {name} … {time.monotonic() - began:.1f} s"
        data = _text_line(f"{line}: {words}" if words else line)
        if shown:
            shown[0].update(data, raw=True)
            return
        shown.append(DisplayHandle())
        shown[0].display(data, raw=True)

    try:
        yield tell
    finally:
        for handle in shown:
            handle.update({"text/html": "", "text/plain": ""}, raw=True)


@contextmanager
def watched(program: Program, shell: InteractiveShell) -> Iterator[LiveRun]:
    """A run of the program, asked for in a cell: shown as it goes, and what its ranks printed."""
    kernel = getattr(shell, "kernel", None)
    live = TerminalRun(program) if kernel is None else LiveRun(program, kernel)
    try:
        yield live
    finally:
        live.close()
        if program.printed:
            display(Note("The ranks printed:", str(program.printed)))


class LiveRun:
    """What a run shows. A run so short that it is never asked how it is shows nothing, unless it
    fails.
    """

    def __init__(self, program: Program, kernel: Any = None) -> None:  # noqa: ANN401 - ipykernel's
        self._program, self._kernel = program, kernel
        self._line: DisplayHandle | None = None
        self._picture: DisplayHandle | None = None
        self._widget: LiveWidget | None = None
        self._last: RunState | None = None

    def __call__(self, state: RunState) -> None:
        """`Program.run` reports its progress."""
        self._last = state
        if state.ended and self._line is None and not (state.failed and state.tasks):
            return
        self._show_line(state)
        if state.tasks and not state.ended:
            self._show_widget(state)
        self._say_busy()

    def _say_busy(self) -> None:
        """A page that has its widgets' messages answered beside the running cell (ipykernel's
        subshells) takes the end of such an answer for the cell's.
        """
        if self._kernel is not None and self._widget is not None:
            socket = self._kernel.iopub_socket
            self._kernel.send_response(socket, "status", {"execution_state": "busy"})

    def close(self) -> None:
        """The run has ended: what cannot outlive the kernel is replaced by what can."""
        state = self._last
        if self._line is None or state is None:
            return
        if self._picture is None:
            self._picture = DisplayHandle()
            self._picture.display(_figure(self._program, state), raw=True)
        else:
            self._picture.update(_figure(self._program, state), raw=True)
        if self._widget is not None:
            self._widget.close()
        self._line = self._widget = None

    def _show_line(self, state: RunState) -> None:
        if self._line is None:
            self._line = DisplayHandle()
            self._line.display(_words(self._program, state), raw=True)
        else:
            self._line.update(_words(self._program, state), raw=True)

    def _show_widget(self, state: RunState) -> None:
        if self._widget is not None:
            self._widget.state = live_state(state)
            return
        if self._picture is not None:
            return
        self._picture = DisplayHandle()
        self._widget = _widget(self._program, state)
        if self._widget is None:
            self._picture.display(_figure(self._program, state), raw=True)
        else:
            self._picture.display(self._widget)


class TerminalRun(LiveRun):
    """The line alone, over and over in its place, where that is a terminal."""

    def __call__(self, state: RunState) -> None:
        if not sys.stdout.isatty() or (state.ended and self._last is None):
            return
        self._last = state
        line = f"{self._program.name}: {state}".partition("\n")[0]
        sys.stdout.write(f"\r\x1b[2K{line[:100]}" + ("\n" if state.ended else ""))
        sys.stdout.flush()

    def close(self) -> None:
        """The line has ended with the run."""


def widgets_there() -> bool:
    """Whether widgets are installed; importing them takes a while the first time."""
    try:
        import avial_lab.notebook.live_widget  # noqa: F401 - to be there
    except ImportError:
        return False
    return True


def _widget(program: Program, state: RunState) -> LiveWidget | None:
    """The view; None where widgets are not installed: the line has the same facts."""
    if not widgets_there():
        return None
    from avial_lab.notebook.live_widget import LiveWidget

    return LiveWidget(
        live_data(program.graph, program.schedule, state, title=_title(program, state))
    )


def _title(program: Program, state: RunState) -> str:
    return f"{program.name}, rank by rank{', as it ended' if state.ended else ''}"


def _words(program: Program, state: RunState) -> dict[str, Any]:
    return _text_line(f"{program.name}: {state}")


def _text_line(line: str) -> dict[str, Any]:
    return {"text/html": f"<p>{escape_lines(line)}</p>", "text/plain": line}


def _figure(program: Program, state: RunState) -> dict[str, Any]:
    if not state.tasks:
        return {"text/html": f"<p>{escape(str(state))}</p>", "text/plain": str(state)}
    rows = "\n".join(f"  rank {rank.rank}: {rank.doing}" for rank in state.ranks)
    return {"text/html": live_figure(state, title=_title(program, state)), "text/plain": rows}
