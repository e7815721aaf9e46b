"""Hosts on this machine: what a cluster of several machines is to a program that runs on it.

A number of hosts -> Rig. A host is a set of name spaces: its own network interface and address,
host name, processes, /tmp and /dev/shm, and an sshd. All see the same files otherwise, as with a
shared file system. Nothing outside the name spaces is changed; when `login` goes, everything goes.

    login   10.77.0.100 ──┐                     (where the tests' programs are started)
    node1   10.77.0.1   ──┼── bridge, in login's network
    node2   10.77.0.2   ──┘
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOGIN = "login"
LOGIN_ADDRESS = "10.77.0.100"
_TOOLS = ("ip", "setpriv", "unshare", "nsenter", "mount", "ssh", "sshd", "ssh-keygen", "tc")
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
_PATH = f"{os.environ.get('PATH', '')}:{_SBIN}"

_SSHD = """\
Port 22
ListenAddress {address}
HostKey {keys}/host
AuthorizedKeysFile {keys}/client.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
MaxStartups 100
"""

_SSH = """\
Host *
  IdentityFile {keys}/client
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
  BatchMode yes
"""

_HOST = """\
set -e
hostname {name}
mount -t tmpfs tmpfs /etc/ssh
cp {keys}/ssh_config /etc/ssh/ssh_config
mount --bind {keys}/hosts /etc/hosts
mount --bind {keys}/{name}.boot /proc/sys/kernel/random/boot_id
if [ {name} != login ]; then
  mount -t tmpfs tmpfs /tmp
  mount -t tmpfs tmpfs /dev/shm
  mount -t tmpfs tmpfs /run
  chmod 1777 /tmp /dev/shm
  mkdir /run/sshd
fi
ip link set lo up
touch {keys}/{name}.up
while [ ! -e {keys}/go ]; do sleep 0.02; done
if [ {name} != login ]; then {sshd} -f {keys}/{name}.sshd -E {keys}/{name}.log; fi
touch {keys}/{name}.ready
sleep infinity &
wait  # for that, and whoever has lost its parent
"""


class NotHere(Exception):
    """Why this machine cannot have hosts: the reason for which the tests are skipped."""


@dataclass
class Host:
    """`pid` is of the first process in the host's name spaces."""

    name: str
    address: str
    process: subprocess.Popen[bytes]
    pid: int

    def command(self, *program: str) -> list[str]:
        """`program`, as it is started on this host; it ends with the process of this command."""
        spaces = ("-n", "-u", "-m", "-p")
        bound = ("setpriv", "--pdeathsig", "KILL")
        return ["nsenter", "-t", str(self.pid), *spaces, "--", *bound, *program]

    def run(self, *program: str, timeout: float = 60) -> str:
        """What it prints; fails with that if it fails."""
        done = subprocess.run(
            self.command(*program), capture_output=True, text=True, timeout=timeout, check=False
        )
        if done.returncode != 0:
            raise AssertionError(
                f"{program} ended with {done.returncode}\n{done.stderr}{done.stdout}"
            )
        return done.stdout

    def die(self) -> None:
        """As by a power cut: no packet is sent any more, not even that a connection is closed."""
        if self.name != LOGIN:
            with contextlib.suppress(AssertionError):
                self.cut_off()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.process.wait()

    def cut_off_from(self, other: Host) -> None:
        """Packets from here to there go to a card that nobody has."""
        nobody = ("lladdr", "02:00:00:00:00:fe", "dev", "eth0", "nud", "permanent")
        self.run("ip", "neigh", "replace", other.address, *nobody)

    def slow_down(self, rate: str, *, burst: str = "1mb") -> None:
        """What it sends goes at that rate, `1gbit` say."""
        limit = ("rate", rate, "burst", burst, "latency", "50ms")
        self.run("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", *limit)

    def cut_off(self) -> None:
        """Its cable is pulled."""
        self.run("ip", "link", "set", "eth0", "down")


