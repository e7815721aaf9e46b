"""Files that are there whole or not at all, and the folder of those that can be made again.

Path -> a text file to write into, which takes its place when everything is in it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def written_whole(path: Path) -> Generator[IO[str]]:
    """Where the writing fails (a full disk), what was at `path` before is still there, and nothing
    else.
    """
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(partial).chmod(0o644)
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/avial_lab`, else `~/.cache/avial_lab`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return root / "avial_lab"
