"""Python functions as programs: translated and compiled once for each kind of call, run on the
caller's arrays.

    @avial_lab.program
    def heat(u, v, steps): …          heat(u, v, 100)   heat.explain()   heat.stages   heat.py_func

A function, what it is called with -> the same values as the function itself gives; arrays are
written in place.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import re
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from avial_lab.artifact.explanation import Explanation
from avial_lab.artifact.stages import Stages
from avial_lab.compiler.frontends.python.arithmetic import RAISES
from avial_lab.compiler.frontends.python.exceptions import error_of
from avial_lab.compiler.frontends.python.liveness import counts_of
from avial_lab.compiler.frontends.python.source import FunctionSource, source_of
from avial_lab.compiler.frontends.python.tasks import Arrangement, named_in
from avial_lab.compiler.frontends.python.translate import Translated, translate
from avial_lab.core.errors import (
    AvialError,
    CellSpan,
    InternalError,
    OptionError,
    RunError,
    VerifyError,
)
from avial_lab.core.words import brief, count, format_seconds
from avial_lab.program.calls_here import (
    CallHere,
    NotHere,
    Raised,
    call_here,
    quick_key,
    surroundings_of,
)
from avial_lab.program.compilation import compile as compile_program
from avial_lab.program.function_calls import (
    argument_of,
    arrays_of,
    call_key,
    handed_back,
    new_results,
    overlapping,
    surroundings,
)
from avial_lab.program.program import Program
from avial_lab.program.session import cluster_for
from avial_lab.runtime.launch.one_rank import OneRank, one_rank
from avial_lab.runtime.native.here import RunHere
from avial_lab.trace import Trace

if TYPE_CHECKING:
    from avial_lab.artifact.plan import Plan
    from avial_lab.program.reference_run import OneProcess
    from avial_lab.runtime.launch.cluster import Cluster

_RAISED = re.compile(rf"{RAISES}(?P<kind>\w+):(?P<line>\d+):(?P<column>\d+):(?P<words>[^\n]*)")
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

    def __init__(
        self,
        function: Callable[..., Any],
        options: Mapping[str, Any],
        *,
        cell: str | None = None,
    ) -> None:
        """`cell`: what its file is called, of a notebook's cell."""
        if isinstance(function, FunctionProgram):
            function = function.py_func
        if not inspect.isfunction(function):
            raise OptionError(
                f"a program is made of a function, not of {type(function).__name__}",
                hint="put @avial_lab.program above a def",
            )
        self.py_func = function
        self.options = dict(options)
        self.cell = cell
        self.versions: dict[object, Version] = {}
        self._families: dict[object, int] = {}
        self._here: dict[object, CallHere] = {}
        self._loaded: dict[str, RunHere | None] = {}
        self._last_here: tuple[CallHere, tuple[object, ...]] | None = None
        self._isolated = (
            bool(self.options.pop("isolated", False)) or not set(self.options) <= _PLAIN
        )
        self._last: Version | None = None
        self._signature = inspect.signature(function)
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return brief(self, f"{self.py_func.__name__}: {count(len(self.versions), 'version')}")

    # -- calls -------------------------------------------------------------------------------------

    def __call__(self, *args: object, **named: object) -> Any:  # noqa: ANN401 - as the function's
        if named or len(args) != len(self._signature.parameters):
            args = tuple(self._ordered(args, named).values())
        key = quick_key(args)
        here = self._here.get(key)
        if here is not None and not self._placed:
            try:
                result = here(args)
            except NotHere:
                pass
            except Raised as raised:
                raise self._raised(str(raised)) or InternalError(str(raised)) from None
            else:
                self._last_here = here, args
                return result
        return self._call_there(args, key)

    def _call_there(self, args: tuple[object, ...], key: object) -> object:
        """On ranks, or in a process that stays."""
        given = self.taken(dict(zip(self._signature.parameters, args, strict=True)))
        version = self.version(given)
        arrays = arrays_of(given, version.translated)
        own = new_results(version.translated.result)
        program = replace(version.program, arrays=arrays | own)
        self._last, self._last_here = replace(version, program=program), None
        place = self._place(program)
        began = time.perf_counter()
        with self.errors(program):
            program.run(place, **self._run_options)
        took = time.perf_counter() - began
        if isinstance(place, OneRank) and key is not None and not self._placed:
            self._keep_here(key, version, given, took)
        return handed_back(version.translated.result, given, own)

    @property
    def _placed(self) -> bool:
        """Whether runs have a place of their own: ranks, or a process."""
        return self._isolated or cluster_for(1) is not None

    def _keep_here(
        self, key: object, version: Version, given: Mapping[str, object], took: float
    ) -> None:
        """The next call with such arguments is made in this process, where that is safe."""
        if key in self._here and self._here[key].closed:
            return
        around = surroundings_of(self.py_func)
        made = call_here(version.program, version.translated, given, around, took, self._loaded)
        if made is None:
            return
        if len(self._here) == MOST_HERE:
            self._here.pop(next(iter(self._here)))
        self._here[key] = made

    def compile(self, *args: object, **named: object) -> Program:
        """The program for such a call, without running it."""
        self._last, self._last_here = self.version(self._bound(args, named)), None
        return self._last.program

    def translated(self, *args: object, **named: object) -> str:
        """The text of MLIR that such a call runs."""
        return self._translate(self._bound(args, named)).text

    def version(self, given: Mapping[str, object]) -> Version:
        """Compiled where there was no such call before."""
        ranks, around = self._ranks(), surroundings(self.py_func)
        handed = self._handed(given)
        for names in dict.fromkeys((frozenset[str](), handed)):
            known = self.versions.get((call_key(given, names), ranks, around))
            if known is not None:
                return known
        # One value is compiled in, which serves its loops best; the third is one of any values.
        family = (call_key(given, handed), ranks, around)
        self._families[family] = self._families.get(family, 0) + 1
        if self._families[family] <= MOST_VALUES:
            handed = frozenset[str]()
        key = (call_key(given, handed), ranks, around)
        translated = self._translate(given, handed)
        arrays = arrays_of(given, translated)
        arrays |= new_results(translated.result)
        options: dict[str, Any] = {k: v for k, v in self.options.items() if k not in _RUN} | {
            "ranks": ranks
        }
        with self.errors():
            program = compile_program(
                translated.text,
                arrays=arrays,
                cell=translated.file,
                written=self.source.text,
                name=self.py_func.__name__,
                **options,
            )
        made = Version(translated, program)
        self.versions[key] = made
        return made

    def taken(self, given: Mapping[str, object]) -> dict[str, object]:
        """The arguments as the function gets them."""
        return dict(given)

    def _bound(self, args: tuple[object, ...], named: Mapping[str, object]) -> dict[str, object]:
        return self.taken(self._ordered(args, named))

    def _ordered(self, args: tuple[object, ...], named: Mapping[str, object]) -> dict[str, object]:
        bound = self._signature.bind(*args, **named)
        bound.apply_defaults()
        return dict(bound.arguments)

    def _handed(self, given: Mapping[str, object]) -> frozenset[str]:
        """The integers of a call that need not be constants of the program."""
        if self._has_tasks:
            return frozenset()
        return frozenset(
            name
            for name in counts_of(self.source)
            if type(given.get(name)) is int or isinstance(given.get(name), np.integer)
        )

    @functools.cached_property
    def _has_tasks(self) -> bool:
        called = functools.partial(named_in, self.py_func)
        return Arrangement(called, OptionError).has_tasks(self.source.tree)

    def _translate(
        self, given: Mapping[str, object], handed: frozenset[str] = frozenset()
    ) -> Translated:
        return translate(
            self.py_func,
            {n: argument_of(n, value, handed=n in handed) for n, value in given.items()},
            overlapping=overlapping(given),
            cell=self.cell,
        )

    def _ranks(self) -> int:
        """As many as asked for; else the session's cluster's; else one."""
        wanted = self.options.get("ranks")
        if wanted is not None:
            return int(wanted)
        found = cluster_for(1)
        return 1 if found is None else found.topology.ranks

    def _place(self, program: Program) -> Cluster | OneProcess | OneRank | None:
        """The session's cluster; else for one rank a process that stays."""
        ranks = program.schedule.topology.ranks
        found = cluster_for(ranks)
        if found is None and ranks == 1 and not program.schedule.topology.gpus:
            return one_rank()
        return found

    @property
    def _run_options(self) -> dict[str, Any]:
        asked = {name: value for name, value in self.options.items() if name in _RUN}
        return {"trace": False, **asked}

    # -- errors ------------------------------------------------------------------------------------

    @contextmanager
    def errors(self, program: Program | None = None) -> Generator[None]:
        """What goes wrong, in a run of `program` or before one, is told in the Python source, as
        Python's exception where it has one.
        """
        try:
            yield
        except (RunError, VerifyError) as error:
            printed = "" if program is None else str(program.printed)
            raise self._as_python(error, printed) from None
        except AvialError as error:
            error.span = self._told(error.span)
            raise

    def _as_python(self, error: AvialError, printed: str) -> AvialError:
        raised = self._raised(printed) or self._raised(error.message)
        if raised is not None:
            return raised
        span = self._told(error.span)
        if _INDEX.search(error.message) and span is not None:
            words = error.message.partition("': ")[2] or error.message  # without rank and task
            return error_of(IndexError)(words, span=span, hint=error.hint)
        error.span = span
        return error

    def _raised(self, printed: str) -> AvialError | None:
        """Python's exception that an assertion tells of."""
        raised = _RAISED.search(printed)
        if raised is None:
            return None
        kind: type[Exception] = getattr(builtins, raised["kind"], ArithmeticError)
        span = self._span(int(raised["line"]), int(raised["column"]))
        return error_of(kind)(raised["words"] or raised["kind"], span=span)

    @property
    def source(self) -> FunctionSource:
        return source_of(self.py_func, self.cell)

    def _span(self, line: int, column: int) -> CellSpan:
        source = self.source
        return CellSpan(source.file, source.text, line, column)

    def _told(self, span: CellSpan | None) -> CellSpan | None:
        """With its line, where it is in the function's file."""
        if span is None or span.cell not in (self.source.file, self.source.place):
            return span
        return self._span(span.line, span.column)

    def getdoc(self) -> str:
        """What `heat?` shows in a notebook: the function's own words, and of each kind of call how
        long it took to compile, what its loops became, and where it is made.
        """
        own = inspect.getdoc(self.py_func)
        told = [_told_of(version) for version in self.versions.values()]
        return "\n\n".join(filter(None, [own, *told])) or "not compiled yet"

    # -- what a Program tells ----------------------------------------------------------------------

    @property
    def last(self) -> Program:
        if self._last_here is not None:
            return self._bound_here(*self._last_here)
        if self._last is None:
            raise AvialError(
                f"{self.py_func.__name__} has not been called yet",
                hint=f"call it, or {self.py_func.__name__}.compile(…) with the same arguments",
            )
        return self._last.program

    def _bound_here(self, here: CallHere, args: tuple[object, ...]) -> Program:
        """The program of a call that was made in this process, on what it was made with."""
        given = dict(zip(here.names, args, strict=True))
        arrays = arrays_of(given, here.translated) | here.own
        trace = Trace(1, (), threads=(1,), note="in the calling process")
        return replace(here.program, arrays=arrays, trace=trace)

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


