"""The folder's docstring names what passes are written with, the catalogue the passes; each has its
tests.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from avial_lab.compiler import passes


def test_every_module_has_one_place_on_the_map() -> None:
    """Each holds a pass, or is one of the few that passes of its folder are written with."""
    assert passes.__doc__ is not None
    there = Path(passes.__file__).parent
    modules = sorted(path.stem for path in there.rglob("*.py") if path.stem != "__init__")
    helpers = re.findall(r"\w+", passes.__doc__.partition("written with:")[2])
    assert sorted({*helpers, *(module for module, _ in passes_there())}) == modules
    folders = {path.name for path in there.rglob("*") if (path / "__init__.py").exists()}
    assert set(re.findall(r"^    +(\w+)/ ", passes.__doc__, re.MULTILINE)) == folders


def passes_there() -> Iterator[tuple[str, type]]:
    """The classes of passes, each with the module that it stands in: `flatten_rows`."""
    for module in pkgutil.walk_packages(passes.__path__, f"{passes.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            is_pass = dataclasses.is_dataclass(value) and "__call__" in vars(value)
            if isinstance(value, type) and is_pass and value.__module__ == module.name:
                yield module.name.rpartition(".")[2], value


TESTS = next(folder for folder in Path(__file__).parents if folder.name == "tests")
RUN = re.compile(r"// RUN: -p (.+)")


@pytest.mark.parametrize(("module", "each"), list(passes_there()))
def test_every_pass_has_a_golden_file_and_a_test_module(module: str, each: type) -> None:
    """Of its name; what a pass is on a command line (`PlacePhasesHere`) shares that of the pass."""
    words = re.sub("(?<=.)(?=[A-Z])", "-", each.__name__.removesuffix("Here")).lower()
    (golden,) = TESTS.rglob(f"{words.replace('-', '_')}.mlir")
    run = RUN.match(golden.read_text())
    assert run is not None
    assert words in re.split(r"[,{]", run.group(1))
    assert list(TESTS.rglob(f"test_{module}.py")), f"{module} has no test module of its name"
