"""Whether ranks can be started on other hosts: `avial-lab doctor --hosts node1,node2`.

Names of hosts -> findings, each with what to do. All hosts are asked at once, by one ssh each.
"""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import avial_lab
from avial_lab.cli.doctor import Finding, Verdict
from avial_lab.core.errors import ClusterError
from avial_lab.core.version import version
from avial_lab.machine.cpu import boot_id, instruction_sets
from avial_lab.runtime.launch.hosts import Hosts, ssh

CLOCKS_S = 60.0
"""By which clocks may differ: each run compares them by messages, files and lists do not."""

ENOUGH_SHARED_MEMORY = 64 << 20

SCRIPT = """
import json, os, shutil, socket, sys, tempfile, time
sys.path.insert(0, {root!r})
from avial_lab.core.version import version
from avial_lab.machine.cpu import allowed, boot_id, instruction_sets
try:
    socket.create_connection(({address!r}, {port}), timeout=4).close()
    reached = ""
except OSError as error:
    reached = str(error)
try:
    from mpi4py import MPI
    mpi = MPI.Get_library_version().splitlines()[0]
except Exception as error:
    mpi = f"FAIL {{error}}"
print(json.dumps(dict(
    version=version(), boot=boot_id(), name=socket.gethostname(), time=time.time(), mpi=mpi,
    cores=len(allowed()), sets=sorted(instruction_sets()), reached=reached,
    folder=tempfile.gettempdir(), free=shutil.disk_usage(tempfile.gettempdir()).free,
    shared=shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else -1,
)))
"""


@dataclass(frozen=True)
class _Answer:
    """What a host says of itself, or why it says nothing; asked and answered: our clock."""

    host: str
    facts: dict[str, Any]
    wrong: str = ""
    advice: str = ""
    asked_s: float = 0.0
    answered_s: float = 0.0


def examine_hosts(text: str) -> Iterator[Finding]:
    where = Hosts.parse(text)
    try:
        address = where.address()
    except ClusterError as error:
        yield Finding(
            "addresses", Verdict.FAIL, error.message, "add the names to DNS or /etc/hosts"
        )
        return
    yield Finding("addresses", Verdict.OK, f"the hosts are reached from {address}")
    with socket.create_server((address, 0)) as listener:
        port = listener.getsockname()[1]
        with ThreadPoolExecutor(len(where.names)) as pool:
            answers = list(pool.map(partial(_ask, address=address, port=port), where.names))
    for answer in answers:
        yield from _findings(answer, address)
    yield from _together([answer for answer in answers if answer.facts])


def _ask(host: str, *, address: str, port: int) -> _Answer:
    root = str(Path(avial_lab.__file__).parents[1])
    script = SCRIPT.format(root=root, address=address, port=port)
    asked = time.time()
    try:
        done = ssh(host, shlex.join([sys.executable, "-c", script]), timeout_s=25)
    except FileNotFoundError:
        return _Answer(host, {}, "this machine has no ssh", "install openssh-client")
    except subprocess.TimeoutExpired:
        return _Answer(host, {}, "no answer within 25 s", "is it up, and its file system?")
    answered = time.time()
    if done.returncode == 0:
        return _Answer(host, json.loads(done.stdout.splitlines()[-1]), "", "", asked, answered)
    said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    if done.returncode == 255:
        advice = "ssh must log in without a question: `ssh-copy-id HOST`, or an agent"
        return _Answer(host, {}, f"ssh: {said}", advice.replace("HOST", host))
    advice = f"the host needs {sys.executable} and {root}: the same environment in the same place"
    return _Answer(host, {}, said, advice)


def _findings(answer: _Answer, address: str) -> Iterator[Finding]:
    """Of one host; what is wrong one by one, what is well in one line."""
    topic, facts = answer.host, answer.facts
    if answer.wrong:
        yield Finding(topic, Verdict.FAIL, answer.wrong, answer.advice)
        return
    if facts["version"] != version():
        yield Finding(
            topic, Verdict.FAIL, f"it has avial_lab {facts['version']}, and this is {version()}",
            "install the same on every host",
        )  # fmt: skip
    if facts["reached"]:
        yield Finding(
            topic, Verdict.FAIL, f"it does not reach this machine at {address}: {facts['reached']}",
            "a firewall? engines connect to high ports of this machine",
        )  # fmt: skip
    if facts["mpi"].startswith("FAIL"):
        yield Finding(
            topic, Verdict.FAIL, f"no MPI: {facts['mpi'][5:]}", "pip install mpi4py mpich"
        )
    if 0 <= facts["shared"] < ENOUGH_SHARED_MEMORY:
        yield Finding(
            topic, Verdict.WARN, f"/dev/shm has {facts['shared'] >> 20} MiB left",
            "MPI shares memory through it: make it larger",
        )  # fmt: skip
    missing = instruction_sets() - set(facts["sets"])
    if missing and facts["sets"]:
        yield Finding(
            topic, Verdict.FAIL, f"its CPU lacks {', '.join(sorted(missing))}, which programs "
            "compiled here use", "run on hosts like this machine, or start the client on that host",
        )  # fmt: skip
    apart = _clock_apart_s(answer)
    if apart > CLOCKS_S:
        yield Finding(topic, Verdict.WARN, f"its clock is {apart:.0f} s off", "NTP sets clocks")
    free = facts["free"] >> 30
    words = f"{facts['name']}: {facts['cores']} cores, {facts['mpi']}, {facts['folder']} {free} GiB"
    yield Finding(topic, Verdict.OK, words)


def _clock_apart_s(answer: _Answer) -> float:
    """By which its clock differs from ours at least: it was read between question and answer."""
    theirs = float(answer.facts["time"])
    return max(answer.asked_s - theirs, theirs - answer.answered_s, 0.0)


def _together(answers: list[_Answer]) -> Iterator[Finding]:
    """Machines that MPI could take for one another."""
    boots: dict[str, str] = {}
    for answer in answers:
        boot, name = answer.facts["boot"], answer.facts["name"]
        if boot and boots.setdefault(boot, name) != name:
            yield Finding(
                answer.host, Verdict.FAIL, f"{name} and {boots[boot]} have the same boot id",
                "MPI takes them for one machine: containers of one host need one shared /dev/shm",
            )  # fmt: skip
    here = [answer.host for answer in answers if answer.facts["boot"] == boot_id() != ""]
    if here:
        yield Finding("hosts", Verdict.OK, f"{', '.join(here)} is this machine")
