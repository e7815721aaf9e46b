"""Tiles in time and space compute the same bits, on random sweeps and through tiny tiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.ir.attributes import NO_ALIAS
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.order.tile_time import PARALLEL, TileTime
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.kernels.jit import Machine
from tests.quick import examples

HALO = 2


@dataclass(frozen=True)
class Sweep:
    """One statement in `loops` over dimensions of the arrays; at the others it stays at `at`.

    `reads`: array, and offset in each dimension. `below`: the second loop begins at the first's
    variable. `inner`: the innermost loop sums its reads up before they are stored.
    """

    target: str
    loops: tuple[int, ...]
    at: tuple[int, ...]
    reads: tuple[tuple[str, tuple[int, ...]], ...]
    low: int
    cut: int
    below: bool
    spelled: str


@dataclass(frozen=True)
class Stencil:
    shape: tuple[int, ...]
    first: int
    steps: int
    sweeps: tuple[Sweep, ...]
    spelled: str

    @property
    def type(self) -> str:
        return f"memref<{'x'.join(str(n + 2 * HALO) for n in self.shape)}xi64>"

    @property
    def text(self) -> str:
        lines = [
            f"func.func @f(%A: {self.type}, %B: {self.type}, %C: {self.type})",
            f"attributes {{{NO_ALIAS}}} {{",
            "%three = arith.constant 3 : i64",
            "%seven = arith.constant 7 : i64",
        ]
        lines += _loop(self.spelled, "t", str(self.first), self.first, self.first + self.steps)
        for number, sweep in enumerate(self.sweeps):
            lines += self._sweep(sweep, f"s{number}")
        return "\n".join([*lines, "}", "return", "}"])

    def _sweep(self, sweep: Sweep, tag: str) -> list[str]:
        lines: list[str] = []
        index = [str(HALO + min(at, n)) for at, n in zip(sweep.at, self.shape, strict=True)]
        for place, dim in enumerate(sweep.loops):
            name, low = f"{tag}x{dim}", HALO + sweep.low
            high = self.shape[dim] + HALO - sweep.cut
            start = f"%{tag}x{sweep.loops[0]}" if place == 1 and sweep.below else str(low)
            lines += _loop(sweep.spelled, name, start, low, high)
            index[dim] = f"%{name}"
        value = f"%{tag}v0"
        lines.append(f"{value} = arith.constant {len(tag) + int(tag[1:])} : i64")
        for k, (array, offsets) in enumerate(sweep.reads):
            names = [f"%{tag}i{k}_{d}" for d in range(len(index))]
            for name, place, offset in zip(names, index, offsets, strict=True):
                lines += _plus(name, place, offset)
            lines += [
                f"%{tag}l{k} = memref.load %{array}[{', '.join(names)}] : {self.type}",
                f"%{tag}m{k} = arith.muli {value}, %{'seven' if k % 2 else 'three'} : i64",
                f"%{tag}v{k + 1} = arith.addi %{tag}m{k}, %{tag}l{k} : i64",
            ]
            value = f"%{tag}v{k + 1}"
        names = [f"%{tag}w_{d}" for d in range(len(index))]
        for name, place in zip(names, index, strict=True):
            lines += _plus(name, place, 0)
        lines.append(f"memref.store {value}, %{sweep.target}[{', '.join(names)}] : {self.type}")
        return lines + ["}"] * len(sweep.loops)


def _plus(name: str, index: str, offset: int) -> list[str]:
    """`name` is index + offset, of a variable or a number."""
    if not index.startswith("%"):
        return [f"{name} = arith.constant {int(index) + offset} : index"]
    return [
        f"{name}_by = arith.constant {offset} : index",
        f"{name} = arith.addi {index}, {name}_by : index",
    ]


def _loop(spelled: str, name: str, start: str, low: int, high: int) -> list[str]:
    if spelled == "affine":
        form = f"affine_map<(d) -> (d)>({start})" if start.startswith("%") else start
        return [f"affine.for %{name} = {form} to {high} {{"]
    lines = [
        f"%{name}_low = arith.constant {low} : index",
        f"%{name}_high = arith.constant {high} : index",
        f"%{name}_one = arith.constant 1 : index",
    ]
    begin = start if start.startswith("%") else f"%{name}_low"
    return [*lines, f"scf.for %{name} = {begin} to %{name}_high step %{name}_one {{"]


@st.composite
def sweeps(draw: st.DrawFn, rank: int) -> Sweep:
    loops = draw(
        st.one_of(
            st.just(tuple(range(rank))),
            st.just(tuple(range(rank))),
            st.sets(st.integers(0, rank - 1)).map(lambda each: tuple(sorted(each))),
        )
    )
    near = st.integers(-1, 1) if draw(st.booleans()) else st.integers(-HALO, HALO)
    reads = st.tuples(st.sampled_from("ABC"), st.tuples(*[near] * rank))
    return Sweep(
        draw(st.sampled_from("ABC")),
        loops,
        draw(st.tuples(*[st.integers(-HALO, 1)] * rank)) if len(loops) < rank else (0,) * rank,
        # Where it stays at the edge it reads no further than it is.
        tuple(
            (array, tuple(o if d in loops else 0 for d, o in enumerate(offsets)))
            for array, offsets in draw(st.lists(reads, min_size=1, max_size=3))
        ),
        draw(st.integers(-0, 1)),
        draw(st.integers(0, 1)),
        draw(st.sampled_from([False, False, True])),
        draw(st.sampled_from(["affine", "affine", "scf"])),
    )


@st.composite
def stencils(draw: st.DrawFn) -> Stencil:
    rank = draw(st.sampled_from([1, 2, 2, 3]))
    return Stencil(
        draw(st.tuples(*[st.integers(1, 9)] * rank)),
        draw(st.integers(0, 1)),
        draw(st.integers(0, 7)),
        tuple(draw(st.lists(sweeps(rank), min_size=1, max_size=3))),
        draw(st.sampled_from(["affine", "affine", "scf"])),
    )


def check_same_bits(stencil: Stencil, widths: str) -> bool:
    """Whether anything was tiled at all."""
    context = ir.Context()
    module = ir.Module.parse(stencil.text, context)
    run_passes(module.operation, (TileTime(widths=widths),))
    module.operation.verify()
    with context:
        machine = Machine([("before", stencil.text), ("after", str(module))], context)
    rng = np.random.default_rng(len(stencil.text))
    shape = tuple(n + 2 * HALO for n in stencil.shape)
    arrays = {name: rng.integers(-(1 << 40), 1 << 40, shape) for name in "ABC"}
    before, after = machine.call("before", arrays), machine.call("after", arrays)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)
    return any(PARALLEL in op.attributes for op in operations_in(module.operation))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOW)
@given(
    stencil=stencils(),
    widths=st.sampled_from(["1x1", "2x3", "3x2", "4x4", "1x1x1", "2x3x2", "3x2x5", "4x4x3"]),
)
def test_random_sweeps(stencil: Stencil, widths: str) -> None:
    event("tiled" if check_same_bits(stencil, widths) else "left alone")


CUT_SHORT = """func.func @f(%A: memref<400x400xf64>, %row: memref<400xf64>)
  attributes {avial.no_alias} {
  affine.for %i = 0 to 400 {
    affine.for %k = 0 to END {
      affine.for %j = 0 to 400 {
        %r = affine.load %row[%j] : memref<400xf64>
        %a = affine.load %A[%k, %j] : memref<400x400xf64>
        %s = arith.addf %a, %r : f64
        affine.store %s, %row[%j] : memref<400xf64>
      }
    }
  }
  return
}"""


@pytest.mark.parametrize(("end", "tiled"), [("400", True), ("affine_map<(d) -> (d)>(%i)", False)])
def test_steps_that_a_loop_around_cuts_short(end: str, tiled: bool, context: ir.Context) -> None:
    module = ir.Module.parse(CUT_SHORT.replace("END", end), context).operation
    run_passes(module, (TileTime(widths="8x8"),))
    assert any(PARALLEL in op.attributes for op in operations_in(module)) == tiled
