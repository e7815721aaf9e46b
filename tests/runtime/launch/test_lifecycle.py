"""A cluster's start, other people's clusters, and what is left behind: nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from avial_lab.core.errors import ClusterError, RunError
from avial_lab.core.toolchain import tool
from avial_lab.runtime.launch import engines as engines_module
from avial_lab.runtime.launch import mpiexec
from avial_lab.runtime.launch.cluster import Cluster, ClusterState, run
from avial_lab.runtime.launch.ports import held_ports
from avial_lab.runtime.launch.processes import environment, mpiexec_options
from avial_lab.runtime.launch.registry import new_folder
from tests.waiting import assert_gone, with_limits

pytestmark = pytest.mark.mpi

ADD_ONE = "for (int i = 0; i < 20; i++) ((int32_t *)a)[i] += 1;"
FOREVER = "for (volatile int64_t i = 0;; i++) ;"


@pytest.fixture
def a():
    return np.arange(20, dtype=np.int32)


def alone(build, a, body):
    return build(
        {"a": a}, tasks={"t": body}, programs=["run t"], inputs=[(0, "a")], results=[(0, "a")]
    )


@pytest.fixture
def _no_child_left():
    before = set(psutil.Process().children(recursive=True))
    yield
    fresh = set(psutil.Process().children(recursive=True)) - before
    assert_gone(list(fresh))


def _program(folder, text):
    path = folder / "mpiexec"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(stat.S_IRWXU)
    return path


@pytest.mark.usefixtures("_no_child_left")
def test_a_start_that_fails_shows_what_mpiexec_said(tmp_path, monkeypatch):
    broken = _program(tmp_path, "echo no slots left in the queue >&2; exit 1")
    monkeypatch.setattr(engines_module, "tool", lambda name: broken)
    with pytest.raises(ClusterError, match="no slots left in the queue") as caught:
        Cluster.start(cpu=1, gpu=0)
    assert "doctor" in str(caught.value.hint)


@pytest.mark.usefixtures("_no_child_left")
def test_a_start_that_hangs_is_given_up(tmp_path, monkeypatch):
    stuck = _program(tmp_path, "exec sleep 1000")
    monkeypatch.setattr(engines_module, "tool", lambda name: stuck)
    with pytest.raises(ClusterError, match=r"0 of 1 engines started within 0.2 s"):
        Cluster.start(cpu=1, gpu=0, timeout=0.2)


def test_a_held_port_is_given_to_nobody_but_its_listener():
    """Not to who asks for any port, with or without SO_REUSEADDR, nor to a connection that goes
    out.
    """
    with held_ports(500) as held, contextlib.ExitStack() as stack:
        others = [stack.enter_context(socket.socket()) for _ in range(500)]
        for number, other in enumerate(others):
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, number % 2)
            other.bind(("127.0.0.1" if number % 3 else "", 0))
        with held_ports(100) as more:
            assert len({*held, *more, *(other.getsockname()[1] for other in others)}) == 1100
        listener = stack.enter_context(socket.socket())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", held[0]))
        listener.listen()
        for _ in range(50):
            caller = stack.enter_context(socket.create_connection(listener.getsockname()))
            stack.enter_context(listener.accept()[0])
            assert caller.getsockname()[1] not in held


def test_the_controller_listens_on_held_ports_alone(monkeypatch):
    held: list[int] = []

    @contextlib.contextmanager
    def seen(count):
        with held_ports(count) as ports:
            held.extend(ports)
            yield ports

    monkeypatch.setattr(engines_module, "held_ports", seen)
    with Cluster.start(cpu=1, gpu=0) as cluster:
        _, controller = cluster._engines.result().owned
        connections = controller.net_connections("inet")
    listening = {c.laddr.port for c in connections if c.status == psutil.CONN_LISTEN}
    assert len(listening) > 10
    assert listening <= set(held)


@pytest.mark.quick("the hub's", "again and again")
@pytest.mark.usefixtures("_no_child_left")
@pytest.mark.parametrize(
    ("port", "starts"), [(0, [0]), (4, [0]), (7, [0]), (0, [0, 1, 2])],
    ids=["the hub's", "of a relay, a thread", "a scheduler's", "again and again"],
)  # fmt: skip
def test_a_port_that_another_had_chosen_before(build, a, monkeypatch, port, starts):
    """The starts that find a stranger there leave nothing, and another follows; a relay that could
    not listen says so and no more: engines come up, and never answer.
    """
    folders: list[Path] = []

    def folder(cluster_id):
        folders.append(new_folder(cluster_id))
        return folders[-1]

    @contextlib.contextmanager
    def one_taken(count):
        with held_ports(count) as ports, socket.socket() as stranger:
            stranger.bind(("127.0.0.1", 0))
            stranger.listen()
            taken = list(ports)
            if len(folders) - 1 in starts:
                taken[port] = stranger.getsockname()[1]
            yield taken

    monkeypatch.setattr(engines_module, "new_folder", folder)
    monkeypatch.setattr(engines_module, "held_ports", one_taken)
    if len(starts) == 3:
        with pytest.raises(ClusterError, match="Address already in use"):
            Cluster.start(cpu=1, gpu=0)
    else:
        with Cluster.start(cpu=1, gpu=0) as cluster:
            run(alone(build, a, ADD_ONE), {"a": a}, cluster)
        assert (a == np.arange(20) + 1).all()
        assert len(folders) == 2
    assert not any(folder.exists() for folder in folders)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no /dev/shm on this system")
def test_nothing_is_left_in_shared_memory():
    """MPICH removes its segments at the end of MPI, which killed engines never reach."""
    with Cluster.start(cpu=2, gpu=0) as cluster:
        pids = [fact.pid for fact in cluster.status.facts]
        maps = "".join(Path(f"/proc/{pid}/maps").read_text() for pid in pids)
        segments = set(re.findall(r"/dev/shm/(\S*mpich\S*)", maps))
        assert segments, "MPICH shares memory otherwise now: look for its new leftovers"
        assert not segments & set(os.listdir("/dev/shm"))


def test_more_ranks_than_memory_are_refused_before_they_stall_the_machine(build, a):
    with pytest.raises(ClusterError, match="100000 ranks do not fit on this machine"):
        Cluster.start(cpu=100_000, gpu=0)
    binary = build({"a": a}, tasks={}, programs=[""] * 100_000)
    with pytest.raises(ClusterError, match="100000 ranks do not fit on this machine"):
        mpiexec.run(binary, {"a": a})


def test_no_engines_is_no_cluster():
    with pytest.raises(ClusterError, match="is not possible"):
        Cluster.start(cpu=0, gpu=0)


@pytest.mark.usefixtures("_no_child_left")
def test_start_and_stop_within_a_running_event_loop(build, a):
    """As in a notebook, whose kernel runs cells inside its loop."""
    told: list[str] = []

    async def cell():
        with Cluster.start(cpu=1, gpu=0, progress=told.append) as cluster:
            run(alone(build, a, ADD_ONE), {"a": a}, cluster)
        return cluster

    cluster = asyncio.run(cell())
    assert (a == np.arange(20) + 1).all()
    assert told[0] == "starting the controller"
    assert "waiting for engines: 1 of 1" in told
    assert cluster.status.state is ClusterState.STOPPED
    cluster.stop()
    with pytest.raises(ClusterError, match="stopped"):
        run(alone(build, a, ADD_ONE), {"a": a}, cluster)


@pytest.mark.slow
@pytest.mark.usefixtures("_no_child_left")
def test_a_profile_of_ipyparallel_and_somebody_elses_cluster(build, a, tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    profile = tmp_path / "profile_lab"
    profile.mkdir()
    (profile / "ipcluster_config.py").write_text(
        f"c.Cluster.engine_launcher_class = 'mpi'\n"
        f"c.MPILauncher.mpi_cmd = {[str(tool('mpiexec'))]}\n"
        f"c.MPILauncher.mpi_args = {list(mpiexec_options())}\n"
        f"c.EngineLauncher.environment = {environment(2)}\n"
        "c.LocalControllerLauncher.controller_args = ['--HeartMonitor.period=250']\n"
        "c.Cluster.delay = 0.0\n"
    )
    with Cluster.start(cpu=2, gpu=0, profile="lab") as cluster:
        run(alone(build, a, ADD_ONE), {"a": a}, cluster)
        launcher = cluster._engines.result().launcher
        assert launcher is not None
        cluster_id = launcher.cluster_id
        with Cluster.connect(cluster_id, profile="lab") as attached:
            assert attached.topology.ranks == 2
            run(alone(build, a, ADD_ONE), {"a": a}, attached)
        run(alone(build, a, ADD_ONE), {"a": a}, cluster)
        assert (a == np.arange(20) + 3).all()
        with Cluster.connect(cluster_id, profile="lab") as attached:
            with pytest.raises(RunError, match="did not finish"):
                run(alone(build, a, FOREVER), {"a": a}, attached, timeout=0.3)
            with pytest.raises(ClusterError, match="the last run failed"):
                run(alone(build, a, ADD_ONE), {"a": a}, attached)


def test_a_cluster_nobody_knows():
    with pytest.raises(ClusterError, match="no cluster 'nowhere' is known"):
        Cluster.connect("nowhere")


def test_engines_that_are_not_one_mpi_world(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    (tmp_path / "profile_single").mkdir()
    (tmp_path / "profile_single" / "ipcluster_config.py").write_text(
        "c.LocalControllerLauncher.controller_args = ['--HeartMonitor.period=250']\n"
        "c.Cluster.delay = 0.0\n"
    )
    with pytest.raises(ClusterError, match="not the ranks of one MPI world"):
        Cluster.start(cpu=2, gpu=0, profile="single")


# --- mpiexec --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_no_child_left")
def test_mpiexec_that_cannot_start(build, a, tmp_path, monkeypatch):
    monkeypatch.setattr(mpiexec, "tool", lambda name: _program(tmp_path, "echo no room; exit 3"))
    with pytest.raises(ClusterError, match="no room"):
        mpiexec.run(alone(build, a, ADD_ONE), {"a": a})


@pytest.mark.usefixtures("_no_child_left")
def test_mpiexec_time_limit(build, a):
    binary = alone(build, a, FOREVER)

    def stopped(limit_s):
        with pytest.raises(RunError, match=rf"within {limit_s:g} s") as caught:
            mpiexec.run(binary, {"a": a}, timeout=limit_s)
        return caught.value.message

    assert "rank 0 is in task 't'" in with_limits(stopped, lambda told: "in task" in told)
    assert (a == np.arange(20)).all()


def test_what_an_engine_imports():
    """No MLIR, no IPython, no ipyparallel: an engine starts fast, and where those are not."""
    code = (
        "import sys, avial_lab.runtime.rank.engine; "
        "print(*{'mlir', 'IPython', 'ipyparallel', 'psutil', 'zmq'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == []
