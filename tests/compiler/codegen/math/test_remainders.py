"""The remainder that kernels compute, compiled for this CPU, against C's fmod, to the bit."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest
from mlir import ir
from mlir.execution_engine import ExecutionEngine

from avial_lab.compiler.codegen.math.remainders import remainder_function
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.lowering.pipelines import TO_LLVM
from avial_lab.compiler.lowering.run import run_passes

CALLER = """
func.func @f(%x: memref<?xT>, %y: memref<?xT>, %r: memref<?xT>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xT>
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %x[%i] : memref<?xT>
    %b = memref.load %y[%i] : memref<?xT>
    %c = func.call @remainder_T(%a, %b) : (T, T) -> T
    memref.store %c, %r[%i] : memref<?xT>
  }
  return
}"""


class _Descriptor(ctypes.Structure):
    _fields_ = [
        ("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p), ("offset", ctypes.c_int64),
        ("size", ctypes.c_int64), ("stride", ctypes.c_int64),
    ]  # fmt: skip


@pytest.mark.parametrize(("element", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_it_is_fmod(element: str, dtype: type[np.floating]) -> None:
    rng = np.random.default_rng(5)
    words = np.dtype(f"u{np.dtype(dtype).itemsize}")
    any_ = rng.integers(0, np.iinfo(words).max, 4000, words, endpoint=True).view(dtype)
    least, most = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    edges = [0.0, -0.0, 1.0, -1.5, 3.0, least, 5 * least, np.finfo(dtype).tiny, most, -most,
             math.inf, -math.inf, math.nan]  # fmt: skip
    pairs = np.array([(a, b) for a in edges for b in edges], dtype)
    near = rng.normal(size=2000).astype(dtype)
    x = np.concatenate([any_[:2000], pairs[:, 0], near * dtype(1000), near * least * dtype(9)])
    y = np.concatenate([any_[2000:], pairs[:, 1], near[::-1], near[::-1] * least * dtype(4)])
    r = np.full_like(x, 7)
    context = ir.Context()
    with context, ir.Location.unknown():
        register(context)
        text = CALLER.replace("xT", f"x{element}").replace("_T", f"_{element}")
        text = text.replace("(T, T) -> T", f"({element}, {element}) -> {element}")
        module = ir.Module.parse(remainder_function(element) + text)
        run_passes(module.operation, TO_LLVM)
        engine = ExecutionEngine(module)
        given = [_Descriptor(a.ctypes.data, a.ctypes.data, 0, a.size, 1) for a in (x, y, r)]
        engine.invoke("f", *(ctypes.pointer(ctypes.pointer(each)) for each in given))
    with np.errstate(invalid="ignore"):
        wanted = np.fmod(x, y)
    is_nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(r), is_nan)
    np.testing.assert_array_equal(r[~is_nan].view(words), wanted[~is_nan].view(words))
