"""The connection of a rank on another host: who may speak, what it may write, how it ends."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from avial_lab.runtime.launch.guardian import _names_it
from avial_lab.runtime.rank import relay
from avial_lab.runtime.rank.relay import Forged, Hub, Line, Relay, _remove_at_our_end, _Way
from tests.waiting import wait_until

TOKEN = b"secret"


def pair(hub: bytes = TOKEN, rank: bytes = TOKEN) -> tuple[Line, Line]:
    ends = socket.socketpair()
    with ends[0].dup(), ends[1].dup():
        made: list[Line] = []
        other = threading.Thread(target=lambda: made.append(_Quiet(ends[1], rank, hub=False)))
        other.start()
        first = _Quiet(ends[0], hub, hub=True)
        other.join()
    return first, made[0]


class _Quiet(Line):
    """Over a pair of sockets, which have no TCP to speak of."""

    def __init__(self, connection: socket.socket, token: bytes, *, hub: bool) -> None:
        super().__init__(_NoOptions(fileno=connection.detach()), token, hub=hub)


class _NoOptions(socket.socket):
    def setsockopt(self, *_: object) -> None:  # type: ignore[override]
        pass


def test_frames_arrive_in_order_and_whole():
    hub, rank = pair()
    rank.send("print", b"x" * 1000, more=1)
    rank.send("exit", status=3)
    assert hub.receive() == ({"kind": "print", "more": 1}, b"x" * 1000)
    assert hub.receive() == ({"kind": "exit", "status": 3}, b"")
    rank.close()
    with pytest.raises(EOFError):
        hub.receive()
    hub.close()


def test_who_does_not_know_the_token_is_not_heard():
    hub, rank = pair(rank=b"guessed")
    rank.send("hello")
    with pytest.raises(Forged):
        hub.receive()
    rank.close()
    hub.close()


def test_what_was_said_cannot_be_said_again():
    hub, rank = pair()
    rank.send("beat")
    hub.receive()
    rank._sent = 0
    rank.send("beat")
    with pytest.raises(Forged):
        hub.receive()
    rank.close()
    hub.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, Line]]:
    """A hub's folder, and the connection of rank 1 to it."""
    (tmp_path / "1.in.0.npy").write_bytes(b"mine")
    (tmp_path / "0.in.0.npy").write_bytes(b"not mine")
    listener = socket.create_server(("127.0.0.1", 0))
    hub = Hub(tmp_path, listener, TOKEN)
    threading.Thread(target=hub._accept, daemon=True).start()
    line = Line(socket.create_connection(listener.getsockname()), TOKEN, hub=False)
    line.send("hello", rank=1, host="far")
    wait_until((tmp_path / "1.here").exists)
    yield tmp_path, line
    hub._ending.set()
    line.close()
    listener.close()


STARTS_ITS_RELAY = """
import subprocess, sys
relay = subprocess.Popen([sys.executable, "-I", "-S", sys.argv[1], "beside", "1"], stdout=-1)
print(relay.stdout.readline().decode().strip(), flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks who its parent is")
@pytest.mark.parametrize("ended", ["hub", "rank"])
def test_a_relay_beside_its_rank(tmp_path: Path, ended: str) -> None:
    """It brings the journal, and ends the rank when the hub is gone; its folder goes then."""
    hub, kept = socket.create_server(("127.0.0.1", 0)), tmp_path / "hub"
    kept.mkdir()
    serves = Hub(kept, hub, TOKEN)
    threading.Thread(target=serves._accept, daemon=True).start()
    environment = os.environ | {relay.HUB: f"127.0.0.1 {hub.getsockname()[1]} {TOKEN.hex()} 40"}
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_ITS_RELAY, relay.__file__],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as rank:  # fmt: skip
        assert rank.stdout is not None
        folder = Path(rank.stdout.readline().strip())
        (folder / "1.journal").write_bytes(b"step")
        wait_until((kept / "1.journal").exists)
        if ended == "hub":
            serves._ending.set()
            serves._lines[1].close()
        else:
            rank.kill()
            wait_until((kept / "1.exit").exists)
        assert rank.wait() == -signal.SIGKILL
        wait_until(lambda: not folder.exists())
    hub.close()


def test_a_rank_gets_its_inputs_and_leaves_its_outcome(served, tmp_path):
    folder, line = served
    words, data = line.receive()
    assert (words["name"], data) == ("1.in.0.npy", b"mine")
    assert line.receive()[0]["kind"] == "go"
    outcome = tmp_path / "1.outcome"
    large = random.Random(0).randbytes(2 << 20)
    source = tmp_path / "source"
    source.mkdir()
    (source / "1.outcome").write_bytes(large)
    _Way(line).send(source / "1.outcome")
    line.send("print", b"said\n")
    line.send("exit", status=0)
    assert line.receive()[0]["kind"] == "noted"
    assert outcome.read_bytes() == large
    assert (folder / "1.out").read_bytes() == b"said\n"
    assert (folder / "1.exit").read_text() == "0\n"


def test_a_rank_that_ended_by_itself_was_not_ended_by_the_client(served, tmp_path, monkeypatch):
    """Else it would end its job of Slurm's, in which others still finish."""
    folder, line = served
    monkeypatch.setattr(relay.signal, "signal", lambda *_: None)
    (tmp_path / "far").mkdir()
    mine = Relay(line, 1, tmp_path / "far")
    mine.take_files()
    assert mine.run(["true"], {}) == 0
    wait_until((folder / "1.exit").exists)
    wait_until(mine._over.is_set)  # the hub has closed the connection
    assert not mine.ended


