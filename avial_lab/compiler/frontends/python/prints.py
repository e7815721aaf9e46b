"""`print` in a function: what is to be printed goes into memory, and is printed after the run.

The arguments of a print -> lines of MLIR that put the numbers into a log, which is an array of the
program like any other: prints come in the program's order, on however many ranks it runs. The log
after a run -> the text, made by Python's own print of Python's own objects.

    words of the log:  words behind these two | prints | site, its numbers | site, its numbers | …
"""

from __future__ import annotations

import ast
import io
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from avial_lab.compiler.frontends.python.arithmetic import constant
from avial_lab.compiler.frontends.python.kinds import INT, INT64, Kind
from avial_lab.compiler.frontends.python.linear import Linear, number
from avial_lab.compiler.frontends.python.values import (
    Array,
    Fixed,
    Lazy,
    Number,
    Value,
    whole,
)

if TYPE_CHECKING:
    from avial_lab.compiler.frontends.python.translate import Translation

MOST_WORDS = 1 << 15
"""Of a call's prints; those that do not fit are counted, not kept."""
MOST_OF_ONE = 1 << 12
"""Of one print."""
LOG_HEAD = 2
"""Words before the first print's: how many there are behind them, and of how many prints."""
_EDGE = 3
_WHOLE = 1000
"""NumPy prints the first and last three of each dimension of an array with more elements."""


# -- what is printed -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Told:
    """Known when it is compiled."""

    value: object


@dataclass(frozen=True)
class Slot:
    """A number: one word, two of a complex one."""

    kind: Kind


@dataclass(frozen=True)
class Slots:
    """An array, or of a large one what NumPy prints of it."""

    dtype: np.dtype
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Parts:
    """A tuple."""

    parts: tuple[Layout, ...]


@dataclass(frozen=True)
class Formatted:
    """Of an f-string: `{value!r:spec}`."""

    value: Layout
    conversion: str
    spec: str


@dataclass(frozen=True)
class Joined:
    """An f-string."""

    parts: tuple[Layout, ...]


Layout = Told | Slot | Slots | Parts | Formatted | Joined


@dataclass(frozen=True)
class Site:
    """One print of the source."""

    given: tuple[Layout, ...]
    sep: str
    end: str


@dataclass(frozen=True)
class Printing:
    """log: the argument that is the log."""

    log: str
    sites: tuple[Site, ...]

    def new_log(self) -> np.ndarray[Any, Any]:
        return np.zeros(MOST_WORDS, np.int64)

    def text(self, log: np.ndarray[Any, Any]) -> str:
        """What was printed."""
        used, prints = int(log[0]), int(log[1])
        words = iter(log[LOG_HEAD : LOG_HEAD + used].tolist())
        out = io.StringIO()
        kept = 0
        for at in words:
            site = self.sites[at]
            given = [_read(layout, words) for layout in site.given]
            print(*given, sep=site.sep, end=site.end, file=out)
            kept += 1
        if prints > kept:
            print(f"… {prints - kept:,} more prints", file=out)
        return out.getvalue()


def _read(layout: Layout, words: Iterator[int]) -> object:
    match layout:
        case Told(value):
            return value
        case Slot(kind):
            element = _elements(kind.dtype, 1, words)[0]
            return element.item() if kind.weak else element
        case Slots(dtype, shape):
            array = np.zeros(shape, dtype)
            for corner in _corners(shape):
                part = array[corner]
                part[...] = _elements(dtype, part.size, words).reshape(part.shape)
            return array
        case Parts(parts):
            return tuple(_read(each, words) for each in parts)
        case Formatted(value, conversion, spec):
            read = _read(value, words)
            read = {"r": repr, "s": str, "a": ascii}.get(conversion, lambda x: x)(read)
            return format(read, spec)
        case Joined(parts):
            return "".join(str(_read(each, words)) for each in parts)


def _elements(dtype: np.dtype, count: int, words: Iterator[int]) -> np.ndarray[Any, Any]:
    """From the low bytes of their words."""
    per = 2 if dtype.kind == "c" else 1
    taken = np.array(list(itertools.islice(words, count * per)), np.int64)
    real = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    bits = taken.astype(np.dtype(f"u{real.itemsize}"))
    return bits.view(real).view(dtype)


