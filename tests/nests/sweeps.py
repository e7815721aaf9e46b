"""Random functions of products, stencils, sums and sweeps over arrays of several tiles.

`drawing` draws odder loops, of a few iterations and against plain Python; these are what passes on
loops are written for, at sizes around multiples of their tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

KINDS: dict[str, type] = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32}

EXTENTS = (1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 23, 31, 33, 40, 47, 64, 65)
"""Iterations of a loop from end to end: around multiples of vectors, register tiles and blocks."""

MARGIN = 3
"""Elements of an array beyond those: subscripts are up to so far from a loop's variable."""

SIZES = {
    "block-contractions{{terms={} block={} steps={}}}": ((1, 2, 3, 8, 33), (8, 16, 24), (16, 17)),
    "block-triangular-solves{{rows={}}}": ((8, 16),),
    "tile-time{{widths={}}}": (("1x1", "2x3", "4x4", "5x2", "8x8", "3x16"),),
    "widen-halos{{steps={}}}": ((1, 2, 3, 5),),
    "jam-for-stores{{rows={}}}": ((2, 3, 4),),
    "jam-for-latency{{rows={}}}": ((2, 3, 4),),
}
"""Passes with what their tiles may be here, small beside the arrays."""


@dataclass(frozen=True)
class Sweeps:
    text: str
    arrays: dict[str, np.ndarray]
    scalars: dict[str, int]
    """The extent, where the text leaves it open."""


@st.composite
def tiles(draw: st.DrawFn) -> str:
    """Sizes for some of the passes, as `compile` takes them; the others choose their own."""
    chosen = draw(st.lists(st.sampled_from(sorted(SIZES)), unique=True))
    told = [form.format(*(draw(st.sampled_from(k)) for k in SIZES[form])) for form in chosen]
    return ",".join(told) or "model"


@st.composite
def sweeps(draw: st.DrawFn) -> Sweeps:
    writer = _Writer(draw)
    text = writer.function()
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    shapes = {name: [writer.n + MARGIN] * rank for name, rank in writer.ranks.items()}
    kind = KINDS[writer.kind]
    arrays = {
        name: (rng.random(shape) - 0.5).astype(kind)
        if writer.real
        else rng.integers(-50, 50, shape).astype(kind)
        for name, shape in shapes.items()
    }
    return Sweeps(text, arrays, {"n": writer.n} if writer.open else {})


