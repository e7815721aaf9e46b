"""Hosts with another avial_lab, or with another CPU, than the client's."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from avial_lab.core.version import version
from tests.hosts.conftest import client_on
from tests.hosts.rig import ROOT, Host, Rig
from tests.hosts.test_losses import go_on
from tests.hosts.test_runs import NODES


def differ(rig: Rig, node: Host, file: Path, change: Callable[[str], str]) -> None:
    """That node alone sees the changed file."""
    changed = rig.folder / file.name
    changed.write_text(change(file.read_text()))
    node.run("mount", "--bind", str(changed), str(file))


def test_engines_of_another_version_are_refused(own_rig: Rig) -> None:
    node2, shared = own_rig.hosts["node2"], ROOT / "avial_lab" / "trace" / "__init__.py"
    differ(own_rig, node2, shared, lambda text: f"{text}# older\n")
    with client_on(own_rig) as client:
        told = client.ask(f"start {NODES} 1")
        assert "the engine of rank 1 on node2 runs avial_lab " in told["error"]
        assert f"and this is avial_lab {version()}" in told["error"]
        node2.run("umount", str(shared))
        client.ask(f"start {NODES} 1")
        go_on(client)


def test_a_host_without_an_instruction_set(own_rig: Rig) -> None:
    """Machine code for this CPU would die there; by default it is for what all hosts have."""
    differ(
        own_rig, own_rig.hosts["node2"], Path("/proc/cpuinfo"),
        lambda text: re.sub(r" avx512\w*", "", text),
    )  # fmt: skip
    run = ("run", "kernels/gemm", "--hosts", NODES, "--check")
    done = own_rig.lab(*run, "--cpu-target", "native")
    assert done.returncode == 1
    assert "the CPU of node2 lacks avx512" in done.stderr
    assert "--cpu-target x86-64-v3" in done.stderr
    done = own_rig.lab(*run)
    assert done.returncode == 0, done.stderr
    assert "equal to the sequential reference" in done.stdout
    with client_on(own_rig) as client:
        started = client.ask(f"start {NODES} 1")
        assert "places" in started, started
        go_on(client)
