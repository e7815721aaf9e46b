"""Arrays that stay with the engines of a cluster between runs, seen from the client.

NumPy array -> Resident -> NumPy array; binary, Residents -> Trace, and the Residents' new layouts.

    put     row blocks to the ranks          Resident.pieces: who holds what
    run     nothing but numbers              what the ownership runtime says is the new layout
    take    each element from one holder
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.core.buffers import Storage
from avial_lab.core.regions import Box
from avial_lab.core.words import brief
from avial_lab.planning.schedule import Piece
from avial_lab.runtime.launch.cluster import Cluster, LostArray, run_resident
from avial_lab.runtime.launch.engines import EngineSet
from avial_lab.runtime.rank.engine import DropArrays, KeepPieces, TakePieces
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.parcels import as_bytes, pack, unpack
from avial_lab.trace import Trace

_NUMBERS = count(1)


@dataclass(eq=False)
class Resident:
    """An array's memory on the engines; forgotten there when nobody here has it any more.

    pieces: who holds what, each rank's by itself; elements that nobody holds are undefined. home:
    the engines that have it, and no others.
    """

    number: int
    storage: Storage
    pieces: tuple[Piece, ...] = ()
    home: EngineSet | None = None

    @property
    def held_bytes(self) -> dict[int, int]:
        """By rank, what it holds, borrowed copies too."""
        held: dict[int, int] = {}
        for piece in self.pieces:
            held[piece.rank] = held.get(piece.rank, 0) + piece.box.size * self.storage.itemsize
        return held

    def __repr__(self) -> str:
        return brief(self, f"number {self.number}, {self.storage.nbytes} bytes")


@dataclass
class Residence:
    """The arrays of one client on one cluster's engines."""

    cluster: Cluster
    _dropped: list[int] = field(default_factory=list)

    def new(self, shape: Sequence[int], itemsize: int) -> Resident:
        """An array whose elements are undefined; takes no memory until somebody writes it."""
        made = new_resident(shape, itemsize)
        number = made.number
        weakref.finalize(made, self._dropped.append, number)
        return made

    def put(self, array: np.ndarray, *, everywhere: bool = False) -> Resident:
        """A copy of the array in blocks of its rows, as loops are divided; or whole on each."""
        made = self.new(array.shape, array.itemsize)
        ranks = self.cluster.topology.ranks
        whole = Box.whole(array.shape)
        boxes = [whole if everywhere else _rows(array.shape, r, ranks) for r in range(ranks)]
        made.home, _ = self._ask(
            {
                rank: (
                    KeepPieces(made.number, made.storage, (box,)),
                    *pack([as_bytes(array[box.slices])]),
                )
                for rank, box in enumerate(boxes)
                if not box.empty
            }
        )
        name = made.storage.name
        made.pieces = tuple(Piece(r, name, box) for r, box in enumerate(boxes) if not box.empty)
        return made

    def take(self, resident: Resident, dtype: np.dtype) -> np.ndarray:
        """The whole array, each element from one of the ranks that hold it."""
        array = np.zeros(resident.storage.shape, dtype)
        chosen = _once(resident.pieces)
        calls = {
            rank: (TakePieces(resident.number, resident.storage, boxes),)
            for rank, boxes in chosen.items()
        }
        _, answers = self._ask(calls, [resident])
        for rank, boxes in chosen.items():
            sizes = [box.size * array.itemsize for box in boxes]
            for box, data in zip(boxes, unpack(answers[rank], sizes), strict=True):
                array[box.slices] = np.frombuffer(data, dtype).reshape(box.shape)
        return array

    def run(
        self, binary: Binary, arrays: Mapping[str, Resident], options: Options | None = None
    ) -> Trace:
        """Run the binary on the arrays of its storages, in place; they then know who holds what."""
        given = [
            Piece(piece.rank, storage, piece.box)
            for storage, resident in arrays.items()
            for piece in resident.pieces
        ]
        home, _ = self._ask({}, arrays.values())
        numbers = {storage: resident.number for storage, resident in arrays.items()}
        trace, held = run_resident(binary, numbers, given, self.cluster, home=home, options=options)
        for storage, resident in arrays.items():
            resident.pieces = tuple(
                Piece(piece.rank, resident.storage.name, piece.box)
                for piece in held
                if piece.storage == storage
            )
            resident.home = home
        return trace

    def sweep(self) -> None:
        """Free on the engines what was forgotten here."""
        if not self._dropped:
            return
        numbers = tuple(self._dropped)
        del self._dropped[: len(numbers)]
        ranks = range(self.cluster.topology.ranks)
        self._ask({rank: (DropArrays(numbers),) for rank in ranks})

    def _ask(
        self, calls: Mapping[int, tuple[Any, ...]], needed: Iterable[Resident] = ()
    ) -> tuple[EngineSet, dict[int, Any]]:
        """The engines, and what the ranks answer to a call and its parcels. LostArray where others
        than these have what is needed.
        """
        with self.cluster.turn() as (engines, _):
            lost = any(each.pieces and each.home is not engines for each in needed)
            asked: dict[int, Future[Any]] = {}
            if not lost:
                asked = {rank: engines.submit(rank, *call) for rank, call in calls.items()}
            answers = {rank: future.result() for rank, future in asked.items()}
            if asked:
                engines.forget(list(asked.values()))
        if lost:
            raise LostArray
        return engines, answers


def new_resident(shape: Sequence[int], itemsize: int) -> Resident:
    """An array of a number that no other has."""
    number = next(_NUMBERS)
    name = f"resident{number}"
    return Resident(number, Storage(name, tuple(shape), itemsize, (name,)))


def _rows(shape: Sequence[int], rank: int, ranks: int) -> Box:
    """The rank's block of rows: from rank * n // ranks, as loops are divided. An array without
    dimensions is rank 0's.
    """
    whole = Box.whole(shape)
    if not shape:
        return whole if rank == 0 else Box((0,), (0,))
    low, high = (shape[0] * r // ranks for r in (rank, rank + 1))
    return Box((low, *whole.start[1:]), (high, *whole.stop[1:]))


def _once(pieces: Sequence[Piece]) -> dict[int, tuple[Box, ...]]:
    """Of pieces of one array, each element by one rank: the first in order that holds it. Pieces of
    different holders are equal boxes, as the ownership runtime keeps them, or apart.
    """
    chosen: dict[int, list[Box]] = {}
    seen: set[Box] = set()
    for piece in pieces:
        if piece.box not in seen:
            seen.add(piece.box)
            chosen.setdefault(piece.rank, []).append(piece.box)
    return {rank: tuple(boxes) for rank, boxes in chosen.items()}
