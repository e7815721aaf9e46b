# ruff: noqa: E501  a line of the table holds a whole mistake
"""Plain functions from Python: `compile` takes them as it takes programs of avial's own."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.core.errors import BindError, CheckError, PassError, RunError, VerifyError
from avial_lab.program.compilation import Namespace
from avial_lab.program.program import Program
from tests.cli.test_command_line import GATHER, SUM
from tests.compiler.frontends.mlir.test_functions import HELPERS

DIVIDE = """\
func.func @divide(%a: memref<?xi32>, %b: memref<?xi32>, %n: i32) {
  %stop = arith.index_cast %n : i32 to index
  affine.for %i = 0 to %stop {
    %x = affine.load %a[%i] : memref<?xi32>
    %y = affine.load %b[%i] : memref<?xi32>
    %q = arith.divsi %x, %y : i32
    affine.store %q, %a[%i] : memref<?xi32>
  }
  return
}
"""


def compiled(text: str, arrays: Any, **options: Any) -> Program:
    return avial_lab.compile(text, arrays=arrays, ranks=2, cell="f.mlir", **options)


def pair(divisor: int = 3) -> dict[str, np.ndarray]:
    return {"a": np.arange(5, dtype=np.int32), "b": np.full(5, divisor, np.int32)}


def test_arrays_and_numbers_by_position() -> None:
    arrays = pair()
    program = compiled(DIVIDE, {"0": arrays["a"], "1": arrays["b"]}, scalars={"2": 4})
    assert list(program.arrays) == ["a", "b"]
    assert program.arrays["a"] is arrays["a"]
    after = program.reference().data["a"]
    assert after.tolist() == [0, 0, 0, 1, 4]


def test_a_namespace_gives_arrays_and_numbers() -> None:
    program = compiled(DIVIDE, Namespace({**pair(), "n": np.int64(5), "other": object()}))
    assert program.reference().data["a"].tolist() == [0, 0, 0, 1, 1]


@pytest.mark.mpi
def test_results_are_arrays_of_the_program() -> None:
    program = compiled(SUM, {"arg1": np.arange(6, dtype=np.float32)}, scalars={"arg0": 6})
    assert program.arrays["result0"].shape == ()
    program.run(check=True)
    assert program.arrays["result0"] == 15


@pytest.mark.mpi
def test_results_that_are_indices() -> None:
    text = """\
