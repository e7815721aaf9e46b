"""What a translation is made for, and what comes of it: arguments, results, the program's text."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import SupportsIndex, cast

import numpy as np

from avial_lab.compiler.frontends.python.kinds import Kind
from avial_lab.compiler.frontends.python.linear import Linear
from avial_lab.compiler.frontends.python.prints import Printing
from avial_lab.compiler.frontends.python.values import Fixed, Shape

MOST_FIXED = 8
"""Up to there a size is part of the program: one of coordinates or colours, say."""


@dataclass(frozen=True)
class ArrayArgument:
    """A size that is a word is open; those of one word are equal."""

    dtype: np.dtype
    shape: tuple[int | str, ...]


@dataclass(frozen=True)
class NumberArgument:
    """A number that is handed over when it runs."""

    kind: Kind


Argument = ArrayArgument | NumberArgument | Fixed


@dataclass(frozen=True)
class ResultNumber:
    name: str
    kind: Kind


@dataclass(frozen=True)
class ResultArray:
    """A new array; `memory` is the program's argument that it is."""

    name: str
    dtype: np.dtype
    shape: Shape


@dataclass(frozen=True)
class ResultView:
    """A part of an argument: one (offset, dim, step) for each dimension of it."""

    argument: str
    shape: Shape
    axes: tuple[tuple[Linear, int, int], ...]


@dataclass(frozen=True)
class ResultPart:
    """The first elements of a new array: along each dimension as many as the run says."""

    array: ResultArray
    counts: tuple[ResultNumber, ...]


Result = ResultNumber | ResultArray | ResultPart | ResultView | Fixed | tuple["Result", ...]


@dataclass(frozen=True, eq=False)
class Translated:
    """captured: arrays of the function's surroundings that are arguments, too. handed: the numbers
    that a run is given, as arrays of one element. apart: why it has to run in a process of its own;
    empty where nothing in it can end the process. endless: why it may take any time; empty where
    that is not so. unless: it need not run apart where there are some, and none is negative, of
    sizes and of `counts`, by what they are called there: integers among the arguments. sizes: the
    open ones by what results' shapes call them: of which argument, along which dimension. spare:
    memory to work in, as large as these say. printing: what a run puts into a log of it.
    """

    text: str
    result: Result
    captured: Mapping[str, np.ndarray]
    file: str
    handed: frozenset[str] = frozenset()
    apart: str = ""
    endless: str = ""
    unless: tuple[Linear, ...] = ()
    counts: Mapping[str, str] = field(default_factory=dict[str, str])
    sizes: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, "tuple[str, int]"])
    spare: tuple[ResultArray, ...] = ()
    printing: Printing | None = None

    def here(self, given: Mapping[str, object], sizes: Mapping[str, int]) -> Translated:
        """As it is for such a call: what its sizes and integers say of subscripts is known."""
        values = dict(sizes) | {
            symbol: operator.index(cast("SupportsIndex", given[name]))
            for symbol, name in self.counts.items()
        }
        if not self.unless or any(each.at(values) < 0 for each in self.unless):
            return self
        return replace(self, apart="")

    @property
    def is_certain(self) -> bool:
        """Whether every run comes to its end, and raises nothing."""
        return not (self.apart or self.endless or "cf.assert" in self.text)
