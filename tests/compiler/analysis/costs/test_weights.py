"""The table of weights against what each of its readers makes of an operation."""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.compiler.analysis.costs.operation_counts import OperationCounts, own_counts
from avial_lab.compiler.analysis.costs.weights import WEIGHTS, weight_of
from avial_lab.compiler.analysis.costs.work import _weight as peak_flops_of
from avial_lab.compiler.codegen.loops.work_estimate import _weight as additions_of
from avial_lab.compiler.ir.operations import functions_in

BODY = """
func.func @f(%x: f64, %n: i64, %i: index, %v: vector<4xf64>, %m: memref<20xf64>) {
  %c = arith.constant 1.0 : f64
  %sum = arith.addf %x, %c : f64
  %quotient = arith.divf %x, %sum : f64
  %root = math.sqrt %quotient : f64
  %fused = math.fma %x, %x, %root : f64
  %power = math.exp %fused : f64
  %minus = arith.negf %power : f64
  %part = arith.divsi %n, %n : i64
  %next = arith.addi %i, %i : index
  %wide = math.fma %v, %v, %v : vector<4xf64>
  %real = arith.sitofp %part : i64 to f64
  memref.store %real, %m[%next] : memref<20xf64>
  return
}
"""

WANTED = {
    # operation: additions, flops of the peak, counted by convention
    "arith.constant": (0, 0, OperationCounts()),
    "arith.addf": (1, 1, OperationCounts(flops=1)),
    "arith.divf": (8, 8, OperationCounts(flops=1)),
    "math.sqrt": (8, 8, OperationCounts(flops=1)),
    "math.fma": (1, 2, OperationCounts(flops=2)),
    "math.exp": (16, 16, OperationCounts(flops=1)),
    "arith.negf": (1, 1, OperationCounts(flops=1)),
    "arith.divsi": (16, 0, OperationCounts(integer=1)),
    "arith.addi": (1, 0, OperationCounts()),
    "arith.sitofp": (1, 1, OperationCounts()),
    "memref.store": (1, 0, OperationCounts(stored=8)),
}


def test_each_reader_takes_its_own_measure(context: ir.Context) -> None:
    module = ir.Module.parse(BODY, context)
    (function,) = functions_in(module.operation)
    seen = set[str]()
    for view in function.regions[0].blocks[0].operations:
        op = view.operation
        if op.name in seen or op.name == "func.return":
            continue
        seen.add(op.name)
        assert (additions_of(op), peak_flops_of(op), own_counts(op)) == WANTED[op.name], op.name
    assert seen == WANTED.keys()


def test_vectors_count_by_their_elements(context: ir.Context) -> None:
    module = ir.Module.parse(BODY, context)
    (function,) = functions_in(module.operation)
    operations = [view.operation for view in function.regions[0].blocks[0].operations]
    wide = [op for op in operations if op.name == "math.fma"][-1]
    assert additions_of(wide) == 4
    assert own_counts(wide) == OperationCounts(flops=8)


@pytest.mark.parametrize("name", WEIGHTS)
def test_what_counts_takes_time(name: str) -> None:
    weight = weight_of(name)
    assert bool(weight.flops) + bool(weight.integers) <= 1
    assert weight.additions > 0 or not (weight.flops or weight.integers)
