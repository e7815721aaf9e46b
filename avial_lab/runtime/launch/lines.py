"""The client's side of the lines to engines on this machine: what comes back, as futures."""

from __future__ import annotations

import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ipyparallel.error import EngineError, RemoteError

from avial_lab.runtime.rank.lines import Failed, receive, send


@dataclass
class Lines:
    """Sockets by rank, and the answers that each still owes, in their order."""

    sockets: Mapping[int, socket.socket]
    _owed: dict[int, deque[Future[Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._owed = {rank: deque() for rank in self.sockets}
        threading.Thread(target=self._read, name="avial-lines", daemon=True).start()

    def submit(
        self, rank: int, call: Callable[..., Any], arguments: tuple[np.ndarray, ...]
    ) -> Future[Any]:
        """`call(*arguments)` on that rank."""
        future: Future[Any] = Future()
        self._owed[rank].append(future)
        try:
            send(self.sockets[rank], (call, arguments))
        except OSError:
            self._gone(rank)
        return future

    def close(self) -> None:
        """Whatever is owed still is an error then."""
        for line in self.sockets.values():
            try:
                line.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # its other end has gone

    def _read(self) -> None:
        with selectors.DefaultSelector() as selector:
            for rank, line in self.sockets.items():
                selector.register(line, selectors.EVENT_READ, rank)
            while selector.get_map():
                for key, _ in selector.select():
                    if not self._take(key.data):
                        selector.unregister(key.fileobj)
                        self.sockets[key.data].close()

    def _take(self, rank: int) -> bool:
        """The next answer of that rank; False where none will come any more."""
        try:
            answer = receive(self.sockets[rank])
        except (EOFError, OSError):
            self._gone(rank)
            return False
        future = self._owed[rank].popleft()
        if isinstance(answer, Failed):
            future.set_exception(RemoteError(answer.name, answer.message, answer.traceback))
        else:
            future.set_result(answer)
        return True

    def _gone(self, rank: int) -> None:
        while self._owed[rank]:
            self._owed[rank].popleft().set_exception(EngineError(f"rank {rank} has gone"))
