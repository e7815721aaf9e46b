"""Three hosts for the tests, and clients on `login`."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.rig import NotHere, Rig, hosts

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is in this folder needs hosts, and takes a while."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.hosts)
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    """Hosts that no test breaks."""
    with contextlib.ExitStack() as stack:
        try:
            there = stack.enter_context(hosts(3))
        except NotHere as why:
            pytest.skip(str(why))
        yield there


@pytest.fixture
def own_rig(rig: Rig) -> Iterator[Rig]:
    """Hosts of a test that ends one of them or cuts it off."""
    del rig  # where there is none, this is skipped as well
    with hosts(3) as there:
        yield there


class Client:
    """A process on `login` (client.py), whose process is its own."""

    def __init__(self, rig: Rig, environment: Mapping[str, str] | None = None) -> None:
        self.process = rig.start(
            sys.executable, "-m", "tests.hosts.client", environment=environment, asks=True
        )

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            assert self.process.stderr is not None
            raise AssertionError(f"the client ended: {self.process.stderr.read()}")
        return json.loads(line)

    def ask(self, line: str) -> dict[str, Any]:
        self.say(line)
        return self.hear()

    def run_for_ever(self) -> None:
        """Returns when its ranks compute and send."""
        self.say("run 1000000000")
        assert "running" in self.hear()


@contextlib.contextmanager
def client_on(rig: Rig, environment: Mapping[str, str] | None = None) -> Generator[Client]:
    client = Client(rig, environment)
    try:
        yield client
    finally:
        with contextlib.suppress(OSError):
            client.process.stdin.close()  # type: ignore[union-attr]
        try:
            client.process.wait(60)
        except subprocess.TimeoutExpired:
            client.process.kill()
            client.process.wait()
        for stream in (client.process.stdout, client.process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def client(rig: Rig) -> Iterator[Client]:
    with client_on(rig) as there:
        yield there