class _Writer:
    """Draws a function, line by line. Every variable is from 0 to `n`."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.kind = self._one_of(*KINDS)
        self.real = self.kind.startswith("f")
        self.n = self._one_of(*EXTENTS)
        self.open = self._sometimes(4)
        deepest = 3 if self.n <= 17 else 2
        self.ranks = {"A": 2} | {n: min(self._one_of(2, 2, 2, 1, 3), deepest) for n in "BC"}
        self.lines: list[str] = []
        self.names = 0

    def function(self) -> str:
        if self._sometimes(2):
            with self._loop("0", str(self._one_of(1, 2, 3, 7))):
                self._several([])
        else:
            self._several([])
        arguments = [f"%{name}: {self._type(name)}" for name in self.ranks]
        arguments += ["%n: index"] * self.open
        return "\n".join(
            [f"func.func @f({', '.join(arguments)}) {{", *self.lines, "return", "}", ""]
        )

    # -- words

    def _one_of(self, *choices):
        return self.draw(st.sampled_from(choices))

    def _sometimes(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == 1

    def _new(self, stem: str = "v") -> str:
        self.names += 1
        return f"%{stem}{self.names}"

    def _type(self, name: str) -> str:
        extent = "?" if self.open else str(self.n + MARGIN)
        return f"memref<{f'{extent}x' * self.ranks[name]}{self.kind}>"

    def _do(self, operation: str, *operands: str) -> str:
        result = self._new()
        form = f"arith.{operation}{'f' if self.real else 'i'}"
        self.lines.append(f"{result} = {form} {', '.join(operands)} : {self.kind}")
        return result

    def _extreme(self, greater: bool, *operands: str) -> str:
        stem = "max" if greater else "min"
        return self._do(f"{stem}imum" if self.real else f"{stem}s", *operands)

    def _number(self, real: str, whole: str) -> str:
        result = self._new("c")
        value = real if self.real else whole
        self.lines.append(f"{result} = arith.constant {value} : {self.kind}")
        return result

    def _load(self, name: str, where: Sequence[str]) -> str:
        result = self._new("l")
        place = f"%{name}[{', '.join(where)}] : {self._type(name)}"
        self.lines.append(f"{result} = affine.load {place}")
        return result

    def _store(self, value: str, name: str, where: Sequence[str]) -> None:
        # Whole numbers wrap around; real ones shall neither grow nor become no numbers.
        if self.real and self._sometimes(2):
            value = self._do("mul", value, self._number("0.25", ""))
        place = f"%{name}[{', '.join(where)}] : {self._type(name)}"
        self.lines.append(f"affine.store {value}, {place}")

    @property
    def _end(self) -> str:
        return "%n" if self.open else str(self.n)

    @contextmanager
    def _loop(self, low: str, high: str, step: int = 1) -> Iterator[str]:
        variable = self._new("i")
        by = f" step {step}" if step > 1 else ""
        self.lines.append(f"affine.for {variable} = {low} to {high}{by} {{")
        yield variable
        self.lines.append("}")

    @contextmanager
    def _carried(self, first: str) -> Iterator[tuple[str, str, str]]:
        """A loop that hands a value on: its variable, the value, and the name of the last one."""
        variable, value, last = self._new("i"), self._new("a"), self._new("r")
        self.lines.append(
            f"{last} = affine.for {variable} = 0 to {self._end} iter_args({value} = {first}) "
            f"-> ({self.kind}) {{"
        )
        yield variable, value, last
        self.lines.append("}")

    # -- subscripts and bounds

    def _near(self, variable: str) -> str:
        return f"{variable} + {1 + self._one_of(0, 0, 0, 0, 1, -1, 2)}"

    def _where(self, name: str, variables: Sequence[str]) -> list[str]:
        rank = self.ranks[name]
        if not variables:
            return [str(self._one_of(0, 1, 2))] * rank
        chosen = [self._one_of(*variables) for _ in range(rank)]
        if len(variables) >= rank and not self._sometimes(5):
            chosen = self.draw(st.permutations(variables))[:rank]
        return [self._near(each) for each in chosen]

    def _bounds(self, variables: Sequence[str]) -> tuple[str, str]:
        if not variables or self._sometimes(2):
            return "0", self._end
        around = self._one_of(*variables)
        upto, below = (f"affine_map<(d) -> (d + {k})>({around})" for k in (1, 0))
        return self._one_of(("0", upto), ("0", below), (below, self._end))

    # -- what stands in a function

    def _several(self, variables: list[str]) -> None:
        forms: tuple[Callable[[], None], ...] = (
            self._product,
            self._stencil,
            self._sum,
            lambda: self._nest(variables, self._one_of(1, 2, 2)),
        )
        for _ in range(self._one_of(1, 2, 3)):
            self._one_of(*forms)()

    def _product(self) -> None:
        """C[i, j] += A[i, k] * B[k, j] over a box, a triangle or a part, in any order of loops."""
        matrices = [name for name, rank in self.ranks.items() if rank == 2] or ["A"]
        target, left, right = (self._one_of(*matrices) for _ in range(3))
        order = self.draw(st.permutations("ijk"))
        at: dict[str, str] = {}

        def inside(names: Sequence[str]) -> None:
            if names:
                around = [at["i"]] if names[0] != "i" and "i" in at else []
                with self._loop(*self._bounds(around)) as at[names[0]]:
                    inside(names[1:])
            else:
                self._add_product(target, left, right, at)

        inside(order)

    def _add_product(self, target: str, left: str, right: str, at: dict[str, str]) -> None:
        i, j, k = (f"{at[name]} + 1" for name in "ijk")
        a = self._load(left, [k, i] if self._sometimes(3) else [i, k])
        b = self._load(right, [j, k] if self._sometimes(3) else [k, j])
        product = self._do("mul", a, b)
        if self._sometimes(3):
            product = self._do("mul", product, self._number("0.125", "3"))
        old = self._load(target, [i, j])
        self._store(self._do(self._one_of("add", "add", "sub"), old, product), target, [i, j])

    def _stencil(self) -> None:
        """Neighbours of each element, added up."""
        target, rank = self._one_of(*self.ranks.items())
        source = self._one_of(*(name for name, other in self.ranks.items() if other == rank))

        def inside(variables: list[str]) -> None:
            if len(variables) < rank:
                with self._loop("0", self._end) as variable:
                    inside([*variables, variable])
            else:
                self._add_neighbours(target, source, variables)

        inside([])

    def _add_neighbours(self, target: str, source: str, variables: Sequence[str]) -> None:
        total = None
        for _ in range(self._one_of(2, 3, 5)):
            near = self._load(source, [f"{v} + {self._one_of(0, 1, 2)}" for v in variables])
            total = near if total is None else self._do("add", total, near)
        assert total is not None
        if self.real:
            total = self._do("mul", total, self._number("0.2", ""))
        self._store(total, target, [f"{v} + 1" for v in variables])

    def _sum(self) -> None:
        """For each element what a loop hands on: a sum, an extreme, a polynomial."""
        with self._loop("0", self._end) as row:
            with self._carried(self._number("0.0", "0")) as (column, value, last):
                term = self._value([row, column])
                form = self._one_of("sum", "sum", "extreme", "polynomial")
                if form == "polynomial":
                    value = self._do("mul", value, self._number("0.5", "3"))
                new = (
                    self._extreme(True, value, term)
                    if form == "extreme"
                    else self._do("add", value, term)
                )
                self.lines.append(f"affine.yield {new} : {self.kind}")
            name = self._one_of(*self.ranks)
            self._store(last, name, self._where(name, [row]))

    def _nest(self, variables: list[str], depth: int) -> None:
        """Loops in each other with statements between."""
        step = 2 if self._sometimes(20) else 1
        with self._loop(*self._bounds(variables), step) as variable:
            for _ in range(self._one_of(1, 1, 2)):
                if depth > 1:
                    self._nest([*variables, variable], depth - 1)
                else:
                    self._statement([*variables, variable])

    def _statement(self, variables: list[str]) -> None:
        name = self._one_of(*self.ranks)
        where = self._where(name, variables)
        value = self._value(variables)
        if self._sometimes(3):
            old = self._load(name, where)
            value = self._one_of(
                lambda: self._do("add", old, value),
                lambda: self._do("sub", old, value),
                lambda: self._extreme(False, old, value),
            )()
        self._store(value, name, where)

    def _value(self, variables: Sequence[str], depth: int = 0) -> str:
        if depth > 2 or self._sometimes(2):
            name = self._one_of(*self.ranks)
            return self._load(name, self._where(name, variables))
        if self._sometimes(8):
            return self._number("0.75", "-3")
        a, b = self._value(variables, depth + 1), self._value(variables, depth + 1)
        operation = self._one_of("add", "add", "mul", "sub", "max", "min")
        if operation in ("max", "min"):
            return self._extreme(operation == "max", a, b)
        return self._do(operation, a, b)
