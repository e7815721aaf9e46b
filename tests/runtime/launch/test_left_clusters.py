"""Clusters whose owner has gone: who may take them up, when they end, and that nothing is left."""

from __future__ import annotations

import math
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from avial_lab.cli.main import main
from avial_lab.core.errors import ClusterError
from avial_lab.runtime.launch.cluster import Cluster, run
from avial_lab.runtime.launch.registry import Record, cluster_called, clusters, stop_clusters
from tests.runtime.conftest import stand_in
from tests.waiting import assert_gone, wait_until

pytestmark = pytest.mark.mpi

ADD_ONE = "for (int i = 0; i < 20; i++) ((int32_t *)a)[i] += 1;"
FOREVER = "for (volatile int64_t i = 0;; i++) ;"

OWNER = """
import sys, threading, time
import numpy as np
from avial_lab.runtime.launch.cluster import Cluster, run
from tests.runtime.launch.test_left_clusters import program

cluster = Cluster.start(cpu=1, gpu=0, keep_s=float(sys.argv[1]))
print(cluster.id, flush=True)

def tell():
    while (entry := cluster._engines.result().entry(0)) is None or entry.step < 0:
        time.sleep(0.01)
    print("running", flush=True)

if sys.argv[2]:
    threading.Thread(target=tell, daemon=True).start()
    a = np.arange(20, dtype=np.int32)
    run(program(a, sys.argv[2]), {"a": a}, cluster)
sys.stdin.read()
"""


def program(a, body):
    ends = [(0, "a")]
    return stand_in(
        {"a": a}, tasks={"t": body}, programs=["run t"], inputs=ends, results=ends, uses_mpi=False
    )


def left_behind(keep_s: float, body: str = "") -> tuple[str, list[psutil.Process]]:
    """The id of a cluster of one engine whose owner was killed (while it ran `body`), and its
    processes.
    """
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(keep_s), body],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3],
    ) as owner:  # fmt: skip
        assert owner.stdout is not None
        cluster_id = owner.stdout.readline().strip()
        assert not body or owner.stdout.readline() == "running\n"
        family = psutil.Process(owner.pid).children(recursive=True)
        owner.kill()
    return cluster_id, family


def folder_of(record: Record) -> Path:
    assert stat.S_IMODE(record.folder.stat().st_mode) == stat.S_IRWXU
    return record.folder


def test_another_process_takes_it_up_and_no_third(capsys):
    cluster_id, family = left_behind(600)
    a = np.arange(20, dtype=np.int32)
    with Cluster.connect(cluster_id) as cluster:
        assert cluster.id == cluster_id
        run(program(a, ADD_ONE), {"a": a}, cluster)
        assert (a == np.arange(20) + 1).all()
        record = cluster_called(cluster_id)
        assert record.owned
        assert record.owner.pid == psutil.Process().pid
        with pytest.raises(ClusterError, match=f"taken by {record.owner.pid}"):
            Cluster.connect(cluster_id)
        assert main(["cluster", "list"]) == 0
        assert f"{cluster_id}  1 engines" in capsys.readouterr().out
        with pytest.raises(ClusterError, match="no cluster 'nobody'"):
            cluster_called("nobody")
    assert_gone(family)
    assert not record.folder.exists()


def test_it_is_heard_on_this_machine_alone():
    cluster_id, family = left_behind(600)
    record = cluster_called(cluster_id)
    assert not record.owned
    wait_until(lambda: not math.isinf(record.left_s))  # its guardian has noticed
    assert 0 < record.left_s <= 600
    folder = folder_of(record)
    listening = {
        (connection.laddr.ip, connection.laddr.port): process.name()
        for process in reversed(family)
        if process.is_running()
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert len(listening) > 10
    # MPICH's mpiexec hears its proxies on every interface, and cannot be asked for another.
    heard = {ip for (ip, _), name in listening.items() if name != "mpiexec"}
    assert heard == {"127.0.0.1"}
    # A guardian that was killed ends nothing any more.
    guardian = next(p for p in family if any("guardian.py" in word for word in p.cmdline()))
    guardian.kill()
    assert main(["cluster", "stop", cluster_id]) == 0
    assert_gone(family)
    assert not folder.exists()


def test_it_ends_by_itself_when_nobody_comes():
    cluster_id, family = left_behind(0.5)
    assert_gone(family)
    assert cluster_id not in [record.id for record in clusters()]


def test_it_ends_at_once_when_its_owner_goes_during_a_run():
    """Nobody could take up the middle of a run, and a run that hangs would hang on."""
    _, family = left_behind(600, FOREVER)
    assert_gone(family)


def test_stopping_from_outside_what_somebody_owns():
    with Cluster.start(cpu=1, gpu=0) as cluster:
        record = cluster_called(cluster.id)
        stop_clusters([record])
        assert not record.folder.exists()
        a = np.arange(20, dtype=np.int32)
        with pytest.raises(ClusterError, match="stopped from outside"):
            run(program(a, ADD_ONE), {"a": a}, cluster)
