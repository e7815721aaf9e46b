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
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from avial_lab.artifact.explanation import Explanation
from avial_lab.artifact.stages import Stages
from avial_lab.compiler.frontends.python.arithmetic import RAISES
from avial_lab.compiler.frontends.python.exceptions import error_of
from avial_lab.compiler.frontends.python.liveness import counts_of
from avial_lab.compiler.frontends.python.signature import Translated
from avial_lab.compiler.frontends.python.source import FunctionSource, not_too_deep, source_of
from avial_lab.compiler.frontends.python.tasks import Arrangement, named_in
from avial_lab.compiler.frontends.python.translate import translate
from avial_lab.compiler.options import CompileOptions
from avial_lab.core.device_arrays import in_place
from avial_lab.core.errors import (
    AvialError,
    CellSpan,
    InternalError,
    OptionError,
    RunError,
    VerifyError,
)
from avial_lab.core.stand_ins import OnRanks, StandIn
from avial_lab.core.words import brief, count, format_seconds
from avial_lab.program.annotations import Declared, declared
from avial_lab.program.calls_here import (
    CallHere,
    NotHere,
    Pace,
    Raised,
    call_here,
    quick_key,
    surroundings_of,
)
from avial_lab.program.compilation import compile as compile_program
from avial_lab.program.function_calls import (
    Shapes,
    Sizes,
    argument_of,
    arrays_of,
    call_key,
    handed_back,
    open_shapes,
    overlapping,
    own_arrays,
    print_out,
    sizes_of,
    surroundings,
)
from avial_lab.program.other_sizes import for_sizes
from avial_lab.program.program import Program
from avial_lab.program.session import cluster_for
from avial_lab.runtime.launch.one_rank import OneRank, one_rank
from avial_lab.runtime.rank.here import RunHere
from avial_lab.trace import Trace

if TYPE_CHECKING:
    from avial_lab.artifact.plan import Plan
    from avial_lab.program.reference_run import OneProcess
    from avial_lab.runtime.launch.cluster import Cluster

_RAISED = re.compile(rf"{RAISES}(?P<kind>\w+):(?P<line>\d+):(?P<column>\d+):(?P<words>[^\n]*)")
_INDEX = re.compile(r"reaches index|out of bounds|leaves|outside")


