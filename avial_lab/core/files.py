"""Files that are there whole or not at all, and the folder of those that can be made again.

Path -> a file to write into, which takes its place when everything is in it.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from avial_lab.core.errors import AvialError, BindError
from avial_lab.core.words import shortened


def text_of(path: Path, error: type[AvialError] = AvialError) -> str:
    """What the file holds, or an `error` that says why it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as fault:
        raise error(f"cannot read {path}: {fault.strerror or fault}") from None
    except UnicodeDecodeError:
        raise error(f"{path} is not a text in UTF-8") from None
    except ValueError:
        raise error(f"{str(path)!r} cannot be a file's name") from None  # a NUL


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


def save_array(path: Path, array: np.ndarray) -> None:
    """Write `array` as .npy, all of it or nothing."""
    partial = ""
    try:
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            np.save(file, array)
        Path(partial).replace(path)
    except OSError as error:
        if partial:
            Path(partial).unlink(missing_ok=True)
        raise BindError(f"cannot write {path}: {error.strerror}") from None


_FULL = (errno.ENOSPC, errno.EDQUOT)
_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def disk_error(error: OSError) -> AvialError | None:
    """What a user is told of a disk that is full, or a folder for temporary files that cannot be
    written; None for any other mistake with files, which is one of ours.
    """
    # tempfile's own, which has tried every folder that there is.
    if isinstance(error, FileNotFoundError) and "No usable temporary" in str(error):
        return AvialError(
            "no folder for temporary files can be written",
            hint="set TMPDIR to a folder that you may write to",
        )
    if error.errno == errno.ENAMETOOLONG:
        return AvialError(f"no file's name is as long as {shortened(str(error.filename), 60)}")
    if error.errno in _FULL:
        what = "has no room"
    elif error.errno in _UNWRITABLE and _is_temporary(error.filename):
        what = "cannot be written"
    else:
        return None
    return AvialError(
        f"the disk {what}: {error.filename or _temporary_folder()}",
        hint="make room, or set TMPDIR (files of a run) or XDG_CACHE_HOME (compiled programs) to a "
        "folder elsewhere",
    )


def _temporary_folder() -> str:
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        return "the folder for temporary files"


def _is_temporary(name: object) -> bool:
    return isinstance(name, str) and name.startswith(_temporary_folder())


@contextmanager
def disk_errors() -> Generator[None]:
    """Within, and in functions that it decorates, a full or unwritable disk is an AvialError."""
    try:
        yield
    except OSError as error:
        told = disk_error(error)
        if told is None:
            raise
        raise told from None


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/avial_lab`, else `~/.cache/avial_lab`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return root / "avial_lab"
