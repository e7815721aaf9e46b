"""Guardian: ends what a process started when that process is gone, however it went.

A private folder with a socket -> SIGKILL for every process group named on it, and no folder.

    owner ── guardian.socket ──► guardian: knows the groups; sees at once that its owner is gone

The first owner starts it. When an owner goes, everything ends at once; but engines that were to be
kept, and were not in the middle of a run, wait `keep_s` seconds for another owner. The guardian
runs on its own (`python -I -S guardian.py`), without this package.

    own PID     I am the owner now; answered `yours`, or `taken by PID` and hung up
    +PID  -PID  watch, forget the process group of that leader       (from the owner alone)
    last WORDS  a command to run once they are killed, for what is not a process here
    keep        from now on the work outlives me
    busy  idle  a run begins, has ended: nobody else could take up its middle
    end         kill everything; hung up when that is done            (from anybody)

The folder goes as well, unless the owner said `end`: it still has to read there. An owner may end
between the start of a process and the line that names it: on Linux, whatever was started with the
folder in its environment is killed too.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

SOCKET = "guardian.socket"
LEFT = "left"
"""There while the folder's work has no owner; says until when it waits, in seconds since 1970."""

_LOOK_S = 1.0
"""How often a guardian without an owner looks which processes have gone: their ids may be given
to others.
"""


class Guardian:
    """The owner's side. What is watched is killed if this process ends before it said `release`."""

    def __init__(self, folder: Path | None = None, *, keep_s: float = 0.0) -> None:
        """With a `folder`, that goes too, and others may reach the guardian there."""
        self._tells = keep_s > 0  # otherwise all ends with this process, busy or not
        self._line, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as stack:
            handed = [theirs.fileno()]
            if folder is not None:
                listener = stack.enter_context(socket.socket(socket.AF_UNIX))
                listener.bind(str(folder / SOCKET))
                listener.listen()
                handed.append(listener.fileno())
            # It may outlive us: whoever reads our stderr is not to wait for it.
            log = stack.enter_context((folder / "guardian.log").open("wb")) if folder else None
            arguments = [str(keep_s), str(folder or ""), *map(str, handed)]
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=handed,
                start_new_session=True,  # a Ctrl-C is meant for the guarded process alone
            )
        self._say(f"own {os.getpid()}")

    @classmethod
    def joined(cls, folder: Path) -> Guardian | str:
        """Become the owner of what was left there; a string says why not."""
        try:
            line = _connected(folder)
        except OSError:
            return "it has just ended"
        line.sendall(f"own {os.getpid()}\n".encode())
        with line.makefile() as answers:
            answer = answers.readline().strip()
        if answer != "yours":
            line.close()
            return answer or "it has just ended"
        joined = cls.__new__(cls)
        joined._process, joined._line, joined._tells = None, line, True
        return joined

    def watch(self, pid: int) -> None:
        self._say(f"+{pid}")

    def release(self, pid: int) -> None:
        self._say(f"-{pid}")

    def at_end(self, command: Sequence[str]) -> None:
        """To be run once what is watched is killed, even where this process ends well. Words
        without white space; nothing for none.
        """
        if command:
            self._say(f"last {' '.join(command)}")

    def keep(self) -> None:
        """From now on what is watched outlives this process, for a while."""
        self._say("keep")

    def busy(self) -> None:
        if self._tells:
            self._say("busy")

    def idle(self) -> None:
        if self._tells:
            self._say("idle")

    def leave(self) -> None:
        """Owner no more."""
        self._line.close()

    def close(self) -> None:
        """End the guardian; what it still watches is killed."""
        self._say("end")
        _hung_up(self._line)
        self._line.close()
        if self._process is not None:
            self._process.wait()

    def _say(self, line: str) -> None:
        # A guardian that somebody killed guards no more; the work goes on.
        with contextlib.suppress(OSError):
            self._line.sendall(f"{line}\n".encode())


def end_from_outside(folder: Path) -> bool:
    """Ask the guardian there to end everything; whether there was one."""
    try:
        line = _connected(folder)
    except OSError:
        return False
    with line, contextlib.suppress(OSError):
        line.sendall(b"end\n")
        _hung_up(line)
    return True


def _connected(folder: Path) -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    try:
        line.connect(str(folder / SOCKET))
    except OSError:
        line.close()
        raise
    return line


def _hung_up(line: socket.socket) -> None:
    """Wait for the other side to close the connection."""
    with contextlib.suppress(OSError):
        while line.recv(1024):
            pass