@dataclass(frozen=True)
class Version:
    """The function for one kind of call. sizes: what the open ones are in it."""

    translated: Translated
    program: Program
    sizes: Sizes


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
        self._families: dict[object, _Family] = {}
        self._paces: dict[Translated, Pace] = {}
        self._here: dict[object, CallHere] = {}
        self._loaded: dict[str, RunHere | None] = {}
        self._last_here: tuple[CallHere, tuple[object, ...]] | None = None
        CompileOptions.of(**{k: v for k, v in options.items() if k not in _OF_FUNCTIONS})
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
                self._last_here = here, args
                raise self._raised(str(raised)) or InternalError(str(raised)) from None
            else:
                self._last_here = here, args
                return result
        return self._call_there(args, key)

    def _call_there(self, args: tuple[object, ...], key: object) -> object:
        """On ranks, or in a process that stays."""
        given = self._taken(dict(zip(self._signature.parameters, args, strict=True)))
        here = self._here.get(key)
        if here is not None and here.spent_s > here.most_s:
            self._spent(given, self._here.pop(key).spent_s)
        elif here is not None and not here.run.is_whole:
            del self._here[key]
        version = self.version(given)
        if key is not None and key not in self._here and not self._placed:
            self._keep_here(key, version, given)
            if key in self._here:
                return self(*args)
        translated, sizes = version.translated, version.sizes
        own = own_arrays(translated, sizes)
        arrays = arrays_of(given, translated) | own
        program = replace(version.program, arrays=arrays)
        self._last, self._last_here = replace(version, program=program), None
        place = self._place(program)
        began = time.perf_counter()
        with self.errors(program):
            program.run(place, **self._run_options)
        took = time.perf_counter() - began
        if sizes:
            self._spent(given, took)
        if isinstance(place, OneRank) and key is not None and not self._placed:
            self._paces[version.translated] = Pace.of(given, took)
            self._keep_here(key, version, given)
        print_out(translated, own)
        return handed_back(translated.result, {**translated.captured, **given}, own, sizes)

    @property
    def _placed(self) -> bool:
        """Whether runs have a place of their own: ranks, or a process."""
        return self._isolated or cluster_for(1) is not None

    def _spent(self, given: Mapping[str, object], took_s: float) -> None:
        """In a call by a version for any size."""
        handed = self._handed(given)
        key = (
            call_key(given, handed, self._open_shapes(given)),
            self._ranks(given),
            self._around(),
        )
        family, size = self._families.get(key), call_key(given, handed)
        if family is not None:
            family.spent[size] = family.spent.get(size, 0.0) + took_s

    def _keep_here(self, key: object, version: Version, given: Mapping[str, object]) -> None:
        """The next call with such arguments is made in this process, where that is safe."""
        if key in self._here and self._here[key].closed:
            return
        around = surroundings_of(self.py_func)
        pace = self._paces.get(version.translated)
        there_s = None if pace is None else pace.longest(given)
        made = call_here(version, given, around, there_s, self._loaded)
        if made is None:
            return
        if version.sizes and not self.options.get("dynamic"):
            made.most_s = MOST_OPEN_S
        if len(self._here) == MOST_HERE:
            self._here.pop(next(iter(self._here)))
        self._here[key] = made
        self._make_room()

    def _make_room(self) -> None:
        """The first of many sizes go."""
        while len(self._loaded) > 1:
            kept = sum(run.nbytes for run in self._loaded.values() if run is not None)
            if kept <= MOST_HERE_BYTES:
                return
            gone = self._loaded.pop(next(iter(self._loaded)))
            self._here = {key: here for key, here in self._here.items() if here.run is not gone}

    def compile(self, *args: object, **named: object) -> Program:
        """The program for such a call, without running it."""
        self._last, self._last_here = self.version(self._bound(args, named)), None
        return self._last.program

    def translated(self, *args: object, **named: object) -> str:
        """The text of MLIR that such a call runs."""
        return self._translate(self._bound(args, named)).text

    def version(self, given: Mapping[str, object]) -> Version:
        """Compiled where there was no such call before."""
        found = self._version(given)
        translated = found.translated
        if not (translated.unless and (translated.counts or translated.sizes)):
            return found
        if not translated.here(given, sizes_of(translated, given)).apart:
            return found
        # A subscript may leave its array, or looks like it: what it does is said for this call.
        key = call_key(given), self._ranks(given), self._around()
        if key not in self.versions or self.versions[key].translated.counts:
            self.versions[key] = self._compiled(self._translate(given), given)
        return self.versions[key]

    def _version(self, given: Mapping[str, object]) -> Version:
        ranks, around = self._ranks(given), self._around()
        handed = self._handed(given)
        for names in dict.fromkeys((frozenset[str](), handed)):
            known = self.versions.get((call_key(given, names), ranks, around))
            if known is not None:
                return known
        shapes = self._open_shapes(given)
        key = (call_key(given, handed, shapes), ranks, around)
        family = self._families.setdefault(key, _Family(self.options.get("dynamic")))
        size = call_key(given, handed)
        opened = self.versions.get(key)
        if opened is not None and not family.is_worth_its_own(size):
            return self._of_size(opened, given)
        # Sizes and a value are compiled in, which serves loops best; other sizes are of any size,
        # and the third value is one of any values.
        if opened is None and shapes is not None and family.is_open(size):
            made = self._open_version(given, handed, shapes)
            if made is not None:
                self.versions[key] = made
                family.same_bits = not made.program.built.reordered
                return made
            family.closed = True
        family.values[size] = family.values.get(size, 0) + 1
        if family.values[size] <= MOST_VALUES:
            handed = frozenset[str]()
        translated = self._translate(given, handed)
        made = self._compiled(translated, given)
        self.versions[call_key(given, handed), ranks, around] = made
        return made

    def _around(self) -> object:
        return surroundings(self.py_func)

    @functools.cached_property
    def _declared(self) -> Declared | None:
        return declared(self.py_func)

    def compile_ahead(self) -> None:
        """For any size, where annotations say what the arguments are: `u: "f64[n, m]"`."""
        if self._declared is None or self.options.get("dynamic") is False:
            return
        given = self._declared.sample()
        handed, shapes = self._handed(given), self._open_shapes(given)
        counts = {name for name, value in given.items() if isinstance(value, int | np.integer)}
        if shapes is None or counts - handed:
            return  # an integer that has to be known
        made = self._open_version(given, handed, shapes)
        if made is not None:
            self.versions[call_key(given, handed, shapes), self._ranks(given), self._around()] = (
                made
            )

    def _open_shapes(self, given: Mapping[str, object]) -> Shapes | None:
        """None where the sizes are constants of the program."""
        if not set(self.options) <= _OPEN or self._has_tasks or overlapping(given):
            return None
        if any(isinstance(value, StandIn) for value in given.values()):
            return None
        if self._declared is not None:
            named = self._declared.shapes_of(given)
            if named is not None:
                return named
        shapes = open_shapes(given)
        is_open = any(isinstance(n, str) for shape in shapes.values() for n in shape)
        return shapes if is_open else None

    def _open_version(
        self, given: Mapping[str, object], handed: frozenset[str], shapes: Shapes
    ) -> Version | None:
        """None where it has to know its sizes, to be right or to be divided."""
        try:
            translated = self._translate(given, handed, shapes)
        except AvialError:
            return None  # what is wrong with the function is told where its sizes are known
        if translated.spare and self._ranks(given) > 1:
            return None
        made = self._compiled(translated, given, dynamic=True)
        return made if made.program.built.dynamic else None

    def _of_size(self, version: Version, given: Mapping[str, object]) -> Version:
        """One of any size, for these."""
        sizes = sizes_of(version.translated, given)
        arrays = arrays_of(given, version.translated) | own_arrays(version.translated, sizes)
        if not self._isolated and isinstance(self._place(version.program), OneRank):
            spare = [each.name for each in version.translated.spare]
            program = for_sizes(version.program, arrays, spare)
            if program is not None:
                return Version(version.translated, program, sizes)
        if sizes == version.sizes:
            return version
        made = self._compiled(version.translated, given, dynamic=True)
        self.versions[call_key(given), self._ranks(given), self._around()] = made
        return made

    def _compiled(
        self, translated: Translated, given: Mapping[str, object], *, dynamic: bool = False
    ) -> Version:
        sizes = sizes_of(translated, given)
        arrays = arrays_of(given, translated) | own_arrays(translated, sizes)
        return Version(translated, self._program(translated, arrays, dynamic=dynamic), sizes)

    def _program(
        self, translated: Translated, arrays: Mapping[str, object], *, dynamic: bool
    ) -> Program:
        options: dict[str, Any] = {k: v for k, v in self.options.items() if k not in _RUN}
        options |= {"ranks": self._ranks(arrays), "dynamic": dynamic}
        with self.errors():
            return compile_program(
                translated.text,
                arrays=arrays,
                cell=translated.file,
                written=self.source.text,
                name=self.py_func.__name__,
                **options,
            )

    def taken(self, given: Mapping[str, object]) -> dict[str, object]:
        """The arguments as the function gets them."""
        return dict(given)

    def _bound(self, args: tuple[object, ...], named: Mapping[str, object]) -> dict[str, object]:
        return self._taken(self._ordered(args, named))

    def _taken(self, given: Mapping[str, object]) -> dict[str, object]:
        return self.taken({name: in_place(name, value) for name, value in given.items()})

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
            for name in self._counts
            if type(given.get(name)) is int or isinstance(given.get(name), np.integer)
        )

    @functools.cached_property
    def _counts(self) -> frozenset[str]:
        with not_too_deep(self.py_func.__name__):
            return counts_of(self.source)

    @functools.cached_property
    def _has_tasks(self) -> bool:
        called = functools.partial(named_in, self.py_func)
        with not_too_deep(self.py_func.__name__):
            return Arrangement(called, OptionError).has_tasks(self.source.tree)

    def _translate(
        self,
        given: Mapping[str, object],
        handed: frozenset[str] = frozenset(),
        shapes: Shapes | None = None,
    ) -> Translated:
        with not_too_deep(self.py_func.__name__):
            return translate(
                self.py_func,
                {n: argument_of(n, v, handed=n in handed, shapes=shapes) for n, v in given.items()},
                overlapping=overlapping(given),
                cell=self.cell,
            )

    def _ranks(self, given: Mapping[str, object]) -> int:
        """Those that have the arrays; else as many as asked for, the session's, or one."""
        for value in given.values():
            if isinstance(value, OnRanks):
                return value.given.ranks
        wanted = self.options.get("ranks")
        if wanted is not None:
            return int(wanted)
        found = cluster_for(1)
        return 1 if found is None else found.topology.ranks

    def _place(self, program: Program) -> Cluster | OneProcess | OneRank | None:
        """The session's cluster; else for one rank a process that stays; None where arrays lie."""
        if any(isinstance(array, OnRanks) for array in program.arrays.values()):
            return None
        ranks = program.schedule.topology.ranks
        found = None if program.binary.manifest.homes else cluster_for(ranks)
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
            here, args = self._last_here
            return self._told_for(self._bound_here(here, args), here.translated)
        if self._last is None:
            raise AvialError(
                f"{self.py_func.__name__} has not been called yet",
                hint=f"call it, or {self.py_func.__name__}.compile(…) with the same arguments",
            )
        program = self._told_for(self._last.program, self._last.translated)
        if program is not self._last.program:
            self._last = replace(self._last, program=program)
        return program

    def _told_for(self, program: Program, translated: Translated) -> Program:
        """With graph, plan and explanations for the sizes of its arrays."""
        bound = program.question.source.binding
        shapes = {} if bound is None else {each.name: each.shape for each in bound.buffers}
        if all(shapes.get(name, a.shape) == a.shape for name, a in program.arrays.items()):
            return program
        told = self._program(translated, program.arrays, dynamic=True)
        return replace(told, trace=program.trace, printed=program.printed)

    def _bound_here(self, here: CallHere, args: tuple[object, ...]) -> Program:
        """The program of a call that was made in this process, on what it was made with."""
        given = dict(zip(here.names, args, strict=True))
        arrays = arrays_of(given, here.translated) | own_arrays(here.translated, here.sizes)
        arrays |= here.own
        threads = (here.run.threads,)
        trace = Trace(1, (), threads=threads, note="in the calling process")
        return replace(here.program, arrays=arrays, trace=trace)

    def explain(self) -> Explanation:
        """Which line became what, and why."""
        told = self.last.explain()
        reports = tuple(replace(each, span=self._told(each.span)) for each in told.reports)
        return replace(told, reports=reports)

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


