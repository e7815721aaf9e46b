"""Arrays that stay with the engines of a cluster between runs, seen from the client.

NumPy array -> Resident -> NumPy array; binary, Residents -> Trace, and the Residents' new layouts.

    put     row blocks to the ranks          Resident.pieces: who holds what
    run     nothing but numbers              what the ownership runtime says is the new layout
    take    each element from one holder

Large pieces to and from other hosts go in parts (`carried.py`).
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from ipyparallel.error import EngineError

from avial_lab.artifact.binary import Binary
from avial_lab.artifact.manifest import KnownMessages
from avial_lab.core.errors import ClusterError
from avial_lab.core.regions import Box
from avial_lab.planning.schedule import Piece
from avial_lab.runtime.launch import carried
from avial_lab.runtime.launch.cluster import Cluster, Followed, run_resident
from avial_lab.runtime.launch.engines import EngineSet, Wait
from avial_lab.runtime.rank import shards
from avial_lab.runtime.rank.engine import KeepPieces, ShardStep, TakenBytes, TakePieces
from avial_lab.runtime.rank.holders import (
    LostArray,
    Resident,
    StepDone,
    Wanted,
    asked_for,
    joined,
    keep_layouts,
    new_number,
    new_resident,
    parts_of,
    read_of,
    rows,
    step_operands,
)
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.parcels import as_bytes, large_sizes, pack, unpack
from avial_lab.runtime.rank.shards import ShardFunction
from avial_lab.runtime.rank.traces import Ran, ran

_POLL_S = 0.05

_NEW = "the next run starts new engines"

_STOPPING = "stopping after this step of the ranks; a second Ctrl-C ends them, with their arrays"


if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass
class Residence:
    """The arrays of one client on one cluster's engines."""

    cluster: Cluster
    _dropped: list[int] = field(default_factory=list[int])

    def new(self, shape: Sequence[int], itemsize: int) -> Resident:
        """An array whose elements are undefined; takes no memory until somebody writes it."""
        return self._watched(new_resident(shape, itemsize))

    def _watched(self, made: Resident) -> Resident:
        weakref.finalize(made, self._dropped.append, made.number)
        return made

    def put(self, array: np.ndarray, *, whole_on_each: bool = False) -> Resident:
        """A copy of the array in blocks of its rows, as loops are divided; or whole on each."""
        made = self.new(array.shape, array.itemsize)
        ranks = self.cluster.topology.ranks
        whole = Box.whole(array.shape)
        boxes = [whole if whole_on_each else rows(array.shape, r, ranks) for r in range(ranks)]
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

    def take(self, resident: Resident, dtype: np.dtype, box: Box) -> np.ndarray:
        """That box of the array, each element from one of the ranks that hold it."""
        chosen = parts_of(resident.pieces, box)
        calls = {
            rank: (TakePieces(resident.number, resident.storage, boxes),)
            for rank, boxes in chosen.items()
        }
        _, answers = self._ask(calls, [resident])
        array = joined(
            box,
            dtype,
            (
                part
                for rank, boxes in chosen.items()
                for part in zip(boxes, unpack(answers[rank], calls[rank][0].sizes), strict=True)
            ),
        )
        return np.zeros(box.shape, dtype) if array is None else array

    def run(
        self,
        binary: Binary,
        arrays: Mapping[str, Resident],
        options: Options | None = None,
        *,
        read: tuple[str, Box, np.dtype] | None = None,
        **followed: Unpack[Followed],
    ) -> tuple[Ran, np.ndarray | None]:
        """Run the binary on the arrays of its storages, in place; they then know who holds what.
        One whose messages are known already finds the arrays where it expects them. read: a box of
        one of them, which is the other result where it has come along.
        """
        known = isinstance(binary.manifest, KnownMessages)
        if known:
            self._bring(arrays, binary.manifest.inputs)
        with self._forgotten() as forgotten:
            home, outcomes = run_resident(
                binary, arrays, self.cluster, forgotten=forgotten, options=options,
                read=None if read is None else read[:2], **followed,
            )  # fmt: skip
        keep_layouts(arrays, outcomes[0].pieces, known=known)
        for resident in arrays.values():
            resident.home = home
        parts = [part for outcome in outcomes for part in outcome.read]
        return ran(binary.manifest, outcomes), None if read is None else joined(*read[1:], parts)

    def _bring(self, arrays: Mapping[str, Resident], pieces: Sequence[Piece]) -> None:
        """These pieces to the ranks that they are for, beside what those hold."""
        operands = asked_for(arrays, pieces, self.cluster.topology.ranks)
        self.step(shards.nothing, operands, {}, 0)

    def step(
        self,
        function: ShardFunction,
        operands: Sequence[tuple[Resident, np.dtype, Wanted]],
        parameters: Mapping[str, Any],
        results: int,
        *,
        read: tuple[int, Box] | None = None,
        together: bool = True,
    ) -> StepDone:
        """Library code on arrays, once each rank has of them what it wants; raises what it
        raises, on all ranks alike. read: a box of a result, which is to come along. together: as of
        a ShardStep.
        """
        ranks = self.cluster.topology.ranks
        numbers = tuple(new_number() for _ in range(results))
        plans = [
            step_operands(resident, dtype, wanted, ranks) for resident, dtype, wanted in operands
        ]
        try:
            with self._forgotten() as forgotten:
                calls = {
                    rank: (
                        ShardStep(
                            function, ranks, tuple(p[rank] for p in plans), parameters, numbers,
                            read, forgotten, together,
                        ),
                    )
                    for rank in range(ranks)
                }  # fmt: skip
                home, answers = self._ask(calls, [resident for resident, _, _ in operands])
        except KeyboardInterrupt:
            self._dropped.extend(numbers)
            raise
        failure = next((a.failure for a in answers.values() if a.failure is not None), None)
        if failure is not None:
            self._dropped.extend(numbers)
            raise failure
        made: list[tuple[Resident, np.dtype]] = []
        for k, number in enumerate(numbers):
            shape, name, _ = answers[0].results[k]
            dtype = np.dtype(name)
            resident = self._watched(new_resident(shape, dtype.itemsize, number))
            boxes = [(rank, answers[rank].results[k][2]) for rank in range(ranks)]
            storage = resident.storage.name
            resident.pieces = tuple(
                Piece(rank, storage, box) for rank, box in boxes if not box.empty
            )
            resident.home = home
            made.append((resident, dtype))
        return StepDone(
            tuple(made),
            sum(answer.messages for answer in answers.values()),
            sum(answer.nbytes for answer in answers.values()),
            read_of(read, made, answers.values()),
        )

    def taken_bytes(self) -> list[int]:
        """By rank, the physical memory of arrays there."""
        ranks = range(self.cluster.topology.ranks)
        _, answers = self._ask({rank: (TakenBytes(),) for rank in ranks})
        return [answers[rank] for rank in ranks]

    @contextmanager
    def _forgotten(self) -> Generator[tuple[int, ...]]:
        """Arrays that nobody here has any more, to be freed with a call to all engines. One that
        does not get there changes nothing, and engines that died keep nothing.
        """
        count = len(self._dropped)
        yield tuple(self._dropped[:count])
        del self._dropped[:count]

    def lost(self, needed: Iterable[Resident]) -> list[Resident]:
        """Those that the engines of now have not."""
        with self.cluster.turn() as (engines, _):
            return [each for each in needed if each.pieces and each.home is not engines]

    def _ask(
        self, calls: Mapping[int, tuple[Any, ...]], needed: Iterable[Resident] = ()
    ) -> tuple[EngineSet, dict[int, Any]]:
        """The engines, and what the ranks answer to a call and its parcels. LostArray where others
        than these have what is needed. Ctrl-C waits for the answers, so that nothing is lost.
        """
        held = [each for each in needed if each.pieces]
        with self.cluster.turn() as (engines, _):
            lost = any(each.home is not engines for each in held)
            stopped = False
            answers: dict[int, Any] = {}
            try:
                if not lost and calls:
                    calls = _sent_ahead(engines, calls)
                    asked, more = engines.ask_here(calls)
                    stopped = _until_none_is_missing(lambda: _wait(engines, asked, more))
                    answers = {rank: future.result() for rank, future in asked.items()}
                    engines.forget(list(asked.values()))
                    if engines.hub is not None:
                        answers |= _fetched(engines, calls, answers)
            except _Died as died:
                raise LostArray(str(died)) if held else ClusterError(str(died), hint=_NEW) from None
        if lost:
            raise LostArray(self.cluster.died)
        if stopped:
            raise KeyboardInterrupt
        return engines, answers


