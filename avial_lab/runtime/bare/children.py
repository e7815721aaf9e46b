"""Child processes that tell what they find line by line, and are ended when their time is over.

A command, seconds -> JSON objects as they come, and how it ended.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from avial_lab.runtime.bare.contents import LIB, MPI

_GOODBYE_S = 5.0
"""For a process that has closed its output to end."""

MARK = "avial: "
"""Before each line that is a fact; others are what a library prints."""


def tell(fact: Mapping[str, Any]) -> None:
    """To the parent."""
    sys.stdout.write(f"{MARK}{json.dumps(fact)}\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class Ended:
    """code: as of a shell, 128 + a signal's number; late: its time was over."""

    code: int
    late: bool
    printed: str

    @property
    def words(self) -> str:
        if self.late:
            return "its time was over"
        if self.code >= 128:
            return f"ended by {signal.Signals(self.code - 128).name}"
        return f"exit code {self.code}" if self.code else ""


def run_child(
    command: Sequence[str],
    seconds: float,
    told: Callable[[dict[str, Any]], None],
    environment: Mapping[str, str],
    *,
    cwd: Path,
    patience: float = 1e9,
) -> Ended:
    """Nothing of it is left when this returns: it has a process group of its own. patience: seconds
    that may pass between two facts.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(environment),
        cwd=cwd,  # not the caller's: an enum.py there would be imported
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        printed, late = _listen(process.stdout, seconds, patience, told)
        if not late:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GOODBYE_S)
    finally:
        _end(process)
        process.stdout.close()
    code = process.returncode
    return Ended(128 - code if code < 0 else code, late, printed[-2000:])


def _listen(
    output: IO[bytes], seconds: float, patience: float, told: Callable[[dict[str, Any]], None]
) -> tuple[str, bool]:
    """What it printed besides facts, and whether its time was over before its output was."""
    printed, rest = "", b""
    deadline = time.monotonic() + seconds
    until = min(deadline, time.monotonic() + patience)
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, until - time.monotonic())):
                return printed, True
            some = os.read(output.fileno(), 1 << 16)
            *lines, rest = (rest + some).split(b"\n")
            for line in lines if some else [*lines, rest]:
                text = line.decode(errors="replace")
                at = text.find(MARK)
                if at >= 0:
                    told(json.loads(text[at + len(MARK) :]))
                    until = min(deadline, time.monotonic() + patience)
                elif text:
                    printed += text + "\n"
            if not some:
                return printed, False


def _end(process: subprocess.Popen[bytes]) -> None:
    """With all of its group; a rank on a GPU that does not answer heeds SIGKILL alone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def environment(folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    """In which a child finds the bundle's own packages before any other of their names."""
    tag = f"py{sys.version_info[0]}{sys.version_info[1]}"
    paths = [folder / LIB, folder / MPI / tag]
    libraries = [str(folder / MPI / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*map(str, paths), *_python_path()]),
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries)),
        "MPIEXEC": str(folder / MPI / "bin" / "mpiexec"),
        "MPI4PY_MPIABI": "mpich",  # whatever other MPI this machine has
        "MPI4PY_RC_THREAD_LEVEL": "funneled",
        "UCX_HANDLE_ERRORS": "none",
        "UCX_LOG_LEVEL": "fatal",
        **more,
    }


def _python_path() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def has_mpi(folder: Path) -> bool:
    """Whether the bundle has mpi4py for this Python."""
    tag = f"py{sys.version_info[0]}{sys.version_info[1]}"
    return (folder / MPI / tag / "mpi4py").is_dir()


def ranks_command(folder: Path, ranks: int, module: str, *arguments: str) -> list[str]:
    """Alone where it is one: without MPI."""
    program = [sys.executable, "-m", module, *arguments]
    if ranks == 1:
        return program
    mpiexec = folder / MPI / "bin" / "mpiexec"
    for tool in mpiexec.parent.iterdir():
        if not os.access(tool, os.X_OK):
            tool.chmod(0o755)  # what carried it here forgot
    return [
        str(mpiexec), "-launcher", "fork", "-rmk", "user", "-iface", "lo",
        "-n", str(ranks), *program,
    ]  # fmt: skip
