"""What a machine has: its GPU and driver, processors, memory, and packages; nothing is loaded for
the last but their names.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from avial_lab.machine.cpu import allowed
from avial_lab.runtime.bare.contents import DEVICES
from avial_lab.runtime.native.driver_table import Device, DeviceRefusal

PACKAGES = (
    "numpy", "cupy-cuda12x", "cupy-cuda13x", "torch", "triton", "numba", "numba-cuda", "jax",
    "mpi4py",
)  # fmt: skip

_ASKED = ("name", "driver_version", "clocks.sm", "clocks.max.sm", "clocks.mem", "power.limit")


def machine(folder: Path, driver: str) -> dict[str, Any]:
    """Of this machine; `device` says why there is none where that is so."""
    return {
        "device": _device(folder, driver),
        "nvidia_smi": _nvidia_smi(),
        "cpu": _first(Path("/proc/cpuinfo"), r"model name\s*: (.*)"),
        "threads": len(allowed()),
        "memory": _first(Path("/proc/meminfo"), r"MemTotal:\s*(.*)"),
        "system": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "packages": _packages(),
    }


def _device(folder: Path, driver: str) -> dict[str, Any]:
    try:
        device = Device(folder / DEVICES, driver)
        facts = device.facts()
    except DeviceRefusal as refusal:
        return {"missing": str(refusal)}
    return {**facts.__dict__, "driver": driver}


def _packages() -> dict[str, str]:
    found = {"numpy": np.__version__}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _nvidia_smi() -> dict[str, str]:
    """As it stands; nothing is set."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return {}
    command = [tool, f"--query-gpu={','.join(_ASKED)}", "--format=csv,noheader", "-i", "0"]
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    values = [value.strip() for value in done.stdout.strip().split(",")]
    return dict(zip(_ASKED, values, strict=False)) if done.returncode == 0 else {}


def _first(path: Path, pattern: str) -> str:
    try:
        found = re.search(pattern, path.read_text(encoding="utf-8"))
    except OSError:
        return ""
    return found[1].strip() if found else ""


def main(arguments: list[str]) -> None:
    from avial_lab.runtime.bare.children import tell

    folder, driver = arguments
    tell({"machine": machine(Path(folder), driver)})


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # without the driver's good-bye, which some have died in
