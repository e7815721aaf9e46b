"""A program: compiled, run, checked, shown; called, it makes one of a Python function.

Text, arrays -> Program (`compile`, `analyse`), by way of the compiler's process
(`compiler_client`).

Names are loaded when they are first used: a question at the compiler needs no cluster.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

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


class _Decorator(ModuleType):
    """This package, which is also the decorator `@avial_lab.program`."""

    def __call__(self, function: Any = None, **options: Any) -> Any:  # noqa: ANN401
        """As `avial_lab.program.functions.program`."""
        from avial_lab.program.functions import program

        return program(function, **options)


sys.modules[__name__].__class__ = _Decorator


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"avial_lab.program.{_HOME[name]}"), name)
    raise AttributeError(f"module 'avial_lab.program' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
