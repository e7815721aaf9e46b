"""Which avial_lab this is: a number, and a digest of what client and engines have to agree on.

0.1.0 (3f9a6c01)
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import avial_lab
from avial_lab.core.cache import digest

SHARED = ("artifact", "core", "machine", "planning", "runtime", "trace")
"""The folders whose objects travel between a client and its engines."""


@cache
def version() -> str:
    """Equal where client and engines understand each other: their sources are the same."""
    root = Path(avial_lab.__file__).parent
    files = sorted(path for folder in SHARED for path in (root / folder).rglob("*.py"))
    texts = [part for path in files for part in (str(path.relative_to(root)), path.read_bytes())]
    return f"{avial_lab.__version__} ({digest(*texts)[:8]})"
