"""The programs beside Python that make and start machine code: where they are, how they end.

Name of a tool -> its path; a command -> its outcome. Loads no MLIR: the wheels' folders are found
without importing them.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from avial_lab.core.errors import AvialError

_INSTALL = {
    "mlir": 'in the clone: pip install -e ".[mlir]", or with conda environment.yml',
    "mpi": 'in the clone: pip install -e ".[mpi]", or with conda environment.yml',
    "nvdisasm": "pip install nvidia-cuda-nvdisasm, or with a CUDA toolkit",
    "ptxas": 'in the clone: pip install -e ".[ptxas]", or with a CUDA toolkit',
    "cc": "install gcc or clang, or name your compiler in the environment variable CC",
}

#: What brings each tool.
_BROUGHT_BY = {
    "mlir-opt": "mlir",
    "mlir-translate": "mlir",
    "opt": "mlir",
    "llc": "mlir",
    "mpiexec": "mpi",
    "cc": "cc",
    "ptxas": "ptxas",
    "nvdisasm": "nvdisasm",
}

_NVIDIAS = ("ptxas", "nvdisasm")


class ToolError(AvialError):
    """A program that avial_lab calls is not installed."""


def find_tool(name: str) -> Path | None:
    """Where the tool `name` is; None where it is not installed.

    Looked for in this order: the MLIR and LLVM wheels; this Python's own environment, whether it is
    activated or not (an mpiexec must belong to the MPI that mpi4py loads); PATH; of NVIDIA's tools
    the toolkit that CUDA_HOME or CUDA_PATH names.
    `cc` is $CC, or the first of cc, gcc, clang; `mpiexec` is $MPIEXEC where that is set.
    """
    if name == "cc":
        return _find_compiler(os.environ.get("CC"))
    chosen = os.environ.get("MPIEXEC") if name == "mpiexec" else None
    return _find_chosen(chosen) if chosen else _find_program(name)


def tool(name: str) -> Path:
    """The path of the tool `name`, which has to be there."""
    path = find_tool(name)
    if path is None:
        raise ToolError(f"the program '{name}' was not found", hint=install_hint(name))
    return path


def install_hint(name: str) -> str:
    """What to do so that the tool `name` is there."""
    brought_by = _BROUGHT_BY.get(name)
    return f"put {name} on PATH" if brought_by is None else _INSTALL[brought_by]


def _find_program(name: str) -> Path | None:
    for folder in (*_wheel_folders(), Path(sys.prefix) / "bin"):
        found = shutil.which(name, path=str(folder))
        if found is not None:
            return Path(found)
    return _find_chosen(name) or (_find_in_toolkit(name) if name in _NVIDIAS else None)


def _find_in_toolkit(name: str) -> Path | None:
    for home in filter(None, map(os.environ.get, ("CUDA_HOME", "CUDA_PATH"))):
        found = shutil.which(name, path=str(Path(home) / "bin"))
        if found is not None:
            return Path(found)
    return None


def _find_compiler(chosen: str | None) -> Path | None:
    names = (chosen,) if chosen else ("cc", "gcc", "clang")
    return next((path for name in names if (path := _find_chosen(name))), None)


def _find_chosen(name: str) -> Path | None:
    found = shutil.which(name)
    return None if found is None else Path(found)


def _wheel_folders() -> tuple[Path, ...]:
    """`mlir/bin`, `llvm/bin` and those of NVIDIA's assembler and disassembler in the wheels, which
    are not on PATH; finding is not importing.
    """
    packages = ["mlir", "llvm"]
    if importlib.util.find_spec("nvidia") is not None:
        packages += ["nvidia.cuda_nvcc", "nvidia.cu13"]
    specs = (importlib.util.find_spec(package) for package in packages)
    return tuple(
        Path(folder) / "bin"
        for spec in specs
        if spec is not None
        for folder in spec.submodule_search_locations or ()
    )


@dataclass(frozen=True)
class Outcome:
    """How a child ended; a negative `returncode` is the signal that ended it."""

    returncode: int
    stdout: str
    stderr: str
    timed_out: bool = False

    @property
    def complaint(self) -> str:
        """The line that says best what went wrong."""
        if self.timed_out:
            return "no answer in time"
        lines = [line.strip() for line in (self.stderr or self.stdout).splitlines() if line.strip()]
        # Python's last line is the exception, other programs' first is the reason.
        said = next((line for line in reversed(lines) if re.match(r"[\w.]*Error\b", line)), None)
        said = said or (lines[0] if lines else "no message")
        if self.returncode < 0:
            return f"killed by {signal.Signals(-self.returncode).name}: {said}"
        return said


def run(command: Sequence[str], *, text: str = "", limit_s: float = 20.0) -> Outcome:
    """How `command` ends with `text` as its input; all its processes are killed after `limit_s`."""
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return Outcome(127, "", f"OSError: {error.strerror}")
    with child:
        try:
            stdout, stderr = child.communicate(text, timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            stdout, stderr = child.communicate()
            return Outcome(child.returncode, stdout, stderr, timed_out=True)
    return Outcome(child.returncode, stdout, stderr)


def version_of(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
