"""Calls and arrays between a client and an engine of one machine."""

from __future__ import annotations

import select
import socket
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from avial_lab.runtime.rank.lines import (
    LEAST_STAGED,
    STAGE_BYTES,
    Line,
    accepted,
    connected,
    receive,
    send,
)

SIZES = [0, 5, LEAST_STAGED - 1, LEAST_STAGED]
SIZES += [STAGE_BYTES, 2 * STAGE_BYTES + 1, 9 * STAGE_BYTES - 7]


def ends(folder: Path, *, shared: bool) -> tuple[Line, Line]:
    if not shared:
        first, second = socket.socketpair()
        return Line(first), Line(second)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / "line"))
    listening.listen(1)
    first_end = connected(str(folder / "line"))
    end, _ = listening.accept()
    listening.close()
    return first_end, accepted(end)


def polled(line: Line) -> Any:
    """What is received once the socket has something to say: nothing was taken ahead of that."""
    assert select.select([line.end], [], [], 60)[0]
    return receive(line)


@pytest.mark.parametrize("shared", [True, False])
def test_there_and_back(tmp_path: Path, *, shared: bool) -> None:
    """Arrays of all sizes, several in a message: one end answers with what it got."""
    here, there = ends(tmp_path, shared=shared)
    assert (here.stage is not None) == shared
    echo = threading.Thread(target=lambda: [send(there, polled(there)) for _ in range(3)])
    echo.start()
    for k in range(3):
        sent = ("call", tuple(np.arange(size, dtype=np.uint8) + k for size in SIZES))
        send(here, sent)
        word, arrays = polled(here)
        assert word == "call"
        for mine, other in zip(arrays, sent[1], strict=True):
            np.testing.assert_array_equal(mine, other)
    echo.join()
    here.close()
    with pytest.raises(EOFError):
        receive(there)
    there.close()


class Keep:
    """A call that says where its second array is to be."""

    memory: np.ndarray = np.zeros(0, np.uint8)

    def landings(self, arrays: Any) -> list[np.ndarray | None]:
        return [None, Keep.memory, *(None for _ in arrays[2:])]


def test_an_array_lands_where_it_is_wanted(tmp_path: Path) -> None:
    here, there = ends(tmp_path, shared=True)
    Keep.memory = np.zeros(STAGE_BYTES + 3, np.uint8)
    arrays = [np.full(size, 7, np.uint8) for size in (3, STAGE_BYTES + 3, 2 * STAGE_BYTES)]
    sender = threading.Thread(target=lambda: send(here, (Keep(), tuple(arrays))))
    sender.start()
    _, found = receive(there)
    sender.join()
    assert found[1] is Keep.memory
    for mine, other in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(mine, other)
    here.close()
    there.close()


class StopsWaiting(Exception):
    pass


def test_whoever_takes_nothing_is_not_waited_for(tmp_path: Path) -> None:
    here, there = ends(tmp_path, shared=True)
    here.be_patient()

    def stop() -> None:
        raise StopsWaiting

    here.look = stop
    with pytest.raises(StopsWaiting):
        send(here, np.zeros(9 * STAGE_BYTES, np.uint8))
    with pytest.raises(StopsWaiting):
        receive(here)
    here.close()
    there.close()
