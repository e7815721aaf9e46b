"""Relay: a rank's files, and its life, over the network.

A rank on another host writes into a folder of that host; what it writes comes to the folder that
the client reads, as if the rank wrote there. One connection for each rank, which is its lease too:

    client's host                                     node
    FOLDER/ ◄── hub ◄─────────── TCP ─────────────── relay ──► TMPDIR/avial-rank-XXXX/
                 │    job, inputs, beats ──►           │             ▲
                 │    ◄── journal, prints, results     └─ starts ─► rank
       guardian ─┘        status, beats                   and ends

The rank is ended, and its folder goes, when the hub says so or is gone, and `lease` seconds after
it fell silent (a closed laptop, a cut cable). The hub writes down whom it has, and whom it lost:

    RANK.here   its host; as soon as it has connected
    RANK.exit   the status that the rank ended with (journal.py)
    RANK.lost   its host, and how the connection ended, where there came no status; also where the
                rank gets no answer from another's host any more (MPI's connections)

Both ends run on their own (`python -I -S relay.py hub | rank`), without this package. A rank that
ipyparallel's launchers have started finds its relay beside it (`beside`: as its child). Every frame
has a code (HMAC-SHA-256, of a token that never travels, both sides' nonces, and its number).
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import hmac
import json
import os
import re
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING or __package__:
    from avial_lab.runtime.rank import squeeze
else:  # on its own: the file beside this one
    sys.path.append(str(Path(__file__).parent))
    import squeeze

HUB = "AVIAL_RELAY"
"""In a rank's environment: `ADDRESS PORT TOKEN LEASE_S`."""

FOLDER = "AVIAL_RANK_FOLDER"
"""In the environment of what the relay starts: the folder on its host."""

OWN_JOB = "AVIAL_OWN_JOB"
"""In the environment of ranks whose job of Slurm was made for them, and is to end with them."""

PLACE = "{folder}"
"""Stands for that folder in a rank's command."""

BEAT_S = 1.0
SILENT_S = 7.0
"""After which the hub takes a rank's host for lost, unless bytes still arrive there."""

RETRIES = 5
"""How often a packet of MPI's is sent again before its host is taken for lost: for 6 s (RFC 6298,
with Linux's first 0.2 s, which double).
"""

PROBES = 4
"""How often a connection that is idle may be asked in vain whether it is alive."""

_ASKED = {"UCX_TCP_KEEPIDLE": "3s", "UCX_TCP_KEEPINTVL": "1s"}
"""Of a rank: when it asks first, and how often then."""

LEASE_S = 40.0
"""After which a rank takes the client for lost, where nobody said otherwise."""

_LOOK_S = 0.05
_CONNECT_S = 8.0
_CHUNK = 1 << 20
_MOST_HEADER = 1 << 12
LAST_WORDS_S = 3.0
"""How long either side waits for the other's last word."""

_FRAME = struct.Struct(">II")
_MOST_PRINTED = 32 << 20


class Forged(Exception):
    """A frame that was not written by whom we speak with."""


