"""CPUs: one device is a rank with its cores."""

from __future__ import annotations

import platform

from avial_lab.machine.devices.kind import DeviceKind, Look


def canonical_cpu(arch: str) -> str:
    """One name for one instruction set: `amd64` is `x86_64`, `arm64` is `aarch64`.

    >>> canonical_cpu("AMD64"), canonical_cpu("arm64"), canonical_cpu("riscv64")
    ('x86_64', 'aarch64', 'riscv64')
    """
    arch = arch.lower()
    return {
        "amd64": "x86_64",
        "x86-64": "x86_64",
        "arm64": "aarch64",
        "host": platform.machine().lower(),
    }.get(arch, arch)


def _claims(arch: str) -> bool:
    """Every architecture that no other kind claims is taken for a CPU's (`riscv64`)."""
    return arch == CPU.family


def _covers(own: str, wanted: str) -> bool:
    return canonical_cpu(own) == canonical_cpu(wanted)


CPU = DeviceKind(
    name="cpu",
    family="cpu",
    noun="CPU",
    look=Look("CPU", "C", "#0072b2", "#e8f2f9"),
    claims=_claims,
    covers=_covers,
)
