"""What only a device runs is in no part of the machine code, and in the program's PTX."""

from __future__ import annotations

import numpy as np

import avial_lab
from avial_lab.lessons.demo import deck_text


def test_the_host_has_the_grid_alone() -> None:
    arrays = {name: np.arange(20, dtype=np.int32) for name in "abcd"}
    program = avial_lab.compile(deck_text(), arrays=arrays, ranks=1)
    assert "avial.on_device" in program.stages["host"].text
    llvm_ir = program.stages["llvmir"].text
    assert "void @task3_kernel(" not in llvm_ir
    assert "@task3_kernel.grid" in llvm_ir
    assert "drop-device-kernels" in program.stages["llvm"].command
    assert program.binary.ptx["task3"].encode() in program.binary.shared_object
