"""A program: compiled, run, checked, shown.

Text, arrays -> Program (`compile`, `analyse`), by way of the compiler's process
(`compiler_client`).

Names are loaded when they are first used: a question at the compiler needs no cluster.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avial_lab.program.compilation import Namespace, analyse, compile
    from avial_lab.program.program import Program

_HOME = {
    "Namespace": "compilation",
    "Program": "program",
    "analyse": "compilation",
    "compile": "compilation",
}

__all__ = ["Namespace", "Program", "analyse", "compile"]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"avial_lab.program.{_HOME[name]}"), name)
    raise AttributeError(f"module 'avial_lab.program' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
