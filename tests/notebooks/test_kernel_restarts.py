"""A real kernel that goes: what becomes of its cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from jupyter_client.manager import KernelManager

from avial_lab.runtime.launch.registry import cluster_called
from tests.notebooks.test_kernel_survives import COPY, FOREVER, SETUP, WAIT_S, Session, program

pytestmark = pytest.mark.mpi


class Kernel:
    """A kernel that can be restarted, and one client for all its lives."""

    def __init__(self, folder: Path) -> None:
        root = str(Path(__file__).parents[2])
        paths = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]).strip(":")
        names = {"PYTHONPATH": paths, "JPY_SESSION_NAME": str(folder / "a.ipynb")}
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(
            cwd=str(folder), env=os.environ | names | {"IPYTHONDIR": str(folder / "ipython")}
        )
        self._client = self.manager.client()
        self._client.start_channels()

    def session(self) -> Session:
        """A session with the kernel as it is now."""
        self._client.wait_for_ready(timeout=WAIT_S)
        fresh = Session(self._client, self.manager)
        _, error = fresh.run(SETUP)
        assert error == ""
        return fresh

    def end(self) -> None:
        self._client.stop_channels()
        if self.manager.is_alive():
            self.manager.shutdown_kernel(now=False)
        self.manager.cleanup_resources()


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    started = Kernel(tmp_path)
    yield started
    started.end()


def test_a_cluster_outlives_a_restart_and_ends_with_its_kernel(kernel: Kernel) -> None:
    first = kernel.session()
    shown, error = first.run("%avial cluster start --cpu=1 --gpu=0")
    assert error == ""
    (cluster_id,) = re.findall(r"Started: cluster (\w+)", shown)
    engines = [cluster_called(cluster_id).engines[0].found()]

    kernel.manager.restart_kernel(now=False)
    second = kernel.session()
    shown, _ = second.run("%avial cluster list")
    assert f"{cluster_id}  1 engines" in shown
    assert "abandoned by a.ipynb" in shown
    shown, error = second.run("%avial cluster start --cpu=1 --gpu=0")
    assert f"from before the restart: cluster {cluster_id}" in shown
    _, error = second.run(program("-q --check", COPY))
    assert error == ""

    kernel.manager.restart_kernel(now=True)  # the stop of last resort: SIGKILL
    third = kernel.session()
    _, error = third.run("%avial cluster connect")
    assert error == ""
    assert engines[0] is not None
    assert engines[0].is_running()
    kernel.manager.shutdown_kernel(now=False)
    assert_gone(engines)


@pytest.mark.slow
def test_two_notebooks_at_once(kernel: Kernel, tmp_path: Path) -> None:
    """Each has its own cluster, and neither can take the other's."""
    (tmp_path / "other").mkdir()
    other = Kernel(tmp_path / "other")
    try:
        sessions = kernel.session(), other.session()
        for one in sessions:
            _, error = one.run("%avial cluster start --cpu=1 --gpu=0")
            assert error == ""
        asked = [one.begin(program("-q --check", COPY)) for one in sessions]
        assert [one.finish(a)[1] for one, a in zip(sessions, asked, strict=True)] == ["", ""]
        ids = [one.value(f"{MAGICS}.cluster.id") for one in sessions]
        assert len(set(ids)) == 2
        _, error = sessions[0].run(f"%avial cluster connect {ids[1]}")
        assert f"cluster '{ids[1]}' cannot be reconnected: taken by" in error
        assert sessions[0].value(f"{MAGICS}.cluster.id") == ids[0]
        sessions[0].run("%avial cluster stop")
        assert sessions[1].value(f"{MAGICS}.cluster.status.state.value") == "ready"
    finally:
        other.end()


@pytest.mark.slow
def test_a_notebook_closed_during_a_run_leaves_nothing(kernel: Kernel) -> None:
    only = kernel.session()
    only.run("%avial cluster start --cpu=1 --gpu=0")
    record = cluster_called(only.value(f"{MAGICS}.cluster.id"))
    engine = record.engines[0].found()
    assert engine is not None
    only.run(program("-q", FOREVER))
    before = engine.cpu_times().user
    only.begin("%avial run")
    while engine.cpu_times().user < before + 0.2:
        assert engine.is_running()
    kernel.manager.shutdown_kernel(now=True)
    assert_gone([engine])
    assert not record.folder.exists()


MAGICS = "get_ipython().magics_manager.registry['AvialMagics']"


def assert_gone(processes: list[psutil.Process | None]) -> None:
    _, alive = psutil.wait_procs([p for p in processes if p is not None], timeout=WAIT_S)
    assert not alive
