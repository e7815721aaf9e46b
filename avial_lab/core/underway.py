"""What a process that works for another is at, while it works: words in a file that both know.

Words -> a file; a file -> the words. Nothing waits for who reads it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_FILE = "underway"
_WIDTH = 100
"""Bytes of each of its two parts, what is done and what is going on: they are overwritten in place,
so that a reader never sees an empty file.
"""

_open: list[int] = []


def tell_in(folder: Path) -> None:
    """From now on what this process tells is written there."""
    _open[:] = [os.open(folder / _FILE, os.O_RDWR | os.O_CREAT, 0o600)]
    tell_done("")  # what is not written reads as NULs


def tell_done(stage: str) -> None:
    """That stage is made; "" when the work begins."""
    _write(stage, 0)
    tell("")


def tell(words: str) -> None:
    """This process is at `words` now; costs a system call, and nothing where nobody reads."""
    _write(words, _WIDTH)


def told_in(folder: Path) -> str:
    """What the process that writes there is at: `after stage mpi, pass tile-time`; "" where it has
    not said.
    """
    try:
        text = (folder / _FILE).read_bytes().decode(errors="ignore")
    except OSError:
        return ""
    stage, words = text[:_WIDTH].strip(), text[_WIDTH:].strip()
    return ", ".join(filter(None, (f"after stage {stage}" if stage else "", words)))


def _write(words: str, at: int) -> None:
    for file in _open:
        with contextlib.suppress(OSError):  # a full disk is the work's to tell
            os.pwrite(file, words.encode("ascii", "replace")[:_WIDTH].ljust(_WIDTH), at)
