"""Hosts that do not answer before their ranks have connected; real ones: tests/hosts."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from avial_lab.runtime.launch import hosts
from avial_lab.runtime.launch.hosts import Hosts, SilentHosts
from tests.waiting import wait_until

SSH = """#!/bin/sh
for host; do [ "$last" = -- ] && break; last=$host; done
echo "$host" >>"{asked}"
case $host in
  down) echo "ssh: connect to host down port 22: Connection timed out" >&2; exit 255;;
  slow) echo "Connection timed out during banner exchange" >&2; exit 255;;
esac
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hosts that ssh was asked for, a line each; it reaches `up` alone."""
    ssh, asked = tmp_path / "bin" / "ssh", tmp_path / "asked"
    ssh.parent.mkdir()
    ssh.write_text(SSH.format(asked=asked))
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(ssh.parent), prepend=":")
    monkeypatch.setattr(hosts, "ASK_AGAIN_S", 0.01)
    return asked


def test_a_host_that_nobody_reaches_is_found(asked: Path, tmp_path: Path) -> None:
    (tmp_path / "0.here").touch()  # and is asked no more
    where = Hosts(("there", "slow", "up", "down"))
    found: list[tuple[str, str]] = []
    with closing(SilentHosts(where, tmp_path, 4)) as silent:
        wait_until(lambda: bool((lost := silent.lost()) and not found.append(lost)))
    how = "control connection: ssh: connect to host down port 22: Connection timed out"
    assert found == [("down", how)]
    assert set(asked.read_text().split()) == {"slow", "up", "down"}


def test_a_host_is_asked_until_its_ranks_are_there(asked: Path, tmp_path: Path) -> None:
    def times() -> int:
        silent.lost()
        return asked.read_text().count("up") if asked.exists() else 0

    with closing(SilentHosts(Hosts(("up",), ppn=2), tmp_path, 2)) as silent:
        (tmp_path / "0.here").touch()  # the other rank is not
        wait_until(lambda: times() > 2)
        (tmp_path / "1.here").touch()
        assert silent.lost() is None
        assert not silent._silent


def test_ranks_here_or_in_slurm_are_not_asked(asked: Path, tmp_path: Path) -> None:
    for where in (None, hosts.Slurm(2)):
        assert SilentHosts(where, tmp_path, 2).lost() is None
    assert not asked.exists()
