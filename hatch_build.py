"""What the wheel holds beside the package: the JupyterLab extension, where Lab looks for it.

The interactive pictures stand in the package, beside the Python that makes their data, and are put
beside the extension's own modules. Nothing is built.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HOME = "share/jupyter/labextensions/jupyterlab-avial"


class SharedData(BuildHookInterface):
    """Found by hatch under [tool.hatch.build.targets.wheel.hooks.custom]."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        shared = build_data["shared_data"]
        shared["extensions/jupyterlab-avial"] = HOME
        for view in sorted(Path(self.root, "avial_lab", "plot", "views").glob("*")):
            if view.suffix in (".js", ".css"):
                shared[str(view)] = f"{HOME}/static/views/{view.name}"
