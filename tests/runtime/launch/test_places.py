"""Where ranks are started: here, whatever manager's job this is part of, or on other machines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

import avial_lab
from avial_lab.cli.main import main
from avial_lab.core.errors import ClusterError
from avial_lab.core.version import version
from avial_lab.machine.cpu import LEVELS, instruction_sets
from avial_lab.machine.real_gpus import Gpus
from avial_lab.program.where import topology_on
from avial_lab.runtime.launch import engines, mpiexec, registry
from avial_lab.runtime.launch.cluster import Cluster
from avial_lab.runtime.launch.hosts import Hosts, Slurm, where_of, words_of
from avial_lab.runtime.launch.processes import local_note
from avial_lab.runtime.launch.registry import Known, Record
from avial_lab.runtime.rank.engine import Facts

SLURM = {
    "SLURM_JOB_ID": "12",
    "SLURM_JOBID": "12",
    "SLURM_NNODES": "3",
    "SLURM_JOB_NUM_NODES": "3",
    "SLURM_NODELIST": "n[1-3]",
    "SLURM_JOB_NODELIST": "n[1-3]",
    "SLURM_TASKS_PER_NODE": "1(x3)",
}


@pytest.mark.mpi
def test_ranks_inside_a_slurm_job_are_started_here(build, monkeypatch):
    """Hydra by itself would ask `srun` for the nodes."""
    for name, value in SLURM.items():
        monkeypatch.setenv(name, value)
    a = np.arange(20, dtype=np.int32)
    body = "for (int i = 0; i < 20; i++) ((int32_t *)a)[i] += 1;"
    binary = build(
        {"a": a},
        tasks={"t": body},
        programs=["run t", ""],
        inputs=[(0, "a")],
        results=[(0, "a")],
    )
    mpiexec.run(binary, {"a": a})
    assert (a == np.arange(20) + 1).all()
    assert local_note() == "inside Slurm job 12: the ranks are on this machine alone"


@pytest.mark.parametrize("name", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"])
def test_copies_that_srun_started_start_nothing(name, monkeypatch, capsys):
    monkeypatch.setenv(name, "3")
    with pytest.raises(ClusterError, match=f"started 3 times \\({name}=3\\)"):
        Cluster.start(cpu=1, gpu=0)
    assert main(["run", "kernels/gemm", "-n", "3"]) == 1
    assert "start it once" in capsys.readouterr().err
    monkeypatch.setenv(name, "1")
    mpiexec.refuse_copies()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not a host's name"),
        ("-oProxyCommand=touch /tmp/x", "is not a host's name"),
        ("a;b", "is not a host's name"),
        ("a,a", "named twice"),
    ],
)
def test_hosts_that_are_none(text, words):
    with pytest.raises(ClusterError, match=words):
        Hosts.parse(text)


def test_hosts_are_filled_in_order_and_remembered():
    where = Hosts.parse("a,b", ranks=3)
    assert [device.node for device in topology_on(where, 3, gpus=1).devices] == ["a", "a", "b", "b"]
    for place in (where, Slurm(2, 4, "1:00:00"), None):
        assert where_of(json.loads(json.dumps(words_of(place)))) == place


@pytest.mark.skipif(
    not LEVELS["x86-64-v2"] <= instruction_sets(), reason="code for x86-64-v2 does not run here"
)
def test_code_for_hosts_is_for_what_all_of_them_have():
    text = """func.func @f(%a: memref<4xf32>) { affine.for %i = 0 to 4 {
      %x = affine.load %a[%i] : memref<4xf32>
      affine.store %x, %a[%i] : memref<4xf32> } return }"""
    lesser = topology_on(Hosts(("a",)), 1, cpu="x86-64-v2")
    program = avial_lab.compile(text, topology=lesser)
    assert set(program.binary.manifest.instruction_sets) == LEVELS["x86-64-v2"]
    program = avial_lab.compile(text, topology=lesser, cpu_target="native")
    assert set(program.binary.manifest.instruction_sets) == instruction_sets()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--hosts", "a", "--slurm"], "leave one out"),
        (["--hosts", "a", "-N", "2"], "--nodes is for --slurm"),
        (["--ppn", "2"], "--ppn is for --hosts or --slurm"),
        (["--slurm"], "needs a number of nodes"),
        (["--hosts", "a", "--ppn", "0"], "0 ranks per host"),
    ],
)
def test_options_that_do_not_fit_together(arguments, words, capsys):
    assert main(["run", "kernels/gemm", *arguments]) == 1
    assert words in capsys.readouterr().err


FACTS = Facts(0, 1, 7, "node1", "x86_64", 1, 1 << 30, Gpus(), "MPICH", version=version())


def test_engines_of_another_version_are_refused():
    engines._refuse_others([FACTS])
    with pytest.raises(ClusterError) as caught:
        engines._refuse_others([FACTS, replace(FACTS, rank=1, version="0.0.9 (old)")])
    assert "rank 1 on node1 runs avial_lab 0.0.9 (old)" in str(caught.value)
    assert version() in str(caught.value)


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    """Of a cluster whose folder lies on a file system that two machines share."""
    monkeypatch.setattr(registry.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = tmp_path / f"{registry.PREFIX}abcd-x"
    folder.mkdir()
    mine = Known.of(psutil.Process())
    record = Record(
        id="abcd", folder=folder, gpus=0, keep_s=0, timeout_s=1, started_s=0, owner=mine,
        owner_name="a test", launchers=(mine,), engines=(), ranks=2,
    )  # fmt: skip
    registry.write_record(record)
    return record


@pytest.mark.parametrize("another", [{"host": "b"}, {"boot": "b"}, {"user": -1}])
def test_another_machines_cluster_is_listed_and_left(record, another, capsys):
    """Its process ids are this process's here: to judge by them would end the test."""
    mine = [one.id for one in registry.clusters()]
    assert "abcd" in mine
    registry.write_record(replace(record, machine=replace(record.machine, **another)))
    assert "abcd" not in [one.id for one in registry.clusters()]
    assert registry.clusters_elsewhere()[0].id == "abcd"
    registry.remove_traces()
    assert record.folder.exists()
    assert main(["cluster", "list"]) == 0
    assert "abcd  2 engines" in capsys.readouterr().out
    with pytest.raises(ClusterError, match="no cluster 'abcd'"):
        registry.cluster_called("abcd")
