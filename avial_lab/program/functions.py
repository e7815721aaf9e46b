"""Python functions as programs: translated and compiled once for each kind of call, run on the
caller's arrays.

    @avial_lab.program
    def heat(u, v, steps): …          heat(u, v, 100)   heat.explain()   heat.stages   heat.py_func

A function, what it is called with -> the same values as the function itself gives; arrays are
written in place.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from avial_lab.artifact.explanation import Explanation
from avial_lab.artifact.stages import Stages
from avial_lab.compiler.frontends.python.arithmetic import RAISES
from avial_lab.compiler.frontends.python.kinds import kind_of_number
from avial_lab.compiler.frontends.python.source import FunctionSource, source_of
from avial_lab.compiler.frontends.python.translate import (
    Argument,
    ArrayArgument,
    Fixed,
    NumberArgument,
    Result,
    ResultArray,
    ResultNumber,
    ResultView,
    Translated,
    error_of,
    translate,
)
from avial_lab.core.aliasing import checked_array
from avial_lab.core.element_types import dtype_of_element
from avial_lab.core.errors import AvialError, CellSpan, OptionError, RunError, VerifyError
from avial_lab.core.words import brief, count
from avial_lab.program.compilation import compile as compile_program
from avial_lab.program.program import Program
from avial_lab.program.session import cluster_for

if TYPE_CHECKING:
    from avial_lab.artifact.plan import Plan
    from avial_lab.trace import Trace

_RAISED = re.compile(
    rf"{RAISES}(?P<kind>\w+):(?P<line>\d+):(?P<column>\d+):(?P<words>[^\n]*)"
)
_INDEX = re.compile(r"reaches index|out of bounds|leaves|outside")


@dataclass(frozen=True)
class Version:
    """The function for one kind of call."""

    translated: Translated
    program: Program


class FunctionProgram:
    """A Python function whose calls are runs of a compiled program.

    `last` is the program of the last call; `explain`, `stages`, `notation`, `graph` and the like
    are those of it. `py_func` is the function itself.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        if isinstance(function, FunctionProgram):
            function = function.py_func
        if not inspect.isfunction(function):
            raise OptionError(
                f"a program is made of a function, not of {type(function).__name__}",
                hint="put @avial_lab.program above a def",
            )
        self.py_func = function
        self.options = dict(options)
        self.versions: dict[object, Version] = {}
        self._last: Version | None = None
        self._signature = inspect.signature(function)
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return brief(self, f"{self.py_func.__name__}: {count(len(self.versions), 'version')}")

    # -- calls -------------------------------------------------------------------------------------

    def __call__(self, *args: object, **named: object) -> Any:  # noqa: ANN401 - as the function's
        given = self._bound(args, named)
        version = self.version(given)
        arrays = _arrays(given, version.translated)
        own = self._results(version, arrays)
        program = replace(version.program, arrays=arrays | own)
        self._last = replace(version, program=program)
        with self._errors(lambda: str(program.printed)):
            program.run(**self._run_options)
        return _handed_back(version.translated.result, given, own)

    def compile(self, *args: object, **named: object) -> Program:
        """The program for such a call, without running it."""
        self._last = self.version(self._bound(args, named))
        return self._last.program

    def translated(self, *args: object, **named: object) -> str:
        """The text of MLIR that such a call runs."""
        return self._translate(self._bound(args, named)).text

    def version(self, given: Mapping[str, object]) -> Version:
        """Compiled where there was no such call before."""
        key = _key(given)
        known = self.versions.get(key)
        ranks = self._ranks()
        if known is not None and known.program.schedule.topology.ranks == ranks:
            return known
        translated = self._translate(given)
        arrays = _arrays(given, translated)
        arrays |= _new_results(translated.result)
        options = {k: v for k, v in self.options.items() if k not in _RUN}
        with self._errors(lambda: ""):
            program = compile_program(
                translated.text,
                arrays=arrays,
                cell=f"{translated.file} as MLIR",
                name=self.py_func.__name__,
                **{**options, "ranks": ranks},
            )
        made = Version(translated, program)
        self.versions[key] = made
        return made

    def _bound(self, args: tuple[object, ...], named: Mapping[str, object]) -> dict[str, object]:
        bound = self._signature.bind(*args, **named)
        bound.apply_defaults()
        return dict(bound.arguments)

    def _translate(self, given: Mapping[str, object]) -> Translated:
        return translate(
            self.py_func,
            {name: _argument(name, value) for name, value in given.items()},
            overlapping=_overlapping(given),
        )

    def _ranks(self) -> int:
        """As many as asked for; else the session's cluster's; else one."""
        wanted = self.options.get("ranks")
        if wanted is not None:
            return int(wanted)
        found = cluster_for(1)
        return 1 if found is None else found.topology.ranks

    @property
    def _run_options(self) -> dict[str, Any]:
        return {name: value for name, value in self.options.items() if name in _RUN}

    def _results(
        self, version: Version, arrays: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        return _new_results(version.translated.result)

    # -- errors ------------------------------------------------------------------------------------

    @contextmanager
    def _errors(self, printed: Callable[[], str]) -> Iterator[None]:
        """What goes wrong is told in the Python source, as Python's exception where it has one."""
        try:
            yield
        except (RunError, VerifyError) as error:
            raise self._as_python(error, printed()) from None
        except AvialError as error:
            error.span = self._told(error.span)
            raise

    def _as_python(self, error: AvialError, printed: str) -> AvialError:
        raised = _RAISED.search(printed)
        if raised is not None:
            kind: type[Exception] = getattr(
                __import__("builtins"), raised["kind"], ArithmeticError
            )
            span = self._span(int(raised["line"]), int(raised["column"]))
            return error_of(kind)(raised["words"] or raised["kind"], span=span)
        span = self._told(error.span)
        if _INDEX.search(error.message) and span is not None:
            return error_of(IndexError)(error.message, span=span, hint=error.hint)
        error.span = span
        return error

    @property
    def source(self) -> FunctionSource:
        return source_of(self.py_func)

    def _span(self, line: int, column: int) -> CellSpan:
        source = self.source
        return CellSpan(source.file, source.text, line, column)

    def _told(self, span: CellSpan | None) -> CellSpan | None:
        """With its line, where it is in the function's file."""
        if span is None or span.text:
            return span
        source = self.source
        return self._span(span.line, span.column) if span.cell == source.file else span

    # -- what a Program tells ----------------------------------------------------------------------

    @property
    def last(self) -> Program:
        if self._last is None:
            raise AvialError(
                f"{self.py_func.__name__} has not been called yet",
                hint=f"call it, or {self.py_func.__name__}.compile(…) with the same arguments",
            )
        return self._last.program

    def explain(self) -> Explanation:
        """Which line became what, and why."""
        told = self.last.explain()
        verdicts = tuple(replace(each, span=self._told(each.span)) for each in told.verdicts)
        return replace(told, verdicts=verdicts)

    @property
    def stages(self) -> Stages:
        return self.last.stages

    @property
    def notation(self) -> str:
        return self.last.notation

    @property
    def text(self) -> str:
        """What the function became, as MLIR."""
        return self.last.text

    @property
    def plan(self) -> Plan | None:
        return self.last.plan

    @property
    def trace(self) -> Trace | None:
        return self.last.trace


_RUN = ("check", "timeout", "trace", "threads", "oversubscribe")
"""Options of runs; the others are of compilation."""


# -- what a function is called with ----------------------------------------------------------------


def _argument(name: str, value: object) -> Argument:
    if isinstance(value, np.ndarray):
        checked = checked_array(name, value)
        return ArrayArgument(checked.dtype, checked.shape)
    kind = kind_of_number(value)
    if kind is not None and kind.dtype.kind in "fc":
        return NumberArgument(kind)
    if isinstance(value, list):
        raise OptionError(
            f"'{name}' is a list", hint=f"pass an array: numpy.array({name}), or a tuple"
        )
    return Fixed(value)


def _key(given: Mapping[str, object]) -> object:
    """Equal for calls that one compiled version serves."""
    parts: list[object] = []
    for value in given.values():
        if isinstance(value, np.ndarray):
            parts.append((value.dtype.str, value.shape, value.flags.writeable))
            continue
        kind = kind_of_number(value)
        if kind is not None and kind.dtype.kind in "fc":
            parts.append(kind)
        else:
            parts.append((type(value), _hashable(value)))
    return (*parts, _shared(given))


def _hashable(value: object) -> object:
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


def _shared(given: Mapping[str, object]) -> tuple[object, ...]:
    """How the arrays overlap in memory."""
    arrays = [(name, value) for name, value in given.items() if isinstance(value, np.ndarray)]
    found: list[object] = []
    for k, (name, one) in enumerate(arrays):
        for other_name, other in arrays[k + 1 :]:
            if np.may_share_memory(one, other):
                apart = one.ctypes.data - other.ctypes.data
                found.append((name, other_name, apart, one.strides, other.strides))
    return tuple(found)


def _overlapping(given: Mapping[str, object]) -> frozenset[str]:
    names: set[str] = set()
    for name, other, *_ in _shared(given):  # type: ignore[misc]
        names |= {f"%{name}", f"%{other}"}
    return frozenset(names)


def _arrays(given: Mapping[str, object], translated: Translated) -> dict[str, np.ndarray]:
    """By the program's names: the caller's, and floats as arrays of one element."""
    arrays: dict[str, np.ndarray] = {}
    for name, value in given.items():
        if isinstance(value, np.ndarray):
            arrays[name] = value
            continue
        kind = kind_of_number(value)
        if kind is not None and kind.dtype.kind in "fc":
            arrays[name] = np.array(value, kind.dtype)
    return arrays | dict(translated.captured)


def _new_results(result: Result) -> dict[str, np.ndarray]:
    match result:
        case ResultNumber(name, kind):
            return {name: np.zeros((), kind.dtype)}
        case ResultArray(name, dtype, shape):
            return {name: np.zeros(shape, dtype)}
        case tuple():
            return {name: made for each in result for name, made in _new_results(each).items()}
        case _:
            return {}


def _handed_back(
    result: Result, given: Mapping[str, object], own: Mapping[str, np.ndarray]
) -> object:
    match result:
        case ResultNumber(name, kind):
            return own[name].item() if kind.weak else own[name][()]
        case ResultArray(name):
            return own[name]
        case ResultView(argument, shape, axes):
            return _part_of(given[argument], shape, axes)
        case Fixed(value):
            return value
        case tuple():
            return tuple(_handed_back(each, given, own) for each in result)


def _part_of(
    whole: object, shape: tuple[int, ...], axes: tuple[tuple[int, int, int], ...]
) -> object:
    assert isinstance(whole, np.ndarray)
    plain = tuple((0, d, 1) for d in range(whole.ndim))
    if axes == plain and whole.shape == shape:
        return whole
    first = whole[tuple(slice(offset, None) for offset, _, _ in axes)]
    strides = [0] * len(shape)
    for (_, dim, step), stride in zip(axes, whole.strides, strict=True):
        if dim >= 0:
            strides[dim] = step * stride
    return np.lib.stride_tricks.as_strided(first, shape, strides)


_ = (field, dtype_of_element)


def program(
    function: Callable[..., Any] | None = None, **options: Any
) -> FunctionProgram | Callable[[Callable[..., Any]], FunctionProgram]:
    """Makes a program of a Python function: as `@avial_lab.program`, or with options of `compile`
    and `Program.run` as `@avial_lab.program(ranks=4, check=True)`.
    """
    if function is None:
        return lambda function: FunctionProgram(function, options)
    return FunctionProgram(function, options)