class Line:
    """One end of a connection: frames of a few words and bytes, in order.

    limit_s: how long nothing may arrive, neither here nor there, before a TimeoutError. patience_s:
    how much longer nothing may come from a machine that acknowledges what we send: it is busy.
    """

    def __init__(self, connection: socket.socket, token: bytes, *, hub: bool) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(_STEP_S)
        self._socket, self._lock = connection, threading.Lock()
        self.peer = "".join(map(str, connection.getpeername()[:1]))  # its address
        self.limit_s, self.patience_s = SILENT_S, 0.0
        mine = secrets.token_bytes(16)
        connection.sendall(mine)
        theirs = self._exactly(16)
        first, second = (mine, theirs) if hub else (theirs, mine)
        self._key = hmac.digest(token, first + second, "sha256")
        self._ways = (b"hub", b"rank") if hub else (b"rank", b"hub")
        self._sent = self._taken = 0

    def send(self, kind: str, payload: bytes = b"", **words: object) -> None:
        """Takes as long as it takes, while any of it arrives: of a slow link that is its life."""
        with self._lock:
            self._put(kind, payload, words)

    def beat(self) -> None:
        """Says that we are here, unless something is on its way, which says so as well."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            door = select.poll()
            door.register(self._socket, select.POLLOUT)
            if door.poll(0):
                self._put("beat", b"", {})
        finally:
            self._lock.release()

    def _put(self, kind: str, payload: bytes, words: dict[str, object]) -> None:
        header = json.dumps({"kind": kind, **words}).encode()
        frame = _FRAME.pack(len(header), len(payload)) + header + payload
        code = self._code(self._ways[0], self._sent, frame)
        self._sent += 1
        left = memoryview(frame + code)
        silence = _Silence(self)
        while left:
            try:
                left = left[self._socket.send(left) :]
                silence = _Silence(self)
            except TimeoutError:
                if silence.lasted_s() > self.limit_s:
                    raise

    def receive(self) -> tuple[dict[str, object], bytes]:
        """The next frame; EOFError when the other side has gone, TimeoutError when it is silent."""
        sizes = self._exactly(_FRAME.size)
        header, payload = _FRAME.unpack(sizes)
        if header > _MOST_HEADER or payload > _CHUNK:
            raise Forged("a frame that is too long")
        rest = self._exactly(header + payload)
        code = self._exactly(hashlib.sha256().digest_size)
        if not hmac.compare_digest(code, self._code(self._ways[1], self._taken, sizes + rest)):
            raise Forged("a frame with a wrong code")
        self._taken += 1
        return json.loads(rest[:header]), rest[header:]

    def unanswered_bytes(self) -> int:
        """Of what was sent: what the other side's machine has not acknowledged yet; 0 elsewhere
        than on Linux.
        """
        with contextlib.suppress(OSError, ImportError):
            import termios
            from fcntl import ioctl

            return struct.unpack("i", ioctl(self._socket, termios.TIOCOUTQ, b"\0" * 4))[0]
        return 0

    def is_acknowledged(self) -> bool:
        """Whether the other side's machine has just acknowledged something (Linux): it is there,
        though it may have no time to say more.
        """
        with contextlib.suppress(OSError, AttributeError, struct.error):
            facts = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
            return struct.unpack_from("I", facts, _LAST_ACK)[0] < 1000 * _RECENT_S
        return False

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = self._piece(min(count - len(data), _CHUNK))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    def _piece(self, count: int) -> bytes:
        """At most so many bytes."""
        silence = _Silence(self)
        while True:
            try:
                return self._socket.recv(count)
            except TimeoutError:
                lasted_s = silence.lasted_s()
                if lasted_s < self.limit_s:
                    continue
                if lasted_s > self.limit_s + self.patience_s or not self.is_acknowledged():
                    raise

    def _code(self, way: bytes, number: int, frame: bytes) -> bytes:
        return hmac.digest(self._key, way + number.to_bytes(8, "big") + frame, "sha256")


class _Silence:
    """How long nothing has arrived that this end of a line sent."""

    def __init__(self, line: Line) -> None:
        self._line, self._since_s = line, time.monotonic()
        self._owed = line.unanswered_bytes()

    def lasted_s(self) -> float:
        before, self._owed = self._owed, self._line.unanswered_bytes()
        if self._owed < before - _MORE_THAN_BEATS:
            self._since_s = time.monotonic()
        return time.monotonic() - self._since_s


_STEP_S = 1.0
"""How often who waits for the other side looks whether anything moves."""

_MORE_THAN_BEATS = 1 << 12
"""Bytes that arrive within a step: of beats alone they say no more than that a machine is there."""

_RECENT_S = 3 * BEAT_S
_LAST_ACK = 56
"""Of `tcpi_last_ack_recv`, in milliseconds, in Linux's `struct tcp_info`."""

GONE = (OSError, EOFError, Forged)
"""What a connection ends with; a time limit is an OSError."""


_SAMPLES, _SAMPLE = 16, 1 << 12
"""Places in a file at which it is looked at, and so many bytes of it."""

