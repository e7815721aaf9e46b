"""Fonts of this machine, for pictures that are drawn without a browser.

Folders of fonts -> the family that stands for Helvetica, and its files.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_ENDINGS = (".ttf", ".otf", ".ttc")
_LIKED = ("Helvetica", "Arial", "Liberation Sans", "DejaVu Sans", "Noto Sans")
"""The first of these that is there; else one with Sans in its name; else any."""

_FAMILY = 1
"""The number of a font's family in its table of names (OpenType 1.9, "name")."""


def font_folders() -> list[Path]:
    """Where systems keep fonts, and where Python's packages bring theirs."""
    home, data = Path.home(), os.environ.get("XDG_DATA_HOME", "")
    folders = [
        *(Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), Path("/opt/share/fonts")),
        *(home / ".fonts", home / ".local/share/fonts", Path(sys.prefix) / "share/fonts"),
        *(Path("/Library/Fonts"), Path("/System/Library/Fonts"), home / "Library/Fonts"),
    ]
    return [*folders, *([Path(data) / "fonts"] if data else [])]


@cache
def sans_serif() -> tuple[str, tuple[str, ...]]:
    """The family to draw words with, and its files; ("", ()) where there is no font at all."""
    families: dict[str, list[str]] = {}
    for file in sorted(file for folder in font_folders() for file in _files(folder)):
        if family := family_of(file):
            families.setdefault(family, []).append(str(file))
    liked = [name for name in _LIKED if name in families]
    plain = [name for name in families if "Sans" in name and "Mono" not in name]
    for name in (*liked, *plain, *families):
        return name, tuple(families[name])
    return "", ()


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent) / name for name in names if name.lower().endswith(_ENDINGS))


def family_of(file: Path) -> str:
    """The family that a TrueType or OpenType file says it is of; "" where it is no such file."""
    try:
        with file.open("rb") as font:
            start = 0
            if font.read(4) == b"ttcf":  # several in one file: the first
                start = struct.unpack(">8xI", font.read(12))[0]
            font.seek(start + 4)
            (tables,) = struct.unpack(">H6x", font.read(8))
            for _ in range(tables):
                tag, at, length = struct.unpack(">4s4xII", font.read(16))
                if tag == b"name":
                    font.seek(at)
                    return _family_in(font.read(length))
    except (OSError, struct.error, UnicodeDecodeError):
        pass
    return ""


def _family_in(table: bytes) -> str:
    """Of a table of names: one in Unicode first."""
    _, records, words = struct.unpack_from(">HHH", table)
    found = ""
    for k in range(records):
        platform, _, _, what, length, at = struct.unpack_from(">6H", table, 6 + 12 * k)
        if what != _FAMILY:
            continue
        name = table[words + at : words + at + length]
        if platform in (0, 3):
            return name.decode("utf-16-be")
        found = name.decode("latin-1")
    return found
