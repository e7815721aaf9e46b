"""What an engine loads: machine code, and the manifest that says how to run it."""

from __future__ import annotations

from dataclasses import dataclass, field

from avial_lab.artifact.manifest import Manifest
from avial_lab.core.words import brief, count, format_bytes, listed
from avial_lab.machine.cpu import NATIVE


@dataclass(frozen=True)
class Binary:
    """`key` is the SHA-256 of everything the artifact was made from."""

    key: str
    shared_object: bytes
    ptx: dict[str, str]
    manifest: Manifest

    @property
    def summary(self) -> str:
        """`3f2a91c0, 24.1 KiB of machine code, PTX of task3`."""
        ptx = f", PTX of {listed(list(self.ptx))}" if self.ptx else ""
        return f"{self.key[:8]}, {format_bytes(len(self.shared_object))} of machine code{ptx}"

    def __str__(self) -> str:
        return f"binary {self.summary}\n{self.manifest}"

    def __repr__(self) -> str:
        return brief(self, f"{self.summary}; {self.manifest.summary}")


@dataclass(frozen=True)
class MachineCode:
    """What the tools make of LLVM IR for a kind of CPU, in so many parts: a shared object, and the
    assembly in it for people to read. `guards` are options that opt was given for what stands in
    that code.
    """

    shared_object: bytes
    assembly: str
    parts: int = 1
    cpu: str = NATIVE
    guards: tuple[str, ...] = ()
    seconds: float = field(compare=False, default=0.0)

    def __repr__(self) -> str:
        size = format_bytes(len(self.shared_object))
        return brief(self, f"of {size} in {count(self.parts, 'part')}")