_MOST_APART_S = 2.0
"""Times of one file on two hosts, which round them."""

_GIVEN = r"job\.pickle|{rank}\.parts|{rank}\.in\.\d+\.npy"
_LEFT = r"{rank}\.(journal|fault|outcome|out\.\d+\.npy)"
"""Names of the files that a rank is given, and that it leaves: nothing else is written."""


class Seen(NamedTuple):
    """Of a file: enough to know it again where its name may be another file's."""

    size: int
    changed_s: float
    sample: str

    @classmethod
    def of(cls, path: str) -> Seen:
        with Path(path).open("rb") as file:  # before its facts: a network's file system looks anew
            facts = os.fstat(file.fileno())
            sample = hashlib.sha256()
            for k in range(_SAMPLES):
                file.seek(facts.st_size * k // _SAMPLES)
                sample.update(file.read(_SAMPLE))
        return cls(facts.st_size, facts.st_mtime, sample.hexdigest())


def unlike(path: str, seen: Seen) -> str:
    """Why a file here is not the one that the client saw: `cannot be read: …`; empty where it
    is.
    """
    try:
        here = Seen.of(path)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    same = here.size == seen.size and here.sample == seen.sample
    if not same or abs(here.changed_s - seen.changed_s) > _MOST_APART_S:
        return "is another file"
    return ""


class _Way:
    """The way of files over a connection: squeezed, once it is known to be slower than that."""

    def __init__(self, line: Line) -> None:
        self._line, self._squeezer = line, squeeze.Squeezer()
        self._began, self._sent, self._squeezed = time.monotonic(), 0, False
        self._bytes_per_s = 0.0

    def send(self, path: Path) -> None:
        """In chunks."""
        left, first = path.stat().st_size, True
        with path.open("rb") as file:
            while left or first:
                data = file.read(min(_CHUNK, left))
                left -= len(data)
                self._measure()
                sent = bytes(self._squeezer.part(path.name, memoryview(data), self._bytes_per_s))
                words = {"name": path.name, "first": first, "last": not left}
                if len(sent) < len(data):
                    self._squeezed, words = True, words | {"of": len(data)}
                self._line.send("file", sent, **words)
                self._sent += len(sent)
                first = False

    def _measure(self) -> None:
        """Until it is squeezed: from then on the compressor may be what is slow."""
        if self._squeezed or self._sent < _CHUNK:
            return
        arrived = self._sent - self._line.unanswered_bytes()
        if arrived >= _CHUNK:
            self._bytes_per_s = arrived / max(time.monotonic() - self._began, 1e-6)


def _keep(folder: Path, words: dict[str, object], data: bytes, *, allowed: str) -> None:
    """A chunk of a file. Who reads the file sees all of it, or what was there before."""
    name = str(words["name"])
    if not re.fullmatch(allowed, name):
        raise Forged(name)
    partial = folder / f"{name}.partial"
    nbytes = int(str(words.get("of", len(data))))
    if nbytes > _CHUNK:
        raise Forged("a chunk that is too long")
    with partial.open("wb" if words["first"] else "ab") as file:
        file.write(squeeze.part_of(memoryview(data), nbytes))
    if words["last"]:
        partial.rename(folder / name)


def is_here(folder: Path, rank: int) -> bool:
    """Whether the rank has connected to the hub of that folder."""
    return (folder / f"{rank}.here").exists()


# -- the client's end ------------------------------------------------------------------------------


class Hub:
    """Takes the ranks' connections, until it is told to end them (SIGTERM) or is killed."""

    def __init__(self, folder: Path, listener: socket.socket, token: bytes) -> None:
        self._folder, self._listener, self._token = folder, listener, token
        self._lines: dict[int, Line] = {}
        self._hosts: dict[str, str] = {}  # by their addresses
        self._heard: dict[str, float] = {}  # of which address, when last
        self._ending = threading.Event()

    def serve(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: self._ending.set())
        threading.Thread(target=self._accept, daemon=True).start()
        while not self._ending.wait(BEAT_S):
            for line in list(self._lines.values()):
                with contextlib.suppress(*GONE):
                    line.beat()
        self._end()

    def _end(self) -> None:
        """Every rank that can be reached has ended, and its folder is gone."""
        self._listener.close()
        for line in list(self._lines.values()):
            threading.Thread(target=_say, args=(line, "end"), daemon=True).start()
        until = time.monotonic() + LAST_WORDS_S
        while self._lines and time.monotonic() < until:
            time.sleep(0.01)

    def _accept(self) -> None:
        while not self._ending.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._attend, args=(connection,), daemon=True).start()

    def _attend(self, connection: socket.socket) -> None:
        try:
            line = Line(connection, self._token, hub=True)
            words, _ = line.receive()
            rank, host = int(str(words["rank"])), str(words["host"])
        except (*GONE, KeyError, ValueError):
            connection.close()  # somebody else
            return
        line.patience_s = LEASE_S
        self._lines[rank] = line
        here = connection.getpeername()[0]
        self._hosts[here] = host
        self._write(f"{rank}.here", host.encode())
        over, how = False, "control connection: the connection was closed"
        try:
            self._give(line, rank)
            while not over:
                words, data = line.receive()
                self._heard[here] = time.monotonic()
                if words["kind"] == "cut":
                    self._note_cut(rank, host, str(words["address"]))
                over = self._take(rank, words, data)
                if over:
                    line.send("noted")
        except TimeoutError:
            how = f"control connection: no answer for {SILENT_S:g} s"
        except GONE:
            pass
        if not over and not self._ending.is_set():
            self._write(f"{rank}.lost", f"{host}\n{how}\n".encode())
        line.close()
        self._lines.pop(rank, None)

    def _note_cut(self, rank: int, host: str, far: str) -> None:
        """Where we still hear the other host: else it is that host which is lost."""
        there = [line for line in list(self._lines.values()) if line.peer == far]
        heard = time.monotonic() - self._heard.get(far, 0) < _RECENT_S
        if heard or any(line.is_acknowledged() for line in there):
            how = f"MPI connection: no answer from {self._hosts[far]}, which the client reaches"
            self._write(f"{rank}.lost", f"{host}\n{how}\n".encode())

    def _give(self, line: Line, rank: int) -> None:
        """What the rank needs before it begins."""
        files = self._folder / f"{rank}.files"
        if files.exists():
            self._settle(line, rank, files.read_bytes())
        given = (self._folder / "job.pickle", self._folder / f"{rank}.parts")
        way = _Way(line)
        for path in (*given, *_numbered(self._folder, rank, "in")):
            if path.exists():
                way.send(path)
        line.send("go")

    def _settle(self, line: Line, rank: int, files: bytes) -> None:
        """The client gives what the rank does not find in files on its host."""
        line.send("look", files)
        words, reasons = line.receive()
        if words["kind"] != "seen":
            raise Forged(str(words["kind"]))
        self._write(f"{rank}.seen", reasons)
        given = self._folder / f"{rank}.given"
        while not given.exists():
            if self._ending.wait(_LOOK_S) or not self._folder.exists():
                raise EOFError

    def _take(self, rank: int, words: dict[str, object], data: bytes) -> bool:
        """Whether that was the rank's last word."""
        kind = words["kind"]
        if kind == "exit":
            self._write(f"{rank}.exit", f"{words['status']}\n".encode())
            return True
        if kind == "print":
            with (self._folder / f"{rank}.out").open("ab") as file:
                file.write(data)
        if kind == "file":
            _keep(self._folder, words, data, allowed=_LEFT.format(rank=rank))
        return False

    def _write(self, name: str, data: bytes) -> None:
        """A reader sees all of it or what was there before."""
        _keep(self._folder, {"name": name, "first": True, "last": True}, data, allowed=".*")


