"""The emulated GPU: kernels run as loops over blocks and threads on the CPU of the rank that drives
it (`compiler/passes/host/emulate_gpu.py`), in memory of their own and as late as events allow
(`runtime/native/devices/apart.c`), so that programs for GPUs run everywhere.
"""

from __future__ import annotations

from dataclasses import replace

from avial_lab.machine.devices.cuda import CUDA
from avial_lab.machine.devices.kind import DeviceKind


def _asked_for(arch: str) -> bool:
    """Targets ask for GPUs; that one is emulated is found out where they are placed."""
    return False


def _covers(own: str, wanted: str) -> bool:
    """Every target of its family: loops can do what any GPU can."""
    return True


EMULATED_GPU = DeviceKind(
    name="emulated-gpu",
    family="gpu",
    noun="GPU",
    look=replace(CUDA.look, name="GPU, emulated", dash="5 3"),
    claims=_asked_for,
    covers=_covers,
    emulated=True,
    apart=True,
    option="--gpus 1",
)
