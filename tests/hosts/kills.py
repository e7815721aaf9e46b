"""Ranks, hosts, clients and controllers that end at random moments.

A number of rounds, a seed -> what each round found wrong. In a round a client on `login` starts a
cluster, sends arrays, computes or waits, and meanwhile something is ended:

    rank         SIGKILL                       controller   SIGKILL
    host         its interface is down, until the client has told it        client   SIGKILL

Afterwards: the client has answered, its arrays are whole, and its next run is right; of a client
that ended, nothing is left after a minute, and the next client's start works.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.hosts.conftest import Client
from tests.hosts.rig import Host, Rig, hosts, wait_until

NODES = "node1,node2,node3"
HANGS_S = 150.0
"""A client that has not answered by then hangs; a start alone may take 60 s."""

GONE_S = 60.0

DOING = {
    "start": (f"start {NODES} 1", 12.0),
    "send": ("carry 64", 3.0),
    "steps": ("run 50", 1.0),
    "run": ("run 1000000000", 4.0),
    "idle": ("", 0.5),
}
"""What a client is asked, and within how many seconds something ends."""

ENDED = ("rank", "host", "client", "controller")


class Wrong(Exception):
    """What a round found."""


@dataclass
class Round:
    """What ended, while the client did what, and after how many seconds."""

    ended: str
    doing: str
    after_s: float
    node: int

    @classmethod
    def drawn(cls, draw: random.Random) -> Round:
        doing = draw.choice(list(DOING))
        after_s = draw.uniform(0, DOING[doing][1])
        return cls(draw.choice(ENDED), doing, after_s, draw.randrange(3))

    def __str__(self) -> str:
        return f"{self.ended} of node{self.node + 1} {self.after_s:.2f} s into {self.doing}"


@dataclass
class Trial:
    """One client after the other on one rig."""

    rig: Rig
    tell: Callable[[str], None]
    client: Client | None = None
    started: bool = False
    found: Counter[str] = field(default_factory=Counter)

    def round(self, one: Round) -> None:
        client = self._client()
        if one.doing != "start" and not self.started:
            self._ask(f"start {NODES} 1", wanted="places")
            self.started = True
        if one.doing == "start" and self.started:
            self._ask("stop")
            self.started = False
        family = _family(client.process.pid)
        what, _ = DOING[one.doing]
        if what:
            client.say(what)
        if one.doing == "run" and "running" not in (told := self._hear()):
            raise Wrong(f"an endless run ended: {told}")
        time.sleep(one.after_s)
        family |= _family(client.process.pid)
        heal = self._end(one)
        try:
            if one.ended == "client":
                self._leave(family)
                return
            if what:
                told = self._final()
                self._judge(one, told)
        finally:
            heal()
        if one.doing == "start" and not self.started:
            self._ask(f"start {NODES} 1", wanted="places")
            self.started = True
        ran = self._ask("run 50")
        if "error" in ran and one.ended == "host" and not what:
            ran = self._ask("run 50")  # the first one found the host gone
        if "reference" not in ran.get("check", ""):
            raise Wrong(f"the next run is not right: {ran}")

    def end(self) -> None:
        """No process and no file is left."""
        if self.client is None:
            return
        family = _family(self.client.process.pid)
        if self.started:
            self._ask("stop")
        self.client.process.stdin.close()  # type: ignore[union-attr]
        self.client.process.wait(60)
        self._nothing_left(family)
        self._forget()

    def _client(self) -> Client:
        if self.client is None:
            self.client, self.started = Client(self.rig, {"TMPDIR": str(self._temporary)}), False
        return self.client

    @property
    def _temporary(self) -> Path:
        folder = self.rig.folder / "tmp"
        folder.mkdir(exist_ok=True)
        return folder

    def _judge(self, one: Round, told: dict[str, Any]) -> None:
        if "places" in told:
            self.started = True
        self.found["told" if "error" in told else "went on"] += 1
        if "error" in told:
            self.tell(f"    after {told['seconds']:.1f} s: {told['error'].splitlines()[0]}")
        if told.get("untouched") is False:
            raise Wrong("the caller's arrays are not as they were")
        if "right" in told and not told["right"]:
            raise Wrong("a run that ended well is not right")

    def _ask(self, line: str, *, wanted: str = "") -> dict[str, Any]:
        self._client().say(line)
        told = self._final()
        if wanted and wanted not in told:
            raise Wrong(f"{line}: {told}")
        return told

    def _final(self) -> dict[str, Any]:
        """What it answers in the end."""
        told = self._hear()
        return self._hear() if "running" in told else told

    def _hear(self) -> dict[str, Any]:
        """Wrong where it hangs."""
        assert self.client is not None
        process = self.client.process
        late = threading.Event()

        def end() -> None:
            late.set()
            for child in psutil.Process(process.pid).children():
                child.send_signal(signal.SIGUSR1)  # it says where it is (client.py)
            time.sleep(1)
            process.kill()

        timer = threading.Timer(HANGS_S, end)
        timer.start()
        try:
            return self.client.hear()
        except AssertionError as error:
            raise Wrong(f"{'hangs' if late.is_set() else 'ended'}: {error}") from None
        finally:
            timer.cancel()

    def _end(self, one: Round) -> Callable[[], None]:
        """What heals it again."""
        node = self.rig.nodes[one.node]
        assert self.client is not None
        if one.ended == "client":
            self.client.process.kill()
        elif one.ended == "controller":
            for process in _family(self.client.process.pid):
                with contextlib.suppress(psutil.Error):
                    if "ipyparallel.controller" in " ".join(process.cmdline()):
                        process.kill()
        elif one.ended == "rank":
            for line in self.rig.processes(node, "ipyparallel.engine"):
                if "relay.py" not in line:
                    with contextlib.suppress(AssertionError):
                        node.run("kill", "-9", line.split()[0])
        else:
            node.cut_off()
            return lambda: _mend(self.rig, node)
        return lambda: None

    def _leave(self, family: set[psutil.Process]) -> None:
        assert self.client is not None
        self.client.process.wait()
        self._nothing_left(family)
        self._forget()

    def _nothing_left(self, family: set[psutil.Process]) -> None:
        """Of those processes here, on any node, and in the folders for temporary files."""
        try:
            took = wait_until(lambda: not self._left(family), "all to be gone", timeout=GONE_S)
        except AssertionError:
            raise Wrong(f"left after {GONE_S:g} s: {self._left(family)}") from None
        self.tell(f"    all gone after {took:.1f} s")

    def _left(self, family: set[psutil.Process]) -> list[str]:
        left = [str(process) for process in family if process.is_running()]
        for node in self.rig.nodes:
            for word in ("avial", "ipyparallel", "hydra"):
                left += [f"{node.name}: {line}" for line in self.rig.processes(node, word)]
            left += node.run("find", "/tmp", "-name", "avial-*").split()
        return left + [str(path) for path in self._temporary.glob("avial-*")]

    def _forget(self) -> None:
        assert self.client is not None
        process = self.client.process
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            with contextlib.suppress(OSError):  # what was still to be written
                stream.close()
        self.client, self.started = None, False

    def abandon(self) -> None:
        """After something went wrong; what is left is waited for."""
        if self.client is None:
            return
        family = _family(self.client.process.pid)
        self.client.process.kill()
        self.client.process.wait()
        self._forget()
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not self._left(family), "all to be gone", timeout=2 * GONE_S)
        shutil.rmtree(self._temporary)  # what is left is told once


def _family(pid: int) -> set[psutil.Process]:
    """What it has started, and those."""
    with contextlib.suppress(psutil.Error):
        return set(psutil.Process(pid).children(recursive=True))
    return set()


def _mend(rig: Rig, node: Host) -> None:
    node.run("ip", "link", "set", "eth0", "up")
    wait_until(lambda: _answers(rig, node), f"{node.name} to answer again")


def _answers(rig: Rig, node: Host) -> bool:
    with contextlib.suppress(AssertionError):
        return "there" in rig.login.run("ssh", "-o", "ConnectTimeout=2", node.name, "echo there")
    return False


def rounds(
    count: int, seed: int, *, seconds: float = float("inf"), tell: Callable[[str], None]
) -> tuple[int, list[str]]:
    """How many there were, `count` or as many as `seconds` allow, and what was wrong."""
    wrong: list[str] = []
    began, done = time.monotonic(), 0
    with hosts(3) as rig:
        trial = Trial(rig, tell)
        while done < count and time.monotonic() - began < seconds:
            one = Round.drawn(random.Random(f"{seed} {done}"))
            tell(f"{done}: {one}")
            try:
                trial.round(one)
            except (Wrong, BrokenPipeError) as error:
                wrong.append(f"{done}: {one}: {error}")
                tell(f"  WRONG {error}")
                trial.abandon()
            done += 1
        try:
            trial.end()
        except Wrong as error:
            wrong.append(f"at the end: {error}")
        tell(f"{done} rounds, {len(wrong)} wrong; {dict(trial.found)}")
    return done, wrong


def main(arguments: Sequence[str]) -> int:
    """`python -m tests.hosts.kills COUNT [SEED [SECONDS]]`."""
    count, seed, seconds = (*map(int, arguments), *(8, 0, 10**9)[len(arguments) :])

    def tell(line: str) -> None:
        sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
        sys.stdout.flush()

    return bool(rounds(count, seed, seconds=seconds, tell=tell)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
