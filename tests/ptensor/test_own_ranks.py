"""Scripts that every rank runs: under mpiexec, and as the only process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from avial_lab.core.toolchain import tool
from avial_lab.runtime.launch.processes import mpiexec_options
from avial_lab.runtime.rank.lockstep import differing

ROOT = Path(__file__).parent.parent.parent


def ranks(count: int, *command: str) -> subprocess.CompletedProcess[str]:
    start = [str(tool("mpiexec")), *mpiexec_options(), "-n", str(count)] if count > 1 else []
    return subprocess.run(
        [*start, sys.executable, *command],
        cwd=ROOT, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip


@pytest.mark.mpi
def test_a_script_on_three_ranks() -> None:
    done = ranks(3, "-m", "tests.ptensor.own_ranks_script", "1")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("count", [1, 2, 3])
def test_scripts(count: int) -> None:
    done = ranks(count, "-m", "tests.ptensor.own_ranks_script", "40")
    assert done.returncode == 0, done.stderr


def script(folder: Path, body: str) -> str:
    path = folder / "script.py"
    path.write_text(
        "import os, signal\nfrom mpi4py.MPI import COMM_WORLD\n"
        f"import avial_lab.ptensor as np\nr = COMM_WORLD.rank\nx = np.arange(10.0)\n{body}\n"
    )
    return str(path)


@pytest.mark.mpi
def test_ranks_that_do_different_things(tmp_path: Path) -> None:
    """Both lines are told, and nobody waits for ever."""
    done = ranks(2, script(tmp_path, "y = x * 2 if r else \\\n  x - 2\nprint(float(y.sum()))"))
    assert done.returncode != 0
    told = "the ranks do different things: rank 0: computes subtract of float64, (10,) ("
    assert told in done.stderr
    assert f"{tmp_path}/script.py:7); rank 1: computes multiply" in done.stderr


@pytest.mark.mpi
def test_ranks_that_differed_once(tmp_path: Path) -> None:
    """Each time both lines are told, once; what they did not do together is gone, the rest stays,
    and what they do together afterwards is right.
    """
    body = """
from avial_lab.core.errors import AvialError
kept = x * 3
np.sync()
for k in range(3):
    own = np.asarray([1.0 * r] * (r + 1))
    y = kept + 1 if r else kept - 1
    for want in ("rank 0: brings in", "is gone"):
        try:
            float(y[0])
        except AvialError as error:
            assert want in str(error), (want, error)
        else:
            raise AssertionError(want)
    try:
        own + 1
    except AvialError as error:
        assert "is gone" in str(error)
    z = np.asarray([1.0, 2.0, k]) + kept[:3]
    assert z.tolist() == [1.0, 5.0, 6.0 + k], z
    assert float(np.sort(kept * -1)[0]) == -27.0
print("right")
"""
    done = ranks(2, script(tmp_path, body))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.replace("\n", "")) == sorted("right" * 2)  # both at once, perhaps


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("if r == 0: print(float(x[3]))", "rank 1: ends (its script is over)"),
        ("if r == 1: raise KeyError('mine')\nfloat(x[3])", "rank 1: ends (KeyError: 'mine')"),
        ("print(float(np.asarray([1.0 * r])[0]))", "rank 0: brings in an array of float64, (1,)"),
        ("y = x + 1\nnp.sync()\nfloat((y if r else x)[0])", "rank 1: reads the array number"),
        ("y, z = x + 1, x + 2\nfloat((y if r else z)[0])", "rank 1: reads the array recorded as"),
        ("if r: os.kill(os.getpid(), signal.SIGKILL)\nprint(float(x[3]))", ""),
    ],
)  # fmt: skip
def test_ranks_that_leave(tmp_path: Path, body: str, told: str) -> None:
    done = ranks(2, script(tmp_path, body))
    assert done.returncode != 0
    assert told in done.stderr


def test_the_first_place_where_ranks_differ() -> None:
    same, here = ("adds", "a.py:1"), ("asks", "a.py:2")
    error = differing([[same, here], [same, ("ends", "")], [("adds", "b.py:9"), here]])
    assert str(error).startswith(
        "the ranks do different things: ranks 0, 2: asks (a.py:2); rank 1: ends\n"
    )
    shorter = differing([[same], [same, here]])
    assert "rank 0: nothing; rank 1: asks (a.py:2)" in str(shorter)
