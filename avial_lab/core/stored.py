"""What was made before, on disk, as the dataclasses that it was.

A key of everything that something is made from -> that, made once on this machine by these sources.
"""

from __future__ import annotations

import io
import pickle
import platform
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from avial_lab.core.cache import Cache
from avial_lab.core.files import cache_folder

T = TypeVar("T")


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
            TypeError,
        ):
            pass  # written by another version: make it again
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
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    kept = [
        line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))
    ]
    return "\n".join(dict.fromkeys(kept))


class _Unpickler(pickle.Unpickler):
    """Reads back our own dataclasses and nothing else."""

    def find_class(self, module: str, name: str) -> object:
        if module.startswith("avial_lab.") or (module, name) == ("builtins", "dict"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} has no place in what is stored")
