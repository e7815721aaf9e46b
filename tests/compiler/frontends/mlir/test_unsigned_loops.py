"""Loops that compare as unsigned run as often as they say, in functions and tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.frontends.mlir import parse_cell
from tests.on_ranks import assert_values

ROOM, FREE = 8, -5


def counting(kind: str, low: int, high: int, step: int) -> str:
    """Writes its counter into %o in order, and into %k how often it ran."""
    element, behind = ("i64", "") if kind == "index" else (kind, f" : {kind}")
    value = (
        "arith.index_cast %i : index to i64" if kind == "index" else f"arith.addi %i, %z : {kind}"
    )
    return f"""func.func @f(%o: memref<{ROOM}x{element}>, %k: memref<1xi64>) {{
  %low = arith.constant {low} : {kind}
  %high = arith.constant {high} : {kind}
  %step = arith.constant {step} : {kind}
  %z = arith.constant 0 : {kind}
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : i64
  %n = scf.for unsigned %i = %low to %high step %step iter_args(%a = %zero) -> (i64){behind} {{
    %b = arith.addi %a, %one : i64
    %c = arith.index_cast %a : i64 to index
    %v = {value}
    memref.store %v, %o[%c] : memref<{ROOM}x{element}>
    scf.yield %b : i64
  }}
  affine.store %n, %k[0] : memref<1xi64>
  return
}}"""


CASES = [
    ("i8", 127, -128, 1),  # over the sign's edge
    ("i8", -6, -1, 10),  # the next number would be past the type's end
    ("i16", 32765, -32766, 3),
    ("i32", 2147483640, -2147483640, 5),
    ("i32", 5, 3, 1),  # none
    ("i64", 2**63 - 3, -(2**63) + 2, 1),
    ("i64", -4, -1, 2**62),
    ("index", 2**63 - 3, -(2**63) + 2, 2),
    ("index", -1, 0, 1),
]


@pytest.mark.quick("index-9*", "i64-9*", "i8-127*", "i32-5-3-1")
@pytest.mark.mpi
@pytest.mark.parametrize(("kind", "low", "high", "step"), CASES)
def test_every_width(kind: str, low: int, high: int, step: int, cluster: Any) -> None:
    width = 64 if kind == "index" else int(kind[1:])
    numbers = range(low % 2**width, high % 2**width, step)
    dtype = np.dtype(f"i{width // 8}")
    want = np.full(ROOM, FREE, dtype)
    want[: len(numbers)] = [n - 2**width if n >= 2 ** (width - 1) else n for n in numbers]
    arrays = {"o": np.full(ROOM, FREE, dtype), "k": np.zeros(1, np.int64)}
    after = {"o": want, "k": np.array([len(numbers)])}
    assert_values(counting(kind, low, high, step), arrays, after, cluster, ranks=(2,))


TASKS = """
avial.schedule %n, %a, %b {
  %cpu = avial.target {arch = "x86_64"}
  %t1 = avial.task %cpu, %n, %a {
    %lo = arith.constant 120 : i8
    %z = arith.constant 0 : index
    %hi = memref.load %n[%z] : memref<1xi8>
    %st = arith.constant 3 : i8
    scf.for unsigned %i = %lo to %hi step %st : i8 {
      %k = arith.extsi %i : i8 to i64
      %c = arith.constant 128 : i64
      %s = arith.addi %k, %c : i64
      %j = arith.index_cast %s : i64 to index
      memref.store %k, %a[%j] : memref<256xi64>
    }
  }
  %t2 = avial.task %cpu, %a, %b {
    affine.for %i = 0 to 256 {
      %x = affine.load %a[%i] : memref<256xi64>
      affine.store %x, %b[%i] : memref<256xi64>
    }
  }
}"""


@pytest.mark.mpi
@pytest.mark.parametrize("high", [127, -120, 3])
def test_in_a_task_with_a_bound_from_memory(high: int, cluster: Any) -> None:
    want = np.zeros(256, np.int64)
    for number in range(120, high % 256, 3):
        signed = number - 256 if number >= 128 else number
        want[signed + 128] = signed
    arrays = {"n": np.array([high], np.int8), "a": np.zeros_like(want), "b": np.zeros_like(want)}
    assert_values(TASKS, arrays, {"a": want, "b": want}, cluster, ranks=(2,))


def test_subscripts_stay_known(context: ir.Context) -> None:
    """What the counter is extended to is the index itself; bounds that are known stay so."""
    text = """func.func @f(%A: memref<256xi64>) {
  %lo = arith.constant 120 : i8
  %hi = arith.constant -120 : i8
  %st = arith.constant 1 : i8
  scf.for unsigned %i = %lo to %hi step %st : i8 {
    %k = arith.extui %i : i8 to i64
    %j = arith.index_castui %i : i8 to index
    memref.store %k, %A[%j] : memref<256xi64>
  }
  return
}"""
    told = str(parse_cell(text, cell="f.mlir", context=context))
    assert "unsigned" not in told
    assert "trunci" not in told
    assert "%c120 = arith.constant 120 : index" in told
    assert "%c136 = arith.constant 136 : index" in told