def _told_of(version: Version) -> str:
    """
    u: float64[20, 31], v: float64[20, 31]   compiled in 0.41 s
        line 15  S1  divided over the ranks
        calls in a process of their own: line 15: how long the loop runs depends on data
    """
    program, apart = version.program, version.translated.apart
    arrays = [f"{n}: {a.dtype}{[*a.shape]}" for n, a in program.arrays.items()]
    seconds = format_seconds(sum(program.seconds.values()))
    lines = [f"{', '.join(arrays)}   compiled in {seconds}"]
    for verdict in program.built.verdicts:
        line = "" if verdict.span is None else f"line {verdict.span.line}  "
        lines.append(f"    {line}{verdict.name}  {verdict.title}")
    if apart:
        lines.append(f"    calls in a process of their own: {apart}")
    return "\n".join(lines)


MOST_VALUES = 2
"""Of an integer that are compiled in as constants."""

MOST_HERE = 256
"""Kinds of calls that are made in this process; of one binary they share their memory."""

_PLAIN = {"ranks", "trace"}
_RUN = ("check", "timeout", "trace", "threads", "oversubscribe")
"""Options of runs; the others are of compilation."""


@overload
def program(
    function: Callable[..., Any],
    **options: Any,  # noqa: ANN401
) -> FunctionProgram: ...


@overload
def program(
    function: None = None,
    **options: Any,  # noqa: ANN401
) -> Callable[[Callable[..., Any]], FunctionProgram]: ...


def program(
    function: Callable[..., Any] | None = None,
    **options: Any,
) -> FunctionProgram | Callable[[Callable[..., Any]], FunctionProgram]:
    """Makes a program of a Python function: as `@avial_lab.program`, or with options of `compile`
    and `Program.run` as `@avial_lab.program(ranks=4, check=True)`.
    """
    if function is None:
        return lambda function: FunctionProgram(function, options)
    return FunctionProgram(function, options)