def _corners(shape: Sequence[int]) -> list[tuple[slice, ...]]:
    """The parts that are kept.

    >>> _corners((4,)), _corners((2000,))
    ([(slice(0, 4, None),)], [(slice(0, 3, None),), (slice(1997, 2000, None),)])
    """
    if math.prod(shape) <= _WHOLE:
        return [tuple(slice(0, n) for n in shape)]
    ends = [
        [slice(0, n)] if n <= 2 * _EDGE else [slice(0, _EDGE), slice(n - _EDGE, n)] for n in shape
    ]
    return list(itertools.product(*ends))


# -- how it is translated --------------------------------------------------------------------------


class Prints:
    """The prints of one translation, which are in the program's log."""

    def __init__(self, translation: Translation) -> None:
        self.t = translation
        self.sites: list[Site] = []
        self.log: Array | None = None

    @property
    def told(self) -> Printing | None:
        return None if self.log is None else Printing(self.log.memory[1:], tuple(self.sites))

    def write(self, node: ast.Call) -> None:
        """The arguments are computed in any case, and kept where there is room."""
        words = {"sep": " ", "end": "\n"}
        for keyword in node.keywords:
            words |= self._option(keyword)
        values: list[Number | Array] = []
        given = tuple(self._layout(each, values) for each in node.args)
        if self.log is None:
            self.log = self._new_log()
        site = len(self.sites)
        self.sites.append(Site(given, words["sep"], words["end"]))
        self._keep(site, values, self.log)

    def _option(self, keyword: ast.keyword) -> dict[str, str]:
        value = keyword.value
        if keyword.arg in ("sep", "end") and isinstance(value, ast.Constant):
            default = " " if keyword.arg == "sep" else "\n"
            if value.value is None:
                return {keyword.arg: default}
            if isinstance(value.value, str):
                return {keyword.arg: value.value}
        if keyword.arg == "flush":
            return {}
        raise self.t.refused(
            "print takes sep= and end=, texts that are constants, here", "leave it out", node=value
        )

    def _new_log(self) -> Array:
        name = "printed"
        while name in self.t.arguments:
            name += "_"
        self.t.e.taken |= {f"%{name}"}
        return whole(f"%{name}", INT64, (MOST_WORDS,))

    # -- layouts ---

    def _layout(self, node: ast.expr, values: list[Number | Array]) -> Layout:
        if isinstance(node, ast.JoinedStr):
            return Joined(tuple(self._piece(each, values) for each in node.values))
        with self.t.e.at(node):
            return self._of(self.t.expression(node), values, node)

    def _piece(self, node: ast.expr, values: list[Number | Array]) -> Layout:
        if not isinstance(node, ast.FormattedValue):
            return self._layout(node, values)
        parts = node.format_spec.values if isinstance(node.format_spec, ast.JoinedStr) else []
        if not all(isinstance(each, ast.Constant) for each in parts):
            raise self.t.refused("a format is a constant here", "write its digits out", node=node)
        spec = "".join(str(each.value) for each in parts if isinstance(each, ast.Constant))
        conversion = chr(node.conversion) if node.conversion > 0 else ""
        return Formatted(self._layout(node.value, values), conversion, spec)

    def _of(self, value: Value, values: list[Number | Array], node: ast.AST) -> Layout:
        match value:
            case Number() if value.known is not None:
                known = np.array(value.known, value.kind.dtype)
                return Told(known.item() if value.kind.weak else known[()])
            case Number():
                values.append(value)
                return Slot(value.kind)
            case Lazy() if value.shape and value.mask is None:
                return self._of(self.t.arrays.materialised(value), values, node)
            case Array() if value.shape:
                shape = tuple(extent.known for extent in value.shape)
                sizes = tuple(n for n in shape if n is not None)
                if len(sizes) < len(shape):
                    raise self.t.refused("an array that is printed has a known size", "", node=node)
                values.append(value)
                return Slots(value.kind.dtype, sizes)
            case Array() | Lazy():
                return self._of(self.t.number(value, node), values, node)
            case tuple():
                return Parts(tuple(self._of(each, values, node) for each in value))
            case Fixed(inner) if inner is None or isinstance(inner, str | np.dtype):
                return Told(inner)
            case _:
                raise self.t.refused(
                    "print takes numbers, arrays and texts here", "print it outside", node=node
                )

    # -- lines ---

    def _keep(self, site: int, values: Sequence[Number | Array], log: Array) -> None:
        t, e = self.t, self.t.e
        words = 1 + sum(map(_words_of, values))
        if words > MOST_OF_ONE:
            raise t.refused("one print takes a few arrays at most", "print them one by one")
        used = t.arrays.load(log, [number(0)])
        end = e.value(f"arith.addi {used.ssa}, {t.a.value(constant(words), INT64)} : i64")
        room = t.a.value(constant(MOST_WORDS - LOG_HEAD - MOST_OF_ONE), INT64)
        fits = e.value(f"arith.cmpi sle, {end}, {room} : i64")
        # What does not fit goes where nobody reads: without a branch, loops around it stay loops.
        first = e.value(f"arith.select {fits}, {used.ssa}, {room} : i64")
        first = e.value(f"arith.index_cast {first} : i64 to index")
        place = Linear({first: 1}, LOG_HEAD)
        self._put(t.a.value(constant(site), INT64), place)
        place = place + number(1)
        for value in values:
            if isinstance(value, Number):
                self._put_number(t.a.value(value), value.kind, place)
            else:
                self._put_array(value, place)
            place = place + number(_words_of(value))
        after = e.value(f"arith.select {fits}, {end}, {used.ssa} : i64")
        t.arrays.store(Number(INT, ssa=after), log, [number(0)])
        prints = t.arrays.load(log, [number(1)])
        one = t.a.value(constant(1), INT64)
        more = e.value(f"arith.addi {prints.ssa}, {one} : i64")
        t.arrays.store(Number(INT, ssa=more), log, [number(1)])

    def _put_array(self, array: Array, place: Linear) -> None:
        per = 2 if array.kind.is_complex else 1
        for corner in _corners([extent.known or 0 for extent in array.shape]):
            sizes = [part.stop - part.start for part in corner]
            with self.t.arrays.nest(tuple(number(n) for n in sizes)) as at:
                source = [i + number(part.start) for i, part in zip(at, corner, strict=True)]
                value = self.t.arrays.load(array, source)
                where = place
                for d, index in enumerate(at):
                    where = where + index.scaled(per * math.prod(sizes[d + 1 :]))
                self._put_number(self.t.a.value(value), value.kind, where)
            place = place + number(per * math.prod(sizes))

    def _put_number(self, ssa: str, kind: Kind, place: Linear) -> None:
        """Its bits, in the low ones of a word."""
        e = self.t.e
        if kind.is_complex:
            for k, part in enumerate(("re", "im")):
                real = Kind(np.dtype(f"f{kind.dtype.itemsize // 2}"))
                each = e.value(f"complex.{part} {ssa} : {kind.mlir}")
                self._put_number(each, real, place + number(k))
            return
        bits = 1 if kind.is_bool else 8 * kind.dtype.itemsize
        if kind.is_float:
            ssa = e.value(f"arith.bitcast {ssa} : {kind.mlir} to i{bits}")
        if bits < 64:
            ssa = e.value(f"arith.extui {ssa} : i{bits} to i64")
        self._put(ssa, place)

    def _put(self, word: str, place: Linear) -> None:
        assert self.log is not None
        at = self.t.e.index(place)
        self.t.e.line(f"memref.store {word}, {self.log.memory}[{at}] : {self.log.type}")


def _words_of(value: Number | Array) -> int:
    per = 2 if value.kind.is_complex else 1
    if isinstance(value, Number):
        return per
    corners = _corners([extent.known or 0 for extent in value.shape])
    return per * sum(math.prod(p.stop - p.start for p in corner) for corner in corners)
