"""The folder's docstring names what passes are written with, the catalogue the passes."""

from __future__ import annotations

import re
from pathlib import Path

from avial_lab import passes
from avial_lab.catalogue import rows


def test_every_module_has_one_place_on_the_map() -> None:
    assert passes.__doc__ is not None
    folder = Path(passes.__file__).parent
    modules = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    text = passes.__doc__.partition("by stage:")[2]
    on_the_map = [word for word in re.findall(r"\w+", text) if word in modules]
    in_the_catalogue = {row.module.rpartition(".")[2] for row in rows() if row.is_ours}
    assert sorted([*on_the_map, *in_the_catalogue]) == modules