@dataclass
class Rig:
    """Hosts, `node1` and so on, and `login`. Programs get `environment`."""

    folder: Path
    hosts: dict[str, Host] = field(default_factory=dict)

    @property
    def login(self) -> Host:
        return self.hosts[LOGIN]

    @property
    def nodes(self) -> list[Host]:
        return [host for name, host in self.hosts.items() if name != LOGIN]

    def start(
        self,
        *program: str,
        host: str = LOGIN,
        environment: Mapping[str, str] | None = None,
        asks: bool = False,
    ) -> subprocess.Popen[str]:
        """The program on a host; the process is its parent, which ends as it does."""
        return subprocess.Popen(
            self.hosts[host].command(*program),
            stdin=subprocess.PIPE if asks else subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
            env=os.environ | {"PATH": _PATH} | dict(environment or {}), cwd=ROOT,
        )  # fmt: skip

    def python(self, script: str) -> subprocess.Popen[str]:
        return self.start(sys.executable, "-c", script)

    def lab(
        self, *arguments: str, timeout: float = 120, host: str = LOGIN,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """`avial-lab ARGUMENTS`, to its end."""
        command = [sys.executable, "-m", "avial_lab", *arguments]
        process = self.start(*command, host=host, environment=environment)
        try:
            out, error = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, error = process.communicate()
            raise AssertionError(f"{arguments} did not end in {timeout} s\n{error}{out}") from None
        return subprocess.CompletedProcess(command, process.returncode, out, error)

    def processes(self, node: Host, words: str) -> list[str]:
        """The command lines on that node that hold `words`."""
        lines = node.run("ps", "-eo", "pid,args").splitlines()
        over = ("ps -eo", "<defunct>")
        return [line for line in lines if words in line and not any(word in line for word in over)]


@contextlib.contextmanager
def hosts(count: int) -> Generator[Rig]:
    """So many nodes, and `login`; NotHere where this machine cannot have them."""
    _refuse()
    folder = Path(tempfile.mkdtemp(prefix="rig-", dir=_shared()))
    rig = Rig(folder)
    try:
        names = [f"node{k}" for k in range(1, count + 1)]
        addresses = {LOGIN: LOGIN_ADDRESS} | {
            name: f"10.77.0.{k}" for k, name in enumerate(names, 1)
        }
        _write(folder, addresses)
        for name, address in addresses.items():
            rig.hosts[name] = _host(folder, name, address)
        _connect(rig)
        (folder / "go").touch()
        for name, host in rig.hosts.items():
            _wait_for(folder / f"{name}.ready", host.process)
        yield rig
    finally:
        for host in reversed(list(rig.hosts.values())):
            host.die()
        shutil.rmtree(folder, ignore_errors=True)


_SLURM = """\
ClusterName=rig
SlurmctldHost=login({address})
AuthType=auth/munge
AuthInfo=socket=/run/munge.socket
SlurmUser=root
StateSaveLocation={folder}
SlurmdSpoolDir=/tmp/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
NodeName=node[1-{nodes}] CPUs=2 State=UNKNOWN
PartitionName=all Nodes=node[1-{nodes}] Default=YES State=UP
"""

_MUNGED = (
    "munged --force --key-file={folder}/key --socket=/run/munge.socket "
    "--pid-file=/run/munged.pid --log-file=/run/munged.log --seed-file=/run/munged.seed"
)
_SLURM_TOOLS = ("slurmctld", "slurmd", "munged", "srun")


@contextlib.contextmanager
def slurm(rig: Rig) -> Generator[dict[str, str]]:
    """Slurm on the rig: its controller on `login`, the nodes its nodes; what clients need in their
    environment. NotHere where it is not installed.
    """
    missing = [tool for tool in _SLURM_TOOLS if shutil.which(tool, path=_PATH) is None]
    if missing:
        raise NotHere(f"not installed: {', '.join(missing)} (of Debian: slurmd, slurmctld, munge)")
    folder = rig.folder / "slurm"
    folder.mkdir(mode=0o700)
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o400)
    conf = folder / "slurm.conf"
    conf.write_text(_SLURM.format(address=LOGIN_ADDRESS, folder=folder, nodes=len(rig.nodes)))
    start = f"export PATH={_PATH} SLURM_CONF={conf}; " + _MUNGED.format(folder=folder)
    rig.login.run("mount", "-t", "tmpfs", "tmpfs", "/run")
    rig.login.run("sh", "-c", f"{start} && slurmctld -i >/dev/null 2>&1")
    try:
        for node in rig.nodes:
            rig.login.run("ssh", node.name, f"{start} && slurmd -N {node.name}")
        environment = {"SLURM_CONF": str(conf)}
        idle = f"SLURM_CONF={conf} sinfo -h -t idle -o %D"
        wait_until(
            lambda: rig.login.run("sh", "-c", idle).strip() == str(len(rig.nodes)), "idle nodes"
        )
        yield environment
    finally:
        rig.login.run("sh", "-c", "kill $(cat /run/slurmctld.pid) $(cat /run/munged.pid)")


