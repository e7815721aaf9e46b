"""TOSA's branches, loops, gather and scatter compute what they say, nested ones too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.on_ranks import assert_values

pytestmark = pytest.mark.mpi

NESTED = """
func.func @f(%x: tensor<2x6xf32>, %c: tensor<i1>, %d: tensor<i1>)
    -> (tensor<2x6xf32>, tensor<2x6xf32>) {
  %r:2 = tosa.cond_if %c (%a = %x, %e = %d) : tensor<i1> (tensor<2x6xf32>, tensor<i1>)
      -> (tensor<2x6xf32>, tensor<2x6xf32>) {
  ^bb0(%a: tensor<2x6xf32>, %e: tensor<i1>):
    %s = tosa.add %a, %a : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
    %q = tosa.cond_if %e (%b = %s) : tensor<i1> (tensor<2x6xf32>) -> tensor<2x6xf32> {
    ^bb0(%b: tensor<2x6xf32>):
      %t = tosa.abs %b : (tensor<2x6xf32>) -> tensor<2x6xf32>
      tosa.yield %t : tensor<2x6xf32>
    } else {
    ^bb0(%b: tensor<2x6xf32>):
      tosa.yield %b : tensor<2x6xf32>
    }
    tosa.yield %s, %q : tensor<2x6xf32>, tensor<2x6xf32>
  } else {
  ^bb0(%a: tensor<2x6xf32>, %e: tensor<i1>):
    tosa.yield %a, %a : tensor<2x6xf32>, tensor<2x6xf32>
  }
  return %r#0, %r#1 : tensor<2x6xf32>, tensor<2x6xf32>
}"""


@pytest.mark.quick("True-False", "False-True")
@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("inner", [False, True])
def test_a_branch_in_a_branch(outer: bool, inner: bool, cluster: Any) -> None:
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)
    first = 2 * x if outer else x
    want = {"result0": first, "result1": abs(first) if outer and inner else first}
    assert_values(NESTED, {"x": x, "c": np.array(outer), "d": np.array(inner)}, want, cluster)


def test_a_branch_that_names_what_it_takes_from_outside(cluster: Any) -> None:
    text = """
func.func @f(%x: tensor<6xf32>, %c: tensor<i1>) -> tensor<6xf32> {
  %r = tosa.cond_if %c : tensor<i1> -> tensor<6xf32> {
    %s = tosa.add %x, %x : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    tosa.yield %s : tensor<6xf32>
  } else {
    tosa.yield %x : tensor<6xf32>
  }
  return %r : tensor<6xf32>
}"""
    x = np.arange(6, dtype=np.float32)
    assert_values(text, {"x": x, "c": np.array(True)}, {"result0": 2 * x}, cluster)


LOOP = """
func.func @f(%v: tensor<1x5x3xf32>, %i: tensor<1x2xi32>, %w: tensor<1x2x3xf32>, %n: tensor<i32>)
    -> (tensor<1x5x3xf32>, tensor<i32>) {
  %r:2 = tosa.while_loop (%k = %n, %a = %v) : (tensor<i32>, tensor<1x5x3xf32>)
      -> (tensor<i32>, tensor<1x5x3xf32>) {
    %z = "tosa.const"() {values = dense<0> : tensor<i32>} : () -> tensor<i32>
    %c = tosa.greater %k, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tosa.yield %c : tensor<i1>
  } do {
  ^bb0(%k: tensor<i32>, %a: tensor<1x5x3xf32>):
    %one = "tosa.const"() {values = dense<1> : tensor<i32>} : () -> tensor<i32>
    %kk = tosa.sub %k, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %g = tosa.gather %a, %i : (tensor<1x5x3xf32>, tensor<1x2xi32>) -> tensor<1x2x3xf32>
    %q = tosa.add %g, %w : (tensor<1x2x3xf32>, tensor<1x2x3xf32>) -> tensor<1x2x3xf32>
    %s = tosa.scatter %a, %i, %q
        : (tensor<1x5x3xf32>, tensor<1x2xi32>, tensor<1x2x3xf32>) -> tensor<1x5x3xf32>
    tosa.yield %kk, %s : tensor<i32>, tensor<1x5x3xf32>
  }
  return %r#1, %r#0 : tensor<1x5x3xf32>, tensor<i32>
}"""


@pytest.mark.quick("3")
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_a_loop_that_gathers_and_scatters(rounds: int, cluster: Any) -> None:
    v = np.arange(15, dtype=np.float32).reshape(1, 5, 3)
    w = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    rows, after = np.array([[4, 1]], np.int32), v.copy()
    after[0, rows[0]] += rounds * w[0]
    arrays = {"v": v, "i": rows, "w": w, "n": np.array(rounds, np.int32)}
    want = {"result0": after, "result1": np.array(0, np.int32), "v": v}
    assert_values(LOOP, arrays, want, cluster)


def test_gather_and_scatter_of_two_batches(cluster: Any) -> None:
    text = """
func.func @f(%v: tensor<2x5x3xf32>, %i: tensor<2x4xi32>, %w: tensor<2x4x3xf32>)
    -> (tensor<2x4x3xf32>, tensor<2x5x3xf32>) {
  %g = tosa.gather %v, %i : (tensor<2x5x3xf32>, tensor<2x4xi32>) -> tensor<2x4x3xf32>
  %s = tosa.scatter %v, %i, %w
      : (tensor<2x5x3xf32>, tensor<2x4xi32>, tensor<2x4x3xf32>) -> tensor<2x5x3xf32>
  return %g, %s : tensor<2x4x3xf32>, tensor<2x5x3xf32>
}"""
    v = np.arange(30, dtype=np.float32).reshape(2, 5, 3)
    rows, w = np.array([[4, 1, 0, 2], [3, 4, 1, 0]], np.int32), -v[:, :4] - 1
    gathered, scattered = np.stack([v[0][rows[0]], v[1][rows[1]]]), v.copy()
    scattered[0][rows[0]], scattered[1][rows[1]] = w
    want = {"result0": gathered, "result1": scattered}
    assert_values(text, {"v": v, "i": rows, "w": w}, want, cluster)
