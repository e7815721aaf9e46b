"""Calls to an engine on its own machine, past the controller: 0.1 ms in place of 5.

A call and arrays -> its answer, over a Unix socket in the cluster's private folder. The engine
reads it in its event loop, in the thread that ipyparallel's calls run in: one after the other.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
import struct
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_SIZE = struct.Struct("<Q")


def send(line: socket.socket, value: object) -> None:
    """The value, and arrays in it as they are in memory."""
    kept: list[pickle.PickleBuffer] = []
    text = pickle.dumps(value, protocol=5, buffer_callback=kept.append)
    parts = [buffer.raw() for buffer in kept]
    sizes = [len(text), *(part.nbytes for part in parts)]
    line.sendall(b"".join([_SIZE.pack(len(sizes)), *map(_SIZE.pack, sizes), text]))
    for part in parts:
        line.sendall(part)


def receive(line: socket.socket) -> Any:  # noqa: ANN401 - whatever was sent
    """What was sent; EOFError where the other side has gone."""
    (count,) = _SIZE.unpack(_exactly(line, _SIZE.size))
    sizes = [n for (n,) in _SIZE.iter_unpack(_exactly(line, count * _SIZE.size))]
    text, *parts = [_exactly(line, size) for size in sizes]
    return pickle.loads(text, buffers=parts)


def _exactly(line: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view, have = memoryview(data), 0
    while have < size:
        got = line.recv_into(view[have:])
        if not got:
            raise EOFError
        have += got
    return data


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
    line, _ = listening.accept()
    loop.remove_reader(listening)
    listening.close()
    os.unlink(path)
    loop.add_reader(line, _serve, loop, line)


def _serve(loop: asyncio.AbstractEventLoop, line: socket.socket) -> None:
    """One call; the end of the line where the other side has gone."""
    try:
        call, arguments = receive(line)
        answer = _answer(call, arguments)
        try:
            send(line, answer)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            send(line, _failed(error))
    except (EOFError, OSError):
        loop.remove_reader(line)
        line.close()


def _answer(call: Callable[..., object], arguments: tuple[np.ndarray, ...]) -> object:
    try:
        return call(*arguments)
    except Exception as error:  # the boundary of the engine: it travels as data
        return _failed(error)


def _failed(error: Exception) -> Failed:
    return Failed(type(error).__name__, str(error), "".join(traceback.format_exception(error)))