def _shared() -> Path:
    """A folder that every host sees, which have their own /tmp."""
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    return folder


def _refuse() -> None:
    if sys.platform != "linux" or os.getuid() != 0:
        raise NotHere("hosts are made of name spaces: needs Linux and root")
    missing = [tool for tool in _TOOLS if shutil.which(tool, path=_PATH) is None]
    if missing:
        raise NotHere(f"not installed: {', '.join(missing)} (openssh-server, iproute2)")
    if ROOT.is_relative_to("/tmp"):
        raise NotHere("this checkout is in /tmp, which every host has its own of")
    tried = subprocess.run(
        ["unshare", "-n", "-m", "-u", "-p", "-f", "sh", "-c",
         "ip link add br0 type bridge && ip link add port0 type veth peer name end0"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if tried.returncode != 0:
        raise NotHere(f"name spaces cannot be made here: {tried.stderr.strip()}")


def _write(folder: Path, addresses: Mapping[str, str]) -> None:
    """Keys, and what sshd and ssh are told."""
    for name in ("host", "client"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True
        )
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in addresses.items())]
    (folder / "hosts").write_text("\n".join(lines) + "\n")
    (folder / "ssh_config").write_text(_SSH.format(keys=folder))
    for name, address in addresses.items():
        # By this MPI libraries, and we, tell machines apart.
        (folder / f"{name}.boot").write_text(f"{uuid.uuid4()}\n")
        (folder / f"{name}.sshd").write_text(_SSHD.format(keys=folder, address=address))


def _host(folder: Path, name: str, address: str) -> Host:
    script = _HOST.format(name=name, keys=folder, sshd=shutil.which("sshd", path=_PATH))
    spaces = ["-n", "-u", "-m", "-p", "-f", "--mount-proc", "--kill-child"]
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "unshare", *spaces, "sh", "-c", script],
        env=os.environ | {"PATH": _PATH}, stdin=subprocess.DEVNULL, start_new_session=True,
        stderr=subprocess.DEVNULL,  # `--kill-child` says something of signal masks
    )  # fmt: skip
    _wait_for(folder / f"{name}.up", process)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return Host(name, address, process, int(children.read_text().split()[0]))


def _connect(rig: Rig) -> None:
    """Every host gets `eth0`, on a bridge in login's network."""
    login = rig.login
    login.run("ip", "link", "add", "br0", "type", "bridge")
    for k, host in enumerate(rig.hosts.values()):
        login.run("ip", "link", "add", f"port{k}", "type", "veth", "peer", "name", f"end{k}")
        login.run("ip", "link", "set", f"port{k}", "master", "br0", "up")
        if host is not login:
            there = ["ip", "link", "set", f"end{k}", "netns", str(host.pid)]
            subprocess.run(["nsenter", "-t", str(login.pid), "-n", "--", *there], check=True)
        host.run("ip", "link", "set", f"end{k}", "name", "eth0")
        host.run("ip", "addr", "add", f"{host.address}/24", "dev", "eth0")
        host.run("ip", "link", "set", "eth0", "up")
    login.run("ip", "link", "set", "br0", "up")


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    wait_until(lambda: path.exists() or process.poll() is not None, f"{path.name}")
    if not path.exists():
        raise NotHere(f"a host did not come up: {path.name}, exit code {process.returncode}")


def wait_until(true: Callable[[], object], what: str, *, timeout: float = 60) -> float:
    """Seconds until it was; fails after `timeout`."""
    began = time.monotonic()
    while not true():
        if time.monotonic() > began + timeout:
            raise AssertionError(f"waited {timeout:g} s for {what}")
        time.sleep(0.02)
    return time.monotonic() - began


def main(arguments: Sequence[str]) -> None:
    """`python -m tests.hosts.rig [COUNT]`: a shell on `login`, to try things by hand."""
    with hosts(int(arguments[0]) if arguments else 3) as rig:
        subprocess.run(rig.login.command(*(arguments[1:] or ["bash"])), check=False)


if __name__ == "__main__":
    main(sys.argv[1:])
