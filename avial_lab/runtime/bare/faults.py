"""Faults, each in a process of its own: `python -m … FOLDER DRIVER NAME`.

A fault is right where it is refused in words that say what it was; the kernels that end badly are
written in PTX here.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from avial_lab.runtime.bare.children import tell
from avial_lab.runtime.bare.contents import DEVICES, Bundle
from avial_lab.runtime.bare.values import die_with_parent, ran
from avial_lab.runtime.native.driver_table import Device, DeviceRefusal
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.journal import Journal
from avial_lab.runtime.rank.threads import Threads

NOTHING = ""
TRAP = "trap;"
NULL = ".reg .u64 %a;\nmov.u64 %a, 0;\nst.global.u32 [%a], 1;"
ENDLESS = (
    ".reg .u64 %a;\n.reg .u32 %v;\n.reg .pred %q;\nld.param.u64 %a, [p];\n"
    "again: ld.volatile.global.u32 %v, [%a];\nsetp.eq.u32 %q, %v, 0;\n@%q bra again;"
)

_NEWEST = 75
"""What PTX is written for on devices that have more: drivers of CUDA 13 begin there."""


def ptx(body: str, capability: int, version: str = "7.0") -> str:
    """A kernel `k` of one 64-bit argument."""
    head = f".version {version}\n.target sm_{min(capability, _NEWEST)}\n.address_size 64\n"
    return f"{head}.visible .entry k(.param .u64 p)\n{{\n{body}\nret;\n}}\n"


@dataclass(frozen=True)
class Fault:
    """says: of these words one is in the refusal. real: only hardware has it. spoils: a device for
    the whole process; others are to be well. endless: the process is ended from outside, which
    is what is wanted. environment: of the process.
    """

    name: str
    what: str
    says: tuple[str, ...]
    real: bool = False
    spoils: bool = False
    endless: bool = False
    environment: tuple[tuple[str, str], ...] = ()


FAULTS = (
    Fault("threads", "2048 threads in a block", ("threads",)),
    Fault("no-threads", "a block of 0 threads", ("threads",)),
    Fault("grid", "2³¹ blocks in y", ("blocks in y",)),
    Fault("shared", "1 GiB of shared memory", ("shared memory",)),
    Fault("memory", "1 PiB of device memory", ("memory",)),
    Fault("no-driver", "no driver", ("there is no NVIDIA driver",)),
    Fault("bad-ptx", "text that is no PTX", ("it says",), real=True),
    Fault("new-ptx", "PTX of a version to come", ("needs a newer one", "it says"), real=True),
    Fault("no-kernel", "a kernel that is not there", ("none called",), real=True),
    Fault("trap", "a kernel that traps", ("CUDA error",), real=True, spoils=True),
    Fault("illegal", "a kernel that writes to address 0", ("CUDA error",), real=True, spoils=True),
    Fault("full", "a program on a device that is full", ("memory",), real=True, spoils=True),
    Fault(
        "hidden", "CUDA_VISIBLE_DEVICES empty", ("no such device", "no CUDA-capable device"),
        real=True, environment=(("CUDA_VISIBLE_DEVICES", ""),),
    ),
    Fault(
        "odd", "CUDA_VISIBLE_DEVICES=97", ("no such device", "no CUDA-capable device"),
        real=True, environment=(("CUDA_VISIBLE_DEVICES", "97"),),
    ),
    Fault("endless", "a kernel that never ends", (), real=True, spoils=True, endless=True),
)  # fmt: skip


@dataclass(frozen=True)
class _At:
    folder: Path
    driver: str

    @property
    def library(self) -> Path:
        return self.folder / DEVICES

    def device(self) -> Device:
        return Device(self.library, self.driver)

    def launch(self, grid: Sequence[int], block: Sequence[int], shared_bytes: int = 0) -> None:
        device = self.device()
        real = self.driver == "cuda"
        kernel = device.kernel(ptx(NOTHING, device.facts().capability), "k") if real else 1
        device.launch(kernel, grid, block, (0,), shared_bytes=shared_bytes)

    def loads(self, text: str) -> None:
        self.device().kernel(text, "k")

    def runs(self, body: str, name: str = "k", **how: str) -> None:
        device = self.device()
        image = ptx(body, device.facts().capability, **how)
        address = device.allocate(1 << 20)
        device.copy_in(address, np.zeros(1 << 17))
        device.finish()
        device.launch(device.kernel(image, name), (1,), (1,), (address,))
        tell({"launched": True})
        device.finish()

    def without_driver(self) -> None:
        library = ctypes.CDLL(str(self.library))
        ctypes.c_char_p.in_dll(library, "avial_libcuda").value = b"libnobody.so.1"
        Device(self.library, "cuda")

    def full(self) -> None:
        """A program's arrays do not fit; those of the caller stay as they were."""
        bundle = Bundle.at(self.folder)
        case = next(case for case in bundle.contents.cases if case.ranks == 1 and case.copies)
        hog = self.device()
        chunk = 1 << 34
        while chunk >= 1 << 12:
            try:
                hog.allocate(chunk)
            except DeviceRefusal:
                chunk >>= 1
        arrays = bundle.arrays(case.name, "in")
        before = {name: array.copy() for name, array in arrays.items()}
        options = Options(traced=False, threads=Threads(1), driver=self.driver)
        with tempfile.TemporaryDirectory(prefix="avial-bare-") as folder:
            journal = Journal(Path(folder), 0, pid=os.getpid())
            outcome = ran(bundle.binary(case.name), arrays, 0, journal, 1, options)
        touched = [name for name in arrays if not np.array_equal(arrays[name], before[name], True)]
        if touched:
            raise RuntimeError(f"{touched} of the caller changed")
        if outcome.failure is not None:
            raise DeviceRefusal(outcome.failure.message)


_DO: dict[str, Callable[[_At], object]] = {
    "threads": lambda at: at.launch((1,), (2048,)),
    "no-threads": lambda at: at.launch((1,), (0,)),
    "grid": lambda at: at.launch((1, 1 << 31), (1,)),
    "shared": lambda at: at.launch((1,), (1,), 1 << 30),
    "memory": lambda at: at.device().allocate(1 << 50),
    "no-driver": lambda at: at.without_driver(),
    "bad-ptx": lambda at: at.loads("this is no PTX"),
    "new-ptx": lambda at: at.runs(NOTHING, version="99.0"),
    "no-kernel": lambda at: at.runs(NOTHING, "nobody"),
    "trap": lambda at: at.runs(TRAP),
    "illegal": lambda at: at.runs(NULL),
    "full": lambda at: at.full(),
    "hidden": lambda at: at.device(),
    "odd": lambda at: at.device(),
    "endless": lambda at: at.runs(ENDLESS),
}


def judged(fault: Fault, told: Sequence[dict[str, Any]], late: bool, words: str) -> dict[str, Any]:
    """Whether it was refused as it should be."""
    refused = next((fact["refused"] for fact in told if "refused" in fact), None)
    if fault.endless:
        launched = any("launched" in fact for fact in told)
        said = "ended after its time, from outside" if late else refused or words
        return {"ok": launched and late, "said": said}
    if refused is None:
        return {"ok": False, "said": f"it was not refused: {words}"}
    return {"ok": any(word in refused for word in fault.says), "said": refused}


def main(arguments: Sequence[str]) -> None:
    folder, driver, name = arguments
    die_with_parent()
    try:
        _DO[name](_At(Path(folder), driver))
    except DeviceRefusal as refusal:
        tell({"refused": str(refusal)})


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # a driver with a sticky error may not come to its end
