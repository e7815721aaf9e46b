"""What tasks ask of the machine, counted once for all that are alike."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.compiler.requests import Source
from avial_lab.compiler.worker import task_demands as counting
from avial_lab.compiler.worker.build import parse
from avial_lab.compiler.worker.task_demands import task_demands
from avial_lab.core.buffers import bind_arrays
from avial_lab.machine.demand import Demand


def _demands(tasks: str) -> dict[str, Demand]:
    arrays = {"a": np.zeros((64, 64)), "b": np.zeros((64, 64))}
    head = 'avial.schedule %a, %b {\n  %cpu = avial.target {arch = "cpu"}\n'
    source = Source(f"{head}{tasks}}}\n", "cell", bind_arrays(arrays))
    return task_demands(parse(source).operation)


def _rows_of_a_product(name: str, row: int) -> str:
    rows = f"memref<8x64xf64, strided<[64, 1], offset: {64 * row}>>"
    return f"""
      %{name} = avial.task %cpu, %a, %b {{
        %x = memref.subview %a[{row}, 0] [8, 64] [1, 1] : memref<64x64xf64> to {rows}
        %y = memref.subview %b[{row}, 0] [8, 64] [1, 1] : memref<64x64xf64> to {rows}
        linalg.matmul ins(%x, %a : {rows}, memref<64x64xf64>) outs(%y : {rows})
      }}
    """


def _loop(name: str, trips: int) -> str:
    return f"""
      %{name} = avial.task %cpu, %a, %b {{
        scf.for %i = 0 to {trips} {{
          %x = memref.load %a[%i, %i]
          %y = arith.addf %x, %x : f64
          memref.store %y, %b[%i, %i]
        }}
      }}
    """


def test_blocks_of_a_product_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    original = counting.demand_of
    monkeypatch.setattr(counting, "demand_of", lambda op: counted.append("x") or original(op))
    found = _demands("".join(_rows_of_a_product(f"t{row}", row) for row in range(8, 64, 8)))
    assert {demand.flops for demand in found.values()} == {2 * 8 * 64 * 64}
    assert len(found) == 7
    assert len(counted) == 1


def test_loops_of_different_length_are_not_alike() -> None:
    found = _demands(_loop("t0", 10) + _loop("t1", 20))
    assert (found["t0"].flops, found["t1"].flops) == (10, 20)
