"""Parts of the ownership runtime by themselves, in C against models, watched by the sanitizers of
the C compiler where it has them.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.runtime.native.builds import SANITIZERS, built, lacks_sanitizers, write_sources

SOURCES = Path(__file__).parent / "c"
TESTS = (
    "pieces", "merging", "one owner", "even parts", "large spaces", "strides", "memo: again",
    "memo: wide pieces", "memo: oldest", "memo: rarely", "memo: the same",
)  # fmt: skip


@pytest.fixture(scope="module", params=["as built", "sanitized"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_sources(tmp_path_factory.mktemp("parts"))
    flags = ["-O2", "-Wall", "-Wextra", "-Werror"]
    if request.param == "sanitized":
        if lacks_sanitizers():
            pytest.skip(lacks_sanitizers())
        flags = [*SANITIZERS]
    where = ["-I", str(folder), str(SOURCES / "main.c")]
    assert built([*flags, *where, "-o", "parts", "-lm"], folder) == ""
    return folder / "parts"


@pytest.mark.parametrize("name", TESTS)
def test_part(name: str, program: Path) -> None:
    done = subprocess.run([str(program), name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_part_is_forgotten(program: Path) -> None:
    said = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    assert tuple(said.splitlines()) == TESTS
