"""Loops over rows with loops over columns inside, as random as passes on rows have to bear.

Draws of hypothesis -> text of `func.func @f(%A, %y, %s)`: A by row and column, y by column, s by
row, all of i64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.ir.attributes import NO_ALIAS, OF_TASK
from avial_lab.compiler.lowering.run import Pass, run_passes
from tests.kernels.jit import Machine

EDGE = 2

Place = tuple[str, int, int]
"""An array, and how far down and to the right of the iteration's own element."""


@dataclass(frozen=True)
class Step:
    """`target = factor * target + source`, one in a loop over columns; or by itself, in the row."""

    target: Place
    source: Place
    factor: int


@dataclass(frozen=True)
class Rows:
    """For every row: for each list of steps a loop over columns, or the steps by themselves; with
    `apart` each list for all rows before the next.
    """

    rows: int
    columns: int
    loops: tuple[tuple[bool, tuple[Step, ...]], ...]
    apart: bool = False

    @property
    def kinds(self) -> dict[str, str]:
        down, right = self.rows + 2 * EDGE, self.columns + 2 * EDGE
        return {
            "A": f"memref<{down}x{right}xi64>",
            "y": f"memref<{right}xi64>",
            "s": f"memref<{down}xi64>",
        }

    @property
    def text(self) -> str:
        arguments = ", ".join(f"%{name}: {kind}" for name, kind in self.kinds.items())
        lines = [
            f'func.func @f({arguments}) attributes {{{NO_ALIAS}, {OF_TASK} = "f"}} {{',
            "%c3 = arith.constant 3 : i64",
        ]
        rows = f"affine.for %i = {EDGE} to {EDGE + self.rows} {{"
        for number, (along, steps) in enumerate(self.loops):
            if number == 0:
                lines.append(rows)
            elif self.apart:
                lines += ["}", rows]
            if along:
                lines.append(f"affine.for %j = {EDGE} to {EDGE + self.columns} {{")
            for k, step in enumerate(steps):
                lines += self._step(step, f"{number}_{k}", "%j" if along else f"{EDGE}")
            lines += ["}"] * along
        return "\n".join([*lines, "}", "return", "}"])

    def _step(self, step: Step, name: str, column: str) -> list[str]:
        (target, kind), (source, other) = (
            self._element(each, column) for each in (step.target, step.source)
        )
        old = f"%t{name}" if step.factor == 1 else f"%m{name}"
        scaled = f"{old} = arith.muli %t{name}, %c{step.factor} : i64"
        return [
            f"%t{name} = affine.load {target} : {kind}",
            f"%x{name} = affine.load {source} : {other}",
            *([scaled] if step.factor != 1 else ()),
            f"%n{name} = arith.addi {old}, %x{name} : i64",
            f"affine.store %n{name}, {target} : {kind}",
        ]

    def _element(self, place: Place, column: str) -> tuple[str, str]:
        array, down, right = place
        row, col = f"%i + {down}", f"{column} + {right}"
        where = {"A": f"{row}, {col}", "y": col, "s": row}[array]
        return f"%{array}[{where}]", self.kinds[array]

    def arrays(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(len(self.text))
        shapes = {k: [int(n) for n in v[7:-1].split("x")[:-1]] for k, v in self.kinds.items()}
        return {k: rng.integers(-(1 << 40), 1 << 40, shape) for k, shape in shapes.items()}


def row_loops(
    factors: tuple[int, ...],
    heights: tuple[int, ...],
    widths: st.SearchStrategy[int],
    arrays: str = "AAyys",
) -> st.SearchStrategy[Rows]:
    """`factors` of 1 are sums; others depend on the order."""
    near = st.sampled_from([0, 0, 0, 0, 1, -1])
    places = st.tuples(st.sampled_from(arrays), near, near)
    step = st.builds(Step, places, places, st.sampled_from(factors))
    some = st.lists(step, min_size=1, max_size=2).map(tuple)
    along = st.sampled_from([True, True, True, False])
    loops = st.lists(st.tuples(along, some), min_size=1, max_size=3).map(tuple)
    return st.builds(Rows, st.sampled_from(heights), widths, loops)


def changed(rows: Rows, passes: tuple[Pass | str, ...]) -> tuple[ir.Module, bool]:
    """The module after the passes, and whether the last made anything of it; checked to compute
    the same bits as before.
    """
    context = ir.Context()
    module = ir.Module.parse(rows.text, context)
    run_passes(module.operation, passes[:-1])
    before = str(module)
    run_passes(module.operation, passes[-1:])
    module.operation.verify()
    with context:
        machine = Machine([("before", rows.text), ("after", str(module))], context)
    arrays = rows.arrays()
    want, got = machine.call("before", arrays), machine.call("after", arrays)
    for name, value in want.items():
        np.testing.assert_array_equal(got[name], value, err_msg=name)
    return module, str(module) != before
