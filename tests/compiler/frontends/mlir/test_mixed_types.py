"""Buffers of different types in one list of operands.

IRDL ties all operands of one list to one type (a constraint is a variable: `%any = irdl.any` used
twice, or for a variadic, means *the same* type twice). So buffers are operands as
`!avial.buffer_ref`, casts of the memrefs; task.reads and task.writes give the memrefs behind them.
"""

from __future__ import annotations

from mlir import ir

from avial_lab.compiler.analysis.accesses.program import read_program
from avial_lab.compiler.frontends.mlir import parse_cell, print_module

MIXED = """
avial.schedule %a: memref<20xi32>, %f: memref<4x5xf64>, %n: memref<i1> {
  %cpu = avial.target {arch = "cpu"}
  %one = avial.task %cpu, %a, %f {
    scf.parallel %i = 0 to 4 {
      %x = memref.load %a[%i]
      %y = arith.sitofp %x : i32 to f64
      memref.store %y, %f[%i, %i]
    }
  }
  %two = avial.task %cpu reads(%n, %f) writes(%a, %f) {
    %b = memref.load %n[]
    scf.if %b {
      %c0 = arith.constant 0 : index
      %x = memref.load %f[%c0, %c0]
      %y = arith.fptosi %x : f64 to i32
      memref.store %y, %a[%c0]
      memref.store %x, %f[%c0, %c0]
    }
  }
}
"""


def test_buffers_of_different_types_in_one_list() -> None:
    module = parse_cell(MIXED, cell="t", context=ir.Context())
    one, two = read_program(module)[0]
    assert [a.buffer for a in one.reads] == ["a"]
    assert [a.buffer for a in one.writes] == ["f"]
    assert {a.buffer for a in two.reads} == {"n", "f"}
    again = parse_cell(print_module(module), cell="t", context=ir.Context())
    assert str(again) == str(module)
