"""The parts of the simulator in C, compiled once for this machine and cached.

Name of a file here -> its functions.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

from avial_lab.core.c_compiler import CCompiler, loaded
from avial_lab.core.errors import AvialError
from avial_lab.core.toolchain import find_tool

_FLAGS = ("-std=c11", "-O2", "-fPIC", "-shared", "-ffp-contract=off", "-Wall", "-Wextra")
"""No contraction: the same times on every machine."""


def native(name: str) -> ctypes.CDLL:
    """Raises AvialError where there is no C compiler."""
    path = find_tool("cc")
    if path is None:
        raise AvialError("there is no C compiler", hint="install gcc or clang, or set CC")
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return loaded(CCompiler(path.name, str(path), _FLAGS).build(text))
