"""Ranks that wait for one another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from avial_lab.core.toolchain import tool
from avial_lab.runtime.launch.processes import environment, mpiexec_options

pytestmark = pytest.mark.mpi

COME = """
import sys
from pathlib import Path
from mpi4py import MPI
from avial_lab.runtime.rank.world import all_here

comm, folder = MPI.COMM_WORLD, Path(sys.argv[1])
for turn in range(3):
    for on_a_core in (1, 32):  # MPI's own way, and a crowd's
        (folder / f"{comm.rank}-{turn}-{on_a_core}").touch()
        all_here(comm, on_a_core=on_a_core)
        assert len(list(folder.glob(f"*-{turn}-{on_a_core}"))) == comm.size
"""


def test_nobody_goes_on_before_all_have_come(tmp_path: Path) -> None:
    command = [str(tool("mpiexec")), "-n", "3", *mpiexec_options()]
    done = subprocess.run(
        [*command, sys.executable, "-c", COME, str(tmp_path)],
        env=os.environ | environment(3), capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.iterdir())) == 18
