"""The C texts that a part of the runtime is compiled from.

A part's name -> its files as texts, for the build and for the key of what was built.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from avial_lab.core.runtime_constants import header

MAIN = {
    "ownership": "ownership/runtime.c",
    "threads": "threads.c",
    "memory": "memory.c",
    "blas": "blas.c",
    "devices": "devices/devices.c",
}
"""The file of each part that the compiler is given; it includes the others."""


@cache
def texts(part: str) -> Mapping[str, str]:
    """The text of every file that the part is compiled from, by its path from the main file's root,
    in one order: `constants.h`, which is generated, among them.
    """
    if part in _FOLDERS:
        return _texts_of_folders(part)
    native = resources.files("avial_lab.runtime.native")
    names = [f"{part}.c", f"{part}.h", "linkage.h"]
    return {name: native.joinpath(name).read_text(encoding="utf-8") for name in names}


_FOLDERS = ("ownership", "devices")
"""Parts that are folders; each includes headers of the other."""


def _texts_of_folders(part: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name in _FOLDERS:
        folder = resources.files("avial_lab.runtime.native").joinpath(name)
        ends = (".c", ".h") if name == part else (".h",)
        names = sorted(file.name for file in folder.iterdir() if file.name.endswith(ends))
        found |= {
            f"{name}/{file}": folder.joinpath(file).read_text(encoding="utf-8") for file in names
        }
    return {**found, "ownership/constants.h": header()}


def write(files: Mapping[str, str], folder: Path) -> None:
    """Put the texts below `folder`, where the compiler finds them."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
