"""The page: what avial_lab is inside Jupyter and IPython.

`%load_ext avial_lab` -> the magics `%avial` and `%%avial`, and pictures for our types. The only
folder that knows Jupyter; it holds no logic that plain Python could not call.
"""

from __future__ import annotations

import warnings

from IPython.core.interactiveshell import InteractiveShell

from avial_lab.core.errors import RenamedWarning
from avial_lab.notebook.completion import register_completion
from avial_lab.notebook.display import register_renderers
from avial_lab.notebook.inspection import register_inspection
from avial_lab.notebook.magics import AvialMagics
from avial_lab.notebook.panel import register_panel
from avial_lab.notebook.stepper import step


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Called by `%load_ext avial_lab`."""
    warnings.simplefilter("default", RenamedWarning)
    register_renderers(shell)
    magics = AvialMagics(shell)
    shell.register_magics(magics)
    register_completion(shell, magics)
    register_inspection(shell, magics)
    register_panel(shell, magics)


__all__ = ["AvialMagics", "load_ipython_extension", "register_renderers", "step"]
