"""Ports that nobody else is given while they are held.

A number -> as many free ports. ipyparallel's controller looks for free ports, lets go of them, and
listens on them half a second later: clusters that start at the same moment may choose the same one.

    held_ports(18):  this process bound, not listening ──► others' bind(0) and connect() pass it by
                                                       └─► the controller, given it, may listen
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Generator


@contextlib.contextmanager
def held_ports(count: int) -> Generator[tuple[int, ...]]:
    """Who asks for one of them by its number, with SO_REUSEADDR as ZeroMQ does, may listen there
    meanwhile.
    """
    with contextlib.ExitStack() as stack:
        ports: list[int] = []
        for _ in range(count):
            holder = stack.enter_context(socket.socket())
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # On every address: where the one on which the controller listens is held itself, macOS
            # refuses it to others.
            holder.bind(("", 0))
            ports.append(holder.getsockname()[1])
        yield tuple(ports)
