"""Tasks whose subscripts end below, at, and one beyond the ends of their arrays: they are refused
when they are compiled, or they run and are right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from avial_lab.core.errors import CheckError, RunError, VerifyError
from avial_lab.program.compilation import compile as compile_program
from avial_lab.runtime.launch.cluster import Cluster
from tests.quick import examples

SIZES = (6, 5)
KIND = f"memref<{SIZES[0]}x{SIZES[1]}xi32>"


@dataclass(frozen=True)
class Sweep:
    """to[s0, s1] = to[s0, s1] + from[t0, t1] in a nest of two loops, as a task of its own.

    Each subscript is (loop, factor, shift); `loops` (begin, end, step); through a view of `window`
    offsets and sizes where there is one.
    """

    loops: tuple[tuple[int, int, int], ...]
    stored: tuple[tuple[int, int, int], ...]
    loaded: tuple[tuple[int, int, int], ...]
    form: str
    window: tuple[tuple[int, int], ...] | None

    def text(self, name: str, to: str, source: str) -> str:
        lines = [f"%{name} = avial.task %cpu, %{source}, %{to} {{"]
        numbers = sorted({n for loop in self.loops for n in loop})
        lines += [f"%n{n} = arith.constant {n} : index" for n in numbers]
        array, kind = to, KIND
        if self.window is not None:
            (i, rows), (j, columns) = self.window
            layout = f"strided<[{SIZES[1]}, 1], offset: {i * SIZES[1] + j}>"
            kind = f"memref<{rows}x{columns}xi32, {layout}>"
            part = f"[{i}, {j}] [{rows}, {columns}] [1, 1]"
            lines.append(f"%view = memref.subview %{to}{part} : {KIND} to {kind}")
            array = "view"
        for loop, (begin, end, step) in zip("ij", self.loops, strict=True):
            if self.form == "affine":
                lines.append(f"affine.for %{loop} = {begin} to {end} step {step} {{")
            elif self.form == "scf":
                lines.append(f"scf.for %{loop} = %n{begin} to %n{end} step %n{step} {{")
            else:
                lines.append(
                    f"scf.parallel (%{loop}) = (%n{begin}) to (%n{end}) step (%n{step}) {{"
                )
        dialect = "affine" if self.form == "affine" else "memref"
        at, source_at = self._subscripts("s", self.stored), self._subscripts("l", self.loaded)
        lines += [
            *(line for lines, _ in (at, source_at) for line in lines),
            f"%x = {dialect}.load %{source}[{source_at[1]}] : {KIND}",
            f"%y = {dialect}.load %{array}[{at[1]}] : {kind}",
            "%z = arith.addi %x, %y : i32",
            f"{dialect}.store %z, %{array}[{at[1]}] : {kind}",
            "}",
            "}",
            "}",
        ]
        return "\n".join(lines)

    def _subscripts(
        self, name: str, subscripts: tuple[tuple[int, int, int], ...]
    ) -> tuple[list[str], str]:
        """Lines that compute them, and how an access writes them."""
        if self.form == "affine":
            return [], ", ".join(f"%{'ij'[loop]} * {f} + {by}" for loop, f, by in subscripts)
        lines = []
        for d, (loop, factor, shift) in enumerate(subscripts):
            lines += [
                f"%{name}{d}f = arith.constant {factor} : index",
                f"%{name}{d}s = arith.constant {shift} : index",
                f"%{name}{d}p = arith.muli %{'ij'[loop]}, %{name}{d}f : index",
                f"%{name}{d} = arith.addi %{name}{d}p, %{name}{d}s : index",
            ]
        return lines, f"%{name}0, %{name}1"

    def steps(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Where each iteration stores and loads, of the array or of the view."""
        for i in range(*self.loops[0]):
            for j in range(*self.loops[1]):
                yield _at(self.stored, (i, j)), _at(self.loaded, (i, j))

    def is_inside(self) -> bool:
        extents = SIZES if self.window is None else tuple(size for _, size in self.window)
        return all(
            0 <= index < extent
            for stored, loaded in self.steps()
            for index, extent in zip((*stored, *loaded), (*extents, *SIZES), strict=True)
        )

    def apply(self, to: np.ndarray, source: np.ndarray) -> None:
        if self.window is not None:
            to = to[tuple(slice(first, first + size) for first, size in self.window)]
        for stored, loaded in self.steps():
            to[stored] += source[loaded]


def _at(subscripts: tuple[tuple[int, int, int], ...], values: tuple[int, int]) -> tuple[int, ...]:
    return tuple(factor * values[loop] + shift for loop, factor, shift in subscripts)


