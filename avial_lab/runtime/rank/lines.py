"""Calls to an engine on its own machine, past the controller: 0.1 ms in place of 5.

A call and arrays -> its answer, over a Unix socket in the cluster's private folder, and large
arrays through memory that both sides see. The engine reads it in its event loop, in the thread that
ipyparallel's calls run in: one after the other.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import pickle
import socket
import struct
import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

_SIZE = struct.Struct("<Q")
_RECEIVED_BYTES = 1 << 16

STAGE_BYTES, PARTS = 1 << 20, 4
"""Of each part of the memory that both ends see: it stays in a core's cache."""

LEAST_STAGED = 1 << 18
"""Bytes of an array from which on it goes through that memory."""

PATIENCE_S = 0.05

_READY, _TAKEN = b"r", b"t"


class Line:
    """One end of a line: a socket, and the memory that both ends see, where the system has such.

    Arrays that are large go through its parts in turn: one end fills some while the other copies
    what is in others. look: called where the other end lets wait for `PATIENCE_S`, once more each
    time; raises where it is not to be waited for any longer.
    """

    def __init__(self, end: socket.socket, stage: np.ndarray | None = None) -> None:
        self.end, self.stage = end, stage
        self.look: Callable[[], None] = wait_on
        self._ahead = bytearray()

    def be_patient(self) -> None:
        """From now on `look` is called."""
        patience = struct.pack("ll", 0, int(PATIENCE_S * 1e6))
        for direction in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self.end.setsockopt(socket.SOL_SOCKET, direction, patience)

    def close(self) -> None:
        self.end.close()

    def write(self, data: bytes | memoryview) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self.end.send(rest) :]
            except BlockingIOError:
                self.look()

    def read(self, size: int, ahead: int = 0) -> bytearray:
        """So many bytes; EOFError where the other side has gone. ahead: that may be taken with them
        where they are there: of this message, since whoever waits for the next one polls.
        """
        while len(self._ahead) < size:
            try:
                got = self.end.recv(max(size - len(self._ahead), ahead))
            except BlockingIOError:
                self.look()
                continue
            if not got:
                raise EOFError
            self._ahead += got
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        return data

    def putting(self, data: memoryview) -> Generator[None]:
        """A large array's bytes, to the other end's `fill`; comes back after each part."""
        if self.stage is None:
            self.write(data)
            return
        source, waiting = np.frombuffer(data, np.uint8), 0
        for k, low in enumerate(range(0, len(source), STAGE_BYTES)):
            if waiting == PARTS:
                self.read(1)
                waiting -= 1
            part = source[low : low + STAGE_BYTES]
            self.stage[k % PARTS, : len(part)] = part
            self.write(_READY)
            waiting += 1
            yield
        self.read(waiting)

    def fill(self, target: np.ndarray) -> None:
        """Flat bytes, with what the other end has `put`."""
        if self.stage is None:
            _fill(self, target.data)
            return
        for k, low in enumerate(range(0, len(target), STAGE_BYTES)):
            part = target[low : low + STAGE_BYTES]
            self.read(1)
            part[:] = self.stage[k % PARTS, : len(part)]
            self.write(_TAKEN)


def wait_on() -> None:
    """The other end will go on, or be gone."""


def _fill(line: Line, target: memoryview) -> None:
    ahead = line.read(min(len(line._ahead), len(target)))
    target[: len(ahead)] = ahead
    have = len(ahead)
    while have < len(target):
        try:
            got = line.end.recv_into(target[have:])
        except BlockingIOError:
            line.look()
            continue
        if not got:
            raise EOFError
        have += got


def connected(path: str) -> Line:
    """The first end, of a socket that the other one listens at."""
    end = socket.socket(socket.AF_UNIX)
    end.connect(path)
    if not hasattr(os, "memfd_create"):
        end.sendall(b"-")
        return Line(end)
    memory = os.memfd_create("avial-line")
    try:
        os.ftruncate(memory, PARTS * STAGE_BYTES)
        socket.send_fds(end, [b"m"], [memory])
        return Line(end, _stage(memory))
    finally:
        os.close(memory)


def accepted(end: socket.socket) -> Line:
    """The second one."""
    _, memories, _, _ = socket.recv_fds(end, 1, 1)
    if not memories:
        return Line(end)
    try:
        return Line(end, _stage(memories[0]))
    finally:
        os.close(memories[0])


