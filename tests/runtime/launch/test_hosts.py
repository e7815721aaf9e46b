"""Hosts that do not answer before their ranks have connected; real ones: tests/hosts."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from avial_lab.runtime.launch import hosts
from avial_lab.runtime.launch.hosts import Hosts, SilentHosts, unreached_node
from tests.waiting import wait_until

SSH = """#!/bin/sh
for host; do [ "$last" = -- ] && break; last=$host; done
echo "$host" >>"{asked}"
case $host in
  down) echo "ssh: connect to host down port 22: Connection timed out" >&2; exit 255;;
  behind) echo "channel 0: open failed: connect failed: No route to host" >&2; exit 255;;
  far) echo "{late}
Connection to UNKNOWN port 65535 timed out" >&2; exit 255;;
  slow) echo "debug2: channel 0: open confirm rwindow 2097152 rmax 32768
{late}
Connection to UNKNOWN port 65535 timed out" >&2; exit 255;;
  near) echo "{late}
Connection to 10.0.0.1 port 22 timed out" >&2; exit 255;;
  stuck) sleep 600 & wait;;
esac
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hosts that ssh was asked for, a line each; it reaches `up` alone."""
    ssh, asked = tmp_path / "bin" / "ssh", tmp_path / "asked"
    ssh.parent.mkdir()
    ssh.write_text(SSH.format(asked=asked, late="Connection timed out during banner exchange"))
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


@pytest.mark.parametrize(
    ("host", "how"),
    [
        ("behind", "open failed: connect failed: No route to host"),
        ("far", "no answer behind a jump for 5 s"),
    ],
)
def test_a_host_that_nobody_reaches_behind_a_jump(
    asked: Path, tmp_path: Path, host: str, how: str
) -> None:
    """ssh itself has reached another host."""
    found: list[tuple[str, str]] = []
    with closing(SilentHosts(Hosts(("slow", "near", host)), tmp_path, 3)) as silent:
        wait_until(lambda: bool((lost := silent.lost()) and not found.append(lost)))
    assert found == [(host, f"control connection: ssh: {how}")]


def test_hosts_are_waited_for_where_what_starts_ranks_has_ended(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would have asked them later."""
    monkeypatch.setattr(hosts, "ASK_AGAIN_S", 600)
    for names in (("up", "slow"), ("up", "behind")):
        with closing(SilentHosts(Hosts(names), tmp_path, 2)) as silent:
            assert silent.lost() is None
            found = silent.lost_at_last()
            assert (found and found[0]) == ("behind" if "behind" in names else None)


def test_hosts_that_are_being_asked_are_not_waited_for(asked: Path, tmp_path: Path) -> None:
    """The ssh that connects to a jump tries that for minutes."""
    with closing(SilentHosts(Hosts(("stuck",)), tmp_path, 1)) as silent:
        wait_until(lambda: silent.lost() is None and asked.exists())


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


def test_ranks_here_are_not_asked(asked: Path, tmp_path: Path) -> None:
    assert SilentHosts(None, tmp_path, 2).lost() is None
    assert not asked.exists()


SLURM = {
    "squeue": """\
other node[7-8]
avial-lab-avial-run-1 node[1-3]""",
    "scontrol": """\
if [ "$2" = config ]; then echo "SlurmdPort = {port}"; exit; fi
[ "$4" = 'node[1-3]' ] || exit 1
echo "NodeName=node1 NodeAddr=127.0.0.1 NodeHostName=host1 Port=1"
echo "NodeName=node2 NodeAddr=127.0.0.1 NodeHostName=node2"
echo "NodeName=node3 NodeAddr={silent} NodeHostName=node3 Port={port}"
""",
}


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a run whose step has three nodes: one that refuses, one that answers, one from
    which nothing comes (a full queue of connections, which Linux leaves unanswered).
    """
    folder = tmp_path / "avial-run-1"
    folder.mkdir()
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(hosts, "ASK_AGAIN_S", 0.01)
    monkeypatch.setattr(hosts, "_NODE_S", 0.2)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    with socket.create_server(("127.0.0.1", 0)) as answers, contextlib.ExitStack() as stack:
        port = answers.getsockname()[1]
        silent = stack.enter_context(socket.socket())
        silent.bind(("127.0.0.2", port))
        silent.listen(0)
        for _ in range(2):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.2", port))
        for name, says in SLURM.items():
            text = says.format(port=port, silent="127.0.0.2")
            script = tmp_path / "bin" / name
            script.write_text(
                f"#!/bin/sh\n{text}\n" if name == "scontrol" else f"#!/bin/sh\necho '{text}'\n"
            )
            script.chmod(0o755)
        yield folder


def test_a_node_of_slurm_that_does_not_answer_is_found(nodes: Path) -> None:
    found: list[tuple[str, str]] = []
    with closing(SilentHosts(hosts.Slurm(3), nodes, 3)) as silent:
        wait_until(lambda: bool((lost := silent.lost()) and not found.append(lost)))
    ((name, how),) = found
    assert name == "node3"
    assert how.startswith("control connection: Slurm's daemon there (port ")


def test_a_node_of_slurm_whose_rank_is_there_is_asked_no_more(nodes: Path) -> None:
    step = "avial-lab-avial-run-1"
    assert unreached_node(step, {"node3.cluster"}) is None
    assert unreached_node("avial-lab-avial-run-2", ()) is None  # it waits for nodes


def test_the_job_of_a_step_is_cancelled_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the allocation that we are in, which is another's."""
    slurm = hosts.Slurm(3)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    (named,) = [word for word in slurm.arguments("", "avial-run-1") if "job-name" in word]
    assert slurm.cancel("avial-run-1") == ["scancel", named.replace("job-name", "name")]
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    assert slurm.cancel("avial-run-1") == []
