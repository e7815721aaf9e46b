"""What a guardian ends, beyond what it was told of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.waiting import assert_gone, wait_until

OWNER = """
import os, subprocess, sys
from pathlib import Path
from avial_lab.runtime.launch.guardian import Guardian

folder = Path(sys.argv[1])
guardian = Guardian(folder)
for place in (folder / "profile", folder, folder.with_name(folder.name + "-other")):
    started = subprocess.Popen(["sleep", "600"], env={**os.environ, "PLACE": str(place)})
    print(started.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_was_started_and_not_yet_named_ends_with_its_owner(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        inside, at_it, elsewhere = (psutil.Process(int(owner.stdout.readline())) for _ in range(3))
        owner.kill()
    try:
        assert_gone([inside, at_it])
        wait_until(lambda: not folder.exists())
        assert elsewhere.is_running()
    finally:
        elsewhere.kill()


TELLS = """
import sys
from pathlib import Path
from avial_lab.runtime.launch.guardian import Guardian

guardian = Guardian(Path(sys.argv[1]))
guardian.at_end(["touch", sys.argv[2]])
if sys.stdin.readline():
    guardian.close()
"""


@pytest.mark.parametrize("said", ["", "close\n"], ids=["killed", "closed"])
def test_the_last_command_is_run_however_its_owner_ends(tmp_path: Path, said: str) -> None:
    """It cancels what is no process here: a job that waits (tests/hosts/test_slurm.py)."""
    folder, touched = tmp_path / "work", tmp_path / "touched"
    folder.mkdir()
    command = [sys.executable, "-c", TELLS, str(folder), str(touched)]
    subprocess.run(command, input=said, text=True, check=True)
    if said:
        assert touched.exists()  # at once: `close` waits for it
    wait_until(touched.exists)
