"""The programs beside Python that make and start machine code, and where they are.

Name of a tool -> its path. Loads no MLIR: the wheels' folders are found without importing them.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import sys
from pathlib import Path

from avial_lab.errors import AvialError

_INSTALL = {
    "mlir": 'pip install "avial-lab[mlir]", or with conda the packages of environment.yml',
    "mpi": 'pip install "avial-lab[mpi]", or with conda the packages of environment.yml',
    "cc": "install gcc or clang, or name your compiler in the environment variable CC",
}

#: What brings each tool.
_BROUGHT_BY = {
    "mlir-opt": "mlir",
    "mlir-translate": "mlir",
    "opt": "mlir",
    "llc": "mlir",
    "mpiexec": "mpi",
    "cc": "cc",
}


class ToolError(AvialError):
    """A program that avial_lab calls is not installed."""


def find_tool(name: str) -> Path | None:
    """Where the tool `name` is; None where it is not installed.

    Looked for in this order: the MLIR and LLVM wheels; this Python's own environment, whether it is
    activated or not (an mpiexec must belong to the MPI that mpi4py loads); PATH.
    `cc` is $CC, or the first of cc, gcc, clang.
    """
    if name == "cc":
        return _find_compiler(os.environ.get("CC"))
    return _find_program(name)


def tool(name: str) -> Path:
    """The path of the tool `name`, which has to be there."""
    path = find_tool(name)
    if path is None:
        raise ToolError(f"the program '{name}' was not found", hint=install_hint(name))
    return path


def install_hint(name: str) -> str:
    """What to do so that the tool `name` is there."""
    brought_by = _BROUGHT_BY.get(name)
    return f"put {name} on PATH" if brought_by is None else _INSTALL[brought_by]


@functools.cache
def _find_program(name: str) -> Path | None:
    for folder in (*_wheel_folders(), Path(sys.prefix) / "bin"):
        found = shutil.which(name, path=str(folder))
        if found is not None:
            return Path(found)
    found = shutil.which(name)
    return None if found is None else Path(found)


@functools.cache
def _find_compiler(chosen: str | None) -> Path | None:
    names = (chosen,) if chosen else ("cc", "gcc", "clang")
    found = next((path for name in names if (path := shutil.which(name))), None)
    return None if found is None else Path(found)


def _wheel_folders() -> tuple[Path, ...]:
    """`mlir/bin` and `llvm/bin` of the wheels, which are not on PATH; finding is not importing."""
    specs = (importlib.util.find_spec(package) for package in ("mlir", "llvm"))
    return tuple(
        Path(folder) / "bin"
        for spec in specs
        if spec is not None
        for folder in spec.submodule_search_locations or ()
    )
