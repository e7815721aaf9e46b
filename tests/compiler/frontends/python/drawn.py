"""Functions in Python, drawn: loops, conditions, slices, reductions, numbers of all kinds.

A function's text is drawn line by line; `made` gives the function, whose source is found as that of
a file is.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from hypothesis import strategies as st

from avial_lab.core.words import brief

DTYPES = ("float64", "float32", "int64", "int32", "int8", "uint8")
_NUMBERS = count()


@dataclass
class Drawn:
    """A text, and what its function is called with."""

    lines: list[str]
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "\n".join([f"def drawn({', '.join(self.arguments)}):", *self.lines]) + "\n"

    def made(self) -> Callable[..., Any]:
        file = f"<drawn {next(_NUMBERS)}>"
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(keepends=True), file)
        names: dict[str, Any] = {"np": np}
        exec(compile(self.text, file, "exec"), names)
        return names["drawn"]

    def __repr__(self) -> str:
        given = {n: (str(v.dtype), v.tolist()) for n, v in self.arguments.items() if n in "ab"}
        return brief(self, f"{self.text}\n{given} {self.arguments}")


@dataclass
class Writer:
    """Statements about arrays `a` of n × m and `b` of m elements, and the number `k`."""

    draw: st.DrawFn
    n: int
    m: int
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    loops: list[str] = field(default_factory=list)
    scalars: list[str] = field(default_factory=lambda: ["k"])

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def one_of(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def subscript(self, extent: int) -> str:
        """Inside, most of the time."""
        low = self.draw(st.integers(-extent, extent - 1))
        if self.loops and self.one_of(True, True, False):
            return f"{self.one_of(*self.loops)} - {self.draw(st.integers(0, 2))}"
        return str(low)

    def element(self) -> str:
        if self.one_of(True, False):
            return f"a[{self.subscript(self.n)}, {self.subscript(self.m)}]"
        return f"b[{self.subscript(self.m)}]"

    def number(self, depth: int = 2) -> str:
        kind = self.one_of("element", "scalar", "constant", "both", "both", "condition", "call")
        if not depth or kind == "element":
            return self.element()
        if kind == "scalar":
            return self.one_of(*self.scalars)
        if kind == "constant":
            return str(self.one_of(0, 1, 2, 3, -1, 0.5, 2.0))
        if kind == "both":
            op = self.one_of("+", "-", "*", "+", "-", "*", "//", "%", "/")
            right = (
                self.one_of("3", "2.5", "-2") if op in ("//", "%", "/") else self.number(depth - 1)
            )
            return f"({self.number(depth - 1)} {op} {right})"
        if kind == "call":
            return f"{self.one_of('abs', 'np.abs')}({self.number(depth - 1)})"
        return f"({self.number(0)} if {self.condition()} else {self.number(0)})"

    def condition(self) -> str:
        op = self.one_of("<", "<=", ">", ">=", "==", "!=")
        plain = f"{self.number(0)} {op} {self.number(1)}"
        if self.one_of(True, False, False):
            return f"({plain} {self.one_of('and', 'or')} not {self.number(0)} > 1)"
        return plain

    def statements(self, budget: int) -> None:
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement(budget)

    def statement(self, budget: int) -> None:
        kinds = ["element", "scalar", "update", "part", "whole", "sum"]
        if budget:
            kinds += ["for", "for", "if", "while"]
        match self.one_of(*kinds):
            case "element":
                self.line(f"{self.element()} = {self.number()}")
            case "update":
                self.line(f"{self.element()} {self.one_of('+=', '-=', '*=')} {self.number(1)}")
            case "scalar":
                name = self.one_of("s", "t")
                self.line(f"{name} = {self.number()}")
                if self.depth == 1:
                    self.scalars.append(name)
            case "part":
                low, high = sorted(self.draw(st.tuples(st.integers(0, 2), st.integers(2, self.m))))
                shift = self.draw(st.integers(-low, self.m - high)) if high > low else 0
                self.line(f"b[{low}:{high}] = b[{low + shift}:{high + shift}] * {self.number(1)}")
            case "whole":
                index = self.subscript(self.n) if self.one_of(True, False) else ":"
                self.line(f"a[{index}] {self.one_of('=', '+=')} b {self.one_of('+', '*')} 2")
            case "sum":
                self.line(f"s = np.{self.one_of('max', 'min')}(a[{self.subscript(self.n)}])")
                if self.depth == 1:
                    self.scalars.append("s")
            case "for":
                self.loop(budget)
            case "if":
                self.line(f"if {self.condition()}:")
                self.inside(budget)
                if self.one_of(True, False):
                    self.line("else:")
                    self.inside(budget)
            case _:
                name = f"w{len(self.lines)}"
                self.line(f"{name} = 0")
                self.line(f"while {name} < {self.draw(st.integers(0, 3))} and {self.condition()}:")
                self.line(f"    {name} += 1")
                self.inside(budget)

    def loop(self, budget: int) -> None:
        name = "ij"[len(self.loops) % 2] + str(len(self.lines))
        ends = self.one_of(
            f"{self.n}", f"1, {self.n}", f"{self.n - 1}, -1, -1", f"0, {self.m}, 2", f"{self.m}",
            f"{self.loops[-1]}, {self.n}" if self.loops else "2",
        )  # fmt: skip
        self.line(f"for {name} in range({ends}):")
        self.loops.append(name)
        self.inside(budget)
        if self.one_of(True, False, False):
            self.line(f"    if {self.condition()}:")
            self.line(f"        {self.one_of('break', 'continue')}")
            self.line(f"    b[0] = {self.number(0)}")
        self.loops.pop()

    def inside(self, budget: int) -> None:
        self.depth += 1
        self.statements(budget - 1)
        self.depth -= 1


@st.composite
def functions(draw: st.DrawFn) -> Drawn:
    n, m = draw(st.integers(3, 4)), draw(st.integers(3, 5))
    writer = Writer(draw, n, m)
    writer.statements(2)
    writer.statements(1)
    names = ", ".join(dict.fromkeys(writer.scalars))
    writer.line(f"return a[1], {names}")
    arguments: dict[str, Any] = {}
    for name, shape in (("a", (n, m)), ("b", (m,))):
        dtype = np.dtype(draw(st.sampled_from(DTYPES)))
        values = draw(st.lists(st.integers(0, 9), min_size=n * m, max_size=n * m))
        array = np.array(values[: int(np.prod(shape))]).reshape(shape).astype(dtype)
        arguments[name] = array if dtype.kind != "f" else array / dtype.type(4)
    arguments["k"] = draw(st.sampled_from([2, 0.75, 1]))
    return Drawn(writer.lines, arguments)