def _say(line: Line, kind: str) -> None:
    with contextlib.suppress(*GONE):
        line.send(kind)


def _numbered(folder: Path, rank: int, way: str) -> list[Path]:
    return sorted(folder.glob(f"{rank}.{way}.*.npy"))


def hub(folder: Path, address: str) -> None:
    """Writes its port as soon as it listens; the token is a line of its input."""
    token = bytes.fromhex(sys.stdin.readline())
    listener = socket.create_server((address, 0), backlog=256)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    Hub(folder, listener, token).serve()


# -- the rank's end --------------------------------------------------------------------------------


class Relay:
    """One rank: its process, the folder that it works in, and what became of both."""

    def __init__(self, line: Line, rank: int, folder: Path) -> None:
        self._line, self._rank, self.folder = line, rank, folder
        self.address = ""
        """Of this host, on the way to the hub."""
        self._sent: dict[str, bytes] = {}
        self._printed = 0
        self._has_left = False
        self._over = threading.Event()
        self._noted = threading.Event()
        self.lapsed = False
        self.ended = False
        """Whether the client ended the rank, or was gone before it had its status."""

    def take_files(self) -> None:
        while True:
            words, data = self._line.receive()
            if words["kind"] == "go":
                return
            if words["kind"] == "look":
                there = {path: Seen(*facts) for path, facts in json.loads(data).items()}
                reasons = {path: unlike(path, seen) for path, seen in there.items()}
                self._line.send("seen", json.dumps(reasons).encode())
            if words["kind"] == "file":
                _keep(self.folder, words, data, allowed=_GIVEN.format(rank=self._rank))

    def run(self, program: Sequence[str], environment: dict[str, str]) -> int:
        """Its status, as a shell has it; the connection is told before this returns."""
        with (self.folder / f"{self._rank}.out").open("ab") as output:
            process = subprocess.Popen(
                [word.replace(PLACE, str(self.folder)) for word in program],
                env=environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, close_fds=False,  # MPI's start hands a connection down
                preexec_fn=_die_with_parent,
            )  # fmt: skip
        return self.stay_with(process)

    def stay_with(self, process: subprocess.Popen[bytes] | _Parent) -> int:
        """Its status; as `run`."""
        signal.signal(signal.SIGTERM, lambda *_: self._over.set())
        threading.Thread(target=self._listen, daemon=True).start()
        status = self._follow(process)
        # Of a rank that ended by itself the connection is closed, too, as soon as that is noted.
        self.ended = self._over.is_set()
        if not self.ended:
            with contextlib.suppress(*GONE):
                self._send_last()
                self._line.send("exit", status=status)
                # mpiexec ends the other ranks when this one is gone: the status comes first.
                self._await_noted()
        return status

    def _await_noted(self) -> None:
        """As long as what was sent arrives, and `LAST_WORDS_S` more."""
        silence = _Silence(self._line)
        while not self._noted.wait(_STEP_S) and silence.lasted_s() < LAST_WORDS_S:
            continue

    def _follow(self, process: subprocess.Popen[bytes] | _Parent) -> int:
        beat = time.monotonic()
        while process.poll() is None and not self._over.is_set():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_S)
            try:
                self._send_news()
                if time.monotonic() > beat:
                    self._line.beat()
                    beat = time.monotonic() + BEAT_S
                    if far := unanswered(process.pid):
                        self._line.send("cut", address=far)
            except GONE:
                # The other direction says whether the client is gone, or only slow.
                continue
        if process.poll() is None:
            process.kill()
        status = process.wait()
        return status if status >= 0 else 128 - status

    def _listen(self) -> None:
        try:
            while True:
                words, _ = self._line.receive()
                if words["kind"] == "noted":
                    self._noted.set()
                if words["kind"] == "end":
                    break
        except TimeoutError:
            self.lapsed = True
        except GONE:
            pass
        self._noted.set()
        self._over.set()

    def _send_news(self) -> None:
        """What changed since the last time."""
        with contextlib.suppress(FileNotFoundError):
            self._send_changed("journal")
        path = self.folder / f"{self._rank}.out"
        size = path.stat().st_size
        while size > self._printed:
            with path.open("rb") as file:
                file.seek(self._printed)
                data = file.read(min(_CHUNK, size - self._printed))
            self._line.send("print", data)
            self._printed += len(data)
        if size > _MOST_PRINTED:
            os.truncate(path, 0)
            self._printed = 0
        if not self._has_left and (self.folder / f"{self._rank}.outcome").exists():
            self._send_results()

    def _send_changed(self, kind: str) -> None:
        name = f"{self._rank}.{kind}"
        data = (self.folder / name).read_bytes()
        if data != self._sent.get(name):
            self._line.send("file", data, name=name, first=True, last=True)
            self._sent[name] = data

    def _send_results(self) -> None:
        """What the rank leaves, its outcome last. It may not end before the others do: one that
        has failed waits for them in MPI's end, and they for it.
        """
        way = _Way(self._line)
        for path in _numbered(self.folder, self._rank, "out"):
            way.send(path)
        way.send(self.folder / f"{self._rank}.outcome")
        self._has_left = True

    def _send_last(self) -> None:
        self._send_news()
        fault = self.folder / f"{self._rank}.fault"
        if fault.exists() and fault.stat().st_size:
            _Way(self._line).send(fault)


