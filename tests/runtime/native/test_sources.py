"""The C runtime as a library: every file by itself, without a warning, and the headers agree with
what the compiler and the engine take them for.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from avial_lab.compiler.passes.distribution import replicate_to_mpi
from avial_lab.compiler.passes.host import launch_on_devices
from avial_lab.core.toolchain import tool
from avial_lab.runtime.native import sources
from avial_lab.runtime.rank.threads import ENTRIES
from tests.runtime.native.builds import WARNINGS, built, compilers, write_sources
from tests.runtime.native.ownership.programs import PRELUDE

FILES = sorted({name for part in sources.MAIN for name in sources.texts(part)})
HEADERS = [name for name in FILES if name.endswith(".h")]
UNITS = [name for name in FILES if name.endswith(".c")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sources(tmp_path_factory.mktemp("native"))


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_needs_no_other_before_it(name: str, folder: Path) -> None:
    flags = ["-O0", "-fsyntax-only", "-Wno-unused-function", *WARNINGS]
    text = folder / f"alone_{Path(name).stem}.c"
    text.write_text(f'#include "{name}"\n#include "{name}"\nextern int one_declaration;\n')
    assert built([*flags, text.name], folder) == ""


@pytest.mark.parametrize("compiler", compilers(), ids=lambda path: Path(path).name)
@pytest.mark.parametrize("name", UNITS)
def test_a_unit_compiles_without_a_warning(name: str, compiler: str, folder: Path) -> None:
    flags = ["-O2", "-ffp-contract=off", *WARNINGS, "-c", "-o", "unit.o"]
    assert built([*flags, name], folder, compiler) == ""


def test_the_units_link_and_show_what_they_show_as_one(folder: Path) -> None:
    apart = [name for name in UNITS if name.startswith("ownership/") and "runtime.c" not in name]
    assert built(["-O0", "-shared", *apart, "-o", "apart.so", "-lm"], folder) == ""
    assert built(["-O0", "-shared", "ownership/runtime.c", "-o", "one.so", "-lm"], folder) == ""
    shown = visible(folder / "one.so")
    assert visible(folder / "apart.so") == shown
    devices = declared(folder, "devices/places.h")  # called where a program has any
    assert {name for name in shown if not name.startswith("MPI_")} - devices == declared(folder)


def test_one_unit_includes_every_file(folder: Path) -> None:
    text = (folder / "ownership/runtime.c").read_text()
    units = {Path(name).name for name in UNITS if name.startswith("ownership/")}
    assert set(re.findall(r'#include "(\w+\.c)"', text)) == units - {"runtime.c"}


def visible(path: Path) -> set[str]:
    listed = subprocess.run(
        [str(tool("cc").parent / "nm") if (tool("cc").parent / "nm").exists() else "nm",
         "-D", "--format=posix", str(path)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    names = {line.split()[0].partition("@")[0] for line in listed.splitlines()}
    return {name for name in names if name.startswith(("avial_", "MPI_"))}


def declared(folder: Path, header: str = "ownership/ownership.h") -> set[str]:
    """What the public header has."""
    text = re.sub(r"/\*.*?\*/", "", (folder / header).read_text(), flags=re.S)
    return set(re.findall(r"\bavial_\w+", text))


def test_the_compiler_declares_functions_as_the_header_does(folder: Path) -> None:
    """Conflicting types are an error in C, where LLVM's linker says nothing."""
    names = {"i64": "int64_t", "!llvm.ptr": "const void *"}
    calls = [
        (name, [part.strip() for part in given.split(",") if part.strip()], result)
        for name, given, result in re.findall(
            r"llvm\.func @(avial_\w+)\((.*?)\)(?: -> (\S+))?",
            replicate_to_mpi._RUNTIME + launch_on_devices._RUNTIME,
        )
    ]
    assert len(calls) > 8
    lines = ['#include "ownership/ownership.h"']
    for name, given, result in calls:
        values = ", ".join(f"({names[kind]})0" if kind == "i64" else "0" for kind in given)
        lines.append(f"#define COUNT_{name} {len(given)}")
        call = f"{name}({values})"
        lines.append(
            f'_Static_assert(sizeof({call}) == 8, "");'
            if result
            else f"void use_{name}(void); void use_{name}(void) {{ {call}; }}"
        )
    (folder / "calls.c").write_text("\n".join(lines) + "\n")
    assert built(["-O0", "-fsyntax-only", *WARNINGS, "calls.c"], folder) == ""


def test_the_header_fits_the_tests_own_reading_of_it(folder: Path) -> None:
    mine = PRELUDE.replace("enum { REPLICATE, TASK, EVERYWHERE };", "")
    (folder / "both.c").write_text(f'#include "ownership/ownership.h"\n{mine}')
    assert built(["-O0", "-fsyntax-only", *WARNINGS, "both.c"], folder) == ""


def test_threads_h_has_what_the_engine_hands_over(folder: Path) -> None:
    text = (folder / "threads.h").read_text()
    assert set(re.findall(r"\(\*avial_omp_(\w+)\)", text)) == set(ENTRIES)
