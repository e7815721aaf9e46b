"""No operation of MPI is left, and what is called is declared."""

from __future__ import annotations

from mlir import ir

from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.distribution.mpi_to_llvm import MpiToLlvm
from tests.compiler.passes.golden import each_case


@each_case("mpi_to_llvm")
def test_calls_of_what_there_is(case: str) -> None:
    with ir.Context():
        module = ir.Module.parse(case).operation
        run_passes(module, (MpiToLlvm(),))
        operations = list(operations_in(module))
        symbols = {
            ir.StringAttr(op.attributes["sym_name"]).value
            for op in operations
            if "sym_name" in op.attributes
        }
        called = {
            ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            for op in operations
            if "callee" in op.attributes
        }
    assert not [op.name for op in operations if op.name.startswith("mpi.")]
    assert called <= symbols
