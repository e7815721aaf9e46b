"""NVIDIA's GPUs: compute capabilities, and what targets may ask of them.

Engines drive them by NVIDIA's driver alone (`runtime/native/devices/cuda.c`), if they are told to:
kernels are in programs as PTX.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from avial_lab.machine.devices.kind import Backend, DeviceKind, Look

OLDEST_CHIP = "sm_70"
"""What kernels of loops are made for where nothing newer is asked for: a driver makes code of its
own GPU of it.
"""

MOST_THREADS = 1024
MOST_THREADS_OF = (1024, 1024, 64)
"""Of a block, and in each of its dimensions, on every GPU since 2010 (compute capability 2.0)."""

LANES = 32
"""Threads of a warp, on every GPU there has been."""

MOST_BLOCKS = (2**31 - 1, 65535, 65535)
"""Of a grid, in each of its dimensions."""

_SHARED_KIB = {70: 96, 72: 96, 75: 64, 80: 163, 86: 99, 87: 163, 88: 99, 89: 99, 90: 227,
               100: 227, 103: 227, 110: 227, 120: 99, 121: 99}  # fmt: skip
"""By compute capability, of a block that asks for all it can have (CUDA C++ Programming Guide,
technical specifications).
"""


@dataclass(frozen=True)
class Multiprocessor:
    """What one holds of warps (32 threads), blocks and registers, and its shared memory."""

    warps: int
    blocks: int
    shared_bytes: int
    registers: int = 64 << 10


_MULTIPROCESSORS = {
    70: (64, 32, 96), 72: (64, 32, 96), 75: (32, 16, 64), 80: (64, 32, 164), 86: (48, 16, 100),
    87: (48, 16, 164), 89: (48, 24, 100), 90: (64, 32, 228), 100: (64, 32, 228),
    103: (64, 32, 228), 120: (48, 24, 100), 121: (48, 24, 100),
}  # fmt: skip
"""Warps, blocks and KiB by compute capability (as `_SHARED_KIB`)."""


_TARGET_LINE = re.compile(r"^\.target\s+(sm_\w+)", re.MULTILINE)


def chip_of(arch: str) -> str | None:
    """The compute capability that the architecture names, `sm_90a`; None for `gpu` or `cuda`."""
    return arch if arch.startswith("sm_") else None


def chip_named(capability: str) -> str:
    """The architecture of a GPU by the digits of its compute capability.

    >>> chip_named("90")
    'sm_90'
    """
    return f"sm_{capability}"


def chip_in_ptx(text: str) -> str | None:
    r"""What the PTX was made for; None where it does not say.

    >>> chip_in_ptx(".version 8.0\n.target sm_90a, debug\n")
    'sm_90a'
    """
    found = _TARGET_LINE.search(text)
    return None if found is None else found[1]


def capability(arch: str) -> int:
    """As a number, to compare; 0 where the architecture names no compute capability.

    >>> capability("sm_90a"), capability("cuda")
    (90, 0)
    """
    digits = re.match(r"sm_(\d+)", arch)
    return int(digits[1]) if digits else 0


_SINCE = {
    "nvgpu.device_async_": "sm_80", "nvgpu.ldmatrix": "sm_75", "nvgpu.mbarrier.": "sm_80",
    "nvgpu.mma.": "sm_80", "nvgpu.tma.": "sm_90", "nvgpu.warpgroup.": "sm_90a",
    "nvvm.cluster.": "sm_90", "nvvm.cp.async.": "sm_80", "nvvm.cp.async.bulk": "sm_90",
    "nvvm.elect.sync": "sm_90", "nvvm.fence.": "sm_90", "nvvm.griddepcontrol": "sm_90",
    "nvvm.ldmatrix": "sm_75", "nvvm.mapa": "sm_90", "nvvm.mbarrier.": "sm_80",
    "nvvm.mma.": "sm_80", "nvvm.read.ptx.sreg.cluster": "sm_90", "nvvm.redux.sync": "sm_80",
    "nvvm.setmaxregister": "sm_90a", "nvvm.stmatrix": "sm_90", "nvvm.tcgen05.": "sm_100a",
    "nvvm.wgmma.": "sm_90a",
}  # fmt: skip
"""The first chip that has what begins so in MLIR's dialects of NVIDIA (PTX ISA, target notes): one
with a letter, no other.
"""


def first_chip_with(operation: str) -> str:
    """The first one that does what that operation of MLIR stands for.

    >>> first_chip_with("nvvm.cp.async.bulk.prefetch"), first_chip_with("gpu.barrier")
    ('sm_90', 'sm_70')
    """
    found = (each for each in _SINCE if operation.startswith(each))
    longest = max(found, key=len, default="")
    return _SINCE.get(longest, OLDEST_CHIP)


def has(arch: str, chip: str) -> bool:
    """Whether a target of that architecture does what was new with a chip: any GPU, or a certain.

    >>> has("gpu", "sm_90"), has("sm_90", "sm_80"), has("sm_90", "sm_90a"), has("sm_100", "sm_90a")
    (True, True, True, False)
    """
    own, first = capability(arch), capability(chip)
    return not own or own == first or (own > first and chip[-1].isdigit())


def is_exact(arch: str) -> bool:
    """Whether code for it runs on GPUs of that very capability alone.

    >>> is_exact("sm_90a"), is_exact("sm_90")
    (True, False)
    """
    return arch[-1:].isalpha()


_BEFORE = (50, 52, 53, 60, 61, 62)
"""Capabilities that PTX can be made for, and that are older than `OLDEST_CHIP`."""


def is_of_nobody(arch: str) -> bool:
    """Whether it names a compute capability that no GPU has.

    >>> [is_of_nobody(arch) for arch in ("sm_90a", "sm_61", "gpu", "sm_999", "sm_9")]
    [False, False, False, True, True]
    """
    return arch.startswith("sm_") and capability(arch) not in (*_BEFORE, *_SHARED_KIB)


KNOWN_CHIPS = tuple(f"sm_{each}" for each in (*_BEFORE, *_SHARED_KIB))


def most_shared_bytes(arch: str) -> int:
    """That a block can have where that architecture is asked for; where it names none, or one that
    is not known, as much as any GPU has.

    >>> most_shared_bytes("sm_86"), most_shared_bytes("gpu")
    (101376, 232448)
    """
    return _SHARED_KIB.get(capability(arch), max(_SHARED_KIB.values())) * 1024


def multiprocessor_of(arch: str) -> Multiprocessor:
    """Of a capability that is not known, the one of the newest below.

    >>> multiprocessor_of("sm_90a").warps, multiprocessor_of("sm_88").warps
    (64, 48)
    """
    own = capability(arch)
    known = max((each for each in _MULTIPROCESSORS if each <= own), default=min(_MULTIPROCESSORS))
    warps, blocks, kib = _MULTIPROCESSORS[known]
    return Multiprocessor(warps, blocks, kib * 1024)


def _claims(arch: str) -> bool:
    return arch in ("gpu", "cuda") or arch.startswith(("sm_", "nvptx"))


def _covers(own: str, wanted: str) -> bool:
    return _claims(wanted) and capability(own) >= capability(wanted)


CUDA = DeviceKind(
    name="cuda",
    family="gpu",
    noun="GPU",
    look=Look("GPU", "G", "#d55e00", "#fcefe6", cut_corners=True),
    claims=_claims,
    covers=_covers,
    backend=Backend.NVPTX,
    apart=True,
    option="--gpus 1",
    arches=("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100"),
)
