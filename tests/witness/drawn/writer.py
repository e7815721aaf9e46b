"""A body of statements while it is drawn: its lines, and the values that can be used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

WIDTHS = (
    1,
    2,
    3,
    7,
    8,
    8,
    8,
    9,
    16,
    16,
    17,
    31,
    32,
    32,
    32,
    33,
    48,
    63,
    64,
    64,
    64,
    64,
    65,
    66,
    100,
    127,
    128,
)
INTEGERS = (*(f"i{width}" for width in WIDTHS), *["index"] * 8)
FLOATS = ("f32", "f32", "f64", "f64", "f16", "bf16")


def width_of(type_: str) -> int:
    return 64 if type_ == "index" else int(type_[1:])


def is_integer(type_: str) -> bool:
    return type_ == "index" or type_[0] == "i"


@dataclass(frozen=True)
class Range:
    """The signed values that a number can have."""

    low: int
    high: int

    @staticmethod
    def full(type_: str) -> Range:
        half = 1 << width_of(type_) - 1
        return Range(-half, half - 1)

    def within(self, type_: str) -> bool:
        whole = Range.full(type_)
        return whole.low <= self.low and self.high <= whole.high


@dataclass(frozen=True)
class Number:
    """`%name : type`; of an integer also what it can be."""

    name: str
    type: str
    range: Range | None = None

    @property
    def least(self) -> int:
        return (self.range or Range.full(self.type)).low

    @property
    def most(self) -> int:
        return (self.range or Range.full(self.type)).high


class Writer:
    """`numbers` are those in scope; `depth`: of the regions around."""

    def __init__(self, draw: st.DrawFn, prefix: str):
        self._draw, self._prefix, self._count = draw, prefix, 0
        self.lines: list[str] = []
        self.numbers: list[Number] = []
        self.depth = 0

    # choices

    def pick(self, choices: Sequence[T]) -> T:
        return self._draw(st.sampled_from(choices))

    def whole(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def flip(self) -> bool:
        return self._draw(st.booleans())

    def permutation(self, count: int) -> Sequence[int]:
        return self._draw(st.permutations(range(count)))

    # text

    def fresh(self) -> str:
        self._count += 1
        return f"%{self._prefix}{self._count}"

    def put(self, line: str) -> None:
        self.lines.append("  " * (self.depth + 1) + line)

    def made(self, operation: str, type_: str, range_: Range | None = None) -> Number:
        """`%fresh = operation`, in scope from now on."""
        number = Number(self.fresh(), type_, range_)
        self.put(f"{number.name} = {operation}")
        self.numbers.append(number)
        return number

    def constant(self, type_: str, value: int) -> Number:
        if type_ == "i1":
            literal = "true" if value else "false"
            return self.made(f"arith.constant {literal}", type_, Range(value, value))
        return self.made(f"arith.constant {value} : {type_}", type_, Range(value, value))

    def hold(self, name: str) -> None:
        """`%name : memref<8xindex>` holds 0 to 7, for values that no rewrite knows."""
        self._held = name

    def hidden(self, value: int) -> Number:
        """`value`, of which the text says only where it is (of those above 7, itself)."""
        place = self.constant("index", value)
        if value > 7:
            return place
        return self.made(f"memref.load %{self._held}[{place.name}] : memref<8xindex>", "index")

    def any_constant(self, type_: str) -> Number:
        """Small ones, powers of two, and those at the ends."""
        width, whole = width_of(type_), Range.full(type_)
        if width == 1:
            return self.constant(type_, -self.whole(0, 1))
        kind = self.whole(0, 3)
        if kind == 0:
            value = self.whole(max(-5, whole.low), min(5, whole.high))
        elif kind == 1:
            value = (1 << self.whole(0, width - 2)) - self.whole(0, 1)
        elif kind == 2:
            value = self.pick((whole.low, whole.low + 1, whole.high, whole.high - 1))
        else:
            value = self.whole(whole.low, whole.high)
        return self.constant(type_, value)

    def of(self, type_: str) -> Number:
        """A number of that type: one in scope, most often, or a constant."""
        found = [number for number in self.numbers if number.type == type_]
        if found and self.whole(0, 3):
            return self.pick(found[-6:])
        return self.any_constant(type_) if is_integer(type_) else self.pick(found)

    def any_integer(self) -> Number:
        found = [number for number in self.numbers if is_integer(number.type)]
        return self.pick(found[-8:])

    @contextmanager
    def region(self, *numbers: Number) -> Iterator[None]:
        """Lines within are indented; what is made there ends there."""
        outer = self.numbers
        self.numbers = [*outer, *numbers]
        self.depth += 1
        yield
        self.depth -= 1
        self.numbers = outer
