"""The kernel "Avial (MPI)": installed, started for real, asked, interrupted, removed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from avial_lab.cli.main import main
from avial_lab.core.errors import BindError
from avial_lab.notebook.kernelspec import install_kernel, remove_kernel
from tests.notebooks.test_kernel_survives import WAIT_S, Session

CELL = "%%avial\navial.schedule %a {\n  %cpu = avial.ta"


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where kernels are installed in this test, and looked for; none of the user's is touched."""
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "user"))
    return tmp_path


def test_installed_where_asked_and_removed(prefix: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["kernel", "install", f"--prefix={prefix}", "--cpu=3", "--gpu=0"]) == 0
    folder = prefix / "share" / "jupyter" / "kernels" / "avial-mpi"
    assert str(folder) in capsys.readouterr().out
    assert {path.name for path in folder.iterdir()} == {"kernel.json", "logo-svg.svg"}
    spec = KernelSpecManager().get_kernel_spec("avial-mpi")
    assert spec.display_name == "Avial (MPI)"
    assert spec.argv[0] == sys.executable
    assert spec.argv[-1].endswith("--cpu=3 --gpu=0")
    assert main(["kernel", "remove"]) == 0
    assert not folder.exists()
    assert main(["kernel", "remove"]) == 1


def test_the_users_by_default(prefix: Path) -> None:
    assert main(["kernel", "install", "--name", "mine"]) == 0
    assert (prefix / "user" / "kernels" / "mine" / "kernel.json").is_file()


def test_another_kernel_of_the_name_is_left_alone(prefix: Path) -> None:
    folder = prefix / "share" / "jupyter" / "kernels" / "other"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text('{"argv": ["x"], "display_name": "x", "language": "x"}')
    with pytest.raises(BindError, match="avial_lab did not install"):
        install_kernel("other", prefix=str(prefix))
    with pytest.raises(BindError, match="no kernel 'other' of avial_lab"):
        remove_kernel("other")
    assert folder.is_dir()


def test_what_cannot_be_is_refused(prefix: Path) -> None:
    with pytest.raises(BindError, match="is not possible"):
        install_kernel(cpu=0, gpu=0, prefix=str(prefix))
    with pytest.raises(BindError, match="not installed"):
        install_kernel("no such name!", prefix=str(prefix))


@pytest.fixture
def manager(prefix: Path) -> Iterator[KernelManager]:
    install_kernel(cpu=1, gpu=1, prefix=str(prefix))
    manager = KernelManager(kernel_name="avial-mpi")
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]).strip(":")
    manager.start_kernel(
        cwd=str(prefix),
        env=os.environ | {"PYTHONPATH": paths, "IPYTHONDIR": str(prefix / "ipython")},
    )
    yield manager
    manager.shutdown_kernel(now=True)
    manager.cleanup_resources()


@pytest.mark.mpi
def test_a_real_one(manager: KernelManager) -> None:
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=WAIT_S)
    session = Session(client, manager)

    def reply(asked: str) -> dict[str, Any]:
        while True:
            answer = client.get_shell_msg(timeout=WAIT_S)
            if answer["parent_header"].get("msg_id") == asked:
                return answer["content"]

    # It answers at once, the cluster or not.
    assert session.value("'avial' in get_ipython().magics_manager.magics['cell']") == "True"
    assert reply(client.complete(CELL))["matches"] == ["avial.target", "avial.task"]
    told = reply(client.inspect(CELL, CELL.index("schedule")))
    assert "in program order" in told["data"]["text/markdown"]

    shown, error = session.run("%avial cluster status")  # waits for it
    assert error == ""
    assert "cluster of 2 engines, ready" in shown
    assert manager.provisioner is not None
    started = psutil.Process(manager.provisioner.pid).children(recursive=True)
    assert started

    looping = session.begin("print('in'); \nwhile True: pass")
    while client.get_iopub_msg(timeout=WAIT_S)["msg_type"] != "stream":
        pass
    session.interrupt()
    _, error = session.finish(looping)
    assert "KeyboardInterrupt" in error
    shown, _ = session.run("%avial cluster status")
    assert "ready" in shown  # it is not the cluster that was interrupted

    client.stop_channels()
    manager.shutdown_kernel(now=False)
    _, alive = psutil.wait_procs(started, timeout=WAIT_S)
    assert not alive
