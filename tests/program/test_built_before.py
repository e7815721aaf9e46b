"""What was compiled before is not compiled again: by other arrays, by another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import avial_lab
from avial_lab import program as program_module

TEXT = """
func.func @twice(%A: memref<?xf64>, %B: memref<?xf64>) {
  %zero = arith.constant 0 : index
  %n = memref.dim %A, %zero : memref<?xf64>
  affine.for %i = 0 to %n {
    %x = affine.load %A[%i] : memref<?xf64>
    %y = arith.addf %x, %x : f64
    affine.store %y, %B[%i] : memref<?xf64> }
  return }
"""


def arrays(n: int) -> dict[str, np.ndarray]:
    return {"A": np.arange(n, dtype=float), "B": np.zeros(n)}


def test_other_arrays_of_the_same_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    first = avial_lab.compile(TEXT, arrays=arrays(31), ranks=1)
    monkeypatch.setattr(program_module, "shared_compiler", lambda: pytest.fail("it was asked"))
    again = avial_lab.compile(TEXT, arrays=arrays(31), ranks=1)
    assert again.binary.key == first.binary.key
    with pytest.raises(pytest.fail.Exception):  # another shape is another program
        avial_lab.compile(TEXT, arrays=arrays(32), ranks=1)


def test_another_process() -> None:
    """As a notebook's that was restarted, whose compiler has not even started."""
    first = avial_lab.compile(TEXT, arrays=arrays(31), ranks=1, cell="In [3]")
    text = f"""
import numpy as np, avial_lab
from avial_lab import program
program.shared_compiler = None
arrays = dict(A=np.ones(31), B=np.ones(31))
print(avial_lab.compile({TEXT!r}, arrays=arrays, ranks=1, cell="In [3]").binary.key)
"""
    command = [sys.executable, "-W", "error", "-c", text]
    root = Path(__file__).parents[2]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    assert said.stdout.strip() == first.binary.key