def unanswered(pid: int) -> str:
    """The address from which a process's connection gets no answer, whatever is sent again; empty
    where there is none (Linux, IPv4).
    """
    try:
        lines = Path(f"/proc/{pid}/net/tcp").read_text(encoding="utf-8").splitlines()[1:]
    except OSError:
        return ""
    stuck: dict[str, str] = {}
    for line in lines:
        _, _, far, _, _, timer, retries, _, probes, inode, *_ = line.split()
        sending = timer.startswith("01:") and int(retries, 16) >= RETRIES
        if sending or (timer.startswith("02:") and int(probes) >= PROBES):
            stuck[f"socket:[{inode}]"] = far
    if not stuck:
        return ""
    for entry in _entries(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            far = stuck.get(str(entry.readlink()))
            if far is not None:
                word = int(far.partition(":")[0], 16)
                return socket.inet_ntoa(word.to_bytes(4, sys.byteorder))
    return ""


def rank(program: Sequence[str]) -> int:
    """Start `program` as the rank that MPI's start says we are, and stay with it."""
    environment = {name: value for name, value in os.environ.items() if name != HUB}

    def run(relay: Relay) -> int:
        profile = relay.folder / "profile"  # which ipyparallel's engines want
        profile.mkdir()
        given = {FOLDER: str(relay.folder), "IPP_PROFILE_DIR": str(profile)}
        known = _ASKED | environment | given
        known |= _network(relay.address, known) | _crowd(known)
        return relay.run(program, known)

    relay, status = _relayed(_rank_number(), run)
    if relay.lapsed:
        _end_starter(os.getppid())
    if relay.ended and OWN_JOB in os.environ:
        # An srun that was killed leaves its allocation behind, until the time limit.
        with contextlib.suppress(OSError, subprocess.TimeoutExpired, KeyError):
            subprocess.run(["scancel", os.environ["SLURM_JOB_ID"]], timeout=10, check=False)
    return status


def beside(number: int) -> int:
    """Stay with the rank of that number, which has started us, and learns the folder for its files
    from our first line.
    """
    parent = _Parent(os.getppid())
    starter = _parent_of(parent.pid)

    def stay(relay: Relay) -> int:
        (relay.folder / f"{number}.out").touch()
        sys.stdout.write(f"{relay.folder}\n")
        sys.stdout.flush()
        return relay.stay_with(parent)

    relay, status = _relayed(number, stay)
    parent.kill()  # where the hub went before we stayed with it
    if relay.lapsed:
        _end_starter(starter)
    return status


def _relayed(number: int, stay: Callable[[Relay], int]) -> tuple[Relay, int]:
    """The relay of that rank, and what `stay` returns, which has its folder as long as it lasts;
    SystemExit where there is no hub.
    """
    address, port, token, lease_s = os.environ[HUB].split()
    here = socket.gethostname()
    try:
        connection = socket.create_connection((address, int(port)), timeout=_CONNECT_S)
        line = Line(connection, bytes.fromhex(token), hub=False)
    except (OSError, EOFError) as error:
        message = f"rank {number} on {here} cannot reach {address}:{port}: {error}"
        raise SystemExit(message) from None
    folder = Path(tempfile.mkdtemp(prefix=f"avial-rank-{number}-"))
    remover = _remove_at_our_end(folder)
    relay = Relay(line, number, folder)
    try:
        relay.address = connection.getsockname()[0]
        line.limit_s = float(lease_s)
        line.send("hello", rank=number, host=here, pid=os.getpid())
        relay.take_files()
        status = stay(relay)
    except GONE as error:
        sys.stderr.write(f"rank {number} on {here} lost {address}: {error or 'closed'}\n")
        status = 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        line.close()
        remover.stdin.close()  # pyright: ignore[reportOptionalMemberAccess]
    return relay, status


class _Parent:
    """The process that started this one: what a Popen has of one that this one started, but for its
    status, which only its own parent learns.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        return None if os.getppid() == self.pid else 0

    def wait(self, timeout: float = float("inf")) -> int:
        until = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("", timeout)
            time.sleep(_LOOK_S)
        return 0

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self.poll() is None:
                os.kill(self.pid, signal.SIGKILL)


def _parent_of(pid: int) -> int:
    """0 where that is not known (Linux)."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
        )
    return 0


