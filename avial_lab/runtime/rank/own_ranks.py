"""Arrays on the ranks of the world that this process is one of: every rank runs the same script.

NumPy array -> Resident -> NumPy array, as with the engines of a cluster (`launch/residence.py`);
but each rank holds and does its own part, and what one is told all are. One rank alone needs no
MPI.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import pickle
import shutil
import sys
import tempfile
import time
import traceback
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.artifact.manifest import KnownMessages
from avial_lab.core.regions import Box
from avial_lab.planning.schedule import Piece
from avial_lab.runtime.native.loader import digest
from avial_lab.runtime.rank import shards
from avial_lab.runtime.rank.copies import copies
from avial_lab.runtime.rank.engine import (
    NOTHING,
    KeepPieces,
    Load,
    RunResident,
    ShardStep,
    StepAnswer,
    TakenBytes,
    be_a_rank,
    resident_bytes,
)
from avial_lab.runtime.rank.exchange import storage_table
from avial_lab.runtime.rank.holders import (
    Resident,
    StepDone,
    Wanted,
    asked_for,
    given_pieces,
    holders_of,
    joined,
    keep_layouts,
    new_resident,
    parts_of,
    read_of,
    rows,
    step_operands,
)
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.journal import Journal
from avial_lab.runtime.rank.lockstep import Entry, Lockstep
from avial_lab.runtime.rank.outcome import GRACE_S, Failure, Outcome, ranks_failed
from avial_lab.runtime.rank.parcels import as_bytes, pack
from avial_lab.runtime.rank.shards import ShardFunction
from avial_lab.runtime.rank.traces import Ran, ran

T = TypeVar("T")

PATIENCE_S = 5 * GRACE_S
"""For ranks that may wait for one that has failed."""


@dataclass
class OwnRanks:
    """This process as a rank among `ranks`. lockstep: None where it is the only one."""

    rank: int
    ranks: int
    lockstep: Lockstep | None = None
    _numbers: int = 0
    _runs: int = 0
    _loaded: set[str] = field(default_factory=set[str])
    _dropped: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        if self.lockstep is not None:
            self.lockstep.recorders.append(self)

    def entries(self) -> Sequence[Entry]:
        """Nothing: arrays are brought in and made by whoever records."""
        return ()

    def forget(self) -> None:
        """The next array has a number that no rank has given to one."""
        self._numbers = max(self.told(self._numbers))

    # -- arrays ------------------------------------------------------------------------------------

    def new(self, shape: Sequence[int], itemsize: int) -> Resident:
        """An array whose elements are undefined. Its number is the same on all ranks."""
        self._numbers += 1
        made = new_resident(shape, itemsize, self._numbers)
        weakref.finalize(made, self._dropped.append, made.number)
        return made

    def put(self, array: np.ndarray, *, whole_on_each: bool = False) -> Resident:
        """Of an array that all ranks have alike, each keeps its rows; or all of it."""
        made = self.new(array.shape, array.itemsize)
        whole = Box.whole(array.shape)
        boxes = [
            whole if whole_on_each else rows(array.shape, r, self.ranks) for r in range(self.ranks)
        ]
        self._keep(made, boxes, lambda box: array[(..., *box.slices)])
        return made

    def join(self, part: np.ndarray) -> Resident:
        """The ranks' parts, one behind the other along the first dimension; ValueError on all of
        them where they do not fit.
        """
        forms = self.told((part.shape, part.dtype))
        for rank, (shape, dtype) in enumerate(forms):
            if (shape[1:], len(shape), dtype) != (forms[0][0][1:], len(forms[0][0]), forms[0][1]):
                raise ValueError(
                    f"rank 0 has {forms[0][1]} of shape {forms[0][0]}, and rank {rank} {dtype} of "
                    f"shape {shape}: they differ in more than the first dimension"
                )
        if not part.shape:
            raise ValueError("a part has at least one dimension, along which the parts are joined")
        ends = np.cumsum([0, *(shape[0] for shape, _ in forms)]).tolist()
        rest = part.shape[1:]
        made = self.new((ends[-1], *rest), part.itemsize)
        boxes = [Box((low, *(0 for _ in rest)), (high, *rest)) for low, high in pairwise(ends)]
        self._keep(made, boxes, lambda _: part)
        return made

    def _keep(
        self, made: Resident, boxes: Sequence[Box], part: Callable[[Box], np.ndarray]
    ) -> None:
        name = made.storage.name
        made.pieces = tuple(Piece(r, name, box) for r, box in enumerate(boxes) if not box.empty)
        mine = boxes[self.rank]
        if not mine.empty:
            KeepPieces(made.number, made.storage, (mine,))(*pack([as_bytes(part(mine))]))

    def take(self, resident: Resident, dtype: np.dtype, box: Box) -> np.ndarray:
        """That box, each element from one of the ranks that hold it, on every rank."""
        parts: list[tuple[Box, np.ndarray]] = []
        for rank, boxes in sorted(parts_of(resident.pieces, box).items()):
            flat = np.empty(sum(each.size for each in boxes) * dtype.itemsize, np.uint8)
            if rank == self.rank:
                held = _elements(resident)
                flat = np.concatenate([as_bytes(held[(..., *each.slices)]) for each in boxes])
            self._spread(rank, flat)
            ends = np.cumsum([each.size * dtype.itemsize for each in boxes])
            parts += zip(boxes, np.split(flat, ends[:-1]), strict=True)
        array = joined(box, dtype, parts)
        return np.zeros(box.shape, dtype) if array is None else array

    def _spread(self, root: int, part: np.ndarray) -> None:
        """Flat bytes of one rank to all; MPI counts in ints."""
        if self.lockstep is None:
            return
        for low in range(0, part.nbytes, 1 << 30):
            self.lockstep.comm.Bcast(part[low : low + (1 << 30)], root=root)

    def local(self, resident: Resident, dtype: np.dtype) -> tuple[np.ndarray, Box]:
        """This rank's own part where it lies, and its place; without one, no row. Keeps the array
        as long as somebody looks at it.
        """
        boxes = holders_of(resident.pieces).get(self.rank, ())
        if len(boxes) > 1:
            raise ValueError(f"rank {self.rank} has {len(boxes)} parts of the array, not one")
        if not boxes:
            box = no_rows(resident.storage.shape)
            return np.broadcast_to(np.zeros((), dtype), box.shape), box
        memory = resident_bytes(resident.number, resident.storage.nbytes)
        seen = np.asarray(_Kept(memory, resident)).view(dtype).reshape(resident.storage.shape)
        part = seen[(..., *boxes[0].slices)]
        part.flags.writeable = False
        return part, boxes[0]

    def taken_bytes(self) -> list[int]:
        """By rank, the physical memory of arrays there."""
        return self.told(TakenBytes()())

    def _forgotten(self) -> tuple[int, ...]:
        """Arrays that nobody has any more, to be freed with the next call: what that makes has
        their memory, and no fresh pages.
        """
        numbers = tuple(self._dropped)
        del self._dropped[: len(numbers)]
        return numbers

    # -- together ----------------------------------------------------------------------------------

    def told(self, mine: T) -> list[T]:
        """What every rank has."""
        return [mine] if self.lockstep is None else self.lockstep.comm.allgather(mine)

    def once(self, make: Callable[[], T]) -> T:
        """Rank 0 makes it for all, who wait without taking its cores; what it raises all raise."""
        if self.lockstep is None:
            return make()
        lockstep = self.lockstep
        made: T | None = None
        failure: Exception | None = None
        data = b""
        if self.rank == 0:
            try:
                made = make()
            except Exception as error:  # the boundary of this rank: the others wait to hear of it
                failure = error
            data = pickle.dumps((made, failure))
        size = np.array([len(data)])
        lockstep.patiently(lockstep.comm.Ibcast(size, root=0))
        flat = np.frombuffer(bytearray(data or bytes(int(size[0]))), np.uint8)
        self._spread(0, flat)
        if self.rank != 0:
            made, failure = pickle.loads(flat.tobytes())
        if failure is not None:
            raise failure
        return cast("T", made)

    def run(
        self,
        binary: Binary,
        arrays: Mapping[str, Resident],
        *,
        read: tuple[str, Box, np.dtype] | None = None,
    ) -> tuple[Ran, np.ndarray | None]:
        """Run the binary on the arrays of its storages, in place; they then know who holds what.
        read: a box of one of them, which is the other result where it has come along.
        """
        manifest = binary.manifest
        known = isinstance(manifest, KnownMessages)
        if known:
            self.step(shards.nothing, asked_for(arrays, manifest.inputs, self.ranks), {}, 0)
        if binary.key not in self._loaded:
            shared = binary.shared_object
            failure = Load(binary.key, digest(shared), shared, manifest)()
            _raise_failures(binary, self.told(Outcome(self.rank, failure=failure)))
            self._loaded.add(binary.key)
        numbers = {storage: resident.number for storage, resident in arrays.items()}
        self._runs += 1
        given = given_pieces(arrays)
        asked = read and (storage_table(manifest)[read[0]], read[1])
        call = RunResident(
            binary.key, self.rank, self._runs, Options(), numbers, given, asked, self._forgotten()
        )
        (mine,) = cast("tuple[Outcome]", call())
        self._wait_for_all(mine.failure)
        outcomes = self.told(mine)
        _raise_failures(binary, outcomes)
        keep_layouts(arrays, outcomes[0].pieces, known=known)
        parts = [part for outcome in outcomes for part in outcome.read]
        return ran(manifest, outcomes), None if read is None else joined(*read[1:], parts)

    def _wait_for_all(self, failure: Failure | None) -> None:
        """Until all ranks have come to the end of the run. Where this one failed in its midst, the
        others may wait for its messages for ever: then all are ended.
        """
        if self.lockstep is None:
            return
        request = self.lockstep.comm.Ibarrier()
        if failure is None:
            self.lockstep.patiently(request)
            return
        end = time.monotonic() + PATIENCE_S
        while not request.Test():
            if time.monotonic() > end:
                self._end_all(failure.message)
            time.sleep(GRACE_S / 10)

    def _end_all(self, why: str) -> None:
        sys.stderr.write(f"rank {self.rank} of {self.ranks} failed, and ends the others: {why}\n")
        sys.stderr.flush()
        assert self.lockstep is not None
        self.lockstep.comm.Abort(1)

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
        """Library code on arrays, once each rank has of them what it wants; raises what it raises,
        on all ranks alike. read: a box of a result, which is to come along. together: as of a
        ShardStep.
        """
        made = [self.new((), 1) for _ in range(results)]
        numbers = tuple(each.number for each in made)
        plans = [
            step_operands(resident, dtype, wanted, self.ranks)[self.rank]
            for resident, dtype, wanted in operands
        ]
        call = ShardStep(
            function,
            self.ranks,
            tuple(plans),
            parameters,
            numbers,
            read,
            self._forgotten(),
            together,
        )
        try:
            answer = call()
        except Exception:  # not what library code raises: the others wait for this rank's messages
            if self.lockstep is None:
                raise
            self._end_all(traceback.format_exc())
            raise
        answers = self.told(answer)
        failure = next((a.failure for a in answers if a.failure is not None), None)
        if failure is not None:
            raise failure
        for k, resident in enumerate(made):
            shape, dtype, _ = answers[0].results[k]
            itemsize = np.dtype(dtype).itemsize
            resident.storage = new_resident(shape, itemsize, resident.number).storage
            resident.pieces = _pieces(resident, answers, k)
        results_made = tuple((r, np.dtype(answers[0].results[k][1])) for k, r in enumerate(made))
        return StepDone(
            results_made,
            sum(answer.messages for answer in answers),
            sum(answer.nbytes for answer in answers),
            read_of(read, results_made, answers),
        )


def no_rows(shape: Sequence[int]) -> Box:
    """Nothing of an array of that shape."""
    return NOTHING if not shape else Box((0,) * len(shape), (0, *shape[1:]))


@dataclass
class _Kept:
    """Memory that NumPy looks at, and who keeps it from being used again."""

    memory: np.ndarray
    owner: Resident

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.memory.__array_interface__


def _elements(resident: Resident) -> np.ndarray:
    """All of it, of which the rank's own are there."""
    storage = resident.storage
    memory = resident_bytes(resident.number, storage.nbytes)
    return memory.view(np.dtype((np.void, storage.itemsize))).reshape(storage.shape)


