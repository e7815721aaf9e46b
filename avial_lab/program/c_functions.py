"""Functions of C files as programs, as `functions.py` makes them of Python functions.

gemm = avial_lab.from_c("gemm.c", "kernel_gemm", define={"NI": 200})
gemm(200, 220, 240, 1.5, 1.2, C, A, B)                     gemm.explain()   gemm.stages
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from avial_lab.compiler.frontends.c.functions import CFunction, c_function
from avial_lab.core.errors import OptionError
from avial_lab.core.files import text_of
from avial_lab.program.functions import FunctionProgram


class CProgram(FunctionProgram):
    """A function of a C text; its arrays are NumPy's, written in place, its numbers converted."""

    def __init__(self, found: CFunction, options: Mapping[str, Any]) -> None:
        super().__init__(found.function, options)
        self.c_function = found

    def taken(self, given: Mapping[str, object]) -> dict[str, object]:
        return self.c_function.taken(given)


def from_c(
    path: str | Path,
    name: str | None = None,
    *,
    include: Sequence[str | Path] = (),
    define: Mapping[str, object] | None = None,
    **options: Any,  # noqa: ANN401
) -> CProgram:
    """The function `name` of the C file, by default its only one, as a program.

    Loops, conditions, arithmetic and math.h on numbers and arrays with constant or variable
    extents. Headers are looked for beside the file and in `include`; the system's are not read.
    `define` sets macros. Options are those of `compile` and `Program.run`.
    """
    path = Path(path)
    text = text_of(path)
    _check_types(include, define or {})
    around = [path.parent.absolute(), *include]
    return CProgram(c_function(text, path.name, name, include=around, define=define), options)


def _check_types(include: object, define: object) -> None:
    if isinstance(include, str) or not isinstance(include, Sequence):
        raise OptionError(f"include is a list of folders, not {type(include).__name__}")
    if not isinstance(define, Mapping):
        raise OptionError(f"define maps macros to values; got {type(define).__name__}")