def test_an_outcome_arrives_before_its_rank_ends(served, tmp_path, monkeypatch):
    """One that has failed waits in MPI's end for ranks that are ended when that is known."""
    folder, line = served
    monkeypatch.setattr(relay.signal, "signal", lambda *_: None)
    (tmp_path / "far").mkdir()
    mine = Relay(line, 1, tmp_path / "far")
    mine.take_files()
    waits = 'echo x >1.outcome; while [ ! -e "$0/1.outcome" ]; do sleep 0.02; done'
    assert mine.run(["sh", "-c", waits, str(folder)], {"PATH": os.environ["PATH"]}) == 0
    assert (folder / "1.outcome").read_text() == "x\n"


def test_what_goes_over_a_slow_way_is_squeezed(served, tmp_path, monkeypatch):
    folder, line = served
    numbers = struct.pack("<500000d", *(k / 8 for k in range(500_000)))
    source = tmp_path / "source"
    source.mkdir()
    (source / "1.out.0.npy").write_bytes(numbers)
    monkeypatch.setattr(line, "unanswered_bytes", lambda: way._sent - (1 << 20))
    way = _Way(line)
    way._began -= 10.0
    way.send(source / "1.out.0.npy")
    line.send("exit", status=0)
    wait_until((folder / "1.exit").exists)
    assert (folder / "1.out.0.npy").read_bytes() == numbers
    assert way._sent < 0.7 * len(numbers)


def test_a_chunk_that_grows_beyond_its_bounds_is_refused(served):
    folder, line = served
    line.send("file", b"x", name="1.outcome", first=True, last=True, of=1 << 40)
    wait_until((folder / "1.lost").exists)
    assert not (folder / "1.outcome").exists()


@pytest.mark.parametrize("name", ["../evil", "0.outcome", "1.exit", "cluster.json", "1.outcome/x"])
def test_a_rank_writes_its_own_files_and_no_others(served, name):
    folder, line = served
    before = {path.name for path in folder.iterdir()}
    line.send("file", b"x", name=name, first=True, last=True)
    wait_until(lambda: (folder / "1.lost").exists())
    assert {path.name for path in folder.iterdir()} == before | {"1.lost"}


def test_what_removes_a_folder_is_not_killed_with_what_names_it(tmp_path, monkeypatch):
    """Where the client is on the rank's own machine."""
    folder = tmp_path / "avial-rank-0-x"
    folder.mkdir()
    monkeypatch.setenv("IPP_PROFILE_DIR", f"{tmp_path}/profile")
    remover = _remove_at_our_end(folder)
    wait_until(lambda: b"read" in Path(f"/proc/{remover.pid}/cmdline").read_bytes())
    assert not _names_it(remover.pid, tmp_path)
    assert remover.stdin is not None
    remover.stdin.close()
    wait_until(lambda: not folder.exists())


class _Clock:
    """Of a line whose socket is never ready; a step of its time goes by when it is waited for."""

    def __init__(self, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s, self.owed, self.arrives, self.recent_s = 0.0, 4 << 20, 0, 0.0
        line._socket.close()
        line._socket = self  # type: ignore[assignment]
        line.unanswered_bytes = lambda: self.owed  # type: ignore[method-assign]
        line.is_acknowledged = lambda: self.now_s <= self.recent_s  # type: ignore[method-assign]
        monkeypatch.setattr(relay.time, "monotonic", lambda: self.now_s)

    def send(self, _: memoryview) -> int:
        self.now_s += relay._STEP_S
        self.owed -= min(self.arrives, self.owed)
        raise TimeoutError

    def recv(self, _: int) -> bytes:
        self.send(memoryview(b""))
        return b""


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Line, _Clock]]:
    line, other = pair()
    with monkeypatch.context() as here:
        yield line, _Clock(line, here)
    other.close()


def test_bytes_that_arrive_are_life_whichever_way_nothing_else_comes(silent):
    """4 MiB at 50 kB/s, which take 84 s; then silence."""
    line, clock = silent
    line.patience_s = 1000.0
    clock.arrives, clock.recent_s = 50_000, 84.0
    with pytest.raises(TimeoutError):
        line.send("file", b"x")
    assert 84 < clock.now_s <= 84 + relay.SILENT_S + 2
    clock.owed, clock.recent_s = 4 << 20, clock.now_s + 84.0
    began = clock.now_s
    with pytest.raises(TimeoutError):
        line.receive()
    assert 84 < clock.now_s - began <= 84 + relay.SILENT_S + 2


def test_a_host_that_acknowledges_is_waited_for_and_one_that_does_not_is_lost(silent):
    """Beats alone arrive; the relay there says nothing."""
    line, clock = silent
    line.patience_s, clock.arrives, clock.recent_s = 40.0, 100, 1e9
    with pytest.raises(TimeoutError):
        line.receive()
    assert 47 <= clock.now_s <= 49
    clock.now_s, clock.recent_s = 0.0, 3.0
    with pytest.raises(TimeoutError):
        line.receive()
    assert relay.SILENT_S <= clock.now_s <= relay.SILENT_S + 1


def test_a_beat_does_not_wait_for_what_is_on_its_way():
    hub, rank = pair()
    with hub._lock:
        hub.beat()
    hub.beat()
    assert rank.receive() == ({"kind": "beat"}, b"")
    with _full(hub):
        hub.beat()
    hub.close()
    rank.close()


@contextlib.contextmanager
def _full(line: Line) -> Iterator[None]:
    """Its socket takes no more."""
    line._socket.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            line._socket.send(bytes(1 << 16))
    line._socket.setblocking(True)
    yield


def test_a_connection_that_ends_is_written_down(served):
    folder, line = served
    line.close()
    wait_until(lambda: (folder / "1.lost").exists())
    assert (folder / "1.lost").read_text() == "far\ncontrol connection: the connection was closed\n"
