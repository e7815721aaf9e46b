"""`%%avial` cells that hold a Python function.

A cell -> whether it is Python; its function and the session's variables -> a program.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from avial_lab.core.errors import BindError, ParseError
from avial_lab.program.functions import FunctionProgram


def is_python(cell: str) -> bool:
    """Whether it begins with a decorator, a def, or what stands above them.

    >>> is_python("def f(a):"), is_python("@avial_lab.program"), is_python("func.func @f() {}")
    (True, True, False)
    """
    for line in cell.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            return line.startswith(("def ", "@", "import ", "from "))
    return False


def define(
    cell: str, shell: InteractiveShell, options: Mapping[str, Any], *, name: str
) -> FunctionProgram:
    """Run the cell, as Python, and make a program of the last function in it; the variable of the
    function's name is that program from now on.
    """
    shell.run_cell(cell, store_history=False).raise_error()
    found = [node.name for node in ast.parse(cell).body if isinstance(node, ast.FunctionDef)]
    if not found:
        raise ParseError("the cell defines no function", hint="def f(a, b): …")
    function = shell.user_ns[found[-1]]
    if isinstance(function, FunctionProgram):
        options, function = {**function.options, **options}, function.py_func
    made = FunctionProgram(function, options, cell=name)
    shell.user_ns[found[-1]] = made
    return made


def arguments(
    function: FunctionProgram, names: Mapping[str, object], numbers: Mapping[str, object]
) -> dict[str, object]:
    """For each parameter the number that is given, or the variable of its name, or its default."""
    given: dict[str, object] = {}
    for name, parameter in inspect.signature(function.py_func).parameters.items():
        if name in numbers:
            given[name] = numbers[name]
        elif name in names:
            given[name] = names[name]
        elif parameter.default is inspect.Parameter.empty:
            called = function.py_func.__name__
            raise BindError(
                f"{called} takes '{name}', and no variable has that name",
                hint=f"make one, or give a number with -D {name}=…; {called} is defined: call it",
            )
    return given