def _pieces(resident: Resident, answers: Sequence[StepAnswer], result: int) -> tuple[Piece, ...]:
    boxes = [(rank, answer.results[result][2]) for rank, answer in enumerate(answers)]
    name = resident.storage.name
    return tuple(Piece(rank, name, box) for rank, box in boxes if not box.empty)


def _raise_failures(binary: Binary, outcomes: Sequence[Outcome]) -> None:
    failures = {each.rank: each.failure for each in outcomes if each.failure is not None}
    if failures:
        raise ranks_failed(binary.manifest, failures, {})


@cache
def own_ranks() -> OwnRanks:
    """This process among the ranks that mpiexec or srun has started, all of which call it; alone
    where none did.
    """
    number, _ = copies()
    if number == 1:
        _begin(0, 1)
        return OwnRanks(0, 1)
    from avial_lab.runtime.rank import world

    comm = world.communicator(number).comm
    lockstep = Lockstep(comm)
    lockstep.meet("begins to use arrays", "")
    world.release_shared_memory()
    _begin(comm.rank, comm.size)
    atexit.register(lambda: lockstep.end(_ending()))
    return OwnRanks(comm.rank, comm.size, lockstep)


def _begin(rank: int, ranks: int) -> None:
    folder = tempfile.mkdtemp(prefix="avial-rank-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    be_a_rank(Journal(Path(folder), rank, pid=os.getpid()), rank, ranks)
    faulthandler.enable()  # a crash is the script's own: its stack belongs on its terminal


def _ending() -> str:
    """What a script ended of."""
    error = getattr(sys, "last_value", None)
    return "its script is over" if error is None else f"{type(error).__name__}: {error}"