func.func @f(%n: index) -> (memref<4xindex>, index) {
  %places = memref.alloc() : memref<4xindex>
  affine.for %i = 0 to 4 {
    %place = arith.addi %i, %n : index
    affine.store %place, %places[%i] : memref<4xindex>
  }
  return %places, %n : memref<4xindex>, index
}
"""
    program = compiled(text, {}, scalars={"n": 3})
    program.run(check=True)
    assert program.arrays["result0"].tolist() == [3, 4, 5, 6]
    assert program.arrays["result1"] == 3


def test_a_result_may_be_given() -> None:
    mine = np.full((), np.nan, np.float32)
    arrays = {"arg1": np.arange(6, dtype=np.float32), "result0": mine}
    program = compiled(SUM, arrays, scalars={"arg0": 6})
    assert program.arrays["result0"] is mine


def test_the_reference_says_which_index_leaves() -> None:
    arrays = {"index": np.full(40, 9, np.int32), "from": np.zeros(9), "to": np.zeros(40)}
    program = compiled(GATHER, arrays)
    with pytest.raises(CheckError, match="index 9 is out of bounds for dimension 0 of size 9"):
        program.reference()


def test_an_index_that_is_known_to_leave_is_told_at_once() -> None:
    with pytest.raises(VerifyError, match="index 2 of dimension 0, which has size 2"):
        compiled(HELPERS, {"x": np.zeros(2, np.float32)}, scalars={"i": 2}, function="row")


@pytest.mark.skipif(not hasattr(signal, "SIGFPE"), reason="division by 0 is no signal here")
def test_a_function_that_ends_the_check() -> None:
    program = compiled(DIVIDE, pair(divisor=0), scalars={"n": 5})
    with pytest.raises(RunError, match=r"the sequential reference run ended: .*SIGFPE"):
        program.reference()


WINDOW = """\
func.func @window(%a: memref<?xf64>) {
  %zero = arith.constant 0 : index
  %n = memref.dim %a, %zero : memref<?xf64>
  %w = memref.subview %a[5] [%n] [1] : memref<?xf64> to memref<?xf64, strided<[1], offset: 5>>
  %x = memref.load %w[%zero] : memref<?xf64, strided<[1], offset: 5>>
  memref.store %x, %a[%zero] : memref<?xf64>
  return
}
"""

GLOBAL = """\
memref.global "private" @count : memref<1xf64> = dense<0.0>
func.func @counted(%a: memref<?xf64>) {
  %count = memref.get_global @count : memref<1xf64>
  affine.for %i = 0 to 1 {
    %x = affine.load %count[%i] : memref<1xf64>
    %y = arith.addf %x, %x : f64
    affine.store %y, %count[%i] : memref<1xf64>
    affine.store %y, %a[%i] : memref<?xf64>
  }
  return
}
"""

STEPS = """\
memref.global "private" @w : memref<8x8xf64> = dense<0.5>
func.func @steps(%a: memref<8x8xf64>) {
  affine.for %t = 0 to 4 {
    %w = memref.get_global @w : memref<8x8xf64>
    affine.for %i = 0 to 8 { affine.for %j = 0 to 8 {
      %x = affine.load %w[%j, %i] : memref<8x8xf64>
      %y = affine.load %a[%i, %j] : memref<8x8xf64>
      %s = arith.addf %x, %y : f64
      affine.store %s, %a[%i, %j] : memref<8x8xf64>
    } }
    %z = affine.load %a[0, 0] : memref<8x8xf64>
    affine.store %z, %w[1, 2] : memref<8x8xf64>
  }
  return
}
"""
"""Steps that change what their phases read."""

MISTAKES: dict[str, tuple[str, dict[str, Any], type[Exception], str]] = {
    "no number": (DIVIDE, {"arrays": pair()}, BindError, "no value for %n"),
    "array too many": (DIVIDE, {"arrays": pair() | {"c": np.ones(3)}, "scalars": {"n": 1}}, BindError, "array 'c' is not a buffer"),
    "position too many": (DIVIDE, {"arrays": pair(), "scalars": {"7": 1}}, BindError, "number '7' is not a buffer"),
    "function": (HELPERS, {"arrays": {}, "function": "rows"}, VerifyError, "the program has no function @rows"),
    "dtype": (DIVIDE, {"arrays": pair() | {"a": np.ones(5)}, "scalars": {"n": 1}}, BindError, "but the array 'a' holds f64"),
    # Not a fault of ours that ends in one task.
    "window": (WINDOW, {"arrays": {"a": np.ones(3)}}, VerifyError, "a subview is out of bounds: .*5 >= 3"),
    "window, open sizes": (WINDOW, {"arrays": {"a": np.ones(3)}, "dynamic": True}, VerifyError, "a subview is out of bounds: .*5 >= 3"),
    "global between phases": (STEPS, {"arrays": {"a": np.ones((8, 8))}}, PassError, "make it an argument of the function"),
    "global": (GLOBAL, {"arrays": {"a": np.ones(3)}}, PassError, "make it an argument of the function"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake(mistake: str) -> None:
    text, options, kind, message = MISTAKES[mistake]
    with pytest.raises(kind, match=message) as caught:
        avial_lab.compile(text, **options)
    assert getattr(caught.value, "span", None) is not None


def test_a_read_only_array_that_is_written() -> None:
    arrays = pair()
    arrays["a"].flags.writeable = False
    with pytest.raises(BindError, match="the function writes %a, but the array 'a' is read-only"):
        compiled(DIVIDE, arrays, scalars={"n": 1})
