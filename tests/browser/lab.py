"""JupyterLab for the tests: a server of its own, and notebooks as a person works with them.

Everything waits for what the page shows; nothing sleeps.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import psutil
from playwright.sync_api import Locator, Page, expect

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "notebooks"
START_S = 90.0
CELL_S = 90.0
"""A cell is done, or the server up, within so long on a machine that does much else."""

MARK = "AVIAL_TEST_LAB"
"""In the environment of every process that the server starts, directly or not."""

SETTINGS = {
    # Cells out of sight stay in the page: a test finds them without scrolling. No question for
    # the kernel that the notebook names.
    "@jupyterlab/notebook-extension/tracker": {
        "windowingMode": "none",
        "autoStartDefaultKernel": True,
    },
    # No question about news in the corner.
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}


class Lab:
    """A JupyterLab server on 127.0.0.1 that knows nothing of the user's own settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "notebooks"
        self.folder.mkdir()
        self.mark, self._token = secrets.token_hex(8), secrets.token_hex(16)
        self._runtime, self._log = folder / "runtime", folder / "server.log"
        settings = folder / "settings"
        for plugin, values in SETTINGS.items():
            file = settings / f"{plugin}.jupyterlab-settings"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(values))
        _install_extension(folder / "data" / "labextensions" / "jupyterlab-avial")
        variables = {
            MARK: self.mark,
            "JUPYTER_CONFIG_DIR": folder / "config",
            "JUPYTER_DATA_DIR": folder / "data",
            "JUPYTER_PREFER_ENV_PATH": "0",  # its extension, and not the installed one
            "JUPYTER_RUNTIME_DIR": self._runtime,
            "JUPYTERLAB_SETTINGS_DIR": settings,
            "JUPYTERLAB_WORKSPACES_DIR": folder / "workspaces",
            "JUPYTER_TOKEN": self._token,
            "IPYTHONDIR": folder / "ipython",
            "XDG_CACHE_HOME": folder / "cache",
            "XDG_RUNTIME_DIR": folder / "run",
            "PYTHONPATH": ROOT,
        }
        (folder / "run").mkdir(mode=0o700)
        command = [
            sys.executable,
            "-m",
            "jupyterlab",
            "--no-browser",
            "--allow-root",
            "--expose-app-in-browser",
            "--ServerApp.ip=127.0.0.1",
            "--ServerApp.port=0",
            "--ServerApp.terminals_enabled=False",
            f"--ServerApp.root_dir={self.folder}",
        ]
        with self._log.open("wb") as log:
            self._server = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                env=os.environ | {name: str(value) for name, value in variables.items()},
            )
        self.url = self._address()

    def _address(self) -> str:
        """What the server wrote down when it was ready to be asked."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._server.poll() is None:
            for file in self._runtime.glob("jpserver-*.json"):
                with contextlib.suppress(json.JSONDecodeError):  # half written
                    return json.loads(file.read_text())["url"]
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._server.wait(0.05)
        self.stop()
        raise AssertionError(f"JupyterLab did not start:\n{self.log()}")

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-8000:]

    def address(self, path: str) -> str:
        """The page of the notebook at `path`, in a workspace without the tabs of other tests."""
        return f"{self.url}lab/tree/{path}?reset&token={self._token}"

    def ask(self, path: str, *, method: str = "GET") -> Any:
        """What the server's own interface answers (`api/kernels`)."""
        headers = {"Authorization": f"token {self._token}"}
        request = urllib.request.Request(self.url + path, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=CELL_S) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def add(self, name: str, cells: Sequence[str] | None = None) -> str:
        """The path of a fresh notebook: a copy of `notebooks/NAME.ipynb`, or of these cells."""
        path = f"{name}-{secrets.token_hex(3)}.ipynb"
        if cells is None:
            shutil.copy(NOTEBOOKS / f"{name}.ipynb", self.folder / path)
        else:
            spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
            notebook = nbformat.v4.new_notebook(metadata={"kernelspec": spec})
            notebook.cells = [
                nbformat.v4.new_code_cell(text, id=f"cell{number}")
                for number, text in enumerate(cells)
            ]
            nbformat.write(notebook, self.folder / path)
        return path

    def read(self, path: str) -> nbformat.NotebookNode:
        """The notebook as it is on disk."""
        return nbformat.read(self.folder / path, as_version=4)

    def processes(self, words: str = "") -> list[psutil.Process]:
        """All that the server started, directly or not, with `words` in their command; also those
        that outlived who started them.
        """
        return [process for process, command in self._started() if words in command]

    def _started(self) -> Iterator[tuple[psutil.Process, str]]:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                zombie = process.status() == psutil.STATUS_ZOMBIE
                if not zombie and process.environ().get(MARK) == self.mark:
                    yield process, " ".join(process.cmdline())

    def wait_for_some(self, words: str, *, timeout_s: float = 60) -> None:
        """Until there is a process with `words` in its command."""
        deadline = time.monotonic() + timeout_s
        while not self.processes(words):
            assert time.monotonic() < deadline, f"no {words} after {timeout_s} s"
            time.sleep(0.05)

    def wait_for_none(self, words: str, *, timeout_s: float = 30) -> None:
        """Until no process with `words` in its command is left."""
        deadline = time.monotonic() + timeout_s
        while left := self.processes(words):
            assert time.monotonic() < deadline, f"still there after {timeout_s} s: {left}"
            time.sleep(0.05)

    def stop_kernels(self) -> None:
        """As `Shut Down All Kernels`; what they started has to go as well."""
        for session in self.ask("api/sessions"):
            self.ask(f"api/sessions/{session['id']}", method="DELETE")
        for kernel in self.ask("api/kernels"):
            self.ask(f"api/kernels/{kernel['id']}", method="DELETE")

    def stop(self) -> list[str]:
        """The server gone; the commands of what it left behind (and what is ended here)."""
        self._server.terminate()
        try:
            self._server.wait(30)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        started = self.processes()
        psutil.wait_procs(started, timeout=30)
        left = list(self._started())
        for process, _ in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        return [command for _, command in left]


