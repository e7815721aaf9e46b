"""Calls of compiled functions in this process: microseconds in place of milliseconds.

Version, what it was called with -> CallHere, where nothing that the code does can end this process
or take long; arguments -> the function's result.

What raises an exception, raises it here, too; Ctrl-C ends a call. On systems where it cannot, a
call is made here where one with the same arguments (sizes, integers) was made in a process of its
own before and did not take long.
"""

from __future__ import annotations

import ctypes
import math
import time
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np

from avial_lab.compiler.frontends.python.kinds import kind_of_number
from avial_lab.compiler.frontends.python.prints import LOG_HEAD
from avial_lab.compiler.frontends.python.signature import Translated
from avial_lab.compiler.frontends.python.values import Fixed
from avial_lab.core.runtime_constants import HereResult
from avial_lab.core.words import brief, format_seconds
from avial_lab.program.function_calls import (
    Sizes,
    handed_back,
    names_of,
    new_results,
    print_out,
)
from avial_lab.program.program import Program
from avial_lab.runtime.rank.here import RunHere, may_run_here, run_here

LONG_S = 0.05
"""A call that took as long runs where Ctrl-C can end it."""
CALLS_TO_RETRY = 64
"""One thread, or all: what was slower is tried again after so many calls, at first sooner."""
CALLS_TO_TRY = 4
"""With all threads but for one of them: the first has to start them, and others may be busy."""
IN_PLACE_S = 0.25
"""Calls that take longer keep a copy of what they write, for Ctrl-C may leave it half written."""
MOST_FAILURES = 100
"""Exceptions after which calls go to another process again: each may lose some small memory."""
MOST_SLOWER = 3
"""Calls in succession that took long where nothing can end them; then they go there again."""

Array = np.ndarray[Any, Any]


class Space(Protocol):
    """Where a name has a value: a module's globals, say."""

    def get(self, name: str, /) -> object: ...


Surroundings = Sequence[tuple[Space, str, object]]


class Compiled(Protocol):
    """Of a function: for one kind of call."""

    @property
    def translated(self) -> Translated: ...

    @property
    def program(self) -> Program: ...

    @property
    def sizes(self) -> Sizes: ...


@dataclass(frozen=True)
class Pace:
    """What a call took in another process, and on how much."""

    nbytes: int
    counts: Mapping[str, int]
    took_s: float

    @staticmethod
    def of(given: Mapping[str, object], took_s: float) -> Pace:
        counts = {n: int(cast("int", v)) for n, v in given.items() if _is_count(v)}
        return Pace(_nbytes(given), counts, took_s)

    def longest(self, given: Mapping[str, object]) -> float:
        """That another may take: work that grows with the square of the arrays (a product of
        matrices: their power 1.5; all pairs: 2) and with each number.
        """
        growth = max(1.0, _nbytes(given) / max(self.nbytes, 1)) ** 2
        for name, before in self.counts.items():
            now = given.get(name)
            growth *= max(1.0, abs(int(cast("int", now))) / max(abs(before), 1))
        return self.took_s * growth


def _nbytes(given: Mapping[str, object]) -> int:
    arrays = (cast("Array", v) for v in given.values() if isinstance(v, np.ndarray))
    return sum(array.nbytes for array in arrays)


def _is_count(value: object) -> bool:
    return isinstance(value, int | np.integer)


class NotHere(Exception):
    """This call has to be made in another process; nothing was done."""


class Raised(Exception):
    """What an assertion said."""


