"""The C compilers that are here, and programs built with them."""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from avial_lab.core.cache import Cache, digest
from avial_lab.core.errors import AvialError
from avial_lab.core.files import cache_folder
from avial_lab.core.toolchain import find_tool, run

_COMPILE_LIMIT_S = 120.0


@dataclass(frozen=True)
class CCompiler:
    """A C compiler and the flags that its peers are built with; `name` is the table's heading."""

    name: str
    path: str
    flags: tuple[str, ...]

    @property
    def is_fast(self) -> bool:
        """Whether it may take sums and products apart as it likes."""
        return "-ffast-math" in self.flags

    @cached_property
    def identity(self) -> str:
        """What its output depends on besides the text, as a digest."""
        version = run([self.path, "--version"]).stdout
        # -march=native is another instruction set on another machine, which the cache may outlive.
        target = run([self.path, "-march=native", "-E", "-dM", "-x", "c", "/dev/null"]).stdout
        return digest(version, target, *self.flags)

    def build(self, source: str) -> bytes:
        """The shared object of that text. AvialError with the compiler's first complaint."""
        key = digest(self.identity, source)
        cache = Cache(cache_folder() / "peers")
        known = cache.get(key)
        if known is not None:
            return known
        built = self.compiled(source)
        cache.put(key, built)
        return built

    def compiled(self, source: str) -> bytes:
        """As `build`, whatever was built before."""
        with tempfile.TemporaryDirectory(prefix="avial-peer-") as folder:
            text, built = Path(folder) / "peer.c", Path(folder) / "peer.so"
            text.write_text(source, encoding="utf-8")
            command = [self.path, str(text), *self.flags, "-o", str(built), "-lm"]
            done = run(command, limit_s=_COMPILE_LIMIT_S)
            if done.returncode:
                raise AvialError(f"{self.name} does not build the peer: {done.complaint}")
            return built.read_bytes()


def c_compilers(*, integers: bool = False) -> tuple[CCompiler, ...]:
    """gcc and clang, as far as they are here, each without and with -ffast-math; for integers each
    once, and with sums that wrap around as ours do.
    """
    common = ("-std=gnu11", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared")
    found: list[CCompiler] = []
    for name in ("gcc", "clang"):
        path = shutil.which(name)
        if path is not None:
            if integers:
                found.append(CCompiler(name, path, (*common, "-fwrapv")))
                continue
            found.append(CCompiler(name, path, common))
            found.append(CCompiler(f"{name}-fast", path, (*common, "-ffast-math")))
    return tuple(found)


def any_compiler(*, extra: Sequence[str] = ()) -> CCompiler:
    """The one that links our own programs too; for the machine's ceilings."""
    path = find_tool("cc")
    if path is None:
        raise AvialError("there is no C compiler", hint="install gcc or clang, or set CC")
    flags = ("-std=gnu11", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared", *extra)
    return CCompiler(path.name, str(path), flags)


def loaded(shared_object: bytes) -> ctypes.CDLL:
    """The shared object in this process; its file is gone again when this returns."""
    with tempfile.NamedTemporaryFile(suffix=".so", prefix="avial-peer-") as file:
        file.write(shared_object)
        file.flush()
        return ctypes.CDLL(file.name)
