"""A Slurm of Debian's on the hosts: runs on its nodes, and local runs inside of its jobs."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.hosts.rig import NotHere, Rig, slurm, wait_until
from tests.hosts.test_runs import nothing_left


@pytest.fixture(scope="module")
def environment(rig: Rig) -> Iterator[dict[str, str]]:
    try:
        with slurm(rig) as there:
            yield there
    except NotHere as why:
        pytest.skip(str(why))


LAB = (sys.executable, "-m", "avial_lab")


def test_a_run_on_nodes_of_slurm_is_right(rig: Rig, environment: dict[str, str]) -> None:
    run = ("run", "kernels/jacobi-2d", "--slurm", "-N", "3", "--ppn", "2", "--check")
    done = rig.lab(*run, environment=environment)
    assert done.returncode == 0, done.stderr
    assert "equal to the sequential reference" in done.stdout
    wait_until(lambda: nothing_left(rig), "the ranks to be gone")


def test_a_local_run_inside_a_job_is_local(rig: Rig, environment: dict[str, str]) -> None:
    """`srun -N1 -n1`: Hydra would start ranks by srun on the job's nodes, and hang."""
    command = ("srun", "-N1", "-n1", "-c2", *LAB, "run", "kernels/gemm", "-n", "2", "--check")
    process = rig.start(*command, environment=environment)
    out, error = process.communicate(timeout=200)
    assert process.returncode == 0, error
    assert "equal to the sequential reference" in out
    assert "inside Slurm job" in error


def test_copies_by_srun_are_refused(rig: Rig, environment: dict[str, str]) -> None:
    process = rig.start(
        "srun", "-N3", "-n3", *LAB, "run", "kernels/gemm", "-n", "3", environment=environment
    )
    _, error = process.communicate(timeout=200)
    assert process.returncode != 0
    assert "this program was started 3 times" in error


def test_a_cluster_on_nodes_of_slurm(rig: Rig, environment: dict[str, str]) -> None:
    start = ("cluster", "start", "--slurm", "-N", "2", "--ppn", "1", "--time", "10:00")
    done = rig.lab(*start, environment=environment)
    assert done.returncode == 0, done.stderr
    name = done.stdout.split()[1]
    assert f"{name}  2 engines on node1, node2" in rig.lab("cluster", "list").stdout
    assert rig.lab("cluster", "stop", name).stdout.startswith(f"stopped {name}")
    wait_until(lambda: nothing_left(rig), "the engines to be gone")
    wait_until(lambda: not in_queue(rig, environment), "the job to be gone")


def in_queue(rig: Rig, environment: dict[str, str]) -> str:
    return rig.start("squeue", "-h", environment=environment).communicate(timeout=60)[0]
