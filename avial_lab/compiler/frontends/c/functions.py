"""A function of a C file, as what is translated like a Python function.

C text, a function's name -> CFunction; ParseError or VerifyError at the place in the C text.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import Parameter as Argument
from inspect import Signature
from pathlib import Path
from typing import Any

import numpy as np
from pycparser import c_ast, c_parser

from avial_lab.compiler.frontends.c.convert import (
    ABS,
    CALL,
    MAX,
    MIN,
    NUMPY,
    Called,
    Conversion,
    Parameter,
    Refuse,
)
from avial_lab.compiler.frontends.c.names import name_apart
from avial_lab.compiler.frontends.c.preprocess import preprocessed
from avial_lab.compiler.frontends.python.source import GIVEN, FunctionSource, not_too_deep
from avial_lab.core.errors import (
    AvialError,
    BindError,
    CellSpan,
    OptionError,
    ParseError,
    VerifyError,
)
from avial_lab.core.words import shortened


@dataclass(frozen=True)
class CFunction:
    """function: a Python function of the same name and parameters, whose source is the C text."""

    source: FunctionSource
    parameters: tuple[Parameter, ...]
    function: types.FunctionType

    def taken(self, given: Mapping[str, object]) -> dict[str, object]:
        """The arguments as C takes them: numbers converted to the types of the parameters. Raises
        BindError for an array of another type or size.
        """
        return {each.name: self._taken(each, given[each.name]) for each in self.parameters}

    def _taken(self, parameter: Parameter, value: object) -> object:
        name, dtype = parameter.name, np.dtype(parameter.dtype)
        if parameter.extents is None:
            return _number(name, dtype, value)
        if not isinstance(value, np.ndarray):
            raise BindError(f"'{name}' is an array in C", hint=f"pass numpy.array({name})")
        wanted = "".join(f"[{'' if e is None else e}]" for e in parameter.extents)
        fits = value.ndim == len(parameter.extents) and all(
            extent in (None, own)
            for extent, own in zip(parameter.extents, value.shape, strict=True)
        )
        if value.dtype != dtype or not fits:
            raise BindError(
                f"'{name}' is {dtype} {name}{wanted} in C, and was given an array of "
                f"{value.dtype}{[*value.shape]}",
                hint="pass an array of that shape and dtype",
            )
        return value


def _number(name: str, dtype: np.dtype, value: object) -> object:
    """As C converts it."""
    number: Any = value
    try:
        if isinstance(value, str | bytes) or np.ndim(number):
            raise TypeError  # Python makes a number of '3', and of an array of one
        return int(number) if dtype.name in ("int32", "int64") else dtype.type(number)
    except (TypeError, ValueError, OverflowError):
        given = "an array" if isinstance(value, np.ndarray) else shortened(repr(value), 40)
        raise BindError(f"'{name}' is a number in C ({dtype}), and was given {given}") from None


def c_function(
    text: str,
    file: str,
    name: str | None = None,
    *,
    include: Sequence[str | Path] = (),
    define: Mapping[str, object] | None = None,
) -> CFunction:
    """The function of that name, by default the only one, in a text that is called `file`."""
    plain = preprocessed(text, file, include=include, define=define or {})
    try:
        with not_too_deep(file):
            tree = c_parser.CParser().parse(plain, file)
    except c_parser.ParseError as error:
        raise _syntax(str(error), file, text) from None

    def refuse(words: str, hint: str, node: c_ast.Node) -> AvialError:
        coord = node.coord
        line, column = (1, 1) if coord is None else (coord.line, coord.column or 1)
        return VerifyError(words, span=CellSpan(file, text, line, column), hint=hint or None)

    found = _defined(tree, file, name)
    with not_too_deep(file):
        return _File(tree, file, text, refuse).converted(found)


class _File:
    """The functions of a text, which know each other."""

    def __init__(self, tree: c_ast.FileAST, file: str, text: str, refuse: Refuse) -> None:
        self.file, self.text, self.refuse = file, text, refuse
        self.typedefs = {e.name: e.type for e in tree.ext if isinstance(e, c_ast.Typedef)}
        self.defined = {e.decl.name: e for e in tree.ext if isinstance(e, c_ast.FuncDef)}
        self.constants = {e.name: e for e in tree.ext if _is_constant(e)}
        for definition in self.defined.values():
            name_apart(definition)
        self.around: dict[str, Any] = {
            NUMPY: np, ABS: abs, MAX: max, MIN: min, "VerifyError": VerifyError
        }  # fmt: skip
        self.known: dict[str, Called] = {}

    def converted(self, definition: c_ast.FuncDef) -> CFunction:
        conversion = Conversion(definition, self.typedefs, self.refuse, self.called, self.constants)
        made, parameters = conversion.function()
        source = FunctionSource(made.name, self.file, self.text, made, from_end=False)
        return CFunction(source, parameters, _stub(source, parameters, self.around))

    def called(self, name: str) -> Called | None:
        definition = self.defined.get(name)
        if definition is None:
            return None
        if name not in self.known:
            conversion = Conversion(definition, self.typedefs, self.refuse)
            self.known[name] = conversion.signature()
            self.around[CALL + name] = self.converted(definition).function
        return self.known[name]


def _is_constant(node: c_ast.Node) -> bool:
    """A number of the whole text that nothing changes."""
    plain = isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.TypeDecl)
    return plain and node.init is not None and "const" in node.quals


def _defined(tree: c_ast.FileAST, file: str, name: str | None) -> c_ast.FuncDef:
    functions = {
        each.decl.name: each
        for each in tree.ext
        if isinstance(each, c_ast.FuncDef) and each.coord is not None and each.coord.file == file
    }
    if not isinstance(name, str | None):
        raise OptionError(f"the name of a function must be a str, not {type(name).__name__}")
    if name is None and len(functions) == 1:
        return next(iter(functions.values()))
    if name in functions:
        return functions[name]
    near = get_close_matches(name or "", functions, n=1)
    words = "there is no function in it" if not functions else f"it has {', '.join(functions)}"
    problem = f"no function '{name}' in {file}" if name else f"which function of {file} is meant?"
    raise ParseError(problem, hint=f"did you mean '{near[0]}'?" if near else words)


def _syntax(message: str, file: str, text: str) -> ParseError:
    """`kernel.c:3:7: before: x`."""
    _, _, rest = message.partition(f"{file}:")
    line, _, rest = rest.partition(":")
    column, _, words = rest.partition(":")
    if not (line.isdigit() and column.isdigit()):
        return ParseError(f"this is no C that is known here: {message}")
    span = CellSpan(file, text, int(line), int(column))
    return ParseError(f"this is no C that is known here{words}", span=span)


def _stub(
    source: FunctionSource, parameters: Sequence[Parameter], around: dict[str, Any]
) -> types.FunctionType:
    """around: what it takes from outside, other functions of the text among it."""

    def called(*args: object) -> object:
        raise VerifyError("a C function cannot be run as Python", hint="call the program")

    made = types.FunctionType(called.__code__, around, source.name)
    order = [Argument(each.name, Argument.POSITIONAL_OR_KEYWORD) for each in parameters]
    marked: Any = made
    marked.__signature__ = Signature(order)
    marked.__module__ = source.file
    setattr(made, GIVEN, source)
    return made
