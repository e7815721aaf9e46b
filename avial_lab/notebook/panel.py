"""What JupyterLab's side panel and editors are sent, and what they request.

Cluster, programs, mistakes -> JSON by the comm `avial`, pushed when it is new; this process owns
all of it. A page opens the comm; each may be gone at any time.

    page -> kernel   {"do": "start", "cpu", "gpu"} | {"do": "stop"} | {"do": "show", "name"}
    kernel -> page   {"kind": "state", …} | {"kind": "diagnostics", "cell", "items"}
                     | {"kind": "program", "name", "data"} | {"kind": "failed", "message"}
"""

from __future__ import annotations

import threading
import time
from typing import Any

from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell

from avial_lab.core.errors import AvialError
from avial_lab.notebook.clusters import StartOptions
from avial_lab.notebook.diagnostics import Diagnostics
from avial_lab.notebook.display import View
from avial_lab.notebook.magics import AvialMagics
from avial_lab.program.program import Program
from avial_lab.runtime.launch.cluster import Cluster, ClusterState

TARGET = "avial"
_PASSING = (ClusterState.RESTARTING, ClusterState.RUNNING)
_LOOK_S = 0.25
"""How often a cluster in a passing state is polled, to see when it is over."""


def register_panel(shell: InteractiveShell, magics: AvialMagics) -> None:
    """Where the shell is a kernel's; a terminal has no panel."""
    manager = getattr(getattr(shell, "kernel", None), "comm_manager", None)
    if manager is None:
        return
    panel = Panel(shell, magics)
    magics.tell = panel.tell
    manager.register_target(TARGET, panel.opened)
    for event, callback in (("pre_run_cell", panel.before), ("post_run_cell", panel.after)):
        for old in [c for c in shell.events.callbacks[event] if _is_panels(c)]:
            shell.events.unregister(event, old)
        shell.events.register(event, callback)


def _is_panels(callback: object) -> bool:
    """Of an earlier `%load_ext`."""
    return type(getattr(callback, "__self__", None)).__qualname__ == Panel.__qualname__


class Panel:
    """The pages connected to this kernel, and what they were sent last."""

    def __init__(self, shell: InteractiveShell, magics: AvialMagics) -> None:
        self._shell, self._magics = shell, magics
        self._pages: list[Any] = []
        self._last_sent: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._looking = False
        self._diagnostics = Diagnostics(self._tell_of_cell)

    def opened(self, page: Any, _: Any) -> None:  # noqa: ANN401 - a comm of ipykernel's
        """A page has come."""
        self._pages.append(page)
        page.on_msg(lambda message: self._asked(page, message["content"]["data"]))
        page.on_close(lambda _: self._pages.remove(page))
        page.send({"kind": "state", **self._state()})
        for cell, items in self._diagnostics.by_cell.items():
            page.send({"kind": "diagnostics", "cell": cell, "items": items})

    def before(self, info: ExecutionInfo) -> None:
        self._diagnostics.before(info)

    def after(self, result: ExecutionResult) -> None:
        self._diagnostics.after(result)
        self.tell()

    def tell(self) -> None:
        """The state, if it is new; from any thread."""
        with self._lock:
            state = self._state()
            if state == self._last_sent:
                return
            self._last_sent = state
        self._send({"kind": "state", **state})
        if self._passing() and not self._looking:
            self._looking = True
            threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        """A cluster does not say when its new engines are up."""
        while self._passing():
            time.sleep(_LOOK_S)
        self._looking = False
        self.tell()

    def _passing(self) -> bool:
        cluster = self._magics.cluster
        return isinstance(cluster, Cluster) and cluster.status.state in _PASSING

    def _asked(self, page: Any, question: dict[str, Any]) -> None:  # noqa: ANN401
        """A mistake is the page's to show; the kernel goes on."""
        try:
            self._do(page, question)
        except AvialError as error:
            page.send({"kind": "failed", "message": str(error)})
        self.tell()

    def _do(self, page: Any, question: dict[str, Any]) -> None:  # noqa: ANN401
        magics = self._magics
        if question["do"] == "start" and not (magics.starting and magics.starting.going_on):
            magics.stop_cluster()
            cpu, gpu = int(question["cpu"]), int(question["gpu"])
            magics.start_in_background(StartOptions(cpu, gpu))
        elif question["do"] == "stop":
            magics.stop_cluster()
        elif question["do"] == "show":
            program = magics.known_programs().get(question["name"])
            formatter = self._shell.display_formatter
            if program is None or formatter is None:
                raise AvialError(f"there is no program '{question['name']}' any more")
            data, _ = formatter.format(View(program))
            page.send({"kind": "program", "name": question["name"], "data": data})

    def _tell_of_cell(self, cell: str) -> None:
        items = self._diagnostics.by_cell.get(cell, [])
        self._send({"kind": "diagnostics", "cell": cell, "items": items})

    def _send(self, message: dict[str, Any]) -> None:
        for page in list(self._pages):
            page.send(message)

    def _state(self) -> dict[str, Any]:
        starting = self._magics.starting
        return {
            "version": 1,
            "cluster": self._cluster(),
            "starting": starting.words if starting and starting.going_on else None,
            "failed": starting.error if starting else None,
            "programs": [_program(p) for p in self._magics.known_programs().values()],
        }

    def _cluster(self) -> dict[str, Any] | None:
        cluster = self._magics.cluster
        if cluster is None:
            return None
        real = isinstance(cluster, Cluster)
        return {
            "id": cluster.id if real else "",
            "state": cluster.status.state.value if real else "one process",
            "told": str(cluster.status),
            "devices": [
                {
                    "name": device.name,
                    "arch": device.arch,
                    "rank": device.rank,
                    "node": device.node,
                    "emulated": device.emulated,
                }
                for device in cluster.topology.devices
            ],
        }


def _program(program: Program) -> dict[str, Any]:
    return {
        "name": program.name,
        "cell": program.cell,
        "tasks": len(program.graph.tasks),
        "levels": len(program.graph.levels),
        "ranks": program.schedule.topology.ranks,
        "run": program.status,
    }
