"""Large arrays on their way to engines of other hosts and back, in parts.

Parcels by rank -> the engines' memory, and back. A controller hands a message on once it has all of
it: of parts several are on their way at once, and each that is answered for is a known number of
bytes that have arrived. The first ones, as they are, tell how fast the way is; where it is slower
than the compressor, the others are squeezed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from itertools import pairwise, zip_longest
from typing import Any, cast

import numpy as np

from avial_lab.runtime.launch.engines import Call, EngineSet
from avial_lab.runtime.rank.engine import Fetch, Stage
from avial_lab.runtime.rank.squeeze import Squeezer, part_of

PART_BYTES = 4 << 20
FIRST_BYTES = 1 << 20
"""Of the first part of a rank, which tells how fast its way is."""

AT_ONCE = 4
"""Parts on their way to or from each rank."""

_POLL_S = 0.05

Look = Callable[[set[int], int, int, int], None]
"""Told meanwhile: the ranks that have not answered, bytes that have arrived, of how many, and as
how many; raises where nobody will answer any more."""

Answered = Callable[[int, Future[Any]], Any]
"""The answer of a rank; raises what it failed of."""

_Part = tuple[int, Stage | Fetch, np.ndarray]


def send(
    engines: EngineSet,
    number: int,
    parcels: Mapping[int, Sequence[np.ndarray]],
    answered: Answered,
    look: Look,
) -> None:
    """To each rank its parcels, for the run of that number."""
    _carry(engines, list(_parts(parcels, lambda *at: Stage(number, *at))), answered, look)


def fetch(
    engines: EngineSet, sizes: Mapping[int, Sequence[int]], answered: Answered, look: Look
) -> dict[int, list[np.ndarray]]:
    """From each rank the parcels of those sizes that it holds."""
    parcels = {rank: [np.empty(size, np.uint8) for size in those] for rank, those in sizes.items()}
    _carry(engines, list(_parts(parcels, Fetch)), answered, look)
    return parcels


def _parts(
    parcels: Mapping[int, Sequence[np.ndarray]], call: Callable[[int, int, int, int], Stage | Fetch]
) -> Iterator[_Part]:
    """Of the ranks in turn, so that the way to each is in use."""
    cut = (
        [
            (rank, call(k, parcel.nbytes, low, high))
            for k, parcel in enumerate(those)
            for low, high in pairwise(_cuts(parcel.nbytes, FIRST_BYTES if k == 0 else PART_BYTES))
        ]
        for rank, those in parcels.items()
    )
    for row in zip_longest(*cut):
        for rank, part in filter(None, row):
            yield rank, part, parcels[rank][part.parcel][part.start : part.stop]


def _cuts(nbytes: int, first: int) -> list[int]:
    """Where parts begin and end.

    >>> _cuts(10 << 20, 1 << 20) == [0, 1 << 20, 5 << 20, 9 << 20, 10 << 20]
    True
    """
    return [0, *range(first, nbytes, PART_BYTES), nbytes] if nbytes else []


def _carry(engines: EngineSet, parts: Sequence[_Part], answered: Answered, look: Look) -> None:
    waiting: dict[int, deque[_Part]] = {}
    for part in parts:
        waiting.setdefault(part[0], deque()).append(part)
    total = sum(memory.nbytes for _, _, memory in parts)
    way, squeezer, arrived = _Way(len(waiting)), Squeezer(), 0
    asked: dict[Future[Any], tuple[_Part, int]] = {}
    begun: set[int] = set()
    while waiting or asked:
        for rank in list(waiting):
            while waiting[rank] and sum(1 for p, _ in asked.values() if p[0] == rank) < AT_ONCE:
                if rank in begun and not way.bytes_per_s:
                    break  # the others' first parts are to say whether the next is squeezed
                begun.add(rank)
                part = waiting[rank].popleft()
                future, sent = _ask(engines, part, squeezer, way.bytes_per_s)
                asked[future] = part, sent
            if not waiting[rank]:
                del waiting[rank]
        done, _ = wait(asked, timeout=_POLL_S, return_when=FIRST_COMPLETED)
        for future in done:
            (rank, call, memory), nbytes = asked.pop(future)
            answer = answered(rank, future)
            if isinstance(call, Fetch):
                memory[:] = np.frombuffer(part_of(answer.data, memory.nbytes), np.uint8)
                nbytes = answer.nbytes
            arrived += memory.nbytes
            way.took(nbytes, of=memory.nbytes)
        if done:
            engines.forget(list(done))
        look({part[0] for part, _ in asked.values()}, arrived, total, way.nbytes)


def _ask(
    engines: EngineSet, part: _Part, squeezer: Squeezer, bytes_per_s: float
) -> tuple[Future[Any], int]:
    """The rank's answer to come, and how many bytes were sent for it."""
    rank, call, memory = part
    if isinstance(call, Fetch):
        return engines.submit(rank, replace(call, link_bytes_per_s=bytes_per_s)), 0
    sent = squeezer.part((rank, call.parcel), memory.data, bytes_per_s)
    fewer = np.frombuffer(sent, np.uint8)
    return engines.submit(rank, cast("Call[Any]", call), fewer), fewer.nbytes


class _Way:
    """How fast it is: 0 bytes/s until the first part of each of `ranks` has come, as it is."""

    def __init__(self, ranks: int) -> None:
        self._began, self._first, self._squeezed = time.monotonic(), ranks, False
        self.nbytes, self.bytes_per_s = 0, 0.0

    def took(self, nbytes: int, *, of: int) -> None:
        """A part was so many bytes on its way."""
        self.nbytes += nbytes
        self._first -= 1
        self._squeezed |= nbytes < of  # from here on the compressor may be what is slow
        if self._first <= 0 and not self._squeezed:
            seconds = max(time.monotonic() - self._began, 1e-6)
            self.bytes_per_s = max(self.bytes_per_s, self.nbytes / seconds)
