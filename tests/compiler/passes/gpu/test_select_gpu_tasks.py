"""A kernel's module is whole: what its functions call is there, and nothing of the host."""

from __future__ import annotations

from mlir import ir

from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.gpu.select_gpu_tasks import SelectGpuTasks

CHAIN = """
func.func private @cpu() attributes {avial.arch = "cpu"} { return }
func.func private @three() { return }
func.func private @two() {
  func.call @three() : () -> ()
  return
}
func.func private @one() attributes {avial.arch = "sm_90"} {
  func.call @two() : () -> ()
  return
}
func.func private @other() attributes {avial.arch = "gpu"} { return }
func.func @main() attributes {avial.ranks = 1 : i32} { return }
"""


def test_calls_of_calls() -> None:
    with ir.Context():
        module = ir.Module.parse(CHAIN).operation
        run_passes(module, (SelectGpuTasks(),))
        names = {
            ir.StringAttr(op.attributes["sym_name"]).value
            for op in operations_in(module)
            if op.name == "func.func"
        }
    assert {"one", "two", "three"} <= names
    assert not {"cpu", "main"} & names
