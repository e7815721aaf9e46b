"""A machine as a widget, in which it can be changed and saved; predictions then take it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from avial_lab.core.errors import AvialError, BindError
from avial_lab.core.files import written_whole
from avial_lab.machine.alike import changed
from avial_lab.machine.topology import Topology
from avial_lab.machine.topology_file import topology_text
from avial_lab.notebook.asking_widget import AskingWidget, script_and_style
from avial_lab.plot.views.topology import topology_data
from avial_lab.program.session import use_machine


class TopologyWidget(AskingWidget):
    """`topology` is the machine as it is now; what is changed is this session's, for predictions
    that name no other, until it is set back.
    """

    _esm, _css = script_and_style("topology")

    def __init__(self, topology: Topology) -> None:
        self.topology = self._before = topology
        super().__init__(topology_data(topology))

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._answer(question)
        except AvialError as error:
            return {"error": {"message": error.message, "hint": error.hint}}

    def _answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        if question["want"] == "save":
            return {"told": f"Written: {self.save(Path(str(question['file'])))}"}
        if question["want"] == "back":
            self.topology = self._before
            use_machine(None)
            return {**topology_data(self.topology), "told": "as it was"}
        made = changed(self.topology, question["values"])
        if made is self.topology:
            return {"told": "nothing is changed"}
        self.topology = made
        use_machine(made)
        told = "%avial plan and simulate() now take this machine"
        return {**topology_data(made), "told": told}

    def save(self, path: Path) -> Path:
        """As a file of YAML. Raises BindError where it cannot be written."""
        if path.suffix not in (".yaml", ".yml"):
            raise BindError(f"{path} is not the name of a file of YAML", hint="machine.yaml")
        text = topology_text(self.topology)
        try:
            with written_whole(path) as file:
                file.write(text)
        except OSError as error:
            raise BindError(f"cannot write {path}: {error.strerror}") from None
        return path

    def still(self) -> dict[str, str]:
        data = topology_data(self.topology)
        return {"text/plain": str(self.topology), "text/html": data["picture"]}
