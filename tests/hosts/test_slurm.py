"""A Slurm of Debian's on the hosts: runs on its nodes, and local runs inside of its jobs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest

from tests.hosts.conftest import HEAT, client_on, fresh_hosts, ran_on_files
from tests.hosts.rig import NotHere, Rig, slurm, wait_until
from tests.hosts.test_runs import nothing_left


@pytest.fixture(scope="module")
def environment(rig: Rig) -> Iterator[dict[str, str]]:
    with own_slurm(rig) as there:
        yield there


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


def test_a_batch_job_runs_on_its_first_node(rig: Rig, environment: dict[str, str]) -> None:
    """`sbatch -N3 -n3 … avial-lab run -n 3`: as above, and nothing stays in /tmp."""
    log = rig.folder / "batch.log"
    run = " ".join((*LAB, "run", "kernels/gemm", "-n", "3", "--check"))
    batch = ("sbatch", "--wait", "-N3", "-n3", f"--output={log}", f"--wrap={run}")
    out, error = rig.start(*batch, environment=environment).communicate(timeout=200)
    assert "Submitted" in out, error
    assert "equal to the sequential reference" in log.read_text()
    assert "inside Slurm job" in log.read_text()
    wait_until(lambda: nothing_left(rig), "the ranks to be gone")


STARTS = """
from avial_lab.runtime.launch.cluster import Cluster

with Cluster.start(2, gpu=0, progress=print) as cluster:
    print(cluster.status)
"""


def test_a_local_cluster_inside_a_job_is_local(rig: Rig, environment: dict[str, str]) -> None:
    command = ("srun", "-N1", "-n1", "-c2", sys.executable, "-c", STARTS)
    process = rig.start(*command, environment=environment)
    out, error = process.communicate(timeout=200)
    assert process.returncode == 0, error
    assert "cluster of 2 engines, ready" in out
    assert "inside Slurm job" in out
    wait_until(lambda: nothing_left(rig), "the engines to be gone")


def test_a_run_inside_an_allocation_takes_its_nodes(rig: Rig, environment: dict[str, str]) -> None:
    """`salloc -N2`, there `--slurm` without a number of nodes: no second job."""
    run = (*LAB, "run", "kernels/jacobi-2d", "--slurm", "--ppn", "2", "--check")
    process = rig.start("salloc", "-N2", "--ntasks-per-node=2", *run, environment=environment)
    out, error = process.communicate(timeout=200)
    assert process.returncode == 0, error
    assert "4 CPUs on 2 nodes" in out or "4 CPUs on node" in out
    assert "equal to the sequential reference" in out
    wait_until(lambda: nothing_left(rig), "the ranks to be gone")
    wait_until(lambda: not in_queue(rig, environment), "the allocation to be gone")


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


def test_a_bundle_is_a_job(rig: Rig, bundle: Path, environment: dict[str, str]) -> None:
    """`sbatch job.sh`, its python3 being this one."""
    (rig.folder / "bin").mkdir()
    python = rig.folder / "bin" / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    found = {"PATH": f"{rig.folder / 'bin'}:{os.environ['PATH']}"}
    files = rig.folder
    process = rig.start(
        "sbatch", "--wait", f"--chdir={files}", "--output=job.log", str(bundle / "job.sh"),
        "--in", "a=a.npy", "--out", "a=c.npy", "--trace", "t.json",
        environment=environment | found,
    )  # fmt: skip
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, (out, error, (files / "job.log").read_text())
    assert "heat/own/6 on cpu: 6 ranks" in (files / "job.log").read_text()
    assert ran_on_files(rig)


def test_a_bundle_under_srun_without_pmi(
    rig: Rig, bundle: Path, environment: dict[str, str]
) -> None:
    command = ("srun", "-N3", "-n6", "--mpi=none", sys.executable, str(bundle / "run.py"))
    process = rig.start(*command, "--in", f"a={rig.folder}/a.npy", environment=environment)
    _, error = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "6 processes were started, and MPI took this one for one of 1" in error
    assert "srun --mpi=pmi2" in error


def test_a_node_that_nobody_reaches_any_more(
    own_rig: Rig, record_property: Callable[[str, object], None]
) -> None:
    with own_slurm(own_rig) as environment, client_on(own_rig, environment) as client:
        client.ask("slurm 3 1")
        client.run_for_ever()
        own_rig.hosts["node2"].cut_off()
        began = time.monotonic()
        told = client.hear()
        record_property("told after, in s", time.monotonic() - began)
        assert "host node2 (rank 1) is lost: control connection: no answer" in told["error"]
        assert told["untouched"]


def test_a_node_that_is_lost_before_its_rank_is_there(own_rig: Rig) -> None:
    """Slurm takes it for idle, for minutes; srun waits for it."""
    with own_slurm(own_rig) as environment:
        own_rig.hosts["node2"].cut_off()
        run = ("run", "kernels/jacobi-2d", "--slurm", "-N", "3", "--ppn", "1", "--time", "10:00")
        done = own_rig.lab(*run, environment=environment)
        assert done.returncode == 1
        assert "host node2 is lost: control connection: Slurm's daemon there" in done.stderr


@pytest.mark.parametrize(
    "start", [("cluster", "start"), ("run", "kernels/gemm")], ids=["cluster", "run"]
)
def test_a_job_that_waits_for_nodes_ends_with_its_client(
    rig: Rig, environment: dict[str, str], start: tuple[str, ...]
) -> None:
    """All nodes are taken; no rank is there yet that could end it."""
    holds = rig.start("srun", "--exclusive", "-N3", "sleep", "infinity", environment=environment)
    wait_until(lambda: states(rig, environment) == ["R"], "nodes that are taken")
    wanted = ("--slurm", "-N", "3", "--time", "10:00")
    waits = rig.start(*LAB, *start, *wanted, environment=environment)
    wait_until(lambda: "PD" in states(rig, environment), "a job that waits")
    waits.kill()
    waits.communicate()
    wait_until(lambda: states(rig, environment) == ["R"], "the job to be cancelled")
    holds.terminate()
    holds.communicate()
    wait_until(lambda: not in_queue(rig, environment), "free nodes")


NOTEBOOK = """
import sys
import nbclient, nbformat

