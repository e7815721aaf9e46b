"""Ranks, hosts, clients and controllers that are lost: it is told, nothing is left, it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hosts.conftest import Client, client_on
from tests.hosts.rig import Rig, wait_until
from tests.hosts.test_runs import NODES, nothing_left


def go_on(client: Client) -> None:
    """The next run works."""
    ran = client.ask("run 50")
    while "running" in ran:
        ran = client.hear()
    assert "reference" in ran.get("check", ""), ran


def test_a_rank_that_is_killed_in_a_run(rig: Rig, client: Client) -> None:
    started = client.ask(f"start {NODES} 1")
    node, pid = started["places"][1]
    client.run_for_ever()
    rig.hosts[node].run("kill", "-9", str(pid))
    told = client.hear()
    assert "rank 1 of 3 died of SIGKILL" in told["error"]
    assert told["untouched"]
    go_on(client)
    client.ask("stop")
    assert nothing_left(rig)


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "in a run"])
def test_a_controller_that_is_killed(
    rig: Rig, client: Client, busy: bool, record_property: Callable[[str, object], None]
) -> None:
    started = client.ask(f"start {NODES} 1")
    if busy:
        client.run_for_ever()
    rig.login.run("kill", "-9", str(started["pids"]["controller"]))
    if busy:
        began = time.monotonic()
        told = client.hear()
        record_property("told after, in s", time.monotonic() - began)
        assert "the controller has ended" in told["error"]
        assert told["untouched"]
    go_on(client)
    client.ask("stop")
    wait_until(lambda: nothing_left(rig), "the engines to be gone")


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "in a run"])
def test_a_client_that_is_killed_leaves_nothing(rig: Rig, busy: bool) -> None:
    with client_on(rig) as client:
        client.ask(f"start {NODES} 1")
        if busy:
            client.run_for_ever()
        client.process.kill()
        wait_until(lambda: nothing_left(rig), "the engines to be gone")


def test_another_host_stops_nothing_of_this_one(rig: Rig) -> None:
    """Both see the folder of the cluster."""
    shared = {"TMPDIR": str(rig.folder / "shared")}
    Path(shared["TMPDIR"]).mkdir()
    with client_on(rig, shared) as client:
        name = client.ask(f"start {NODES} 1")["id"]
        done = rig.lab("cluster", "stop", "--all", host="node2", environment=shared)
        assert name in done.stdout
        assert "on login: to be stopped there" in done.stdout
        go_on(client)
        client.ask("stop")


def test_two_hosts_that_do_not_reach_each_other(
    own_rig: Rig, record_property: Callable[[str, object], None]
) -> None:
    """The client reaches both: it is MPI's connection that is gone."""
    with client_on(own_rig) as client:
        client.ask(f"start {NODES} 1")
        client.run_for_ever()
        own_rig.hosts["node1"].cut_off_from(own_rig.hosts["node2"])
        began = time.monotonic()
        told = client.hear()
        record_property("told after, in s", time.monotonic() - began)
        ends = [("node1 (rank 0)", "node2"), ("node2 (rank 1)", "node1")]
        assert any(
            f"host {host} is lost: MPI connection: no answer from {other}, which the client reaches"
            in told["error"]
            for host, other in ends
        )
        assert told["untouched"]


def test_a_host_that_is_lost_before_its_rank_is_there(
    own_rig: Rig, record_property: Callable[[str, object], None]
) -> None:
    """mpiexec has asked for it, and waits."""
    with client_on(own_rig) as client:
        client.say(f"start {NODES} 1")
        wait_until(lambda: bool(own_rig.processes(own_rig.login, "ssh -x node2")), "mpiexec's ssh")
        own_rig.hosts["node2"].cut_off()
        began = time.monotonic()
        told = client.hear()
        record_property("told after, in s", time.monotonic() - began)
        assert "host node2 is lost: control connection: ssh: connect to" in told["error"]


@pytest.mark.parametrize(
    "said", ["open failed: connect failed: No route", "no answer behind a jump"]
)
def test_a_host_behind_a_jump_is_lost_before_its_rank_is_there(
    own_rig: Rig, said: str, record_property: Callable[[str, object], None]
) -> None:
    """node2 is reached by ssh through node1 alone: to which it answers no more, or has no address
    any more.
    """
    with (own_rig.folder / "ssh_config").open("a") as config:
        config.write("Host node2\n  ProxyJump node1\n")
    own_rig.login.run("cp", str(own_rig.folder / "ssh_config"), "/etc/ssh/ssh_config")
    node1, node2 = own_rig.hosts["node1"], own_rig.hosts["node2"]
    with client_on(own_rig) as client:
        client.say(f"start {NODES} 1")
        wait_until(lambda: bool(own_rig.processes(own_rig.login, "ssh -x node2")), "mpiexec's ssh")
        if "No route" in said:
            node2.cut_off()
            node1.run("ip", "neigh", "flush", "dev", "eth0")
        else:
            node1.cut_off_from(node2)
        began = time.monotonic()
        told = client.hear()
        record_property("told after, in s", time.monotonic() - began)
        assert f"host node2 is lost: control connection: ssh: {said}" in told["error"]


@pytest.mark.parametrize("how", ["cut_off", "die"])
def test_a_host_that_nobody_reaches_any_more(own_rig: Rig, how: str) -> None:
    with client_on(own_rig) as client:
        client.ask(f"start {NODES} 1")
        client.run_for_ever()
        node2 = own_rig.hosts["node2"]
        getattr(node2, how)()
        told = client.hear()
        assert "host node2 (rank 1) is lost: control connection: no answer" in told["error"]
        assert told["untouched"]
        if how == "cut_off":
            # Its ranks cannot be told; their lease ends.
            alone = ("relay.py", "ipyparallel.engine", "hydra")
            wait_until(
                lambda: not any(own_rig.processes(node2, word) for word in alone),
                "the cut-off engines to end by themselves",
                timeout=120,
            )
            assert not node2.run("find", "/tmp", "-name", "avial-*")
        # The others were told.
        others = [host for host in own_rig.nodes if host.name != "node2"]
        wait_until(
            lambda: not any(own_rig.processes(host, "ipyparallel") for host in others),
            "the engines of the other hosts to end",
        )
