"""Building parts of the C runtime for tests, with the compilers that are here."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from avial_lab.core.toolchain import find_tool, tool
from avial_lab.runtime.native import sources

WARNINGS = (
    "-Wall", "-Wextra", "-Werror", "-Wmissing-prototypes", "-Wstrict-prototypes", "-Wshadow",
)  # fmt: skip
"""For our own builds: a user's compiler, which may know of more, is not told to refuse."""

SANITIZERS = (
    "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)  # fmt: skip


def compilers() -> list[str]:
    """Paths of the C compilers that are here, each once."""
    named = [shutil.which(name) for name in ("gcc", "clang")]
    cc = find_tool("cc")
    found = [*([str(cc)] if cc is not None else []), *(path for path in named if path)]
    return list({os.path.realpath(path): path for path in found}.values())


def write_sources(folder: Path) -> Path:
    """All files of the runtime below `folder`, as for a build."""
    for part in sources.MAIN:
        sources.write(sources.texts(part), folder)
    return folder


def built(command: Sequence[str], folder: Path, compiler: str | None = None) -> str:
    """What the compiler says; empty where it has nothing to say."""
    done = subprocess.run(
        [compiler or str(tool("cc")), "-std=c11", "-fPIC", *command],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stderr


@cache
def lacks_sanitizers() -> str:
    """Why programs cannot be watched by the address and undefined-behaviour sanitizers here."""
    if not runtime_libraries():
        return "the C compiler has no libasan and libubsan"
    return ""


@cache
def runtime_libraries() -> tuple[str, ...]:
    """Of the sanitizers: to be loaded before everything else where the program is not ours."""
    found: list[str] = []
    for name in ("libasan.so", "libubsan.so"):
        done = subprocess.run(
            [str(tool("cc")), f"-print-file-name={name}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        path = Path(done.stdout.strip())
        if path.is_absolute() and path.exists():
            found.append(str(path))
    return tuple(found) if len(found) == 2 else ()
