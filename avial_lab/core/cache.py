"""What was built before, on disk: bytes by the SHA-256 of everything they were made from.

Key -> bytes, or nothing. A damaged entry, a full or unwritable disk count as nothing there: a build
never fails for its cache. Any number of processes may read and write at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import pickle
import platform
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Protocol, TypeVar, cast

from avial_lab.core.files import cache_folder

T = TypeVar("T")


class _Unpickler(pickle.Unpickler):
    """Reads back our own dataclasses and enums, and what there is one object of by its name."""

    def find_class(self, module: str, name: str) -> object:
        # A dotted name would walk on from one of our modules into another's: `os.system`.
        if name.isidentifier() and module.startswith(_STORED):
            found = super().find_class(module, name)
            if (module, name) == _BY_NAME or _is_plain(found):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} may not be stored in the cache")


_STORED = (
    "avial_lab.artifact.",
    "avial_lab.compiler.lowering.facts",
    "avial_lab.compiler.requests",
    "avial_lab.core.",
    "avial_lab.machine.",
    "avial_lab.planning.",
    "avial_lab.trace.",
)
"""Modules of what is stored; others are not even imported."""

_BY_NAME = ("avial_lab.machine.devices", "kind_named")
"""The one function: the object of that name."""


def _is_plain(found: object) -> bool:
    """Whether it is a type of ours that holds values and does nothing else when one is made."""
    return (
        isinstance(found, type)
        and found.__module__.startswith(_STORED)
        and (is_dataclass(found) or issubclass(found, Enum | tuple))
    )


LIMIT_BYTES = 512 * 1024 * 1024
"""Above this the entries not used for longest go."""

_log = logging.getLogger(__name__)


def digest(*parts: str | bytes) -> str:
    """SHA-256 over the parts, each with its length, so that no two lists of parts read the same."""
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        hashed.update(f"{len(data)}:".encode())
        hashed.update(data)
    return hashed.hexdigest()


class Named(Protocol):
    """What there is one object of by its name: a key has that."""

    name: str
    one_by_name: bool


def spelled(value: object) -> str:
    """All there is in `value`, for a key: dataclasses field by field, whatever their `repr` leaves
    out for people to read; what there is one object of by its name.

    TypeError for what has no text of its own: a key may not depend on an address.

    >>> from avial_lab.core.regions import Box
    >>> spelled({"box": Box((0,), (20,)), "factor": 0.1})
    "{'box': Box((0,), (20,)), 'factor': 0.1}"
    """
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if isinstance(value, Enum) or hasattr(kind, "one_by_name"):
        return f"{kind.__name__}.{cast('Named', value).name}"
    if isinstance(value, tuple):
        name = "" if kind is tuple else kind.__name__
        return f"{name}({_listed(cast('tuple[object, ...]', value))})"
    if is_dataclass(value) and not isinstance(value, type):
        parts = [f"{name}={spelled(getattr(value, name))}" for name in _names_of(kind)]
        return f"{kind.__name__}({', '.join(parts)})"
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return f"{{{', '.join(f'{spelled(k)}: {spelled(v)}' for k, v in items)}}}"
    raise TypeError(f"{kind.__name__} cannot be part of a key")


_PLAIN = frozenset({type(None), bool, int, float, str, bytes})


@lru_cache
def _names_of(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


def _listed(values: tuple[object, ...]) -> str:
    """As Python writes a tuple: one value has a comma behind it."""
    return ", ".join(map(spelled, values)) + ("," if len(values) == 1 else "")


@dataclass(frozen=True)
class Cache:
    """The entries in `folder`: files named by their key, their own SHA-256 in the first line.

    The folder is the user's alone (mode 0700). One that others own or may write to is not used:
    what lies there ends up as code in this user's processes.
    """

    folder: Path

    def get(self, key: str) -> bytes | None:
        """The bytes stored under `key`; None where there are none, or not the ones that were
        stored.
        """
        path = self.folder / key
        if not self._is_ours():
            return None
        try:
            data = path.read_bytes()
        except OSError:
            return None
        head, _, payload = data.partition(b"\n")
        if head != hashlib.sha256(payload).hexdigest().encode():
            _log.warning("a damaged entry of the build cache was removed: %s", key)
            _remove(path)
            return None
        _touch(path)
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Store `payload`; whoever reads meanwhile sees the old entry, the new one or none, never
        half of it.
        """
        temporary = ""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._is_ours():
                return
            handle, temporary = tempfile.mkstemp(prefix=".new-", dir=self.folder)
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload)
            Path(temporary).replace(self.folder / key)
        except OSError as error:
            _log.warning("the build cache could not be written: %s", error.strerror)
            if temporary:
                _remove(Path(temporary))
            return
        if _is_due(self.folder, len(payload)):
            self._prune()

    def _is_ours(self) -> bool:
        try:
            facts = self.folder.lstat()
        except OSError:
            return False
        ours = (
            stat.S_ISDIR(facts.st_mode)
            and facts.st_uid == os.getuid()
            and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        )
        if not ours:
            _log.warning("the build cache is not used: others may write to its folder")
        return ours

    def _prune(self) -> None:
        entries = list(_files_in(self.folder))
        total = sum(facts.st_size for facts, _ in entries)
        for facts, path in sorted(entries, key=lambda entry: entry[0].st_mtime):
            if total <= LIMIT_BYTES:
                return
            _remove(path)
            total -= facts.st_size


_stored: dict[Path, int] = {}
"""Bytes that this process has put into a folder since it last looked at how large that is."""


def _is_due(folder: Path, nbytes: int) -> bool:
    """Whether to look now: at its first entry, and whenever it has added an eighth of the limit."""
    stored = _stored.get(folder)
    due = stored is None or stored + nbytes > LIMIT_BYTES // 8
    _stored[folder] = 0 if due else (stored or 0) + nbytes
    return due


def _files_in(folder: Path) -> Iterator[tuple[os.stat_result, Path]]:
    """Each file with its facts; another process may remove some meanwhile."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False):
                    yield entry.stat(follow_symlinks=False), Path(entry)


def _remove(path: Path) -> None:
    """As far as it can be: on a read-only disk a bad entry stays, and is found bad again."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _log.debug("an entry of the build cache was not removed: %s", error.strerror)


def _touch(path: Path) -> None:
    """Remember that the entry was used; a cache on a read-only disk still serves."""
    try:
        os.utime(path)
    except OSError as error:
        _log.debug("the time of use could not be recorded: %s", error.strerror)


def made_once(folder: str, key: str, make: Callable[[], T]) -> T:
    """What `make` returned for that key before, in this process or another; else what it returns
    now.
    """
    cache = Cache(cache_folder() / folder)
    stored = cache.get(key)
    if stored is not None:
        try:
            return _Unpickler(io.BytesIO(stored)).load()
        except (
            pickle.UnpicklingError,
            AttributeError,
            EOFError,
            ImportError,
            IndexError,
            KeyError,
            TypeError,
            ValueError,
        ):
            pass  # written by another version, or by somebody else: make it again
    made = make()
    cache.put(key, pickle.dumps(made))
    return made


@lru_cache
def fingerprint() -> tuple[object, ...]:
    """What is made depends on besides what it is made from: our own sources and the machine's
    processor.
    """
    package = Path(__file__).parents[1]
    sources = tuple(
        (str(path.relative_to(package)), path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(package.rglob("*"))
        if path.suffix in (".py", ".mlir", ".c", ".h", ".ll")
    )
    return (sources, _processor())


def _processor() -> str:
    """The processor's features: code built for one may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    kept = [
        line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))
    ]
    return "\n".join(dict.fromkeys(kept))
