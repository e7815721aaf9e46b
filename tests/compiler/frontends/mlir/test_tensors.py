"""Tensors become memory with the values that the text gives them, on any number of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mlir import ir, passmanager

from avial_lab.compiler.frontends.mlir import parse_cell
from tests.on_ranks import Arrays, assert_values

X, INIT = np.arange(5), np.arange(5) * 10

READING = """
  %m = linalg.map ins(%x : tensor<5xi64>) outs(%old : tensor<5xi64>)
    (%a: i64, %b: i64) {
      %c = arith.addi %a, %b : i64
      linalg.yield %c : i64
    }"""
"""A map that reads what it writes."""

MAPS: dict[str, tuple[str, Arrays, Arrays]] = {
    "of an argument": (
        f"""func.func @f(%x: tensor<5xi64>, %old: tensor<5xi64>)
    -> (tensor<5xi64>, tensor<5xi64>) {{
  {READING}
  return %m, %old : tensor<5xi64>, tensor<5xi64>
}}""",
        {"x": X, "old": INIT},
        {"result0": X + INIT, "result1": INIT, "old": INIT},
    ),
    "of a constant": (
        f"""func.func @f(%x: tensor<5xi64>) -> tensor<5xi64> {{
  %old = arith.constant dense<[11, 12, 13, 14, 15]> : tensor<5xi64>
  {READING}
  return %m : tensor<5xi64>
}}""",
        {"x": X},
        {"result0": X + np.arange(11, 16)},
    ),
    "in a loop": (
        f"""func.func @f(%x: tensor<5xi64>, %i: tensor<5xi64>) -> tensor<5xi64> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %k = %c0 to %c3 step %c1 iter_args(%old = %i) -> (tensor<5xi64>) {{
    {READING}
    scf.yield %m : tensor<5xi64>
  }}
  return %r : tensor<5xi64>
}}""",
        {"x": X, "i": INIT},
        {"result0": 3 * X + INIT, "i": INIT},
    ),
    "in a function that is called": (
        f"""func.func private @add(%x: tensor<5xi64>, %old: tensor<5xi64>) -> tensor<5xi64> {{
  {READING}
  return %m : tensor<5xi64>
}}
func.func @f(%x: tensor<5xi64>, %i: tensor<5xi64>) -> tensor<5xi64> {{
  %m = call @add(%x, %i) : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
  %n = call @add(%m, %m) : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
  return %n : tensor<5xi64>
}}""",
        {"x": X, "i": INIT},
        {"result0": 2 * (X + INIT)},
    ),
    "in a branch of its body, of two inputs, of open extents": (
        """func.func @f(%x: tensor<4x?xi64>, %y: tensor<4x?xi64>, %i: tensor<4x?xi64>)
    -> tensor<4x?xi64> {
  %m = linalg.map ins(%x, %y : tensor<4x?xi64>, tensor<4x?xi64>) outs(%i : tensor<4x?xi64>)
    (%a: i64, %b: i64, %old: i64) {
      %p = arith.cmpi sgt, %a, %b : i64
      %z = scf.if %p -> i64 {
        scf.yield %old : i64
      } else {
        scf.yield %b : i64
      }
      linalg.yield %z : i64
    }
  return %m : tensor<4x?xi64>
}""",
        {name: np.arange(12).reshape(4, 3)[step] for name, step in
         (("x", np.s_[:]), ("y", np.s_[::-1]), ("i", np.s_[:, ::-1]))},
        {"result0": np.array([[9, 10, 11], [6, 7, 8], [8, 7, 6], [11, 10, 9]])},
    ),
    "without inputs": (
        """func.func @f(%i: tensor<5xi64>) -> tensor<5xi64> {
  %m = linalg.map outs(%i : tensor<5xi64>)
    (%old: i64) {
      %k = linalg.index 0 : index
      %v = arith.index_cast %k : index to i64
      %b = arith.addi %v, %old : i64
      linalg.yield %b : i64
    }
  return %m : tensor<5xi64>
}""",
        {"i": INIT},
        {"result0": INIT + np.arange(5)},
    ),
}  # fmt: skip


@pytest.mark.quick("in a loop", "in a branch*")
@pytest.mark.mpi
@pytest.mark.parametrize("case", MAPS)
def test_a_map_reads_its_init(case: str, cluster: Any) -> None:
    text, arrays, want = MAPS[case]
    assert_values(text, arrays, want, cluster)


def test_upstream_takes_the_init_of_a_map_as_never_read(context: ir.Context) -> None:
    """llvm/llvm-project#213241. Where this fails, `_reading_maps_to_generics` may go."""
    with context:
        module = ir.Module.parse(MAPS["of an argument"][0])
        passmanager.PassManager.parse("builtin.module(one-shot-bufferize)").run(module.operation)
    assert "memref.copy" not in str(module)


def test_a_map_that_only_writes_stays_a_map(context: ir.Context) -> None:
    text = MAPS["of an argument"][0].replace("%a, %b :", "%a, %a :")
    assert "linalg.map" in str(parse_cell(text, cell="f.mlir", context=context))
    assert "linalg.map" not in str(
        parse_cell(MAPS["of an argument"][0], cell="f.mlir", context=context)
    )


@pytest.mark.mpi
def test_a_generic_reads_its_init_in_a_loop(cluster: Any) -> None:
    text = """
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @f(%x: tensor<4x5xi64>, %i: tensor<4xi64>) -> (tensor<4xi64>, tensor<4x5xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:2 = scf.for %k = %c0 to %c3 step %c1 iter_args(%acc = %i, %w = %x)
      -> (tensor<4xi64>, tensor<4x5xi64>) {
    %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%w : tensor<4x5xi64>) outs(%acc : tensor<4xi64>) {
      ^bb0(%a: i64, %old: i64):
        %b = arith.addi %a, %old : i64
        linalg.yield %b : i64
      } -> tensor<4xi64>
    %n = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
        ins(%m : tensor<4xi64>) outs(%w : tensor<4x5xi64>) {
      ^bb0(%a: i64, %old: i64):
        %b = arith.subi %old, %a : i64
        linalg.yield %b : i64
      } -> tensor<4x5xi64>
    scf.yield %m, %n : tensor<4xi64>, tensor<4x5xi64>
  }
  return %r#0, %r#1 : tensor<4xi64>, tensor<4x5xi64>
}"""
    whole, sums = np.arange(20).reshape(4, 5), np.arange(4)
    arrays = {"x": whole, "i": sums}
    for _ in range(3):
        sums = sums + whole.sum(1)
        whole = whole - sums[:, None]
    assert_values(text, arrays, {"result0": sums, "result1": whole}, cluster)