@dataclass(repr=False)
class CallHere:
    """took_s: what the last call took; None before the first. around: where the function's
    surroundings are, and what they were when it was compiled. own: the arrays of the last call's
    results. Which argument goes where: arrays, whose address is handed over; numbers, into the
    program's memory; captured ones, with their sizes. results are numbers, made are arrays. sizes:
    the open ones. Closed after `most_s` in calls. log: that of prints, by its name. paces: what a
    call takes, by the number of its threads.
    """

    program: Program
    translated: Translated
    sizes: Sizes
    run: RunHere
    names: Sequence[str]
    around: Surroundings
    took_s: float | None = None
    paces: dict[int, float] = field(default_factory=dict[int, float])
    calls: int = 0
    own: dict[str, Array] = field(default_factory=dict[str, Array])
    failures: int = 0
    slower: int = 0
    closed: bool = False
    spent_s: float = 0.0
    most_s: float = math.inf
    arrays: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    numbers: list[tuple[int, Array]] = field(default_factory=list["tuple[int, Array]"])
    captured: list[tuple[int, Array, int]] = field(default_factory=list["tuple[int, Array, int]"])
    results: list[tuple[str, Array]] = field(default_factory=list["tuple[str, Array]"])
    made: list[tuple[str, tuple[int, ...], np.dtype]] = field(
        default_factory=list["tuple[str, tuple[int, ...], np.dtype]"]
    )
    log: dict[str, Array] = field(default_factory=dict[str, Array])

    def __repr__(self) -> str:
        took = "not yet" if self.took_s is None else format_seconds(self.took_s)
        return brief(self, f"of {self.program.name}: {'no more' if self.closed else took}")

    def __call__(self, args: Sequence[object]) -> object:
        """Raises NotHere before anything is done, and Raised and KeyboardInterrupt with all arrays
        as they were.
        """
        if self.closed or not self.run.is_whole:
            raise NotHere
        for space, name, value in self.around:
            if space.get(name) is not value:
                raise NotHere
        run = self.run
        given = run.given
        with run.lock:
            own = {name: np.zeros(shape, dtype) for name, shape, dtype in self.made}
            for at, place in self.arrays:
                given[place] = _address(cast("Array", args[at]))
            for at, cell in self.numbers:
                cell[()] = args[at]
            for place, array, nbytes in self.captured:
                if array.nbytes != nbytes:  # made another size in place
                    raise NotHere
                given[place] = array.ctypes.data
            for name, array in own.items():
                given[run.place[name]] = _address(array)
            for log in self.log.values():
                log[:LOG_HEAD] = 0
            began = time.perf_counter()
            threads = self._threads()
            ended = run(in_place=self.is_in_place, threads=threads)
            self._judge(time.perf_counter() - began, threads)
            if self.log and ended != HereResult.REFUSED:
                print_out(self.translated, self.log)
            for name, cell in self.results:
                own[name] = cell.copy()
            if ended == HereResult.FAILED:
                self.failures += 1
                self.closed |= self.failures >= MOST_FAILURES
                raise Raised(run.failure())
        if ended == HereResult.STOPPED:
            raise KeyboardInterrupt
        if ended == HereResult.REFUSED:
            raise NotHere
        self.own = own
        if self.translated.result == Fixed(None):
            return None
        given_by_name = {**self.translated.captured, **dict(zip(self.names, args, strict=True))}
        return handed_back(self.translated.result, given_by_name, own, self.sizes)

    @property
    def is_in_place(self) -> bool:
        """Whether the next call needs no copies of what it writes: it comes to its end, before
        anybody has waited too long for an answer to Ctrl-C.
        """
        took_s = self.took_s
        return took_s is not None and took_s <= IN_PLACE_S and self.translated.is_certain

    def _threads(self) -> int:
        """How many are the fastest, as calls so far say: where others compute, too, a loop of a
        millisecond takes many on all cores. All where their number decides about bits.
        """
        most = self.run.threads
        if most == 1 or self.program.built.reordered:
            return most
        self.calls += 1
        if self.calls <= CALLS_TO_TRY:
            return 1 if self.calls == CALLS_TO_TRY - 1 else most
        best = min(self.paces, key=self.paces.__getitem__)
        tried_again = self.calls & (self.calls - 1) == 0 or self.calls % CALLS_TO_RETRY == 0
        return most + 1 - best if tried_again else best

    def _judge(self, took: float, threads: int) -> None:
        slow = took > LONG_S and not self.run.stops
        self.slower = self.slower + 1 if slow else 0
        self.took_s = took
        self.paces[threads] = min(took, 0.75 * self.paces.get(threads, took) + 0.25 * took)
        self.spent_s += took
        self.closed |= self.slower >= MOST_SLOWER or self.spent_s > self.most_s


