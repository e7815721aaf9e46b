"""Programs on several hosts: how they are started, what they compute, what is seen and left."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from avial_lab.machine.topologies import topology_called
from tests.hosts.conftest import HEAT, Client, client_on, ran_on_files
from tests.hosts.rig import LOGIN_ADDRESS, Host, Rig, wait_until

NODES = "node1,node2,node3"


def nothing_left(rig: Rig) -> bool:
    """No process of ours on any node, nor a file of ours."""
    words = ("avial", "ipyparallel", "hydra")
    return not any(
        rig.processes(node, word) or node.run("find", "/tmp", "-name", "avial-*")
        for node in rig.nodes
        for word in words
    )


def test_a_run_on_three_hosts_is_right(rig: Rig) -> None:
    done = rig.lab("run", "kernels/jacobi-2d", "--hosts", NODES, "--ppn", "2", "--check")
    assert done.returncode == 0, done.stderr
    assert "6 CPUs on 3 nodes" in done.stdout
    assert "equal to the sequential reference" in done.stdout or "reference" in done.stdout
    wait_until(lambda: nothing_left(rig), "the ranks to be gone")


def test_ranks_fill_hosts_in_order_and_show_what_they_do(rig: Rig, client: Client) -> None:
    started = client.ask(f"start {NODES} 2")
    assert [node for node, _ in started["places"]] == [
        "node1", "node1", "node2", "node2", "node3", "node3"
    ]  # fmt: skip
    ran = client.ask("run 50")
    ran = ran if "check" in ran else client.hear()  # a machine that is fast says not that it runs
    assert "reference" in ran["check"]
    assert ran["sent"] > 0
    client.ask("stop")
    assert nothing_left(rig)  # at once: `stop` waits for it


def test_a_large_array_over_a_slow_link_tells_how_far_it_is(
    own_rig: Rig, record_property: Callable[[str, object], None]
) -> None:
    """48 MiB at 50 MB/s; parts of 4 MiB."""
    own_rig.login.slow_down("400mbit")
    with client_on(own_rig) as client:
        client.ask(f"start {NODES} 1")
        carried = client.ask("carry 48")
        assert carried["right"]
        told = [
            re.search(r"arrays: ([\d.]+) MiB of 48 MiB sent, .*B/s", s) for s in carried["said"]
        ]
        far = [float(found[1]) for found in told if found]
        assert len(far) > 1
        assert far == sorted(far)
        record_property("bytes/s, of a link of 50e6", carried["bytes_per_s"])
        client.ask("stop")


def test_arrays_over_a_link_slower_than_the_compressor_are_squeezed(
    own_rig: Rig, record_property: Callable[[str, object], None]
) -> None:
    """48 MiB at 6.25 MB/s. Random numbers gain an eighth at the most."""
    own_rig.login.slow_down("50mbit")
    with client_on(own_rig) as client:
        client.ask(f"start {NODES} 1")
        for how in ("smooth", "random"):
            before = sent_bytes(own_rig.login)
            carried = client.ask(f"carry 48 {how}")
            assert carried["right"]
            sent = sent_bytes(own_rig.login) - before
            assert (sent < 0.7 * 48 * 2**20) == (how == "smooth")
            record_property(f"{how}: bytes/s, of a link of 6.25e6", carried["bytes_per_s"])
            record_property(f"{how}: bytes sent of 48 MiB", sent)
        client.ask("stop")


def test_arrays_that_stay_go_squeezed_over_slow_links(
    own_rig: Rig, record_property: Callable[[str, object], None]
) -> None:
    """24 MiB there and back, at 6.25 MB/s each way of each host."""
    for host in own_rig.hosts.values():
        host.slow_down("50mbit")
    with client_on(own_rig) as client:
        client.ask(f"start {NODES} 1")
        before = sent_bytes(own_rig.login), sum(map(sent_bytes, own_rig.nodes))
        assert client.ask("stay 24")["right"]
        there = sent_bytes(own_rig.login) - before[0]
        back = sum(map(sent_bytes, own_rig.nodes)) - before[1]
        record_property("bytes of 24 MiB there and back", (there, back))
        assert max(there, back) < 0.7 * 24 * 2**20
        client.ask("stop")


def test_files_of_a_run_over_slow_links_are_squeezed(
    own_rig: Rig, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """24 MiB there, which only `login` has, and back, at 6.25 MB/s each way of each host."""
    for host in own_rig.hosts.values():
        host.slow_down("50mbit")
    program = own_rig.folder / "doubled.mlir"
    program.write_text(DOUBLED)
    a = np.fromfunction(lambda i, j: i // 8 + j // 8, (1024, 3072))
    np.save(tmp_path / "a.npy", a)
    before = sent_bytes(own_rig.login), sum(map(sent_bytes, own_rig.nodes))
    files = ("--in", f"a={tmp_path / 'a.npy'}", "--out", f"b={tmp_path / 'b.npy'}")
    done = own_rig.lab("run", str(program), "--hosts", NODES, *files)
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "b.npy"), 2 * a)
    there = sent_bytes(own_rig.login) - before[0]
    back = sum(map(sent_bytes, own_rig.nodes)) - before[1]
    record_property("bytes of 24 MiB there and back", (there, back))
    assert max(there, back) < 0.7 * a.nbytes


def test_hosts_on_links_of_50_kilobytes_a_second_are_not_lost(own_rig: Rig, tmp_path: Path) -> None:
    """1.5 MiB of random numbers there, for half a minute, of which a host is 7 s behind the client
    that has sent all of it.
    """
    for host in own_rig.hosts.values():
        host.slow_down("400kbit", burst="16kb")
    program = own_rig.folder / "doubled.mlir"
    program.write_text(DOUBLED.replace("1024", "192").replace("3072", "1024"))
    a = np.random.default_rng(0).random((192, 1024))
    np.save(tmp_path / "a.npy", a)
    files = ("--in", f"a={tmp_path / 'a.npy'}", "--out", f"b={tmp_path / 'b.npy'}")
    done = own_rig.lab("run", str(program), "--hosts", NODES, *files, timeout=300)
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "b.npy"), 2 * a)


DOUBLED = """
func.func @doubled(%a: memref<1024x3072xf64>, %b: memref<1024x3072xf64>) {
  affine.for %i = 0 to 1024 {
    affine.for %j = 0 to 3072 {
      %x = affine.load %a[%i, %j] : memref<1024x3072xf64>
      %y = arith.addf %x, %x : f64
      affine.store %y, %b[%i, %j] : memref<1024x3072xf64>
    }
  }
  return
}
"""


def test_a_host_that_is_not_there(rig: Rig) -> None:
    done = rig.lab("run", "kernels/gemm", "--hosts", "node1,nowhere", timeout=60)
    assert done.returncode == 1
    assert "host nowhere: ssh: " in done.stderr
    assert "avial-lab doctor --hosts node1,nowhere" in done.stderr


def test_doctor_looks_at_hosts(rig: Rig) -> None:
    done = rig.lab("doctor", "--hosts", NODES)
    assert done.returncode == 0, done.stdout
    assert "the hosts are reached from 10.77.0.100" in done.stdout
    for name in NODES.split(","):
        assert f"{name}: " in done.stdout
    done = rig.lab("doctor", "--hosts", "node1,nowhere")
    assert done.returncode == 1
    assert "FAIL  nowhere         ssh: " in done.stdout


def test_hosts_are_measured_with_a_line_for_each_class_of_link(own_rig: Rig) -> None:
    """Between hosts 50 MB/s, but for bursts of 1 MB; a plan for the file needs no host."""
    for node in own_rig.nodes:
        node.slow_down("400mbit")
    file = own_rig.folder / "hosts.yaml"
    done = own_rig.lab("topology", "--measure", "--hosts", NODES, "-o", str(file), timeout=150)
    assert done.returncode == 0, done.stderr
    machine = topology_called(file)
    assert [node.ranks for node in machine.speeds.nodes] == [2, 2, 2]
    assert [node.name for node in machine.speeds.nodes] == NODES.split(",")
    latency, rate = machine.speeds.between(["node1", "node2"])
    assert rate[0, 1] == rate[1, 0] < rate[0, 0]
    assert latency[0, 1] > latency[0, 0]
    assert "messages between hosts: " in done.stdout
    wait_until(lambda: nothing_left(own_rig), "the ranks to be gone")


def test_a_cluster_started_here_is_listed_connected_and_stopped(rig: Rig) -> None:
    done = rig.lab("cluster", "start", "--hosts", "node1,node2", "--ppn", "1")
    assert done.returncode == 0, done.stderr
    name = done.stdout.split()[1]
    listed = rig.lab("cluster", "list").stdout
    assert f"{name}  2 engines on node1, node2" in listed
    assert rig.lab("cluster", "stop", name).stdout.startswith(f"stopped {name}")
    wait_until(lambda: nothing_left(rig), "the engines to be gone")


def test_a_bundle_runs_on_hosts_with_its_own_mpi(rig: Rig, bundle: Path) -> None:
    files = rig.folder
    process = rig.start(
        str(bundle / "mpi" / "bin" / "mpiexec"), "-launcher", "ssh", "-hosts", NODES, "-ppn", "2",
        "-localhost", LOGIN_ADDRESS, "-n", "6", sys.executable, str(bundle / "run.py"),
        "--in", f"a={files}/a.npy", "--out", f"a={files}/c.npy", "--trace", f"{files}/t.json",
    )  # fmt: skip
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    assert "heat/own/6 on cpu: 6 ranks" in out
    assert ran_on_files(rig)
    wait_until(lambda: nothing_left(rig), "the ranks to be gone")


def sent_bytes(host: Host) -> int:
    (link,) = json.loads(host.run("ip", "-s", "-j", "link", "show", "eth0"))
    return link["stats64"]["tx"]["bytes"]


def test_files_that_the_nodes_see_are_read_there(rig: Rig) -> None:
    """24 MiB, of which the client sends nothing; where they see another file, their parts."""
    program = rig.folder / "large.mlir"
    program.write_text(
        HEAT.replace("40x30", "1024x3072").replace("39", "1023").replace("30 {", "3072 {")
    )
    a = np.random.default_rng(0).random((1024, 3072))
    np.save(rig.folder / "large.npy", a)
    run = ("run", str(program), "--hosts", NODES, "--check", "--out", f"a={rig.folder / 'd.npy'}")
    before = sent_bytes(rig.login)
    done = rig.lab(*run, "--in", f"a={rig.folder / 'large.npy'}")
    assert done.returncode == 0, done.stderr
    assert f"'a' read by 3 ranks from {rig.folder / 'large.npy'}" in done.stdout
    assert sent_bytes(rig.login) - before < a.nbytes / 4
    expected = np.load(rig.folder / "d.npy")
    mine = Path(tempfile.mkdtemp()) / "large.npy"  # on `login` alone
    np.save(mine, a)
    before = sent_bytes(rig.login)
    done = rig.lab(*run, "--in", f"a={mine}")
    shutil.rmtree(mine.parent)
    assert done.returncode == 0, done.stderr
    assert f"'a' sent to node1, node2, node3: there {mine} cannot be read" in done.stdout
    assert sent_bytes(rig.login) - before > 0.7 * a.nbytes  # squeezed, on a busy machine
    assert np.array_equal(np.load(rig.folder / "d.npy"), expected)
    assert np.array_equal(np.load(rig.folder / "large.npy"), a)


def test_mapped_arrays_of_a_cluster_are_read_on_the_nodes(rig: Rig, client: Client) -> None:
    client.ask(f"start {NODES} 1")
    carried = client.ask("carry 24 mapped")
    assert carried["right"]
    assert "24 MiB of 'a' read by 3 ranks from" in carried["note"]
    client.ask("stop")