def _rank_number() -> int:
    """As mpiexec, Open MPI's, or srun has it."""
    for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"):
        if name in os.environ:
            return int(os.environ[name])
    raise SystemExit("not started as an MPI rank: its environment has no rank")


def _remove_at_our_end(folder: Path) -> subprocess.Popen[bytes]:
    """However that comes: mpiexec kills its ranks, this process among them. The folder stays as
    long as what is returned. It takes no environment along: on the client's own machine a guardian
    kills what names the cluster's folder there.
    """
    process = subprocess.Popen(
        ["sh", "-c", 'read -r _; rm -rf -- "$0"', str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True, cwd="/", env={"PATH": os.environ.get("PATH", os.defpath)},
    )  # fmt: skip
    process.returncode = 0  # nobody waits for it
    return process


def _die_with_parent() -> None:
    """In the child, before it is the rank: the kernel ends it when the relay is killed (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _network(address: str, environment: dict[str, str]) -> dict[str, str]:
    """MPI is to listen on the interface by which the client is reached, not on every one; where
    there is a faster network than Ethernet, that is MPI's own choice.
    """
    if "UCX_NET_DEVICES" in environment or any(_entries("/sys/class/infiniband")):
        return {}
    name = next((name for name, its in _interfaces() if its == address), "")
    return {"UCX_NET_DEVICES": name} if name else {}


def _crowd(environment: dict[str, str]) -> dict[str, str]:
    """As `processes.environment` has it for ranks that share cores."""
    here = next((environment[n] for n in ("MPI_LOCALNRANKS", "AVIAL_PPN") if n in environment), "1")
    if int(here) <= len(os.sched_getaffinity(0)):
        return {}
    return {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "10"}


def _entries(folder: str) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from Path(folder).iterdir()


def _interfaces() -> Iterator[tuple[str, str]]:
    """Their names and IPv4 addresses (Linux)."""
    try:
        from fcntl import ioctl
    except ImportError:
        return
    ask = 0x8915  # SIOCGIFADDR
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                answer = ioctl(any_socket.fileno(), ask, struct.pack("256s", name.encode()[:15]))
                yield name, socket.inet_ntoa(answer[20:24])


def _end_starter(pid: int) -> None:
    """mpiexec's proxy on this host would wait for the client for ever."""
    with contextlib.suppress(OSError):
        if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").startswith("hydra"):
            os.kill(pid, signal.SIGKILL)


_MAIN: dict[str, Callable[..., object]] = {"hub": hub, "rank": rank}

if __name__ == "__main__":
    _role, *_rest = sys.argv[1:]
    if _role == "hub":
        hub(Path(_rest[0]), _rest[1])
    elif _role == "beside":
        sys.exit(beside(int(_rest[0])))
    else:
        sys.exit(rank(_rest))
