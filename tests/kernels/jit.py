"""Functions of plain MLIR, compiled and called in this process with guarded arrays.

MLIR texts -> a `Machine`; a function's name and arguments -> its arrays afterwards.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from mlir import ir
from mlir.execution_engine import ExecutionEngine
from mlir.runtime import get_ranked_memref_descriptor

from avial_lab.compiler.ir.attributes import SHARED
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.pipelines import TO_LLVM
from avial_lab.compiler.lowering.run import check_lowered, run_passes
from avial_lab.compiler.passes.llvm.independent_to_llvm import IndependentToLlvm, KeepIndependent
from kernels.kernel import Arguments

OPT_LEVEL = int(os.environ.get("AVIAL_TEST_OPT_LEVEL", "0"))
"""LLVM's, for what tests of passes compile: they judge our rewrites, and LLVM's own take two thirds
of the time. `make test-full` asks for 2 everywhere.
"""

_GUARD = 64
"""Elements before and behind each array, poisoned: reading them shows in the result, writing them
in themselves.
"""


class Machine:
    """What several functions, each from its own text, became."""

    def __init__(self, functions: Sequence[tuple[str, str]], context: ir.Context):
        """`functions`: the name to call it by, and the module it is the only function of, but for
        those that passes wrote for it to call.
        """
        with context, ir.Location.unknown():
            whole = ir.Module.create()
            for name, text in functions:
                module = ir.Module.parse(text)
                *written, function = sorted(
                    module.body.operations, key=lambda op: SHARED not in op.attributes
                )
                assert all(SHARED in op.attributes for op in written)
                for op in written:
                    symbol = ir.StringAttr(op.attributes["sym_name"]).value
                    op.attributes["sym_name"] = ir.StringAttr.get(f"{name}.{symbol}")
                for op in operations_in(function.operation):
                    if op.name == "func.call":
                        symbol = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
                        op.attributes["callee"] = ir.FlatSymbolRefAttr.get(f"{name}.{symbol}")
                function.attributes["sym_name"] = ir.StringAttr.get(name)
                function.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
                for op in (*written, function):
                    whole.body.append(op)
        lower = (KeepIndependent(), "convert-linalg-to-loops", "lower-affine", *TO_LLVM)
        run_passes(whole.operation, (*lower, IndependentToLlvm()))
        check_lowered(whole.operation)
        self._engine = ExecutionEngine(whole, opt_level=OPT_LEVEL)

    def call(
        self, name: str, arguments: Arguments, behind: Mapping[str, int] | None = None
    ) -> Arguments:
        """The arrays of `arguments`, which stay as they are, after `name` ran on copies. Those of
        `behind` begin so many elements behind the beginning of a line of the cache.
        """
        guarded = {
            key: Guarded(value, (behind or {}).get(key))
            for key, value in arguments.items()
            if isinstance(value, np.ndarray)
        }
        pointers = [
            guarded[key].pointer() if key in guarded else pointer_to(value)
            for key, value in arguments.items()
        ]
        self._engine.invoke(name, *pointers)
        return {key: array.checked(key) for key, array in guarded.items()}


class Guarded:
    def __init__(self, array: np.ndarray, behind: int | None = None):
        poison: Any = np.nan if array.dtype.kind == "f" else np.iinfo(array.dtype).min
        self._flat = np.empty(array.size + 3 * _GUARD, array.dtype)
        line = -self._flat.ctypes.data % 64 // array.itemsize
        first = 0 if behind is None else line + behind
        self._flat = self._flat[first : first + array.size + 2 * _GUARD]
        self._flat[...] = poison
        self.array = self._flat[_GUARD:-_GUARD].reshape(array.shape)
        self.array[...] = array
        self._around = self._guards()

    def pointer(self) -> Any:
        self._descriptor = get_ranked_memref_descriptor(self.array)
        return ctypes.pointer(ctypes.pointer(self._descriptor))

    def checked(self, name: str) -> np.ndarray:
        assert self._guards() == self._around, f"wrote outside {name}"
        return self.array

    def _guards(self) -> bytes:
        return self._flat[:_GUARD].tobytes() + self._flat[-_GUARD:].tobytes()


def pointer_to(scalar: np.generic) -> Any:
    kinds = {
        "f4": ctypes.c_float,
        "f8": ctypes.c_double,
        "i4": ctypes.c_int32,
        "i8": ctypes.c_int64,
    }
    return ctypes.pointer(kinds[scalar.dtype.str[1:]](scalar.item()))