def call_here(
    version: Compiled,
    given: Mapping[str, object],
    around: Surroundings,
    there_s: float | None,
    runs: dict[str, RunHere | None],
) -> CallHere | None:
    """None where the call cannot be made here. there_s: what it took in another process; None where
    it was not made there. runs: what is loaded already, by the binaries' keys; calls that differ in
    the integers that are handed over have one.
    """
    program, sizes = version.program, version.sizes
    translated = version.translated.here(given, sizes)
    if translated.apart or not may_run_here(program.binary):
        return None
    if not all(_is_plain(value) for value in (*given.values(), *translated.captured.values())):
        return None
    key = program.binary.key
    run = runs.get(key)
    if key not in runs or (run is not None and not run.is_whole):
        written = {access.storage for access in program.built.written}
        run = runs[key] = run_here(program.binary, written, new_results(translated.result, sizes))
    if run is None:
        return None
    if not run.stops and (there_s is None or there_s > LONG_S or translated.endless):
        return None
    here = CallHere(program, translated, sizes, run, list(given), around)
    for at, (name, value) in enumerate(given.items()):
        if name in run.place and isinstance(value, np.ndarray):
            here.arrays.append((at, run.place[name]))
        elif name in run.place:
            here.numbers.append((at, run.arrays[name].view(_dtype(value))))
    for name, array in translated.captured.items():
        if name in run.place:
            here.captured.append((run.place[name], array, array.nbytes))
    if translated.printing is not None:
        name = translated.printing.log
        here.log[name] = run.arrays[name].view(np.int64)
    for name, array in new_results(translated.result, sizes).items():
        if name not in run.place:
            return None
        if array.shape:
            here.made.append((name, array.shape, array.dtype))
        else:
            here.results.append((name, run.arrays[name].view(array.dtype)))
    return here


def quick_key(args: Sequence[object]) -> object:
    """Equal for calls that are alike in everything that a compiled version or its time may depend
    on; None where there is no such key.
    """
    parts: list[object] = []
    for value in args:
        kind = type(value)
        if kind is np.ndarray:
            array = cast("Array", value)
            parts.append((array.dtype, array.shape, array.strides, array.flags.writeable))
        elif kind is float or kind is np.float64 or kind is complex:
            parts.append(kind)
        elif kind is int or kind is bool or value is None or isinstance(value, np.integer):
            parts.append((kind, cast("object", value)))
        elif isinstance(value, np.inexact):
            parts.append(kind)
        else:
            return None
    return tuple(parts)


def _is_plain(value: object) -> bool:
    """No array, or one whose bytes lie as compiled code has them."""
    if not isinstance(value, np.ndarray):
        return True
    array = cast("Array", value)
    return type(array) is np.ndarray and array.flags.c_contiguous and array.dtype.isnative


def _dtype(value: object) -> np.dtype:
    kind = kind_of_number(value)
    assert kind is not None
    return kind.dtype


def _address(array: Array) -> int:
    if array.nbytes and array.flags.writeable:
        return ctypes.addressof(_BYTE.from_buffer(cast("Any", array)))
    return array.ctypes.data


_BYTE = ctypes.c_char


def surroundings_of(function: Callable[..., object]) -> Surroundings:
    """Where each name is that the function, and those that it names, take from outside."""
    found: list[tuple[Space, str, object]] = []
    _surround(function, found, set())
    return found


@dataclass(frozen=True)
class _Closure:
    """A variable of an enclosing function, as a mapping."""

    cell: types.CellType

    def get(self, _: str) -> object:
        return self.cell.cell_contents


def _surround(function: Any, found: list[Any], seen: set[object]) -> None:  # noqa: ANN401
    if function in seen:
        return
    seen.add(function)
    space = function.__globals__
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        found.append((_Closure(cell), name, cell.cell_contents))
    for name in names_of(function.__code__):
        if name not in space:
            continue
        value = space[name]
        found.append((space, name, value))
        plain = getattr(value, "py_func", value)
        if hasattr(plain, "__code__") and plain.__globals__ is space:
            _surround(plain, found, seen)
