"""What only devices run is no part of the host's program.

Module of code for the CPU with kernels among it -> without those that nothing on the CPU calls.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.attributes import ON_DEVICE
from avial_lab.compiler.ir.operations import functions_in


@dataclass(frozen=True)
class DropDeviceKernels:
    """Erase them: stage gpu has been made of them.

    before:  func.func private @t_kernel(…) {avial.on_device} { … gpu.barrier … }
             func.func private @t_kernel.grid(…) {…}
    after:   func.func private @t_kernel.grid(…) {…}
    """

    def __call__(self, module: ir.Operation) -> None:
        for function in list(functions_in(module)):
            if ON_DEVICE in function.attributes:
                function.erase()

    def __str__(self) -> str:
        return "drop-device-kernels"
