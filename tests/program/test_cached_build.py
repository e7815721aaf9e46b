"""What was compiled before is not compiled again: by other arrays, by another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import avial_lab
from avial_lab.program import cached_build, inputs
from avial_lab.program.inputs import random_arguments

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
    monkeypatch.setattr(cached_build, "shared_compiler", lambda: pytest.fail("it was asked"))
    again = avial_lab.compile(TEXT, arrays=arrays(31), ranks=1, gpu_memory="1GiB")
    assert again.binary.key == first.binary.key
    assert again.question.options.gpu_memory == 1 << 30
    with pytest.raises(pytest.fail.Exception):  # another shape is another program
        avial_lab.compile(TEXT, arrays=arrays(32), ranks=1)


def test_another_process() -> None:
    """As a notebook's that was restarted, whose compiler has not even started."""
    first = avial_lab.compile(TEXT, arrays=arrays(31), ranks=1, cell="In [3]")
    text = f"""
import numpy as np, avial_lab
from avial_lab.program import cached_build
cached_build.shared_compiler = None
arrays = dict(A=np.ones(31), B=np.ones(31))
print(avial_lab.compile({TEXT!r}, arrays=arrays, ranks=1, cell="In [3]").binary.key)
"""
    command = [sys.executable, "-W", "error", "-c", text]
    root = Path(__file__).parents[2]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    assert said.stdout.strip() == first.binary.key


def test_arguments_that_nobody_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they are follows from the text as well: a model's are asked for once."""
    first = random_arguments(TEXT, arrays={"A": arrays(31)["A"]}, scalars={}, cell="In [3]")
    monkeypatch.setattr(inputs, "shared_compiler", lambda: pytest.fail("it was asked"))
    again = random_arguments(TEXT, arrays={"A": arrays(31)["A"]}, scalars={}, cell="In [4]")
    np.testing.assert_array_equal(again.arrays["B"], first.arrays["B"])
    with pytest.raises(pytest.fail.Exception):
        random_arguments(TEXT, arrays={"A": arrays(32)["A"]}, scalars={})


def test_another_cell_of_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook counts on whenever a cell runs again."""
    first = avial_lab.compile(TEXT, arrays=arrays(31), ranks=1, cell="In [3]")
    monkeypatch.setattr(cached_build, "shared_compiler", lambda: pytest.fail("it was asked"))
    again = avial_lab.compile(TEXT, arrays=arrays(31), ranks=1, cell="In [7]")
    assert again.binary.key == first.binary.key
    assert [str(task.span) for task in first.graph.tasks] == ["In [3]:5:3"]
    assert [str(task.span) for task in again.graph.tasks] == ["In [7]:5:3"]
    assert [str(report.span) for report in again.explain().reports] == ["In [7]:5:3"]


def test_arrays_that_lie_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off every alignment, in strides, in another order: how they lie is no part of the program."""
    avial_lab.compile(TEXT, arrays=arrays(31), ranks=1)
    monkeypatch.setattr(cached_build, "shared_compiler", lambda: pytest.fail("it was asked"))
    raw = np.zeros(31 * 8 + 1, np.uint8)[1:].view(float)
    backwards, apart = np.ones(31)[::-1], np.zeros(62)[::2]
    for other in ({"A": raw, "B": apart}, {"A": backwards, "B": raw}):
        program = avial_lab.compile(TEXT, arrays=other, ranks=1)
        program.run()
        np.testing.assert_array_equal(other["B"], 2 * other["A"])


def test_arrays_that_overlap_are_another_program_once(monkeypatch: pytest.MonkeyPatch) -> None:
    both = np.arange(40.0)
    first = avial_lab.compile(TEXT, arrays={"A": both[:31], "B": both[9:]}, ranks=1)
    monkeypatch.setattr(cached_build, "shared_compiler", lambda: pytest.fail("it was asked"))
    other = np.arange(50.0)
    again = avial_lab.compile(TEXT, arrays={"A": other[5:36], "B": other[14:45]}, ranks=1)
    assert again.binary.key == first.binary.key
