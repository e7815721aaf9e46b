"""Launches of tasks as kernels: their values and copies on an emulated GPU, and what others get."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import avial_lab
from avial_lab.artifact.kernels import images_in
from avial_lab.bundle.pack import TASKS
from avial_lab.core.toolchain import find_tool
from avial_lab.program.inputs import random_arguments

BY_NAME = {path.stem: path for path in TASKS}


@cache
def arguments(path: Path) -> dict[str, np.ndarray]:
    return random_arguments(path.read_text(), arrays={}, scalars={}).arrays


def compiled(name: str, gpus: int = 1) -> avial_lab.Program:
    given = {key: array.copy() for key, array in arguments(BY_NAME[name]).items()}
    return avial_lab.compile(BY_NAME[name].read_text(), arrays=given, ranks=1, gpus=gpus)


@pytest.mark.quick("tasks-2")
@pytest.mark.parametrize(("name", "gpus"), [("tasks", 2), ("launches", 1)])
def test_values_are_the_references_and_copies_the_plans(name: str, gpus: int) -> None:
    program = compiled(name, gpus)
    for seed in (0, 7):
        for key, array in arguments(BY_NAME[name]).items():
            np.asarray(program.arrays[key])[...] = array
        trace = program.run(check=True, device_seed=seed)
        assert set(trace.copies) == set(program.schedule.copied)
    used = {placed.device for placed in program.schedule.placements}
    assert len([device for device in used if device.startswith("gpu")]) == gpus


def test_what_threads_share_is_in_the_kernel() -> None:
    program = compiled("launches")
    ptx = program.binary.ptx
    assert ".shared" in ptx["turned"]
    assert "bar.sync" in ptx["turned"]
    assert ".global.add.u32" in ptx["count"]  # atomic
    rows = [str(row) for row in program.binary.manifest.kernels]
    assert rows == [
        "steps_kernel: 4 blocks of 256 threads", "count_kernel: 8 blocks of 125 threads",
        "turned_kernel: 4 x 3 blocks of 16 x 16 threads, which share 1.06 KiB",
    ]  # fmt: skip
    assert "outline-launches: a kernel with blocks of 16 x 16 threads" in str(program.explain())


def test_ptxas_takes_them(tmp_path: Path) -> None:
    ptxas = find_tool("ptxas")
    if ptxas is None:
        pytest.skip("no ptxas here")
    for name in BY_NAME:
        for kernel, image in images_in(compiled(name).binary.ptx.values()).items():
            (tmp_path / "k.ptx").write_text(image)
            command = [str(ptxas), "-v", "--gpu-name=sm_90", "k.ptx", "-o", "k.cubin"]
            done = subprocess.run(
                command, cwd=tmp_path, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, (kernel, done.stderr)
            assert " 0 bytes spill stores" in done.stderr


TEXT = """avial.schedule %a: memref<64xf32>, %b: memref<64xf32> {
  %gpu = avial.target {arch = "sm_90"}
  %t = avial.task %gpu, %a, %b {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    BESIDE
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
      %x = memref.load %a[%tx] : memref<64xf32>
      INSIDE
      memref.store %y, %b[%tx] : memref<64xf32>
      gpu.terminator
    }
  }
}"""

REFUSED = {
    "%n = memref.load %a[%c1] : memref<64xf32>\n memref.store %n, %a[%c1] : memref<64xf32>": (
        "%y = arith.addf %x, %x : f32", "it has memref.load beside its launches (line 6)",
    ),
    "": (
        "%y = llvm.intr.sqrt(%x) : (f32) -> f32", "it has llvm.intr.sqrt (line 10)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("beside", REFUSED)
def test_a_task_without_a_kernel_says_why(beside: str) -> None:
    """An emulated GPU runs it; the driver of another has the reason at hand."""
    inside, why = REFUSED[beside]
    text = TEXT.replace("BESIDE", beside).replace("INSIDE", inside)
    arrays = {"a": np.linspace(0, 1, 64, dtype=np.float32), "b": np.zeros(64, np.float32)}
    program = avial_lab.compile(text, arrays=arrays, ranks=1)
    program.run(check=True)
    assert f"no kernel: {why}" in str(program.explain())
    assert program.stages["ptx:t"].text == f"t has no kernel for a GPU: {why}"
    assert f"t has no kernel for a GPU: {why}".encode() in program.binary.shared_object
