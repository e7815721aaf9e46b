"""Three hosts for the tests, and clients on `login`."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.hosts.rig import NotHere, Rig, hosts

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is in this folder needs hosts, and takes a while."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.hosts)
            item.add_marker(pytest.mark.slow)


@contextlib.contextmanager
def fresh_hosts(count: int) -> Generator[Rig]:
    """Skips the test, with the reason, where this machine cannot have them."""
    with contextlib.ExitStack() as stack:
        try:
            there = stack.enter_context(hosts(count))
        except NotHere as why:
            pytest.skip(str(why))
        yield there


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    """Hosts that no test breaks."""
    with fresh_hosts(3) as there:
        yield there


@pytest.fixture
def own_rig(rig: Rig) -> Iterator[Rig]:
    """Hosts of a test that ends one of them or cuts it off."""
    del rig  # where there is none, this is skipped as well
    with hosts(3) as there:
        yield there


@pytest.fixture(scope="session")
def bundle(rig: Rig) -> Path:
    """A heat equation for 6 ranks on 3 nodes, with a.npy to run on and what comes of it, b.npy."""
    program = rig.folder / "heat.mlir"
    program.write_text(HEAT)
    a = np.random.default_rng(0).random((40, 30))
    np.save(rig.folder / "a.npy", a)
    for _ in range(3):
        a[1:-1] = a[:-2] + a[2:]
    np.save(rig.folder / "b.npy", a)
    folder = rig.folder / "bundle"
    done = rig.lab(
        "bundle", str(program), "-o", str(folder), "-n", "6", "--ppn", "2", "--on", "cpu",
        "--pythons", f"3.{sys.version_info[1]}", "--slurm-script", "--time", "10:00",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


HEAT = """
func.func @heat(%a: memref<40x30xf64>, %b: memref<40x30xf64>) {
  affine.for %t = 0 to 3 {
    affine.for %i = 1 to 39 {
      affine.for %j = 0 to 30 {
        %p = affine.load %a[%i - 1, %j] : memref<40x30xf64>
        %q = affine.load %a[%i + 1, %j] : memref<40x30xf64>
        %s = arith.addf %p, %q : f64
        affine.store %s, %b[%i, %j] : memref<40x30xf64>
      }
    }
    affine.for %i = 1 to 39 {
      affine.for %j = 0 to 30 {
        %p = affine.load %b[%i, %j] : memref<40x30xf64>
        affine.store %p, %a[%i, %j] : memref<40x30xf64>
      }
    }
  }
  return
}
"""


def ran_on_files(rig: Rig) -> bool:
    """The bundle's program, with a.npy and to c.npy and t.json in the rig's folder."""
    right = np.array_equal(np.load(rig.folder / "c.npy"), np.load(rig.folder / "b.npy"))
    trace = json.loads((rig.folder / "t.json").read_text())
    for name in ("c.npy", "t.json"):
        (rig.folder / name).unlink()
    return right and len({event["pid"] for event in trace["traceEvents"]}) >= 6


class Client:
    """A process on `login` (client.py)."""

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