@st.composite
def sweeps(draw: st.DrawFn) -> Sweep:
    """Subscripts whose extremes are drawn about the ends of the array; what is added is injective,
    so that iterations may run in any order.
    """
    loops = [(b := draw(st.integers(0, 2)), b + draw(st.integers(0, 5)), draw(st.integers(1, 2)))
             for _ in range(2)]  # fmt: skip
    window = None
    if draw(st.booleans()):
        sizes = [draw(st.integers(1, extent)) for extent in SIZES]
        window = tuple(
            (draw(st.integers(0, extent - size)), size)
            for extent, size in zip(SIZES, sizes, strict=True)
        )
    extents = SIZES if window is None else tuple(size for _, size in window)
    order = draw(st.permutations([0, 1]))

    def subscripts(extents: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
        found = []
        for loop, extent in zip(order, extents, strict=True):
            factor = draw(st.sampled_from([1, 1, 1, -1, 2]))
            reached = [factor * value for value in range(*loops[loop])] or [0]
            over = draw(st.integers(-1, 1))  # one below 0, at an end, or one beyond
            low, high = -min(reached) + over, extent - 1 - max(reached) + over
            found.append((loop, factor, draw(st.sampled_from([low, high]))))
        return tuple(found)

    form = draw(st.sampled_from(["affine", "scf", "parallel"]))
    return Sweep(tuple(loops), subscripts(extents), subscripts(SIZES), form, window)


def try_sweeps(first: Sweep, second: Sweep, ranks: int, cluster: Cluster) -> None:
    text = "\n".join(
        (
            f"avial.schedule %a: {KIND}, %b: {KIND} {{",
            '%cpu = avial.target {arch = "cpu"}',
            first.text("t", "a", "b"),
            second.text("u", "b", "a"),
            "}",
        )
    )
    arrays = {name: np.arange(30, dtype=np.int32).reshape(SIZES) * 7 for name in "ab"}
    if not (first.is_inside() and second.is_inside()):
        with pytest.raises(VerifyError, match="reaches index"):
            compile_program(text, arrays=arrays, ranks=ranks)
        return
    wanted = {name: array.copy() for name, array in arrays.items()}
    first.apply(wanted["a"], wanted["b"])
    second.apply(wanted["b"], wanted["a"])
    compile_program(text, arrays=arrays, ranks=ranks).run(cluster, check=True)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, wanted[name])


_SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


# No shrinking: each try is a compilation and a run.
@pytest.mark.mpi
@settings(
    max_examples=examples(25), phases=[Phase.explicit, Phase.generate], suppress_health_check=_SLOW
)
@given(first=sweeps(), second=sweeps(), ranks=st.integers(1, 3))
def test_refused_or_right(first: Sweep, second: Sweep, ranks: int, cluster: Cluster) -> None:
    try_sweeps(first, second, ranks, cluster)


@pytest.mark.slow
@pytest.mark.mpi
@settings(
    max_examples=examples(500), phases=[Phase.explicit, Phase.generate], suppress_health_check=_SLOW
)
@given(first=sweeps(), second=sweeps(), ranks=st.integers(1, 7))
def test_many(first: Sweep, second: Sweep, ranks: int, cluster: Cluster) -> None:
    try_sweeps(first, second, ranks, cluster)


# What only the run knows --------------------------------------------------------------------------