@dataclass
class _Family:
    """Versions for calls that differ in sizes and integers alone. dynamic: what the person says of
    it. values: of how many kinds of integers each size was compiled. spent: seconds in calls of
    each size by the version for any. closed: sizes have to be constants. same_bits: the version for
    one size computes what the one for any does, sums of floats among it.
    """

    dynamic: bool | None
    values: dict[object, int] = field(default_factory=dict[object, int])
    spent: dict[object, float] = field(default_factory=dict[object, float])
    closed: bool = False
    same_bits: bool = False

    def is_open(self, size: object) -> bool:
        """Whether a call of that size is one of any size."""
        if self.closed or self.dynamic is False:
            return False
        return bool(self.dynamic) or (bool(self.values) and size not in self.values)

    def is_worth_its_own(self, size: object) -> bool:
        """Whether so much is computed of that size that a version for it alone pays: loops over
        large arrays are up to twice as fast.
        """
        spent = self.spent.get(size, 0.0)
        return self.same_bits and not self.dynamic and spent > MOST_OPEN_S


def _told_of(version: Version) -> str:
    """
    u: float64[20, 31], v: float64[20, 31]   compiled in 0.41 s
        line 15  S1  divided over the ranks
        calls in a process of their own: line 15: what a subscript reaches is known only …
    """
    program, apart = version.program, version.translated.apart
    arrays = [f"{n}: {a.dtype}{[*a.shape]}" for n, a in program.arrays.items()]
    seconds = format_seconds(sum(program.seconds.values()))
    lines = [f"{', '.join(arrays)}   compiled in {seconds}"]
    for report in program.built.reports:
        line = "" if report.span is None else f"line {report.span.line}  "
        lines.append(f"    {line}{report.name}  {report.title}")
    if apart:
        lines.append(f"    calls in a process of their own: {apart}")
    return "\n".join(lines)


