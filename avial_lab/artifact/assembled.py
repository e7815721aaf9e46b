"""Kernels as NVIDIA's assembler makes them: machine code, and what a thread of each takes.

PTX of kernels, a compute capability -> cubin, registers, spilled and shared bytes, occupancy.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from avial_lab.artifact.kernels import KernelImage, KernelRow, images_in
from avial_lab.core.errors import AvialError
from avial_lab.core.toolchain import ToolError, find_tool, install_hint, run, tool
from avial_lab.core.words import brief
from avial_lab.machine.devices.cuda import capability, chip_in_ptx, multiprocessor_of

USUAL_CHIP = "sm_90"
"""What is looked at where the PTX asks for nothing newer."""

_WARP = 32
_REGISTERS_TOGETHER = 256
"""That a warp is given at a time."""
_SHARED_TOGETHER = 1024
"""Bytes of shared memory: a block is given whole ones, and one for the driver (capability 8 on)."""


@dataclass(frozen=True)
class Assembled:
    """A kernel's machine code, and that as text; empty where there is no disassembler."""

    name: str
    image: KernelImage
    sass: str = field(repr=False, default="")

    def __str__(self) -> str:
        return f"{self.name}: {self.image}"

    def __repr__(self) -> str:
        return brief(self, str(self))


def with_images(
    kernels: Iterable[KernelRow], ptx: Iterable[str], chips: Sequence[str] = ()
) -> tuple[KernelRow, ...]:
    """The rows with machine code for these chips, by default as `assemble` has it; as they are
    where there is no ptxas, and without a chip that this one knows nothing of: a driver takes PTX.
    """
    rows = tuple(kernels)
    texts = images_in(ptx)
    if find_tool("ptxas") is None or not texts:
        return rows
    wanted = [
        (name, text, chip) for name, text in texts.items() for chip in _chips_for(text, chips)
    ]
    with ThreadPoolExecutor() as pool:
        made = [pool.submit(_image, *each) for each in wanted]
    found: dict[str, tuple[KernelImage, ...]] = {}
    for (name, *_), each in zip(wanted, made, strict=True):
        if (image := each.result()) is not None:
            found[name] = (*found.get(name, ()), image)
    return tuple(replace(row, images=found.get(row.name, ())) for row in rows)


def _chips_for(text: str, chips: Sequence[str]) -> tuple[str, ...]:
    """As that PTX has to be assembled for them: `sm_90a` for a chip `sm_90` where it asks so."""
    asked = chip_in_ptx(text) or ""
    own = (asked if capability(asked) == capability(chip) else chip for chip in chips)
    return tuple(dict.fromkeys(own)) or (_chip_for(text),)


def _image(name: str, text: str, chip: str) -> KernelImage | None:
    try:
        return _assembled(name, text, chip).image
    except ToolError:
        return None


def assemble(ptx: Mapping[str, str], chip: str = "") -> tuple[Assembled, ...]:
    """Each kernel in these texts, for that chip; by default for `USUAL_CHIP`, or for what its PTX
    asks for where that is newer.
    """
    if chip and not capability(chip):
        raise AvialError(f"'{chip}' is no GPU's architecture", hint="as in --to sass:sm_90")
    return tuple(
        _assembled(name, text, chip or _chip_for(text))
        for name, text in images_in(ptx.values()).items()
    )


def _chip_for(text: str) -> str:
    asked = chip_in_ptx(text) or USUAL_CHIP
    return asked if capability(asked) >= capability(USUAL_CHIP) else USUAL_CHIP


def _assembled(name: str, text: str, chip: str) -> Assembled:
    ptxas = tool("ptxas")
    with tempfile.TemporaryDirectory(prefix="avial-") as folder:
        cubin = Path(folder) / "kernel.cubin"
        done = run([str(ptxas), "-v", f"--gpu-name={chip}", "-", "-o", str(cubin)], text=text)
        said = done.stderr + done.stdout
        if done.returncode != 0 or not cubin.exists():
            raise ToolError(
                f"ptxas makes no machine code of {name} for {chip}: {done.complaint}",
                hint=f"another chip, as in --to sass:{USUAL_CHIP}; or {install_hint('ptxas')}",
            )
        return Assembled(name, figures(text, chip, said, cubin.read_bytes()), _sass(cubin))


def figures(text: str, chip: str, said: str, cubin: bytes = b"") -> KernelImage:
    """What ptxas said of the only kernel in that PTX."""
    threads = threads_of(text)
    registers, shared = _most(r"Used (\d+) registers", said), _most(r"(\d+) bytes smem", said)
    return KernelImage(
        chip, threads, registers,
        spilled_bytes=_most(r"(\d+) bytes spill stores", said),
        stack_bytes=_most(r"(\d+) bytes stack frame", said),
        shared_bytes=shared,
        occupancy=occupancy(chip, threads, registers, shared),
        cubin=cubin,
    )  # fmt: skip


def threads_of(ptx: str) -> int:
    """Of a block, as the PTX has it; a warp where it does not say.

    >>> threads_of(".maxntid 64, 4, 1"), threads_of(".reqntid 128")
    (256, 128)
    """
    found = re.search(r"\.(?:maxntid|reqntid) ([\d, ]+)", ptx)
    threads = 1
    for each in found[1].split(",") if found else [str(_WARP)]:
        threads *= int(each)
    return threads


def occupancy(chip: str, threads: int, registers: int, shared_bytes: int) -> float:
    """Source: NVIDIA, CUDA C++ Best Practices Guide, section "Calculating Occupancy".

    >>> occupancy("sm_90", 256, 32, 0), occupancy("sm_90", 256, 255, 0)
    (1.0, 0.125)
    """
    limits = multiprocessor_of(chip)
    warps = -(-threads // _WARP)
    fit = [limits.warps // warps, limits.blocks]
    if registers:
        of_warp = -(-registers * _WARP // _REGISTERS_TOGETHER) * _REGISTERS_TOGETHER
        fit.append(limits.registers // of_warp // warps)
    if shared_bytes:
        own = -(-shared_bytes // _SHARED_TOGETHER) + (capability(chip) >= 80)
        fit.append(limits.shared_bytes // (own * _SHARED_TOGETHER))
    return min(fit) * warps / limits.warps


def _most(pattern: str, said: str) -> int:
    return max(map(int, re.findall(pattern, said)), default=0)


def _sass(cubin: Path) -> str:
    nvdisasm = find_tool("nvdisasm")
    if nvdisasm is None:
        return ""
    done = run([str(nvdisasm), "-c", str(cubin)])
    return done.stdout if done.returncode == 0 else ""