@dataclass(frozen=True)
class Loaded:
    """for i = first to last: to[f * i + s] += 1, or to[index[i]] += 1, where first, last and index
    are read from memory: in a function, in a function that it calls, or in a task; through a view
    that begins where memory says, or not.
    """

    first: int
    last: int
    factor: int
    shift: int
    place: str
    indirect: bool
    window: int | None

    def text(self) -> str:
        arrays = "%to: memref<16xi32>, %n: memref<3xi64>, %index: memref<16xi64>"
        used = "%to, %n, %index" if self.indirect else "%to, %n"
        kinds = "memref<16xi32>, memref<3xi64>, memref<16xi64>"
        view = "memref<8xi32, strided<[1], offset: ?>>"
        array, kind = ("%v", view) if self.window is not None else ("%to", "memref<16xi32>")
        lines = ["%one = arith.constant 1 : i32"]
        for k, name in enumerate(("first", "last", "begin")):
            lines += [
                f"%p{k} = arith.constant {k} : index",
                f"%l{k} = memref.load %n[%p{k}] : memref<3xi64>",
                f"%{name} = arith.index_cast %l{k} : i64 to index",
            ]
        if self.window is not None:
            part = "%to[%begin] [8] [1]"
            lines.append(f"%v = memref.subview {part} : memref<16xi32> to {view}")
        lines.append("scf.for %i = %first to %last step %p1 {")
        if self.indirect:
            lines += [
                "%w = memref.load %index[%i] : memref<16xi64>",
                "%k = arith.index_cast %w : i64 to index",
            ]
        else:
            lines += [
                f"%f = arith.constant {self.factor} : index",
                f"%s = arith.constant {self.shift} : index",
                "%m = arith.muli %i, %f : index",
                "%k = arith.addi %m, %s : index",
            ]
        lines += [
            f"%x = memref.load {array}[%k] : {kind}",
            "%y = arith.addi %x, %one : i32",
            f"memref.store %y, {array}[%k] : {kind}",
            "}",
        ]
        body = "\n".join(lines)
        if self.place == "task":
            head = f'avial.schedule {arrays} {{\n%cpu = avial.target {{arch = "cpu"}}\n'
            return head + f"%t = avial.task %cpu, {used} {{\n{body}\n}}\n}}"
        if self.place == "function":
            return f"func.func @f({arrays}) {{\n{body}\nreturn\n}}"
        return (
            f"func.func private @g({arrays}) {{\n{body}\nreturn\n}}\n"
            f"func.func @f({arrays}) {{\nfunc.call @g(%to, %n, %index) : ({kinds}) -> ()\n"
            "return\n}"
        )

    def indices(self, index: np.ndarray) -> list[int] | None:
        """Those that are written, the ends of very many; None where `index` itself is left."""
        if not self.indirect:
            places = range(self.first, self.last)
            ends = places if len(places) < 100 else (places[0], places[-1])
            return [self.factor * i + self.shift for i in ends]
        if self.first < self.last and not (self.first >= 0 and self.last <= len(index)):
            return None
        return [int(k) for k in index[self.first : max(self.first, self.last)]]


@st.composite
def loads(draw: st.DrawFn) -> Loaded:
    window = draw(st.none() | st.sampled_from([-1, 0, 3, 8, 9]))
    extent = 16 if window is None else 8
    first = draw(st.integers(-1, 3))
    last = draw(st.sampled_from([first - 1, first, extent - 1, extent, extent + 1, 1 << 40]))
    factor = draw(st.sampled_from([1, 1, -1, 2]))
    shift = draw(st.sampled_from([0, 0, 1, -1, extent - 1]))
    place = draw(st.sampled_from(["function", "called", "task"]))
    indirect = draw(st.sampled_from([False, False, True]))
    return Loaded(
        first, min(last, 17) if indirect else last, factor, shift, place, indirect, window
    )


def try_loaded(program: Loaded, seed: int, ranks: int, cluster: Cluster) -> None:
    rng = np.random.default_rng(seed)
    extent = 16 if program.window is None else 8
    index = rng.permutation(extent).astype(np.int64)[np.arange(16) % extent]
    index[rng.integers(0, 16)] += rng.choice([0, 0, -extent, extent])
    begin = program.window or 0
    n = np.array([program.first, program.last, begin], np.int64)
    before = np.arange(16, dtype=np.int32)
    to = before.copy()
    built = compile_program(program.text(), arrays={"to": to, "n": n, "index": index}, ranks=ranks)
    touched = program.indices(index)
    wanted = before.copy()
    if touched is not None and all(0 <= begin + k < 16 for k in touched):
        np.add.at(wanted, [begin + k for k in touched], 1)
        # With a window that leaves the array by what nobody touches, or is left inside of it.
        if not (0 <= begin <= 16 - extent and all(0 <= k < extent for k in touched)):
            with pytest.raises(CheckError, match="is out of bounds"):
                built.run(cluster, check=True)
            np.testing.assert_array_equal(to, before)
        else:
            built.run(cluster, check=True)
            np.testing.assert_array_equal(to, wanted)
        return
    if not program.indirect:  # looked at before the loop
        with pytest.raises(RunError, match="reaches index"):
            built.run(cluster)
        np.testing.assert_array_equal(to, before)
    with pytest.raises(CheckError, match="is out of bounds"):
        built.run(cluster, check=True)
    np.testing.assert_array_equal(to, before)


@pytest.mark.mpi
@settings(
    max_examples=examples(8), phases=[Phase.explicit, Phase.generate], suppress_health_check=_SLOW
)
@given(program=loads(), seed=st.integers(0, 9), ranks=st.integers(1, 3))
def test_told_or_right(program: Loaded, seed: int, ranks: int, cluster: Cluster) -> None:
    try_loaded(program, seed, ranks, cluster)


