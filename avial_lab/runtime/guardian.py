"""Guardian: kills what a process started when that process dies, however it dies.

A pipe from the process it guards -> SIGKILL for every process group named on it, as soon as the
pipe closes.

The guarded process keeps the pipe's only writing end, so the pipe closes with it even on SIGKILL.
Lines: `+PID` watches the group a process leads, `-PID` forgets it. The guardian runs on its own
(`python -I -S guardian.py`), without this package.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import IO


class Guardian:
    """The guarded side. Processes are killed if this process ends before it said `release`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is meant for the guarded process alone
        )

    def watch(self, pid: int) -> None:
        self._say(f"+{pid}")

    def release(self, pid: int) -> None:
        self._say(f"-{pid}")

    def close(self) -> None:
        """End the guardian; what it still watches is killed."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        # A guardian that somebody killed guards no more; the work goes on.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()


def guard(lines: IO[str]) -> None:
    """Follow the lines to their end, then kill what is still watched."""
    watched: dict[int, None] = {}
    for line in lines:
        pid = int(line[1:])
        if line[0] == "+":
            watched[pid] = None
        else:
            watched.pop(pid, None)
    for pid in watched:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    guard(sys.stdin)
