"""The map in the folder's docstring names what is there."""

from __future__ import annotations

import re
from pathlib import Path

from avial_lab import passes


def test_every_module_has_one_place_on_the_map() -> None:
    assert passes.__doc__ is not None
    folder = Path(passes.__file__).parent
    modules = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    text = passes.__doc__.partition("(indented):")[2]
    on_the_map = sorted(word for word in re.findall(r"\w+", text) if word in modules)
    assert on_the_map == modules