MOST_VALUES = 2
"""Of an integer that are compiled in as constants."""

MOST_HERE = 256
"""Kinds of calls that are made in this process; of one binary they share their memory."""

MOST_OPEN_S = 1.0
"""Of calls of one size by a version for any; then that size gets one of its own."""

MOST_HERE_BYTES = 256 << 20
"""Of second copies of arrays, of all sizes together."""

_PLAIN = {"ranks", "trace", "dynamic"}
_RUN = ("check", "timeout", "trace", "threads", "oversubscribe")
"""Options of runs; the others are of compilation."""
_OF_FUNCTIONS = {*_RUN, "isolated", "topology", "progress"}
"""Those that are no fields of CompileOptions."""
_OPEN = {"ranks", "strict", "dynamic", *_RUN}
"""Options of functions that are compiled for any size."""


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

    The sizes of the first call are compiled in; a call with others compiles once more, for any
    size. With `dynamic` that is so from the first call on, with `dynamic=False` never. Where
    annotations say what all arguments are (`u: "f64[n, m]"`, `k: int`) it is compiled here.

    Python's integers have 64 bits here, and wrap; one that is known to be out of bounds of NumPy's
    that it meets is refused, as NumPy refuses it.

    Where NumPy leaves a choice: `np.argsort` of any kind keeps equal elements in their order (as
    `kind="stable"` does; NumPy's default may not), and sums are added in any order, with `strict`
    in that of a loop.
    """

    def made(function: Callable[..., Any]) -> FunctionProgram:
        found = FunctionProgram(function, options)
        found.compile_ahead()
        return found

    return made if function is None else made(function)
