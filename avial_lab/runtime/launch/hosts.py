"""Ranks on other machines: where they are, how MPI starts them there, and the hub that has them.

Hosts (by ssh, or those that Slurm gives) -> the command that starts ranks; a running hub.

    mpiexec -launcher ssh -hosts node1,node2 -ppn 2 … python relay.py rank ENGINE …
    srun --mpi=pmi2 -N 2 --ntasks-per-node 2 …        python relay.py rank ENGINE …
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from avial_lab.core.errors import ClusterError
from avial_lab.core.toolchain import tool
from avial_lab.core.words import count, rank_words
from avial_lab.machine.cpu import boot_id, used_of
from avial_lab.runtime.launch.guardian import Guardian
from avial_lab.runtime.rank import relay

CONNECT_S = 5
"""How long a host may take to answer ssh."""

ASK_S = 9.0

ASK_AGAIN_S = 3.0
"""After which a host is asked whose ranks have not connected, and again."""

_UNREACHED = re.compile(r"connect to host .*|open failed: .*")
"""What ssh says where nobody answers; of a host that is only slow it says something else. The host
before it says the second, where it is behind a jump (ProxyJump).
"""

_BEHIND = re.compile(r"timed out during banner exchange\s+Connection to UNKNOWN")
_OPENED = "open confirm"
"""Of `ssh -vv`: the host before it still tries to connect, unless it has said that it did."""

_NAME = re.compile(r"(?:[A-Za-z0-9_.-]+@)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
"""Of a host: what ssh takes for one, and surely not for an option."""


@dataclass(frozen=True)
class Hosts:
    """Machines that ssh reaches, with `ppn` ranks on each, filled in order."""

    names: tuple[str, ...]
    ppn: int = 1

    @classmethod
    def parse(cls, text: str, *, ppn: int | None = None, ranks: int | None = None) -> Hosts:
        """`node1,node2`; where `ppn` is not said, `ranks` are spread over them evenly.

        >>> Hosts.parse("node1, node2", ranks=3)
        Hosts(names=('node1', 'node2'), ppn=2)
        """
        names = tuple(name.strip() for name in text.split(",") if name.strip())
        wrong = next((name for name in names if not _NAME.fullmatch(name)), None)
        if not names or wrong is not None:
            raise ClusterError(
                f"'{wrong or text}' is not a host's name", hint="write them so: --hosts node1,node2"
            )
        if len(set(names)) < len(names):
            raise ClusterError(
                f"a host is named twice in {text}", hint="--ppn says how many ranks each one gets"
            )
        if ppn is None:
            ppn = -(-(ranks or len(names)) // len(names))
        if ppn < 1:
            raise ClusterError(f"{ppn} ranks per host cannot run a program", hint="--ppn 1 or more")
        return cls(names, ppn)

    @property
    def most(self) -> int:
        """Ranks that there is room for."""
        return len(self.names) * self.ppn

    def __str__(self) -> str:
        return f"{count(len(self.names), 'host')} ({', '.join(self.names)}), {self.ppn} ranks each"

    @property
    def hint(self) -> str:
        """Where ranks do not come up there."""
        return f"`avial-lab doctor --hosts {','.join(self.names)}` says what each host lacks"

    @property
    def environment(self) -> dict[str, str]:
        """Of the ranks."""
        return {}

    def command(self) -> list[str]:
        return [str(tool("mpiexec"))]

    def arguments(self, address: str, _: str = "") -> list[str]:
        """Of mpiexec (MPICH's), besides the number of ranks. The folder where we are need not be
        there.
        """
        return [
            "-launcher", "ssh", "-rmk", "user", "-hosts", ",".join(self.names),
            "-ppn", str(self.ppn), "-localhost", address, "-wdir", "/",
        ]  # fmt: skip

    def cancel(self, _: str) -> list[str]:
        """A rank's connection, its lease, ends it: nobody else has it."""
        return []

    def address(self) -> str:
        """Of this machine, as the hosts see it."""
        return address_towards(self.names)

    def check(self) -> list[frozenset[str]]:
        """-> the instruction sets that each of them has. ClusterError where one cannot be reached,
        or lacks this Python: mpiexec would wait for it, or say it less clearly.
        """
        refuse_other_mpi()
        with ThreadPoolExecutor(len(self.names)) as pool:
            answers = dict(zip(self.names, pool.map(_asked, self.names), strict=True))
        wrong = {name: why for name, why in answers.items() if isinstance(why, str)}
        if wrong:
            name, why = next(iter(wrong.items()))
            others = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            raise ClusterError(
                f"host {name}{others}: {why}",
                hint=self.hint,
            )
        return [sets for sets in answers.values() if not isinstance(sets, str)]


def refuse_other_mpi() -> None:
    """Which options start ranks elsewhere differs between MPIs; those of MPICH's are known."""
    done = subprocess.run(
        [tool("mpiexec"), "--version"], capture_output=True, encoding="utf-8", check=False
    )
    if "HYDRA" not in done.stdout.upper():
        raise ClusterError(
            f"{tool('mpiexec')} is not MPICH's mpiexec, which starts ranks on other hosts",
            hint="pip install mpich, or use a profile of ipyparallel's: --profile NAME",
        )


def ssh(host: str, script: str, *, timeout_s: float = ASK_S) -> subprocess.CompletedProcess[str]:
    """A shell's script on that host, without a question to anybody; TimeoutExpired after a while.

    With Hydra's options to ssh, so that what works here works there.
    """
    return subprocess.run(
        _ssh_command(host, script),
        capture_output=True, encoding="utf-8", timeout=timeout_s, stdin=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip


def _ssh_command(host: str, script: str, *more: str) -> list[str]:
    options = ["-x", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}"]
    return ["ssh", *options, *more, "--", host, script]


def _why_unreached(said: str) -> str:
    """Of what `ssh -vv` said; empty where it reached the host, or that is only slow."""
    if found := _UNREACHED.search(said):
        return found[0].strip()
    if _BEHIND.search(said) and _OPENED not in said:
        return f"no answer behind a jump for {CONNECT_S} s"
    return ""


def _asked(host: str) -> frozenset[str] | str:
    """Its instruction sets (Linux), or what is wrong with it: why no ranks can be started there."""
    if shutil.which("ssh") is None:
        return "this machine has no ssh"
    try:
        there = f"test -x '{sys.executable}' -a -r '{relay.__file__}' && echo there"
        done = ssh(host, f"{there} && grep -m1 -E '^(flags|Features)' /proc/cpuinfo")
    except subprocess.TimeoutExpired:
        return f"no answer by ssh within {ASK_S:g} s"
    _, found, flags = done.stdout.partition("there\n")
    if found:
        return used_of(flags.split())
    if done.returncode == 255:
        return f"ssh: {(done.stderr.strip().splitlines() or ['no connection'])[-1]}"
    return (
        f"it has no {sys.executable} with {relay.__file__}; all hosts need the same environment "
        "in the same place"
    )


@dataclass(frozen=True)
class Slurm:
    """Machines that Slurm gives: those of the allocation that we are in, or of one made for this
    cluster.
    """

    nodes: int
    ppn: int = 1
    time: str = ""
    partition: str = ""

    @property
    def most(self) -> int:
        return self.nodes * self.ppn

    def __str__(self) -> str:
        return f"{count(self.nodes, 'node')} of Slurm, {self.ppn} ranks each"

    @property
    def hint(self) -> str:
        """Where ranks do not come up there."""
        return "`squeue --me` and `sinfo` say whether nodes are free; or raise timeout=…"

    @property
    def environment(self) -> dict[str, str]:
        """Of the ranks."""
        return {} if inside_slurm() else {relay.OWN_JOB: "1"}

    def command(self) -> list[str]:
        return ["srun"]

    def arguments(self, _: str, name: str = "") -> list[str]:
        """Of srun, besides the number of ranks; `name` tells its step from others."""
        given = {"--time": self.time, "--partition": self.partition}
        chosen = [f"{option}={value}" for option, value in given.items() if value]
        return [
            "--mpi=pmi2", f"--job-name={_step(name)}", "--kill-on-bad-exit=1",
            f"--nodes={self.nodes}", f"--ntasks-per-node={self.ppn}", "--distribution=block",
            "--chdir=/",
            *(("--overlap",) if inside_slurm() else chosen),
        ]  # fmt: skip

    def cancel(self, name: str) -> list[str]:
        """The command that ends the job made for that step, which an srun that was killed leaves
        behind: where it still waits for nodes there is no rank that could.
        """
        return [] if inside_slurm() else ["scancel", f"--name={_step(name)}"]

    def address(self) -> str:
        """Of this machine, as a node sees it: towards the controller of Slurm, which all reach."""
        done = subprocess.run(
            ["scontrol", "show", "config"],
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=10,
        )
        found = re.search(r"SlurmctldHost\[0\]\s*=\s*([\w.-]+)(?:\(([\w.:-]+)\))?", done.stdout)
        controller = found.group(2) or found.group(1) if found else ""
        # On the controller's own machine the way to it leads nowhere: the nodes know its name.
        names = [name for name in (controller, *_slurm_nodes()) if name]
        return address_towards(names)

    def check(self) -> list[frozenset[str]]:
        """Nothing is known of the CPUs of nodes before they are given."""
        if shutil.which("srun") is None:
            raise ClusterError(
                "this machine has no Slurm: there is no srun",
                hint="on machines that ssh reaches: --hosts node1,node2 --ppn 2",
            )
        return []


def inside_slurm() -> bool:
    """Whether this process is in an allocation."""
    return "SLURM_JOB_ID" in os.environ


def _slurm_nodes() -> list[str]:
    done = subprocess.run(
        ["sinfo", "-h", "-N", "-o", "%N"],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=10,
    )
    return done.stdout.split()


def _step(name: str) -> str:
    return f"avial-lab-{name}" if name else "avial-lab"


def unreached_node(step: str, there: Collection[str]) -> tuple[str, str] | None:
    """Of the nodes that Slurm runs that step on, but for the hosts `there`: one that does not
    answer, and how it was asked. srun starts ranks over that connection, to the node's slurmd;
    Slurm itself takes minutes to find such a node down.
    """
    listed = (line.split() for line in _slurm("squeue", "--me", "--steps", "-h", "-o", "%j %N"))
    nodes = next((words[1] for words in listed if len(words) > 1 and words[0] == step), "")
    if not nodes:
        return None  # it waits for them
    port = _words_of_slurm("scontrol", "show", "config").get("SlurmdPort", "6818").split("-")[0]
    shown = [dict(_KNOWN.findall(line)) for line in _slurm("scontrol", "-o", "show", "node", nodes)]
    heard = {host.partition(".")[0] for host in there}
    asked = [
        (node["NodeName"], node.get("NodeAddr", node["NodeName"]), int(node.get("Port", port)))
        for node in shown
        if not {node["NodeName"], node.get("NodeHostName", "").partition(".")[0]} & heard
    ]
    with ThreadPoolExecutor(max(len(asked), 1)) as pool:
        refusals = pool.map(lambda node: _unreached(*node[1:]), asked)
        for (name, _, at), why in zip(asked, refusals, strict=True):
            if why:
                return name, f"control connection: Slurm's daemon there (port {at}): {why}"
    return None


_KNOWN = re.compile(r"(\w+)\s*=\s*(\S+)")


def _slurm(*command: str) -> list[str]:
    """The lines that a command of Slurm's prints; none where it fails."""
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", check=False, timeout=10
        )
        return done.stdout.splitlines() if done.returncode == 0 else []
    return []


def _words_of_slurm(*command: str) -> dict[str, str]:
    return dict(_KNOWN.findall("\n".join(_slurm(*command))))


def _unreached(address: str, port: int) -> str:
    """Why nobody answers there; empty where a machine does, though it may refuse."""
    try:
        socket.create_connection((address, port), timeout=_NODE_S).close()
    except (ConnectionRefusedError, socket.gaierror):
        return ""
    except OSError as error:
        return error.strerror or f"no answer for {_NODE_S:g} s"
    return ""


_NODE_S = 4.0
"""How long a node may take to accept a connection."""

Where = Hosts | Slurm
"""Where ranks are that are not here."""


def node_names(where: Where, ranks: int) -> list[str]:
    """Where each rank is. Names of Slurm's nodes are its choice, made when they are started.

    >>> node_names(Hosts(("a", "b"), ppn=2), 3), node_names(Slurm(2), 2)
    (['a', 'a', 'b'], ['node 0', 'node 1'])
    """
    names = where.names if isinstance(where, Hosts) else [f"node {k}" for k in range(where.nodes)]
    return [names[rank // where.ppn] for rank in range(min(ranks, where.most))]


def address_towards(names: Sequence[str]) -> str:
    """This machine's address on the way to the first of those hosts that is another machine."""
    unknown: list[str] = []
    found = "127.0.0.1"
    for name in names:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((name.rpartition("@")[2], 9))  # no packet is sent
                found = probe.getsockname()[0]
            except OSError:
                unknown.append(name)
                continue
        if not found.startswith("127."):
            return found
    if unknown:
        raise ClusterError(
            f"no way to {', '.join(unknown)}: the name does not resolve, or no route leads there",
            hint="`avial-lab doctor --hosts …` checks names and addresses",
        )
    return found


class Hub(NamedTuple):
    """Its process, and what ranks get in their environment to find it."""

    process: psutil.Popen
    environment: dict[str, str]


def start_hub(
    folder: Path, where: Where | None, address: str, guardian: Guardian, *,
    lease_s: float = relay.LEASE_S, token: str = "",
) -> Hub:  # fmt: skip
    """The ranks' files come to `folder` from now on; `guardian` ends it, and what is to start them
    where that is not a process here. token: of 32 bytes, in hexadecimal digits; new by default.
    """
    token = token or secrets.token_hex(32)
    with (folder / "hub.log").open("wb") as log:  # whoever reads our stderr does not wait for it
        process = psutil.Popen(
            [sys.executable, "-I", "-S", relay.__file__, "hub", str(folder), address],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True,
        )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{token}\n".encode())
    process.stdin.close()
    port = process.stdout.readline().decode().strip()
    process.stdout.close()
    if not port:
        raise ClusterError(
            f"cannot listen on {address}, where the hosts would connect to",
            hint="`avial-lab doctor --hosts …` checks names and addresses",
        )
    guardian.watch(process.pid)
    guardian.at_end(where.cancel(folder.name) if where else [])
    environment = where.environment if where else {}
    return Hub(process, environment | {relay.HUB: f"{address} {port} {token} {lease_s:g}"})


def end_hub(process: psutil.Process) -> None:
    """Every rank that can be reached has ended, and its folder is gone, when this returns."""
    with suppress(psutil.Error):
        process.terminate()
        process.wait(relay.LAST_WORDS_S + 1)


def relayed(program: Sequence[str]) -> list[str]:
    """The command of a rank on another host; `relay.PLACE` in it is the rank's folder there."""
    return [sys.executable, "-I", "-S", relay.__file__, "rank", *program]


def ended_ranks(folder: Path, ranks: int) -> list[int]:
    """Those of which the hub says that they, or their connections, are gone."""
    try:
        names = set(os.listdir(folder))
    except FileNotFoundError:
        return []  # ended from outside
    return [rank for rank in range(ranks) if {f"{rank}.lost", f"{rank}.exit"} & names]


_POLL_S = 0.02


class SilentHosts:
    """Hosts whose ranks have not connected yet: mpiexec, and srun, wait for a lost one as long as
    TCP does. They are asked, by ssh or at Slurm's daemons, beside what goes on.
    """

    def __init__(self, where: Where | None, folder: Path, ranks: int) -> None:
        names = node_names(where, ranks) if isinstance(where, Hosts) else []
        self._folder, self._silent = folder, dict(enumerate(names))
        self._asked: dict[str, subprocess.Popen[str]] = {}
        self._next = dict.fromkeys(names, time.monotonic() + ASK_AGAIN_S)
        self._nodes = _SilentNodes(folder, ranks) if isinstance(where, Slurm) else None

    def lost(self) -> tuple[str, str] | None:
        """One that nobody reaches any more, and how it was asked; returns at once."""
        if self._nodes is not None:
            return self._nodes.lost()
        for rank in [rank for rank in self._silent if relay.is_here(self._folder, rank)]:
            del self._silent[rank]
        for name in dict.fromkeys(self._silent.values()):
            asking = self._asked.get(name)
            if asking is None and time.monotonic() > self._next[name]:
                self._asked[name] = subprocess.Popen(
                    _ssh_command(name, "true", "-vv"), stdin=subprocess.DEVNULL, encoding="utf-8",
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
                )  # fmt: skip
            elif asking is not None and asking.poll() is not None:
                said = self._asked.pop(name).communicate()[1]
                self._next[name] = time.monotonic() + ASK_AGAIN_S
                if why := _why_unreached(said):
                    return name, f"control connection: ssh: {why}"
        return None

    def lost_at_last(self) -> tuple[str, str] | None:
        """The same where what starts the ranks has given up: each host is asked and waited for."""
        self._next = dict.fromkeys(self._next, 0.0)
        asked: set[str] = set()
        while (found := self.lost()) is None:
            asked |= self._asked.keys()
            if not self._asked and asked.issuperset(self._silent.values()):
                break
            time.sleep(_POLL_S)
        return found

    def close(self) -> None:
        for asking in self._asked.values():
            with suppress(ProcessLookupError):
                os.killpg(asking.pid, signal.SIGKILL)  # with the ssh that it reaches the jump by
            asking.communicate()


class _SilentNodes:
    """Nodes of Slurm's, of a step that is named after `folder`."""

    def __init__(self, folder: Path, ranks: int) -> None:
        self._folder, self._ranks = folder, ranks
        self._next_s = time.monotonic() + ASK_AGAIN_S
        self._found: list[tuple[str, str] | None] = []
        self._asking: threading.Thread | None = None

    def lost(self) -> tuple[str, str] | None:
        heard = [self._folder / f"{rank}.here" for rank in range(self._ranks)]
        there = [file for file in heard if file.exists()]
        if len(there) == self._ranks:
            return None
        if self._asking is not None and not self._asking.is_alive():
            self._asking, self._next_s = None, time.monotonic() + ASK_AGAIN_S
            return self._found.pop() if self._found else None
        if self._asking is None and time.monotonic() > self._next_s:
            hosts = {file.read_text(encoding="utf-8") for file in there}
            self._asking = threading.Thread(target=self._ask, args=(hosts,), daemon=True)
            self._asking.start()
        return None

    def _ask(self, there: Collection[str]) -> None:
        self._found.append(unreached_node(_step(self._folder.name), there))


def lost_host(folder: Path, rank: int) -> tuple[str, str] | None:
    """The host of a rank whose connection ended before it did, and how it ended."""
    with suppress(FileNotFoundError, ValueError):
        host, how = (folder / f"{rank}.lost").read_text(encoding="utf-8").splitlines()
        return host, how
    return None


@dataclass(frozen=True)
class Machine:
    """What tells this machine, since its last boot (Linux), and user from others that see the same
    files.
    """

    host: str
    boot: str
    user: int


def this_machine() -> Machine:
    return Machine(socket.gethostname(), boot_id(), os.getuid())


def host_lost(host: str, how: str, ranks: Sequence[int] = ()) -> ClusterError:
    """The error for a host that nobody reaches any more."""
    those = f" ({rank_words(ranks)})" if ranks else ""
    return ClusterError(
        f"host {host}{those} is lost: {how}",
        hint="a host went down, its network did, or a firewall cut the connection; "
        "`avial-lab doctor --hosts …` checks the hosts",
    )


def words_of(where: Where | None) -> dict[str, Any] | None:
    """`where`, as a record keeps it."""
    return {"kind": type(where).__name__, **asdict(where)} if where else None


def where_of(words: Mapping[str, Any] | None) -> Where | None:
    """What `words_of` was given."""
    if words is None:
        return None
    given = {name: value for name, value in words.items() if name != "kind"}
    if words["kind"] == "Hosts":
        return Hosts(tuple(given["names"]), given["ppn"])
    return Slurm(**given)
