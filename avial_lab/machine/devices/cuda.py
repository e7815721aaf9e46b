"""NVIDIA's GPUs: compute capabilities, and what targets may ask of them.

Their kernels are made (PTX); no engine of this version launches them.
"""

from __future__ import annotations

import re

from avial_lab.machine.devices.kind import Backend, DeviceKind, Look

DEFAULT_CHIP = "sm_80"
"""What a target that names no compute capability (`gpu`, `cuda`) gets PTX for."""

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
    engine=None,
    apart=True,
    option="--gpus 1",
    arches=("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100"),
)
