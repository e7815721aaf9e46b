"""A function of loops over arrays, compiled with the code of an elementary function in it.

Name of an operation, arrays of arguments -> array of values.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
from mlir import ir
from mlir.execution_engine import ExecutionEngine
from mlir.runtime import get_ranked_memref_descriptor

from avial_lab.compiler.codegen.math.functions import FUNCTIONS
from avial_lab.compiler.ir.attributes import CHOSEN, NEAR
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.pipelines import TO_LLVM
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.arithmetic.expand_math import ExpandMath
from avial_lab.compiler.passes.arithmetic.select_math import SelectMath

DTYPES = {"f32": np.float32, "f64": np.float64}
NAMES = [name.removeprefix("math.") for name in FUNCTIONS]

TWO = ("powf", "atan2")
"""Of them, those of two arguments."""

_LOOP = """
func.func @of_{name}(%x: memref<?x{t}>, %y: memref<?x{t}>, %z: memref<?x{t}>)
    attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0 : index
  %lanes = arith.constant {lanes} : index
  %n = memref.dim %x, %zero : memref<?x{t}>
  scf.for %i = %zero to %n step %lanes {{
    %v = vector.load %x[%i] : memref<?x{t}>, vector<{lanes}x{t}>
    %w = vector.load %y[%i] : memref<?x{t}>, vector<{lanes}x{t}>
    %r = math.{name} {operands} : vector<{lanes}x{t}>
    vector.store %r, %z[%i] : memref<?x{t}>, vector<{lanes}x{t}>
  }}
  return
}}
"""


@cache
def _engine(element: str, lanes: int, *, fused: bool, near: bool) -> ExecutionEngine:
    text = "".join(
        _LOOP.format(name=name, t=element, lanes=lanes, operands="%v, %w" if name in TWO else "%v")
        for name in NAMES
    )
    if lanes == 1:
        text = _of_numbers(text, element)
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_passes(module.operation, (SelectMath(fused=fused),))
        for op in operations_in(module.operation):
            if near and CHOSEN in op.attributes:
                op.attributes[NEAR] = ir.UnitAttr.get()
        run_passes(module.operation, (ExpandMath(), *TO_LLVM))
        return ExecutionEngine(module, opt_level=3)


def _of_numbers(text: str, element: str) -> str:
    """The same without vectors of one lane."""
    text = text.replace("vector.load", "memref.load").replace("vector.store", "memref.store")
    return text.replace(f", vector<1x{element}>", "").replace(f"vector<1x{element}>", element)


def values(
    name: str, *x: np.ndarray, fused: bool = True, near: bool = False, lanes: int = 1
) -> np.ndarray:
    """Of the function at each element of `x`, of single or double precision; in a loop over vectors
    of so many `lanes`, and without a question where all are `near`.
    """
    element = next(key for key, dtype in DTYPES.items() if dtype == x[0].dtype)
    more = (-x[0].size) % lanes
    operands = [np.pad(each, (0, more)) for each in (x[0], x[-1])]
    result = np.full_like(operands[0], 7)
    pointers = [
        ctypes.pointer(ctypes.pointer(get_ranked_memref_descriptor(array)))
        for array in (*operands, result)
    ]
    _engine(element, lanes, fused=fused, near=near).invoke(f"of_{name}", *pointers)
    return result[: x[0].size]