def _install_extension(home: Path) -> None:
    """As the checkout has it, before any that pip put elsewhere (`hatch_build.py`)."""
    shutil.copytree(ROOT / "extensions" / "jupyterlab-avial", home)
    views = home / "static" / "views"
    views.mkdir(exist_ok=True)
    for file in (ROOT / "avial_lab" / "plot" / "views").glob("*"):
        if file.suffix in (".js", ".css"):
            shutil.copy(file, views)


@dataclass(frozen=True)
class Notebook:
    """A notebook open in a page; cells are counted from 0, as in the file."""

    lab: Lab
    page: Page
    path: str

    @property
    def panel(self) -> Locator:
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")

    @property
    def cells(self) -> Locator:
        return self.panel.locator(".jp-Cell")

    def cell(self, number: int) -> Locator:
        return self.cells.nth(number)

    def code_cell(self, text: str) -> int:
        """The number of the code cell that begins with `text`."""
        sources = [cell.source for cell in self.lab.read(self.path).cells]
        return next(number for number, source in enumerate(sources) if source.startswith(text))

    def output(self, number: int) -> Locator:
        """All outputs of a cell."""
        return self.cell(number).locator(".jp-Cell-outputArea")

    def command(self, name: str, *, wait: bool = True) -> None:
        """One of JupyterLab's own commands, as a menu calls it; not waited for where it asks."""
        self.page.evaluate(
            """([name, wait]) => {
                const done = window.jupyterapp.commands.execute(name);
                if (wait) return done.then(() => {});
                done.catch(() => {});
            }""",
            [name, wait],
        )

    def wait_until_drawn(self) -> None:
        expect(self.cells.first).to_be_visible(timeout=START_S * 1000)

    def wait_until_ready(self) -> None:
        """The cells are drawn and the kernel waits for work."""
        self.wait_until_drawn()
        self.wait_until_idle()

    def wait_until_idle(self) -> None:
        """The kernel is there and has nothing to do."""
        self.page.wait_for_function(
            """() => {
                const session = window.jupyterapp.shell.currentWidget?.sessionContext;
                return session?.isReady && session.session?.kernel?.status === 'idle';
            }""",
            timeout=START_S * 1000,
        )

    def select(self, number: int) -> None:
        """The cell is the active one, in command mode."""
        self.page.evaluate(
            """number => {
                const notebook = window.jupyterapp.shell.currentWidget.content;
                notebook.deselectAll();
                notebook.mode = 'command';
                notebook.activeCellIndex = number;
                notebook.activate();
            }""",
            number,
        )

    def start(self, number: int) -> None:
        """Run one cell, and do not wait for it."""
        self.select(number)
        self._begin("notebook:run-cell", [number])

    def wait_for(self, number: int, *, timeout_s: float = CELL_S) -> None:
        """Until the cell has run, however it was started. (Its number is not always to be seen:
        an input may be folded.)
        """
        self.page.wait_for_function(
            """number => {
                const cell = window.jupyterapp.shell.currentWidget.content.widgets[number];
                const { executionCount, executionState } = cell.model;
                return cell.node.dataset.going === undefined && executionCount !== null &&
                    (executionState ?? "idle") === "idle";
            }""",
            arg=number,
            timeout=timeout_s * 1000,
        )

    def run(self, number: int, *, timeout_s: float = CELL_S) -> Locator:
        """Run one cell and wait; its outputs."""
        self.start(number)
        self.wait_for(number, timeout_s=timeout_s)
        return self.output(number)

    def run_all(self, *, timeout_s: float = 2 * CELL_S) -> None:
        """Every cell has run, in order."""
        cells = enumerate(self.lab.read(self.path).cells)
        code = [number for number, cell in cells if cell.cell_type == "code"]
        self._begin("notebook:run-all-cells", code)
        for number in code:
            self.wait_for(number, timeout_s=timeout_s)

    def _begin(self, command: str, numbers: list[int]) -> None:
        """Start what runs these cells; until it is over they are marked: the number of an earlier
        run may still stand before them.
        """
        self.page.evaluate(
            """([command, numbers]) => {
                const notebook = window.jupyterapp.shell.currentWidget.content;
                const cells = numbers.map(number => notebook.widgets[number].node);
                cells.forEach(cell => cell.dataset.going = "");
                const over = () => cells.forEach(cell => delete cell.dataset.going);
                window.jupyterapp.commands.execute(command).then(over, over);  // not awaited
            }""",
            [command, numbers],
        )

    def write(self, number: int, text: str) -> None:
        """Replace a cell's text, as by the keyboard."""
        self.cell(number).locator(".cm-content").click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(text)

    def save(self) -> None:
        """The file on disk is what the page shows."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")

    def restart(self) -> None:
        """A new kernel, as by `Restart Kernel`, without the question."""
        self.page.evaluate(
            "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
        )
        self.wait_until_idle()

    def close(self) -> None:
        """The tab is closed; the kernel goes on, as JupyterLab has it."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.dispose()")

    def theme(self, name: str) -> None:
        """`JupyterLab Dark`, `JupyterLab Light`."""
        self.page.evaluate(
            "name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})",
            name,
        )
        light = json.dumps("Light" in name)
        expect(self.page.locator(f"body[data-jp-theme-light={light!r}]")).to_be_attached()
