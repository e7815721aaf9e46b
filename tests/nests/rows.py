"""Random functions of rows long enough for vectors, whose elements lie anywhere: side by side, some
apart, backwards, the same for all, in tables; of kinds of several widths.

`drawing` draws odder loops of a few iterations; what has vectors, windows of rows or tables made of
it is here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import numpy as np
from hypothesis import strategies as st

from tests.nests.sweeps import KINDS, Sweeps

NARROW: dict[str, type] = {"i8": np.int8, "i16": np.int16, "f16": np.float16}

LENGTHS = (8, 9, 12, 15, 16, 17, 23, 31, 32, 33, 47, 63, 64, 65, 70)
"""Iterations of an inner loop: around multiples of vectors, and between."""

COMPARISONS = ("olt", "ogt", "oeq", "une"), ("slt", "sgt", "eq", "ne")


@dataclass(frozen=True)
class _Variable:
    """Of a loop, with the least and the greatest number that it may be."""

    name: str
    low: int
    high: int


@st.composite
def long_rows(draw: st.DrawFn) -> Sweeps:
    writer = _Writer(draw)
    text = writer.function()
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    arrays = {
        name: rng.integers(-3, 4, writer.extents[name]).astype((KINDS | NARROW)[kind])
        for name, kind in writer.kinds.items()
    }
    return Sweeps(text, arrays, {})


class _Writer:
    """Draws a function, line by line."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        several = [self._one_of(*KINDS, *NARROW) for _ in range(self._one_of(1, 1, 2))]
        self.kinds = {name: self._one_of(*several) for name in "ABCD"[: self._one_of(2, 3, 4)]}
        self.kind = self.kinds["A"]
        """What is computed in; others are converted."""
        self.extents = {name: [1] * self._one_of(1, 2, 2, 2, 3) for name in self.kinds}
        self.affine = self._one_of(True, True, False)
        self.lines: list[str] = []
        self.names = count()

    def function(self) -> str:
        steps = self._one_of(0, 0, 0, 2, 3)
        if steps:
            with self._loop([], "0", str(steps), _Variable("", 0, steps - 1)):
                self._several([])
        else:
            self._several([])
        types = {name: self._type(name) for name in self.kinds}
        given = ", ".join(f"%{name}: {its}" for name, its in types.items())
        text = "\n".join([f"func.func @f({given}) {{", *self.lines, "return", "}", ""])
        for name, its in types.items():
            text = text.replace(f"TYPE_{name}_", its)
        return text

    # -- words

    def _one_of(self, *choices):
        return self.draw(st.sampled_from(choices))

    def _sometimes(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == 1

    def _new(self, stem: str = "v") -> str:
        return f"%{stem}{next(self.names)}"

    def _type(self, name: str) -> str:
        return f"memref<{''.join(f'{k}x' for k in self.extents[name])}{self.kinds[name]}>"

    def _set(self, operation: str) -> str:
        result = self._new()
        self.lines.append(f"{result} = {operation}")
        return result

    @property
    def _real(self) -> bool:
        return self.kind.startswith("f")

    def _do(self, operation: str, *operands: str) -> str:
        form = f"arith.{operation}{'f' if self._real else 'i'}"
        return self._set(f"{form} {', '.join(operands)} : {self.kind}")

    def _extreme(self, stem: str, old: str, new: str) -> str:
        how = self._one_of("imum", "num", "by comparing") if self._real else "s"
        if how != "by comparing":
            return self._do(f"{stem}{how}", old, new)
        is_so = self._set(
            f"arith.cmpf {'olt' if stem == 'min' else 'ogt'}, {new}, {old} : {self.kind}"
        )
        return self._set(f"arith.select {is_so}, {new}, {old} : {self.kind}")

    def _number(self, value: int) -> str:
        return self._set(f"arith.constant {value}{'.0' * self._real} : {self.kind}")

    def _converted(self, value: str, source: str, target: str) -> str:
        if source == target:
            return value
        real, becomes = source.startswith("f"), target.startswith("f")
        if real and not becomes:  # what is too large for the integer is any number
            for form, bound in ("minnumf", 100), ("maxnumf", -100):
                most = self._set(f"arith.constant {bound}.0 : {source}")
                value = self._set(f"arith.{form} {value}, {most} : {source}")
            form = "fptosi"
        elif becomes and not real:
            form = "sitofp"
        else:
            wider = int(target[1:]) > int(source[1:])
            form = ("extf" if wider else "truncf") if real else ("extsi" if wider else "trunci")
        return self._set(f"arith.{form} {value} : {source} to {target}")

    # -- loops

    @contextmanager
    def _loop(
        self,
        around: Sequence[_Variable],
        low: str,
        high: str,
        variable: _Variable,
        carried: str = "",
        step: int = 1,
    ) -> Iterator[tuple[_Variable, str, str]]:
        """`low` and `high` as affine expressions of the variables around; with `carried`, the value
        that it hands on first, also the names of what it hands on and of the last.
        """
        name, value, last = self._new("i"), self._new("a"), self._new("r")
        hands = f" iter_args({value} = {carried}) -> ({self.kind})" if carried else ""
        head = f"{last} = " if carried else ""
        dims = ", ".join(each.name for each in around)
        forms = [f"({dims}) -> ({each})".replace("%", "") for each in (low, high)]
        ends = [f"affine_map<{form}>({dims})" for form in forms]
        if self.affine:
            by = f" step {step}" if step > 1 else ""
            self.lines.append(f"{head}affine.for {name} = {ends[0]} to {ends[1]}{by}{hands} {{")
        else:
            first, end = (self._set(f"affine.apply {each}") for each in ends)
            by = self._set(f"arith.constant {step} : index")
            self.lines.append(f"{head}scf.for {name} = {first} to {end} step {by}{hands} {{")
        yield _Variable(name, variable.low, variable.high), value, last
        self.lines.append("}")

    def _hand_on(self, value: str) -> None:
        self.lines.append(f"{'affine' if self.affine else 'scf'}.yield {value} : {self.kind}")

    @contextmanager
    def _some_loop(
        self, around: Sequence[_Variable], length: int, carried: str = ""
    ) -> Iterator[tuple[_Variable, str, str]]:
        """A box, a triangle or a band, of `length` iterations at most."""
        start = self._one_of(0, 0, 0, 1, 2, 5)
        low, high = str(start), str(start + length)
        step = self._one_of(*[1] * 9, 2, 3)
        first = start
        if around and self._sometimes(5):
            outer = self._one_of(*around)
            form = self._one_of("upto", "from", "band")
            if form == "upto":
                high = f"{outer.name} + {start + self._one_of(0, 1)}"
                length = outer.high + 1
            elif form == "from":
                low, first = f"{outer.name} + {start}", start + max(0, outer.low)
                high = str(start + outer.high + self._one_of(0, 1, 9))
                length = outer.high + 9
            else:
                low, high = f"{outer.name} + {start}", f"{outer.name} + {start + length}"
                first, length = start + outer.low, length + outer.high - outer.low
        variable = _Variable("", first, max(first, first + length - 1))
        with self._loop(around, low, high, variable, carried, step) as made:
            yield made

    # -- subscripts

    def _where(self, name: str, variables: Sequence[_Variable], *, plain: bool) -> list[str]:
        """In bounds, as the array is made as large as that; `plain`: as front ends write them."""
        places = []
        rank = len(self.extents[name])
        inner = self._one_of(*range(rank), rank - 1, rank - 1)
        for d in range(rank):
            others = variables[:-1] or variables
            terms: dict[_Variable, int] = {}
            if variables:
                one = variables[-1] if d == inner else self._one_of(*others)
                terms[one] = self._one_of(1, 1, 1, 1, 1, -1, 2, 0 if d != inner else 3)
                if not plain and self._sometimes(4):
                    other = self._one_of(*variables)
                    terms[other] = terms.get(other, 0) + self._one_of(1, 1, -1, 2)
                if not plain and self._sometimes(8):
                    terms = {}
            low = sum(min(f * v.low, f * v.high) for v, f in terms.items())
            high = sum(max(f * v.low, f * v.high) for v, f in terms.items())
            shift = self._one_of(0, 0, 0, 0, 1, 1, 2, 3) - min(low, 0)
            text = " + ".join([*(f"{f} * {v.name}" for v, f in terms.items() if f), str(shift)])
            high += shift
            if not plain and self._sometimes(16):
                how, by = self._one_of(("floordiv", 2), ("mod", 2), ("mod", 8), ("floordiv", 4))
                text, high = f"({text}) {how} {by}", high if how == "floordiv" else by - 1
            places.append(text)
            self.extents[name][d] = max(self.extents[name][d], high + 1)
        return places

    def _access(self, where: Sequence[str]) -> tuple[str, list[str]]:
        """The dialect, and the subscripts in it."""
        if self.affine:
            return "affine", list(where)
        found = []
        for place in where:
            dims = ", ".join(sorted(set(re.findall(r"%\w+", place))))
            form = f"({dims}) -> ({place})".replace("%", "")
            found.append(self._set(f"affine.apply affine_map<{form}>({dims})"))
        return "memref", found

    def _load(self, name: str, where: Sequence[str]) -> str:
        dialect, places = self._access(where)
        value = self._set(f"{dialect}.load %{name}[{', '.join(places)}] : TYPE_{name}_")
        return self._converted(value, self.kinds[name], self.kind)

    def _store(self, value: str, name: str, where: Sequence[str]) -> None:
        dialect, places = self._access(where)
        value = self._converted(value, self.kind, self.kinds[name])
        self.lines.append(f"{dialect}.store {value}, %{name}[{', '.join(places)}] : TYPE_{name}_")

    # -- what stands in a function

    def _several(self, variables: list[_Variable]) -> None:
        for _ in range(self._one_of(1, 1, 2, 3)):
            self._nest(variables, self._one_of(0, 1, 1, 1, 2))

    def _nest(self, variables: list[_Variable], outer: int) -> None:
        if outer:
            length = self._one_of(1, 2, 3, 5, 8, 13, 20) if outer == 1 else self._one_of(1, 2, 4, 7)
            with self._some_loop(variables, length) as (variable, *_):
                inside = [*variables, variable]
                if self._sometimes(5):
                    self._statement(inside)
                for _ in range(self._one_of(1, 1, 1, 2)):
                    self._nest(inside, outer - 1)
                if self._sometimes(6):
                    self._statement(inside)
            return
        length = self._one_of(*(LENGTHS if len(variables) < 2 else LENGTHS[:8]))
        if self._sometimes(4):
            self._carry(variables, length)
            return
        with self._some_loop(variables, length) as (variable, *_):
            inside = [*variables, variable]
            for _ in range(self._one_of(1, 1, 1, 2, 3)):
                self._guarded(inside)

    def _carry(self, variables: list[_Variable], length: int) -> None:
        first = self._number(self._one_of(0, 0, 1, -2))
        with self._some_loop(variables, length, first) as (variable, value, last):
            inside = [*variables, variable]
            term = self._value(inside)
            if self._sometimes(3):
                self._store(term, *self._target(inside))
            form = self._one_of("add", "add", "sub", "min", "max", "scan")
            if form in ("min", "max"):
                new = self._extreme(form, value, term)
            else:
                new = self._do("add" if form == "scan" else form, value, term)
            if form == "scan":
                self._store(new, *self._target(inside))
            self._hand_on(new)
        self._store(last, *self._target(variables))

    def _guarded(self, variables: list[_Variable]) -> None:
        if not self.affine or not self._sometimes(7):
            self._statement(variables)
            return
        one = self._one_of(*variables)
        bound = self._one_of(1, 2, 7, one.high // 2, one.high)
        form = self._one_of(f"d - {bound} >= 0", f"{bound} - d >= 0", f"d - {bound} == 0",
                            "d mod 2 == 0")  # fmt: skip
        self.lines.append(f"affine.if affine_set<(d) : ({form})>({one.name}) {{")
        self._statement(variables)
        if self._sometimes(3):
            self.lines.append("} else {")
            self._statement(variables)
        self.lines.append("}")

    def _target(self, variables: Sequence[_Variable]) -> tuple[str, list[str]]:
        name = self._one_of(*self.kinds)
        return name, self._where(name, variables, plain=not self._sometimes(4))

    def _statement(self, variables: list[_Variable]) -> None:
        name, where = self._target(variables)
        value = self._value(variables)
        if self._sometimes(3):
            old = self._load(name, where)
            form = self._one_of("add", "add", "sub", "min", "max")
            value = (
                self._extreme(form, old, value)
                if form in ("min", "max")
                else self._do(form, old, value)
            )
        self._store(value, name, where)

    def _value(self, variables: Sequence[_Variable], depth: int = 0) -> str:
        if depth > 2 or self._sometimes(3):
            name = self._one_of(*self.kinds)
            return self._load(name, self._where(name, variables, plain=not self._sometimes(2)))
        if variables and self._sometimes(12):
            whole = "i32" if self._sometimes(2) else "i64"
            counter = self._one_of(*variables).name
            cast = self._set(f"arith.index_cast {counter} : index to {whole}")
            return self._converted(cast, whole, self.kind)
        if self._sometimes(8):
            return self._number(self._one_of(-2, 0, 1, 3))
        a, b = (self._value(variables, depth + 1) for _ in range(2))
        form = self._one_of("add", "add", "sub", "mul", "min", "max", "select")
        if form in ("min", "max"):
            return self._extreme(form, a, b)
        if form == "select":
            how = self._one_of(*COMPARISONS[not self._real])
            letter = "f" if self._real else "i"
            is_so = self._set(f"arith.cmp{letter} {how}, {a}, {b} : {self.kind}")
            return self._set(f"arith.select {is_so}, {a}, {b} : {self.kind}")
        if form == "mul":
            b = self._number(self._one_of(-1, 2))
        return self._do(form, a, b)