class Watch:
    """The guardian's side."""

    def __init__(
        self, first: socket.socket, listener: socket.socket | None, folder: str, keep_s: float
    ) -> None:
        self._listener, self._folder, self._keep_s = listener, Path(folder), keep_s
        self._has_folder = bool(folder)
        self._said = {first: b""}
        self._watched: dict[int, None] = {}
        self._last: list[str] = []
        self._owner: socket.socket | None = None
        self._owner_pid = ""
        self._kept = self._busy = self._over = self._by_owner = False
        self._until = float("inf")

    def follow(self) -> None:
        """Listen until everything is to end, and end it."""
        while not self._over and time.monotonic() < self._until:
            wait = None if self._owner or not self._kept else _LOOK_S
            doors = [self._listener] if self._listener else []
            ready, _, _ = select.select([*doors, *self._said], [], [], wait)
            for line in ready:
                if line is self._listener:
                    self._said[line.accept()[0]] = b""
                elif line in self._said:
                    self._hear(line)
            if self._owner is None:
                self._watched = {pid: None for pid in self._watched if _exists(pid)}
                self._over |= self._kept and not self._watched
        self._end()

    def _hear(self, line: socket.socket) -> None:
        try:
            said = line.recv(4096)
        except OSError:
            said = b""
        if not said:
            self._drop(line)
            return
        *words, self._said[line] = (self._said[line] + said).split(b"\n")
        for word in words:
            if line in self._said:
                self._heed(line, word.decode())

    def _heed(self, line: socket.socket, word: str) -> None:
        if word == "end":
            self._over, self._by_owner = True, line is self._owner
        elif word.startswith("own "):
            self._new_owner(line, word[4:])
        elif line is not self._owner:
            self._drop(line)
        elif word[0] == "+":
            self._watched[int(word[1:])] = None
        elif word[0] == "-":
            self._watched.pop(int(word[1:]), None)
        elif word.startswith("last "):
            self._last = word.split()[1:]
        elif word == "keep":
            self._kept = True
        else:
            self._busy = word == "busy"

    def _new_owner(self, line: socket.socket, pid: str) -> None:
        taken = self._owner is not None
        with contextlib.suppress(OSError):
            line.sendall(b"taken by %s\n" % self._owner_pid.encode() if taken else b"yours\n")
        if taken:
            self._drop(line)
            return
        self._owner, self._owner_pid, self._until = line, pid, float("inf")
        if self._has_folder:
            (self._folder / LEFT).unlink(missing_ok=True)

    def _drop(self, line: socket.socket) -> None:
        del self._said[line]
        line.close()
        if line is not self._owner:
            return
        self._owner = None
        if self._busy or not self._kept or self._keep_s <= 0:
            self._over = True
            return
        self._until = time.monotonic() + self._keep_s
        (self._folder / LEFT).write_text(str(time.time() + self._keep_s), encoding="utf-8")

    def _end(self) -> None:
        if self._listener:
            self._listener.close()
        for pid in self._watched:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        if self._has_folder:
            _kill_unnamed(self._folder)
        if self._last:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(self._last, timeout=_LAST_S, check=False, capture_output=True)
        if self._has_folder and not self._by_owner:
            _remove(self._folder)
        for line in self._said:
            line.close()


_LAST_S = 10.0
"""How long the last command may take: its owner, where there is one, waits for it."""


def _kill_unnamed(folder: Path) -> None:
    """Processes with a variable that names something in the folder; what they start meanwhile, too.
    They are ours: the folder is private and its name unique.
    """
    for _ in range(_MOST_LOOKS):
        found = [pid for pid in _processes() if _names_it(pid, folder)]
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return
        time.sleep(0.02)


_MOST_LOOKS = 50
"""Where one cannot be killed at once, in an uninterruptible call."""


def _processes() -> list[int]:
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return []  # macOS


def _names_it(pid: int, folder: Path) -> bool:
    """A zombie has no environment any more."""
    wanted = f"={folder}/".encode()
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False  # it has ended, or is another user's
    return pid != os.getpid() and any(wanted in variable + b"/" for variable in variables)


def _remove(folder: Path) -> None:
    """Those who were killed may write there for a moment longer."""
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.02)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    _keep_s, _folder, *_handed = sys.argv[1:]
    _first, *_doors = (socket.socket(fileno=int(descriptor)) for descriptor in _handed)
    Watch(_first, _doors[0] if _doors else None, _folder, float(_keep_s)).follow()
