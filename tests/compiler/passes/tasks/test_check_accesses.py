"""What leaves its array is refused, and nothing else."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from mlir import ir

from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.tasks.check_accesses import CheckAccesses
from avial_lab.core.errors import VerifyError

SIZE = 10


@pytest.mark.parametrize("factor", [-2, -1, 1, 2])
@pytest.mark.parametrize("shift", [-1, 0, 4, 9, 10])
@pytest.mark.parametrize("count", [0, 1, 5, 6])
def test_every_subscript(factor: int, shift: int, count: int) -> None:
    inside = all(0 <= factor * i + shift < SIZE for i in range(count))
    text = f"""func.func @f(%A: memref<{SIZE}xf64>, %x: f64) {{
      affine.for %i = 0 to {count} {{
        affine.store %x, %A[%i * {factor} + {shift}] : memref<{SIZE}xf64>
      }}
      return
    }}"""
    with ir.Context():
        module = ir.Module.parse(text)
        with nullcontext() if inside else pytest.raises(VerifyError):
            run_passes(module.operation, (CheckAccesses(),))