cells = sys.stdin.read().split("---")
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c.strip()) for c in cells])
client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3")
with client.setup_kernel():
    for k, cell in enumerate(cells):
        done = client.execute_cell(notebook.cells[k], k)
    nbformat.write(notebook, sys.argv[1])
    print("there", flush=True)
    sys.stdin.close()
    import time
    time.sleep(3600)
"""

CELLS = f"""
%load_ext avial_lab
import avial_lab, numpy as np, os
a = np.random.default_rng(0).random((40, 30)); b = a.copy()
print("kernel", os.getpid())
---
%avial cluster start --slurm -N 4 --ppn 1 --time 10:00
---
%%avial -o heat --run --check
{HEAT}
---
heat.trace
"""


def test_a_notebook_on_the_login_node_leaves_nothing() -> None:
    """The heat equation on 4 nodes, with a timeline that names them; then the kernel is killed."""
    with fresh_hosts(4) as rig, own_slurm(rig) as environment:
        file = rig.folder / "run.ipynb"
        process = rig.start(
            sys.executable, "-c", NOTEBOOK, str(file), environment=environment, asks=True
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(CELLS)
        process.stdin.close()
        heard = process.stdout.readline()
        if "there" not in heard:
            assert process.stderr is not None
            raise AssertionError(process.stderr.read())
        outputs = [
            output for cell in nbformat.read(file, 4).cells for output in cell.get("outputs", ())
        ]
        said = json.dumps(outputs)
        assert "reference" in said
        shown = [
            output["data"]["text/html"]
            for output in outputs
            if "text/html" in output.get("data", {})
        ]
        assert all(any(f"node{k}" in text for text in shown) for k in range(1, 5))
        kernel = re.search(r"kernel (\d+)", said)
        assert kernel is not None
        rig.login.run("kill", "-9", kernel[1])
        wait_until(lambda: nothing_left(rig), "the engines to be gone")
        wait_until(lambda: not in_queue(rig, environment), "the job to be gone")
        process.kill()
        process.wait()
        process.stdout.close()
        assert process.stderr is not None
        process.stderr.close()


@contextlib.contextmanager
def own_slurm(rig: Rig) -> Iterator[dict[str, str]]:
    try:
        with slurm(rig) as there:
            yield there
    except NotHere as why:
        pytest.skip(str(why))


def in_queue(rig: Rig, environment: dict[str, str]) -> str:
    return rig.start("squeue", "-h", environment=environment).communicate(timeout=60)[0]


def states(rig: Rig, environment: dict[str, str]) -> list[str]:
    """Of the jobs in the queue: `PD` of one that waits, `R` of one that runs."""
    squeue = rig.start("squeue", "-h", "-o", "%t", environment=environment)
    return squeue.communicate(timeout=60)[0].split()
