"""A function of loops over arrays, compiled with the code of an elementary function in it.

Name of an operation, element, fused or not -> arrays of arguments to arrays of values.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
from mlir import ir
from mlir.execution_engine import ExecutionEngine
from mlir.runtime import get_ranked_memref_descriptor

from avial_lab.elementary.functions import FUNCTIONS
from avial_lab.passes.expand_math import ExpandMath
from avial_lab.passes.mark_math import MarkMath
from avial_lab.pipelines import TO_LLVM, run_passes

DTYPES = {"f32": np.float32, "f64": np.float64}
NAMES = [name.removeprefix("math.") for name in FUNCTIONS]

_LOOP = """
func.func @{name}(%x: memref<?x{t}>, %y: memref<?x{t}>) attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = memref.dim %x, %zero : memref<?x{t}>
  scf.for %i = %zero to %n step %one {{
    %v = memref.load %x[%i] : memref<?x{t}>
    %w = math.{name} %v : {t}
    memref.store %w, %y[%i] : memref<?x{t}>
  }}
  return
}}
"""


@cache
def _engine(element: str, fused: bool) -> ExecutionEngine:
    text = "".join(_LOOP.format(name=name, t=element) for name in NAMES)
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_passes(module.operation, (MarkMath(fused=fused), ExpandMath(), *TO_LLVM))
        return ExecutionEngine(module, opt_level=3)


def values(name: str, x: np.ndarray, *, fused: bool = True) -> np.ndarray:
    """Of the function at each element of `x`, of single or double precision."""
    element = next(key for key, dtype in DTYPES.items() if dtype == x.dtype)
    x, result = np.ascontiguousarray(x), np.full_like(x, 7)
    pointers = [
        ctypes.pointer(ctypes.pointer(get_ranked_memref_descriptor(array))) for array in (x, result)
    ]
    _engine(element, fused).invoke(name, *pointers)
    return result
