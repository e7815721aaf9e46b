"""The tests of this folder once more, with the runtime and the programs watched by the address and
undefined-behaviour sanitizers of the C compiler: what they find ends the process, and the test.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.native.builds import SANITIZERS, lacks_sanitizers, runtime_libraries
from tests.runtime.native.ownership.programs import MORE_FLAGS

HERE = Path(__file__).parent

OPTIONS = ":".join([
    "detect_leaks=0",  # Python and MPI keep what they have
    "handle_segv=0",  # ranks that die by a test's intention die as ever
    "alloc_dealloc_mismatch=0",  # in libraries that are not ours
    "abort_on_error=1",
])  # fmt: skip


def watched(*command: str) -> subprocess.CompletedProcess[str]:
    """Python with these arguments, in a process that loads the sanitizers before everything else
    and builds with them.
    """
    if lacks_sanitizers():
        pytest.skip(lacks_sanitizers())
    # Warnings that come of what sanitizers add are nobody's fault.
    flags = " ".join([*SANITIZERS, "-Wno-error"])
    environment = {
        **os.environ, MORE_FLAGS: flags, "ASAN_OPTIONS": OPTIONS,
        "UBSAN_OPTIONS": "print_stacktrace=1", "LD_PRELOAD": ":".join(runtime_libraries()),
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, *command],
        cwd=HERE.parents[1], env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def run_tests(*chosen: str) -> None:
    done = watched("-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_write_beside_its_room_is_found() -> None:
    """What is planted is found; otherwise the tests below would say nothing."""
    done = watched("-m", "tests.runtime.native.ownership.planted")
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr
    assert "WRITE of size 8" in done.stderr, "a word of a table: the runtime itself is watched"


@pytest.mark.slow
def test_plans_and_failures() -> None:
    """In one process: directories, phases that cannot be divided, every allocation failing once."""
    files = [str(HERE / f"test_{name}.py") for name in ("failures", "companions")]
    run_tests(*files, "-m", "not mpi and not slow")


ON_RANKS = """
import numpy as np
from tests.runtime.native.ownership.cases import CASES
for name in ("stencil_in_two_dimensions", "dot_product", "long_messages_are_packed_piece_by_piece"):
    case = CASES[name]
    arrays, want = case.make(), case.make()
    case.meaning(want, 2)
    case.program.run(arrays, 2)
    for array in case.program.arrays:
        np.testing.assert_array_equal(arrays[array], want[array])
"""


@pytest.mark.mpi
def test_some_programs_on_ranks() -> None:
    pytest.importorskip("mpi4py", reason="no mpi4py: there are no ranks to run on")
    done = watched("-c", ON_RANKS)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_everything() -> None:
    # The compiler's process limits its memory, and has no room for what the sanitizers map.
    compiled_by_us = str(HERE / "test_footprints.py")
    run_tests(str(HERE), "--ignore", __file__, "--ignore", compiled_by_us)
