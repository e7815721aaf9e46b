"""All that a program takes from the memory that was kept, it gives back, once."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from mlir import ir
from mlir.execution_engine import ExecutionEngine

from avial_lab.compiler.lowering.pipelines import TO_LLVM
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.host.free_allocations import FreeAllocations
from avial_lab.compiler.passes.llvm.pool_allocations import PoolAllocations
from tests.compiler.passes.golden import cases_of
from tests.kernels.jit import OPT_LEVEL

IN_A_LOOP = """
func.func @in_a_loop(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = arith.constant 1.0 : f64
  scf.for %i = %c0 to %n step %c1 {
    %row = memref.alloc(%n) : memref<?xf64>
    memref.store %x, %row[%i] : memref<?xf64>
  }
  return
}"""


def counted(text: str, *arguments: ctypes._SimpleCData) -> tuple[list[int], list[int]]:
    """The addresses that the function of that text takes, and those that it gives back."""
    with ir.Context():
        module = ir.Module.parse(text)
        function = module.body.operations[0]
        function.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        name = ir.StringAttr(function.attributes["sym_name"]).value
        run_passes(module.operation, (FreeAllocations(), *TO_LLVM, PoolAllocations()))
        engine = ExecutionEngine(module, opt_level=OPT_LEVEL)
    taken: list[int] = []
    given: list[int] = []
    blocks: list[np.ndarray] = []

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)
    def take(count: int) -> int:
        blocks.append(np.empty(count, np.uint8))
        taken.append(blocks[-1].ctypes.data)
        return taken[-1]

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def give(address: int) -> None:
        given.append(address)

    for symbol, callback in (("avial_take", take), ("avial_give", give)):
        engine.raw_register_runtime(symbol, ctypes.cast(callback, ctypes.c_void_p))
    engine.invoke(name, *map(ctypes.pointer, arguments))
    return taken, given


@pytest.mark.parametrize("count", [0, 1, 5])
def test_memory_of_each_iteration(count: int) -> None:
    taken, given = counted(IN_A_LOOP, ctypes.c_int64(count))
    assert len(taken) == count
    assert given == taken


def test_memory_of_the_golden_file() -> None:
    text = cases_of("pool_allocations")["scratch"].partition("// Functions with a body")[0]
    taken, given = counted(text, ctypes.c_double(2.5), ctypes.c_int64(3), ctypes.c_double())
    assert len(taken) == 1
    assert given == taken