def _until_none_is_missing(wait_for_all: Callable[[], None]) -> bool:
    """Waits; whether somebody pressed Ctrl-C meanwhile. A second one is raised."""
    try:
        wait_for_all()
    except KeyboardInterrupt:
        sys.stderr.write(f"{_STOPPING}\n")
        wait_for_all()
        return True
    return False


def _sent_ahead(
    engines: EngineSet, calls: Mapping[int, tuple[Any, ...]]
) -> Mapping[int, tuple[Any, ...]]:
    """The calls as they are to go. On other hosts their large parcels are there first."""
    if engines.hub is None:
        return calls
    large = {rank: parcels[1:] for rank, (_, *parcels) in calls.items() if parcels[1:]}
    for call, *_ in (calls[rank] for rank in list(large)[:1]):
        carried.send(engines, -call.number, large, _answer_of(engines), _watch(engines))
    return {
        rank: (replace(call, apart=True) if isinstance(call, TakePieces) else call, *parcels[:1])
        for rank, (call, *parcels) in calls.items()
    }


def _fetched(
    engines: EngineSet, calls: Mapping[int, tuple[Any, ...]], answers: Mapping[int, Any]
) -> dict[int, Any]:
    """The answers of which large parcels were left there, with these."""
    sizes = {
        rank: large_sizes(call.sizes)
        for rank, (call, *_) in calls.items()
        if isinstance(call, TakePieces) and call.apart
    }
    large = carried.fetch(engines, sizes, _answer_of(engines), _watch(engines))
    return {rank: (*answers[rank], *parcels) for rank, parcels in large.items()}


