"""Clusters that a profile of ipyparallel's starts on hosts, whose nodes have their own /tmp."""

from __future__ import annotations

import pytest

from avial_lab.core.toolchain import tool
from tests.hosts.conftest import client_on
from tests.hosts.rig import LOGIN_ADDRESS, Rig, wait_until
from tests.hosts.test_losses import go_on
from tests.hosts.test_runs import NODES, nothing_left
from tests.hosts.test_slurm import in_queue, own_slurm

PROFILE = f"""
c.Cluster.controller_ip = "{LOGIN_ADDRESS}"
c.Cluster.engine_launcher_class = "mpi"
c.MPILauncher.mpi_cmd = ["{tool("mpiexec")}"]
c.MPILauncher.mpi_args = [
    "-launcher", "ssh", "-rmk", "user", "-hosts", "{NODES}", "-ppn", "1",
    "-localhost", "{LOGIN_ADDRESS}", "-wdir", "/",
]
"""


def with_profile(rig: Rig, text: str, name: str = "hosts") -> dict[str, str]:
    """The environment of a user who has it."""
    folder = rig.folder / "ipython" / f"profile_{name}"
    folder.mkdir(parents=True)
    (folder / "ipcluster_config.py").write_text(text)
    return {"IPYTHONDIR": str(folder.parent)}


@pytest.fixture(scope="module")
def environment(rig: Rig) -> dict[str, str]:
    return with_profile(rig, PROFILE)


def test_a_profile_starts_runs_and_is_listed(rig: Rig, environment: dict[str, str]) -> None:
    with client_on(rig, environment) as client:
        started = client.ask("profile hosts 3")
        assert [node for node, _ in started["places"]] == NODES.split(",")
        assert (
            f"{started['id']}  3 engines on node1, node2, node3"
            in rig.lab("cluster", "list").stdout
        )
        go_on(client)
        client.ask("stop")
    wait_until(lambda: nothing_left(rig), "the engines to be gone")


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "in a run"])
def test_a_client_with_a_profile_that_is_killed_leaves_nothing(
    rig: Rig, environment: dict[str, str], busy: bool
) -> None:
    with client_on(rig, environment) as client:
        client.ask("profile hosts 3")
        if busy:
            client.run_for_ever()
        client.process.kill()
        wait_until(lambda: nothing_left(rig), "the engines to be gone")


BATCH = """#!/bin/sh
#SBATCH --ntasks={n} --ntasks-per-node=1 --chdir=/
srun --mpi=pmi2 {program_and_args} --mpi
"""


def test_slurms_launcher_of_ipyparallel(own_rig: Rig) -> None:
    """Its own template starts ranks that do not know of each other, which is told with the cure."""
    common = f"""
c.Cluster.controller_ip = "{LOGIN_ADDRESS}"
c.Cluster.engine_launcher_class = "slurm"
"""
    with_profile(own_rig, common, "default")
    user = with_profile(own_rig, f"{common}c.SlurmLauncher.batch_template = {BATCH!r}\n", "pmi")
    with own_slurm(own_rig) as slurm, client_on(own_rig, user | slurm) as client:
        told = client.ask("profile default 3")
        assert "not the ranks of one MPI world" in told["error"]
        assert "srun --mpi=pmi2" in told["error"]
        wait_until(lambda: not in_queue(own_rig, slurm), "its job to be gone")
        started = client.ask("profile pmi 3")
        assert [node for node, _ in started.get("places", ())] == NODES.split(","), started
        go_on(client)
        client.process.kill()
        wait_until(lambda: nothing_left(own_rig), "the engines to be gone")
        wait_until(lambda: not in_queue(own_rig, slurm), "the job to be gone")


def test_a_rank_of_a_profile_that_is_killed(rig: Rig, environment: dict[str, str]) -> None:
    with client_on(rig, environment) as client:
        node, pid = client.ask("profile hosts 3")["places"][1]
        client.run_for_ever()
        rig.hosts[node].run("kill", "-9", str(pid))
        told = client.hear()
        assert "rank 1" in told["error"]
        assert told["untouched"]
        go_on(client)
        client.ask("stop")
    wait_until(lambda: nothing_left(rig), "the engines to be gone")