@pytest.mark.slow
@pytest.mark.mpi
@settings(
    max_examples=examples(300), phases=[Phase.explicit, Phase.generate], suppress_health_check=_SLOW
)
@given(program=loads(), seed=st.integers(0, 99), ranks=st.integers(1, 7))
def test_many_told_or_right(program: Loaded, seed: int, ranks: int, cluster: Cluster) -> None:
    try_loaded(program, seed, ranks, cluster)


# Sizes that only the caller's arrays decide -------------------------------------------------------

OPEN = "memref<?xf64>"
MATRIX = "memref<?x?xf64>"
REFUSED = {
    "product": (
        f"%a: {MATRIX}, %b: {MATRIX}, %c: {MATRIX}",
        f"linalg.matmul ins(%a, %b : {MATRIX}, {MATRIX}) outs(%c : {MATRIX})",
        {"a": (8, 9), "b": (8, 8), "c": (8, 8)},
    ),
    "sum": (
        f"%a: {OPEN}, %b: {OPEN}, %c: {OPEN}",
        f"linalg.add ins(%a, %b : {OPEN}, {OPEN}) outs(%c : {OPEN})",
        {"a": (8,), "b": (7,), "c": (8,)},
    ),
    "copy": (
        f"%a: {OPEN}, %b: {OPEN}",
        f"memref.copy %a, %b : {OPEN} to {OPEN}",
        {"a": (8,), "b": (7,)},
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_sizes_that_do_not_fit_are_refused(name: str) -> None:
    arguments, body, shapes = REFUSED[name]
    arrays = {array: np.zeros(shape) for array, shape in shapes.items()}
    with pytest.raises(VerifyError, match="sizes that do not fit") as caught:
        compile_program(f"func.func @f({arguments}) {{\n{body}\nreturn\n}}", arrays=arrays)
    assert caught.value.span is not None
    assert caught.value.span.line == 2


@pytest.mark.parametrize("begin", [-1, 0, 8, 9])
def test_a_window_whose_begin_is_given_stays_in_its_array(begin: int) -> None:
    view = "memref<8xf64, strided<[1], offset: ?>>"
    text = f"""func.func @f(%a: memref<16xf64>, %n: index) {{
      %v = memref.subview %a[%n] [8] [1] : memref<16xf64> to {view}
      affine.for %i = 0 to 8 {{
        %x = affine.load %v[%i] : {view}
        %y = arith.addf %x, %x : f64
        affine.store %y, %v[%i] : {view}
      }}
      return
    }}"""
    given = {"arrays": {"a": np.zeros(16)}, "scalars": {"n": begin}}
    if 0 <= begin <= 8:
        compile_program(text, **given)
        return
    with pytest.raises(VerifyError, match="reaches index"):
        compile_program(text, **given)


def test_what_is_not_to_be_looked_at_is_not() -> None:
    text = Loaded(0, 17, 1, 0, "function", indirect=False, window=None).text()
    arrays = {
        "to": np.zeros(16, np.int32),
        "n": np.array([0, 17, 0]),
        "index": np.zeros(16, np.int64),
    }
    for no_bounds in (False, True):
        built = compile_program(text, arrays=arrays, ranks=1, no_bounds=no_bounds)
        assert ("avial_outside" in built.stages["mpi"].text) is not no_bounds


def test_an_element_whose_place_is_loaded_is_given(cluster: Cluster) -> None:
    """Between loops, where a plan goes on with zero: it knows that it does not know the place."""
    text = """func.func @f(%a: memref<8xi32>, %b: memref<5xi32>, %at: memref<1xi64>) {
      %zero = arith.constant 0 : index
      affine.for %i = 0 to 8 {
        %x = affine.load %a[%i] : memref<8xi32>
        %y = arith.addi %x, %x : i32
        affine.store %y, %a[%i] : memref<8xi32>
      }
      %p = memref.load %at[%zero] : memref<1xi64>
      %k = arith.index_cast %p : i64 to index
      %c = memref.load %b[%k] : memref<5xi32>
      %d = arith.addi %c, %c : i32
      memref.store %d, %b[%k] : memref<5xi32>
      return
    }"""
    arrays = {
        "a": np.arange(8, dtype=np.int32),
        "b": np.arange(5, dtype=np.int32),
        "at": np.array([3]),
    }
    program = compile_program(text, arrays=arrays, ranks=2)
    program.run(cluster)
    np.testing.assert_array_equal(arrays["b"], [0, 1, 2, 6, 4])
    np.testing.assert_array_equal(arrays["a"], np.arange(8) * 2)