class _Died(Exception):
    """Who, and of what: of a rank that was asked, or for which the others may wait."""


def _answer_of(engines: EngineSet) -> carried.Answered:
    def answer(rank: int, future: Future[Any]) -> Any:  # noqa: ANN401 - whatever was asked
        try:
            return future.result()
        except EngineError:
            raise _death(engines, rank) from None

    return answer


def _watch(engines: EngineSet) -> carried.Look:
    def look(pending: set[int], *_: int) -> None:
        lost = engines.lost() if pending else ()
        if lost:
            raise _death(engines, lost[0])

    return look


def _wait(engines: EngineSet, asked: Mapping[int, Future[Any]], more: Wait) -> None:
    """Until all have answered; raises `_Died` where one never will."""
    while True:
        pending = [rank for rank, future in asked.items() if not future.done()]
        failed = [rank for rank, f in asked.items() if f.done() and f.exception()]
        if not pending and not failed:
            return
        lost = [r for r in failed if isinstance(asked[r].exception(), EngineError)]
        lost = lost or engines.lost()
        if lost:
            raise _death(engines, lost[0])
        for rank in failed:
            asked[rank].result()
        more(_POLL_S)


def _death(engines: EngineSet, rank: int) -> _Died:
    cause = engines.death(rank)
    return _Died(f"rank {rank} died" + (f" of {cause}" if cause else ""))