def _stage(memory: int) -> np.ndarray:
    mapped = mmap.mmap(memory, PARTS * STAGE_BYTES)
    return np.frombuffer(mapped, np.uint8).reshape(PARTS, STAGE_BYTES)


def send(line: Line, value: object) -> None:
    """The value, and arrays in it as they are in memory."""
    for _ in sending(line, value):
        pass


def sending(line: Line, value: object) -> Generator[None]:
    """The same, part by part: arrays to several lines can go at once."""
    kept: list[pickle.PickleBuffer] = []
    text = pickle.dumps(value, protocol=5, buffer_callback=kept.append)
    parts = [buffer.raw() for buffer in kept]
    sizes = [len(text), *(part.nbytes for part in parts)]
    small = [part for part in parts if part.nbytes < LEAST_STAGED]
    line.write(b"".join([_SIZE.pack(len(sizes)), *map(_SIZE.pack, sizes), text, *small]))
    for part in parts:
        if part.nbytes >= LEAST_STAGED:
            yield from line.putting(part)


def new_bytes(nbytes: int) -> np.ndarray:
    return np.empty(nbytes, np.uint8)


def receive(line: Line, room: Callable[[int], np.ndarray] = new_bytes) -> Any:  # noqa: ANN401
    """What was sent, whatever it is; EOFError where the other side has gone. A call says where
    large arrays that it takes are to be (`landings`), which are copied once then. room: memory of
    so many bytes for others.
    """
    (count,) = _SIZE.unpack(line.read(_SIZE.size, _RECEIVED_BYTES))
    sizes = [n for (n,) in _SIZE.iter_unpack(line.read(count * _SIZE.size))]
    text = line.read(sizes[0])
    parts = [line.read(size) if size < LEAST_STAGED else room(size) for size in sizes[1:]]
    value = pickle.loads(text, buffers=parts)
    large = [part for part in parts if isinstance(part, np.ndarray)]
    if large:
        value, large = _landed(value, large)
    for part in large:
        line.fill(part)
    return value


def _landed(value: Any, large: list[np.ndarray]) -> tuple[Any, list[np.ndarray]]:  # noqa: ANN401
    """The value, and where its large arrays are to be."""
    landings = getattr(value[0], "landings", None) if isinstance(value, tuple) else None
    if landings is None:
        return value, large
    call, arguments = value
    places = landings(arguments)
    at = {
        argument.ctypes.data: place
        for argument, place in zip(arguments, places, strict=True)
        if place is not None
    }
    arguments = tuple(
        argument if place is None else place
        for argument, place in zip(arguments, places, strict=True)
    )
    return (call, arguments), [at.get(part.ctypes.data, part) for part in large]


@dataclass(frozen=True)
class Failed:
    """The answer to a call that raised."""

    name: str
    message: str
    traceback: str


@dataclass(frozen=True)
class Listen:
    """Asks an engine to take calls over a socket of that path, from the first that connects."""

    path: str

    def __call__(self, *_: np.ndarray) -> None:
        loop = asyncio.get_running_loop()
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(self.path)
        listening.listen(1)
        loop.add_reader(listening, _accept, loop, listening, self.path)


def _accept(loop: asyncio.AbstractEventLoop, listening: socket.socket, path: str) -> None:
    end, _ = listening.accept()
    loop.remove_reader(listening)
    listening.close()
    os.unlink(path)
    loop.add_reader(end, _serve, loop, accepted(end))


def _serve(loop: asyncio.AbstractEventLoop, line: Line) -> None:
    """One call; the end of the line where the other side has gone."""
    try:
        call, arguments = receive(line)
        answer = _answer(call, arguments)
        try:
            send(line, answer)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            send(line, _failed(error))
    except (EOFError, OSError):
        loop.remove_reader(line.end)
        line.close()


def _answer(call: Callable[..., object], arguments: tuple[np.ndarray, ...]) -> object:
    try:
        return call(*arguments)
    except Exception as error:  # the boundary of the engine: it travels as data
        return _failed(error)


def _failed(error: Exception) -> Failed:
    return Failed(type(error).__name__, str(error), "".join(traceback.format_exception(error)))
