"""Tables in tiles have the same elements, and only those of integers are put into tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.contractions.block_contractions import BlockContractions
from avial_lab.machine.cpu import Cpu
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.kernels.jit import Machine
from tests.quick import examples

MARGIN = 3
"""Rows and columns around those that loops go through, which subscripts may reach."""

MOST = 80
TYPES = {"i32": np.int32, "i64": np.int64, "f64": np.float64}
OPERATIONS = {
    "best": ("arith.addi", "arith.maxsi"),
    "least": ("arith.addi", "arith.minui"),
    "ways": ("arith.muli", "arith.addi"),
}


@dataclass(frozen=True)
class Splits:
    """`first`, `last`: what is added to i and j for the ends of k; `left`, `below`: to k for the
    elements of its row and of its column. `also`: what else each element takes.
    """

    rows: int = 70
    columns: int = 70
    kind: str = "i64"
    operation: str = "best"
    first: int = 1
    last: int = 0
    left: int = 0
    below: int = 1
    also: tuple[tuple[int, int], ...] = ()
    down: bool = False
    """Rows from the first to the last, so that most of what is read is not there yet."""

    @property
    def text(self) -> str:
        side = MOST + 2 * MARGIN
        array = f"memref<{side}x{side}x{self.kind}>"
        inner, outer = OPERATIONS[self.operation]
        if self.kind == "f64":
            inner, outer = "arith.addf", "arith.maximumf"

        def update(to_left: str, term: str) -> str:
            return f"""
            %c{term} = affine.load %T[%i + {MARGIN}, %j + {MARGIN}] : {array}
            {to_left}
            %n{term} = {outer} %c{term}, %v{term} : {self.kind}
            affine.store %n{term}, %T[%i + {MARGIN}, %j + {MARGIN}] : {array}"""

        neighbours = "".join(
            update(
                f"%v{k} = affine.load %T[%i + {down + MARGIN}, %j + {MARGIN - back}] : {array}",
                str(k),
            )
            for k, (down, back) in enumerate(self.also)
        )
        split = update(
            f"""%a = affine.load %T[%i + {MARGIN}, %k + {self.left + MARGIN}] : {array}
            %b = affine.load %T[%k + {self.below + MARGIN}, %j + {MARGIN}] : {array}
            %vs = {inner} %a, %b : {self.kind}""",
            "s",
        )
        row = "d" if self.down else f"{self.rows - 1} - d"
        return f"""
        #row = affine_map<(d) -> ({row})>
        #after = affine_map<(d) -> (d + 1)>
        #low = affine_map<(d) -> (d + {self.first})>
        #high = affine_map<(i, j) -> (j + {self.last}, {MOST})>
        func.func @f(%T: {array}) attributes {{avial.no_alias}} {{
          affine.for %s = 0 to {self.rows} {{
            %i = affine.apply #row(%s)
            affine.for %j = #after(%i) to {self.columns} {{{neighbours}
              affine.for %k = #low(%i) to min #high(%i, %j) {{{split}
              }}
            }}
          }}
          return
        }}"""

    @property
    def table(self) -> np.ndarray:
        rng = np.random.default_rng(self.rows)
        side = MOST + 2 * MARGIN
        return rng.integers(0, 1000, (side, side)).astype(TYPES[self.kind])


def tiled(splits: Splits, *, steps: int = 16) -> str:
    context = ir.Context()
    module = ir.Module.parse(splits.text, context)
    run_passes(module.operation, (BlockContractions(steps=steps, cpu=Cpu(16, 16, fma=True)),))
    return str(module)


def is_tiled(text: str) -> bool:
    return "each beginning with a contraction" in text


def check(splits: Splits, text: str) -> None:
    context = ir.Context()
    with context:
        machine = Machine([("before", splits.text), ("after", text)], context)
    before = machine.call("before", {"T": splits.table})
    after = machine.call("after", {"T": splits.table})
    np.testing.assert_array_equal(after["T"], before["T"])


@settings(max_examples=examples(20), deadline=None, suppress_health_check=SLOW)
@given(
    splits=st.builds(
        Splits,
        rows=st.sampled_from([31, 32, 33, 47, 48, 64, 1, 3, 80]),
        columns=st.sampled_from([32, 33, 47, 48, 64, 2, 80]),
        kind=st.sampled_from(["i32", "i64", "f64"]),
        operation=st.sampled_from(sorted(OPERATIONS)),
        first=st.sampled_from([2, 1, 0, -1]),
        last=st.integers(-2, 1),
        left=st.sampled_from([0, 1, -1]),
        below=st.sampled_from([1, 2, 0, -1]),
        also=st.lists(st.tuples(st.integers(0, 1), st.integers(-1, 1)), max_size=2).map(tuple),
        down=st.sampled_from([False, False, False, True]),
    )
)
def test_any_table_in_tiles_is_the_same(splits: Splits) -> None:
    text = tiled(splits)
    event(f"tiled: {is_tiled(text)}")
    check(splits, text)


SPLITS = [
    Splits(also=((0, 1), (1, 0), (1, 1))),
    Splits(also=((1, 1),), kind="i32", operation="ways"),
    Splits(operation="least", first=2, last=-1, left=-1),
    Splits(last=1, also=((0, -1),)),  # what is read is not there yet, nor the element itself
]


@pytest.mark.quick("33-47-*", "80-80-*")
@pytest.mark.parametrize("splits", SPLITS)
@pytest.mark.parametrize(("rows", "columns"), [(32, 32), (33, 47), (48, 80), (79, 33), (80, 80)])
def test_a_table_goes_in_tiles(splits: Splits, rows: int, columns: int) -> None:
    splits = replace(splits, rows=rows, columns=columns)
    text = tiled(splits)
    assert is_tiled(text)
    check(splits, text)


@pytest.mark.parametrize(
    "splits",
    [
        Splits(kind="f64"),  # which order NaNs come in shows
        Splits(rows=20),  # too few for two tiles
        Splits(also=((1, -1),)),  # waits for a later column
    ],
)
def test_what_is_no_such_table_stays(splits: Splits) -> None:
    text = tiled(splits)
    assert not is_tiled(text)
    check(splits, text)


ANY_SIZE = """
  #row = affine_map<(d)[n] -> (n - 1 - d)>
  #after = affine_map<(d) -> (d + 1)>
  #here = affine_map<(d) -> (d)>
  func.func @f(%T: memref<?x?xi64>, %n: index) attributes {avial.no_alias} {
    affine.for %s = 0 to %n {
      %i = affine.apply #row(%s)[%n]
      affine.for %j = #after(%i) to %n {
        affine.for %k = #after(%i) to #here(%j) {
          %a = affine.load %T[%i, %k] : memref<?x?xi64>
          %b = affine.load %T[%k + 1, %j] : memref<?x?xi64>
          %both = arith.addi %a, %b : i64
          %old = affine.load %T[%i, %j] : memref<?x?xi64>
          %new = arith.maxsi %old, %both : i64
          affine.store %new, %T[%i, %j] : memref<?x?xi64>
        }
      }
    }
    return
  }"""


def test_a_table_of_any_size() -> None:
    context = ir.Context()
    module = ir.Module.parse(ANY_SIZE, context)
    run_passes(module.operation, (BlockContractions(steps=16, cpu=Cpu(16, 16, fma=True)),))
    assert is_tiled(str(module))
    with context:
        machine = Machine([("before", ANY_SIZE), ("after", str(module))], context)
    for size in (1, 2, 3, 12, 13, 24, 25, 37, 70):
        table = np.random.default_rng(size).integers(0, 1000, (size + 1, size + 1))
        arguments = {"T": table, "n": np.int64(size)}
        before, after = (machine.call(name, arguments)["T"] for name in ("before", "after"))
        np.testing.assert_array_equal(after, before)
