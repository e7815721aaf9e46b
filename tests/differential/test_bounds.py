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

from avial_lab.core.errors import VerifyError
from avial_lab.program.compilation import compile as compile_program
from avial_lab.runtime.launch.cluster import Cluster

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
@settings(max_examples=25, phases=[Phase.explicit, Phase.generate], suppress_health_check=_SLOW)
@given(first=sweeps(), second=sweeps(), ranks=st.integers(1, 3))
def test_refused_or_right(first: Sweep, second: Sweep, ranks: int, seven_ranks: Cluster) -> None:
    try_sweeps(first, second, ranks, seven_ranks)


@pytest.mark.slow
@pytest.mark.mpi
@settings(max_examples=500, phases=[Phase.explicit, Phase.generate], suppress_health_check=_SLOW)
@given(first=sweeps(), second=sweeps(), ranks=st.integers(1, 7))
def test_many(first: Sweep, second: Sweep, ranks: int, seven_ranks: Cluster) -> None:
    try_sweeps(first, second, ranks, seven_ranks)
