"""Engine: runs a Binary on one MPI rank.

Binary, this rank's pieces of the arrays -> Outcome. Lives in an ipyparallel engine (its calls
arrive as `Probe`, `Load` and `Run`, objects that unpickle by name), or alone under mpiexec: `python
-m avial_lab.runtime.rank.engine JOB`.
"""

from __future__ import annotations

import atexit
import ctypes
import mmap
import os
import platform
import shutil
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from avial_lab.artifact.manifest import Manifest
from avial_lab.core.buffers import Storage
from avial_lab.core.device_arrays import DeviceArray
from avial_lab.core.errors import AvialError
from avial_lab.core.files import disk_error
from avial_lab.core.regions import Box
from avial_lab.core.runtime_constants import EVENT_WORDS
from avial_lab.core.version import version
from avial_lab.core.words import brief, format_bytes
from avial_lab.machine.cpu import Core, boot_id, check_instruction_sets, instruction_sets
from avial_lab.machine.real_gpus import Gpus, gpus_here
from avial_lab.planning.schedule import Piece
from avial_lab.runtime.native.loader import LoadedProgram, digest, load_program
from avial_lab.runtime.native.places import Devices, give_cubins
from avial_lab.runtime.rank.array_files import FilePart, joined
from avial_lab.runtime.rank.clock import ClockRecorder
from avial_lab.runtime.rank.exchange import holders_of, piece_sizes, pieces_of, storage_table
from avial_lab.runtime.rank.job import (
    Options,
    read_job,
    read_parcels,
    read_parts,
    write_outcome,
)
from avial_lab.runtime.rank.journal import Journal
from avial_lab.runtime.rank.outcome import Failure, Outcome
from avial_lab.runtime.rank.parcels import (
    ALIGNMENT,
    aligned_empty,
    as_bytes,
    large_sizes,
    mapped_bytes,
    pack,
    unpack,
)
from avial_lab.runtime.rank.relay import FOLDER
from avial_lab.runtime.rank.residents import Residents, touched_bytes
from avial_lab.runtime.rank.sessions import Seat, session_of
from avial_lab.runtime.rank.shards import Alone, Counted, Peers, Shard, ShardFunction, called
from avial_lab.runtime.rank.squeeze import Squeezer, part_of
from avial_lab.runtime.rank.threads import Masks, Threads, cores, team
from avial_lab.runtime.rank.underway import computes_meanwhile, going_on

if TYPE_CHECKING:  # imports mpi4py, which starts MPI
    from mpi4py.MPI import Intracomm

    from avial_lab.runtime.rank.world import Communicator


FIRST_EVENTS = 10_000
"""Of a rank, for which there is memory before it begins: 1 MB."""


@dataclass(frozen=True)
class Facts:
    """What an engine says of itself and its machine; `gpus` are the real ones, with their driver,
    or why there are none, `mask` the hardware threads of its cores, `version` that of its
    avial_lab, `boot` its machine's (Linux), `sets` its CPU's instruction sets.
    """

    rank: int
    ranks: int
    pid: int
    node: str
    arch: str
    cores: int
    memory_bytes: int
    gpus: Gpus
    mpi: str
    mask: tuple[Core, ...] = ()
    version: str = "unknown"
    boot: str = ""
    sets: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        gpus = f", {self.gpus}" if self.gpus.gpus else ""
        machine = f"{self.cores} cores, {format_bytes(self.memory_bytes)}{gpus}"
        return brief(self, f"of rank {self.rank} on {self.node}, pid {self.pid}: {machine}")


@dataclass(frozen=True)
class Probe:
    """Asks an engine for its Facts, and sets where its journal goes: there, or where the engine is
    on another host, into a folder of that host.
    """

    journals: str

    def __call__(self, *_: np.ndarray) -> Facts:
        from mpi4py import MPI

        from avial_lab.runtime.rank.world import release_shared_memory

        world = MPI.COMM_WORLD
        line_buffered()
        # The journal first: everything after it may crash.
        journal = Journal(_own_folder(self.journals), world.rank, pid=os.getpid())
        be_a_rank(journal, world.rank, world.size)
        release_shared_memory()
        return Facts(
            rank=world.rank,
            ranks=world.size,
            pid=os.getpid(),
            node=socket.gethostname(),
            arch=platform.machine(),
            cores=len(cores()),
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            gpus=gpus_here(),
            mpi=MPI.Get_library_version().splitlines()[0],
            mask=cores(),
            version=version(),
            boot=boot_id(),
            sets=instruction_sets(),
        )


def _own_folder(wanted: str) -> Path:
    """For journals: the relay's; else as `wanted` where that is here; else one of this process."""
    if FOLDER in os.environ:
        return Path(os.environ[FOLDER])
    if Path(wanted).is_dir():
        return Path(wanted)
    folder = tempfile.mkdtemp(prefix="avial-rank-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@dataclass(frozen=True)
class Load:
    """Gives an engine a program, once; runs then name it by its key. Returns what went wrong."""

    key: str
    sha256: str
    shared_object: bytes = field(repr=False)
    manifest: Manifest = field(repr=False)

    def __call__(self, *_: np.ndarray) -> Failure | None:
        try:
            program = load(self.shared_object, self.sha256, self.manifest)
        except Exception as error:  # the boundary of the engine: it travels as data
            return _failure(error)
        _here.programs[self.key] = (program, self.manifest)
        return None


@dataclass(frozen=True)
class Stage:
    """A part of a parcel of inputs, for the run of that number (or below 0: for the array that
    stays here): flat bytes from `start`, squeezed where they are fewer.
    """

    number: int
    parcel: int
    nbytes: int
    start: int
    stop: int

    def __call__(self, *parts: np.ndarray) -> None:
        if _here.staged_for != self.number:
            _here.staged_for, _here.staged = self.number, {}
        if self.parcel not in _here.staged:
            _here.staged[self.parcel] = aligned_empty(self.nbytes)
        part = part_of(parts[0].data, self.stop - self.start)
        _here.staged[self.parcel][self.start : self.stop] = np.frombuffer(part, np.uint8)


@dataclass(frozen=True)
class Fetch:
    """-> a part of a parcel that the last run, or `TakePieces`, has left here; squeezed where that
    is faster over the link, whose rate is 0 where nobody knows it.
    """

    parcel: int
    nbytes: int
    start: int
    stop: int
    link_bytes_per_s: float = 0.0

    def __call__(self, *_: np.ndarray) -> np.ndarray:
        part = _here.results[self.parcel][self.start : self.stop]
        sent = _here.squeezer.part(self.parcel, part.data, self.link_bytes_per_s)
        return np.frombuffer(sent, np.uint8)


@dataclass(frozen=True)
class Run:
    """Runs a loaded program: parcels of inputs -> (Outcome without results, *result parcels).

    apart: large parcels come before, by `Stage`, and results go afterwards, by `Fetch`: then only
    the first parcel, of small pieces, comes and goes with the call. parts: input pieces, by number,
    that do not come, and are read from files.
    """

    key: str
    rank: int
    number: int
    options: Options
    apart: bool = False
    parts: Mapping[int, FilePart] = field(default_factory=dict)

    def __call__(self, *parcels: np.ndarray) -> tuple[object, ...]:
        program, manifest = _here.programs[self.key]
        assert _here.journal is not None, "probe must be called before run"
        if self.apart:
            parcels = (*parcels, *_here.take_staged(self.number))
        _here.leave([])
        mine = pieces_of(manifest.inputs, self.rank)
        sizes = piece_sizes(manifest, mine, without=self.parts)
        try:
            inputs = joined(unpack(parcels, sizes), self.parts)
        except AvialError as error:  # a file is gone
            return Outcome(self.rank, failure=_failure(error)), *pack(())
        outcome = run(
            program, manifest, self.rank, inputs,
            journal=_here.journal, number=self.number, options=self.options,
            kept=_here.keep(self.key),
        )  # fmt: skip
        results = pack(outcome.results)
        if self.apart:
            _here.leave(results[1:])
            results = results[:1]
        return (replace(outcome, results=()), *results)

    def landings(self, parcels: Sequence[np.ndarray]) -> list[np.ndarray | None]:
        """Of each parcel the memory that it is for: the program's own, of its last run."""
        if self.apart or self.parts or self.options.poison:
            return [None] * len(parcels)
        _, manifest = _here.programs[self.key]
        kept, storages = _here.keep(self.key), storage_table(manifest)
        return _landings(
            parcels,
            [
                (storages[piece.storage], piece.box, partial(_kept_memory, manifest, kept))
                for piece in pieces_of(manifest.inputs, self.rank)
            ],
        )


@dataclass(frozen=True)
class RunResident:
    """Runs a loaded program on arrays that stay here: `arrays` are their numbers by storage,
    `given` says which rank holds what of them before. New ones come to be. -> Outcome, whose pieces
    say who holds what afterwards. read: an array, of which this box is wanted, and each rank
    answers what it has of it. forgotten: arrays that nobody asks for any more.
    """

    key: str
    rank: int
    number: int
    options: Options
    arrays: Mapping[str, int]
    given: tuple[Piece, ...]
    read: tuple[Storage, Box] | None = None
    forgotten: tuple[int, ...] = ()

    def __call__(self, *_: np.ndarray) -> tuple[object, ...]:
        program, manifest = _here.programs[self.key]
        assert _here.journal is not None, "probe must be called before run"
        _here.residents.drop(self.forgotten)
        temporaries = _here.keep(self.key)
        kept = temporaries | {
            storage.name: _here.residents.memory(self.arrays[storage.name], storage.nbytes)
            for storage in manifest.storages
            if storage.name in self.arrays
        }
        outcome = run(
            program, manifest, self.rank, (),
            journal=_here.journal, number=self.number, options=self.options,
            kept=kept, resident=self.given,
        )  # fmt: skip
        temporaries.update((name, kept[name]) for name in kept.keys() - self.arrays.keys())
        if self.read is not None and outcome.failure is None:
            outcome = replace(outcome, read=self._read_of(outcome.pieces, kept, *self.read))
        return (outcome,)

    def _read_of(
        self, held: Sequence[Piece], memory: Mapping[str, np.ndarray], storage: Storage, box: Box
    ) -> tuple[tuple[Box, bytes], ...]:
        those = [piece for piece in held if piece.storage == storage.name]
        elements = _elements(memory[storage.name], storage)
        found = (each.intersection(box) for each in holders_of(those).get(self.rank, ()))
        return tuple((part, elements[(..., *part.slices)].tobytes()) for part in found if part)


@dataclass(frozen=True)
class KeepPieces:
    """Puts pieces of one array into memory that stays here: parcels of their flat bytes, of which
    large ones may have come before, by `Stage`.
    """

    number: int
    storage: Storage
    boxes: tuple[Box, ...]

    def __call__(self, *parcels: np.ndarray) -> None:
        parcels = (*parcels, *_here.take_staged(-self.number))
        memory = self._memory(self.storage)
        for box, data in zip(self.boxes, unpack(parcels, self._sizes), strict=True):
            _put_in_place(memory, self.storage, box, data)

    @property
    def _sizes(self) -> list[int]:
        return [box.size * self.storage.itemsize for box in self.boxes]

    def landings(self, parcels: Sequence[np.ndarray]) -> list[np.ndarray | None]:
        """Of each parcel the memory that it is for."""
        return _landings(parcels, [(self.storage, box, self._memory) for box in self.boxes])

    def _memory(self, storage: Storage) -> np.ndarray:
        return _here.residents.memory(self.number, storage.nbytes)


@dataclass(frozen=True)
class TakePieces:
    """-> parcels of the flat bytes of pieces of an array that stays here; `apart`: the first one,
    of small pieces, and the others go afterwards, by `Fetch`.
    """

    number: int
    storage: Storage
    boxes: tuple[Box, ...]
    apart: bool = False

    @property
    def sizes(self) -> list[int]:
        """Of the pieces, in bytes."""
        return [box.size * self.storage.itemsize for box in self.boxes]

    def __call__(self, *_: np.ndarray) -> tuple[np.ndarray, ...]:
        memory = _here.residents.memory(self.number, self.storage.nbytes)
        elements = _elements(memory, self.storage)
        parcels = pack([as_bytes(elements[box.slices]) for box in self.boxes])
        if self.apart:
            _here.leave(parcels[1:])
            parcels = parcels[:1]
        return tuple(parcels)


NOTHING = Box((0,), (0,))
"""Of an array without dimensions, whose only box has an element."""


@dataclass(frozen=True)
class StepOperand:
    """An array that stays here, for library code: this rank's `box` of it, and what has to come
    for that from other ranks, or go to them. dtype: as NumPy writes it, which travels faster.
    """

    number: int
    storage: Storage
    dtype: str
    box: Box
    sends: tuple[tuple[int, Box], ...] = ()
    receives: tuple[tuple[int, Box], ...] = ()


@dataclass(frozen=True)
class StepAnswer:
    """Of each result of library code: the array's shape and type (as a StepOperand's), and this
    rank's box of it; what this rank sent. read: as an Outcome's.
    """

    results: tuple[tuple[tuple[int, ...], str, Box], ...] = ()
    messages: int = 0
    nbytes: int = 0
    failure: Exception | None = None
    read: tuple[tuple[Box, bytes], ...] = ()


@dataclass(frozen=True)
class ShardStep:
    """Runs library code on arrays that stay here, all ranks together; its results, `numbers`, stay
    here, too. read: a result, by its place, of which this box is wanted. forgotten: arrays that
    nobody asks for any more. together: the ranks tell each other something in the function, and
    wait for one that has failed there.
    """

    function: ShardFunction
    ranks: int
    operands: tuple[StepOperand, ...]
    parameters: Mapping[str, Any]
    numbers: tuple[int, ...]
    read: tuple[int, Box] | None = None
    forgotten: tuple[int, ...] = ()
    together: bool = True

    def __call__(self, *_: np.ndarray) -> StepAnswer:
        _here.residents.drop(self.forgotten)
        comm = _peers(self.ranks)
        peers = Counted(comm)
        shards: list[Shard] = []
        for operand in self.operands:
            memory = _here.residents.memory(operand.number, operand.storage.nbytes)
            elements = _elements(memory, operand.storage)
            if operand.sends or operand.receives:
                _exchange(comm, elements, operand)
            peers.messages += len(operand.sends)
            peers.nbytes += sum(box.size for _, box in operand.sends) * operand.storage.itemsize
            # An array of one element stays one with the dots in front.
            part = elements[(..., *operand.box.slices)].view(np.dtype(operand.dtype))
            part = part.reshape(operand.box.shape)
            shards.append(Shard(operand.storage.shape, operand.box.start, part))
        try:
            if self.together:
                results = called(self.function, shards, peers, self.parameters)
            else:
                results = self.function(shards, peers, **self.parameters)
        except Exception as error:  # the boundary of the engine: it travels as data
            return StepAnswer(failure=error)
        try:
            told = [self._keep(number, r) for number, r in zip(self.numbers, results, strict=True)]
        except (MemoryError, OSError) as error:  # no room: what is kept already is dropped
            return StepAnswer(failure=MemoryError(str(error)))
        read: tuple[tuple[Box, bytes], ...] = ()
        if self.read is not None and results[self.read[0]].part.size:
            read = _read_of(results[self.read[0]], self.read[1])
        return StepAnswer(tuple(told), peers.messages, peers.nbytes, read=read)

    def _keep(self, number: int, result: Shard) -> tuple[tuple[int, ...], str, Box]:
        """A result stays here: what is told of it."""
        storage = Storage("", result.shape, result.part.itemsize, ())
        memory = _here.residents.memory(number, storage.nbytes)
        box = NOTHING
        if result.part.ndim == len(result.shape):
            box = result.box
        if result.part.size:
            elements = _elements(memory, storage)
            part = np.ascontiguousarray(result.part).view(elements.dtype)
            elements[box.slices] = part.reshape(box.shape)
        return result.shape, result.part.dtype.str, box


def _read_of(shard: Shard, box: Box) -> tuple[tuple[Box, bytes], ...]:
    common = shard.box.intersection(box)
    if common is None:
        return ()
    place = tuple(
        slice(a - start, b - start)
        for a, b, start in zip(common.start, common.stop, shard.start, strict=True)
    )
    return ((common, shard.part[(..., *place)].tobytes()),)


def _peers(ranks: int) -> Peers:
    """One rank alone needs no MPI."""
    if ranks == 1:
        return Alone()
    from avial_lab.runtime.rank import world

    return world.communicator(ranks).comm


def _exchange(peers: Peers, elements: np.ndarray, operand: StepOperand) -> None:
    from avial_lab.runtime.rank import world

    world.exchange(cast("Intracomm", peers), elements, operand.sends, operand.receives)


@dataclass(frozen=True)
class TakenBytes:
    """Asks for the physical memory that arrays which stay here take."""

    def __call__(self, *_: np.ndarray) -> int:
        return _here.residents.taken_bytes()


def outcome_of(manifest: Manifest, answer: Sequence[Any]) -> Outcome:
    """What `Run` answered, as the Outcome it was."""
    outcome, *parcels = answer
    sizes = piece_sizes(manifest, outcome.pieces)
    return replace(outcome, results=tuple(unpack(parcels, sizes)))


def load(shared_object: bytes, sha256: str, manifest: Manifest) -> LoadedProgram:
    """The program in this process, with MPI's symbols there for it to find.

    Raises ClusterError where this CPU lacks what the program was compiled for.
    """
    check_instruction_sets(manifest.instruction_sets)
    if manifest.uses_mpi:
        from avial_lab.runtime.rank import world

        world.make_symbols_global()
    program = load_program(shared_object, sha256, entry=manifest.entry)
    give_cubins(program, manifest.kernels)
    return program


def run(
    program: LoadedProgram,
    manifest: Manifest,
    rank: int,
    inputs: Sequence[np.ndarray],
    *,
    journal: Journal,
    options: Options,
    number: int = 1,
    kept: dict[str, np.ndarray] | None = None,
    resident: tuple[Piece, ...] | None = None,
    given: Mapping[str, tuple[DeviceArray, int]] = MappingProxyType({}),
) -> Outcome:
    """One run of the program as `rank`; what goes wrong is in the Outcome.

    `inputs` are the flat bytes of the rank's input pieces; a piece that is a whole storage may
    become it, uncopied. `kept` is memory of an earlier run to use again, and gets this run's: fresh
    pages can cost more than the messages. With `resident`, which says what each rank holds in place
    of the manifest's inputs, the arrays are in `kept` and stay there: the Outcome's pieces then say
    who holds what, and it has no results. given: arrays that the caller has on devices of this
    process, and their places, by storage.
    """
    _here.turn_to(program)
    journal.begin(number)
    recorder = ClockRecorder(options.traced, options.most_events)
    try:
        with recorder.aside("set up the inputs", sum(data.nbytes for data in inputs)):
            mine = pieces_of(manifest.inputs, rank) if resident is None else ()
            memory = allocate(manifest, mine, inputs, poison=options.poison, kept=kept)
        room = _here.room_for_events
        driver = options.driver or manifest.driver
        devices = Devices(driver, options.device_seed, options.gpu_memory)
        held = manifest.inputs if resident is None else resident
        # Arrays that lie elsewhere than planned may be used on devices at other moments.
        stays = manifest.stays if resident is None else ()
        seat = Seat(program, rank, memory, held, stays, journal, recorder, room, devices, given)
        session = session_of(manifest, seat)
        with team(
            program, options.threads, *_neighbours(manifest), at_first_use=resident is not None
        ) as hands:
            session.set_up()
            communicator = _set_globals(program, manifest, journal, recorder)
            way = _choose_way(program, manifest, driver)
            with _messages_going_on(manifest, rank, communicator):
                session.run()
        failure = session.failure()
        if failure is not None:
            return Outcome(rank, failure=failure, team=hands)
        recorder.read_clock(communicator)
        if resident is not None:
            return Outcome(
                rank, session.times(), session.held(), (), session.moves(),
                team=hands, copies=session.copies(), taken_bytes=session.taken_bytes(), way=way,
            )  # fmt: skip
        pieces = tuple(pieces_of(session.pieces(), rank))
        contents = _contents(manifest, memory, pieces, recorder)
        return Outcome(
            rank,
            session.times(),
            pieces,
            contents,
            session.moves(),
            team=hands,
            copies=session.copies(),
            taken_bytes=session.taken_bytes(),
            way=way,
            touched_bytes=sum(map(touched_bytes, memory.values())) if options.traced else 0,
        )
    except Exception as error:  # the boundary of the engine: it travels as data
        return Outcome(rank, failure=_failure(error))
    finally:
        _standard_library().fflush(
            None
        )  # what compiled code printed, to the end of the line or not
        journal.finish()


def _neighbours(manifest: Manifest) -> tuple[Masks, int]:
    """The cores that each of the ranks on this machine may use, and which of them we are."""
    if not manifest.uses_mpi:
        return [cores()], 0
    from avial_lab.runtime.rank import world

    return world.neighbours(manifest.ranks)


def _contents(
    manifest: Manifest,
    memory: Mapping[str, np.ndarray],
    pieces: Sequence[Piece],
    recorder: ClockRecorder,
) -> tuple[np.ndarray, ...]:
    """The flat bytes of `pieces`, as they lie in this rank's memory now."""
    storages = storage_table(manifest)
    with recorder.aside("take the results", sum(piece_sizes(manifest, pieces))):
        return tuple(
            as_bytes(_elements(memory[piece.storage], storages[piece.storage])[piece.box.slices])
            for piece in pieces
        )


APART = 5 * ALIGNMENT
"""Bytes into a page by which each array begins after the one before. Where two begin alike, a
processor takes a load from one for a load of what it has just stored to the other, whose addresses
end in the same twelve bits, and waits.
"""


def allocate(
    manifest: Manifest,
    pieces: Sequence[Piece],
    inputs: Sequence[np.ndarray],
    *,
    poison: bool = False,
    kept: dict[str, np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
    """Flat bytes for every storage, in the manifest's order, with these pieces of the rank's in
    place.

    Where nothing was given the memory is undefined, or with `poison` NaN for floats and 0xA5 for
    the rest.
    """
    kept = {} if kept is None else kept
    storages = storage_table(manifest)
    memory: dict[str, np.ndarray] = {}
    usable = {
        piece.storage: data for piece, data in zip(pieces, inputs, strict=True) if _usable(data)
    }
    for storage in manifest.storages:
        whole = usable.get(storage.name)
        if whole is not None and whole.nbytes == storage.nbytes:
            memory[storage.name] = whole
            continue
        memory[storage.name] = _kept_memory(manifest, kept, storage)
        if poison:
            memory[storage.name].fill(_poison_byte(manifest, storage))
    for piece, data in zip(pieces, inputs, strict=True):
        _put_in_place(memory[piece.storage], storages[piece.storage], piece.box, data)
    return memory


def _kept_memory(manifest: Manifest, kept: dict[str, np.ndarray], storage: Storage) -> np.ndarray:
    """The storage's, of an earlier run, or from now on."""
    if storage.name not in kept:
        empty = mapped_bytes if manifest.sparse else aligned_empty
        skip = (len(kept) + 1) * APART % mmap.PAGESIZE
        kept[storage.name] = empty(storage.nbytes + skip)[skip:]
    return kept[storage.name]


def _put_in_place(memory: np.ndarray, storage: Storage, box: Box, data: np.ndarray) -> None:
    """A box's flat bytes, unless they are there."""
    place = _elements(memory, storage)[(..., *box.slices)]
    if place.ctypes.data != data.ctypes.data:
        place[...] = data.view(place.dtype).reshape(box.shape)


def _landings(
    parcels: Sequence[np.ndarray],
    pieces: Sequence[tuple[Storage, Box, Callable[[Storage], np.ndarray]]],
) -> list[np.ndarray | None]:
    """Where each parcel of pieces is to be: a large one at its place in the storage's memory, if
    that is flat.
    """
    places: list[np.ndarray | None] = [None]
    for storage, box, memory in pieces:
        if large_sizes([box.size * storage.itemsize]):
            place = _elements(memory(storage), storage)[(..., *box.slices)]
            flat = place.flags.c_contiguous
            places.append(place.reshape(-1).view(np.uint8) if flat else None)
    return places if len(places) == len(parcels) else [None] * len(parcels)


@dataclass
class _Here:
    """What this process keeps between calls; an engine is a process, so there is one."""

    journal: Journal | None = None
    programs: dict[str, tuple[LoadedProgram, Manifest]] = field(default_factory=dict)
    events: np.ndarray = field(default_factory=lambda: np.zeros((0, EVENT_WORDS), np.int64))
    ran: LoadedProgram | None = None
    kept_for: str = ""
    kept: dict[str, np.ndarray] = field(default_factory=dict)
    residents: Residents = field(default_factory=Residents)
    staged_for: int = 0
    staged: dict[int, np.ndarray] = field(default_factory=dict[int, np.ndarray])
    results: list[np.ndarray] = field(default_factory=list[np.ndarray])
    squeezer: Squeezer = field(default_factory=Squeezer)

    def keep(self, key: str) -> dict[str, np.ndarray]:
        """The memory of the last run where that was of the same program; no other's is kept."""
        if key != self.kept_for:
            self.kept_for, self.kept = key, {}
        return self.kept

    def turn_to(self, program: LoadedProgram) -> None:
        """It runs next: another that ran last gives back what it keeps, on devices, too."""
        if self.ran is not None and self.ran is not program:
            self.ran.drop_memory()
        self.ran = program

    def take_staged(self, number: int) -> list[np.ndarray]:
        """The parcels that came before for that number, which are then no longer kept."""
        staged, self.staged = self.staged, {}
        return [staged[k] for k in range(len(staged))] if self.staged_for == number else []

    def leave(self, results: list[np.ndarray]) -> None:
        """Parcels to be fetched, in place of those before."""
        self.results, self.squeezer = results, Squeezer()

    def room_for_events(self, rows: int) -> np.ndarray:
        """Memory for so many, which costs only what is used; that of the last run is used again.

        The first of it is touched here: what the kernel does for a fresh page takes longer than an
        event, and would be seen in the times.
        """
        if len(self.events) < rows:
            self.events = mapped_bytes(rows * EVENT_WORDS * 8).view(np.int64)
            self.events = self.events.reshape(-1, EVENT_WORDS)
            self.events[:FIRST_EVENTS] = 0
        return self.events[:rows]


_here = _Here()


def be_a_rank(journal: Journal, rank: int, ranks: int) -> None:
    """This process runs programs, and keeps arrays, as one of so many."""
    _here.journal = journal
    _here.residents.rank, _here.residents.ranks = rank, ranks


def run_here(
    program: LoadedProgram,
    manifest: Manifest,
    memory: dict[str, np.ndarray],
    given: tuple[Piece, ...],
) -> None:
    """A program of one rank on memory of this process, on one thread; raises what went wrong."""
    assert _here.journal is not None, "probe must be called before run"
    outcome = run(
        program, manifest, 0, (), journal=_here.journal, kept=memory, resident=given,
        options=Options(traced=False, threads=Threads(1)),
    )  # fmt: skip
    if outcome.failure is not None:
        raise RuntimeError(outcome.failure.message)


def resident_bytes(number: int, nbytes: int) -> np.ndarray:
    """An array that stays here, as flat bytes of its whole index space."""
    return _here.residents.memory(number, nbytes)


def _set_globals(
    program: LoadedProgram, manifest: Manifest, journal: Journal, recorder: ClockRecorder
) -> Communicator | None:
    """Everything compiled code reads of its surroundings; what the ranks share, if they do."""
    program.set_globals({"avial_journal": journal.step_address})
    if not manifest.uses_mpi:
        return None
    from avial_lab.runtime.rank import world

    communicator = world.communicator(manifest.ranks)
    program.set_globals({**world.handles(), "avial_comm": world.handle(communicator.comm)})
    recorder.read_clock(communicator)
    # All start together: what a rank then waits for is the program's doing, not the launch's.
    masks, place = _neighbours(manifest)
    world.all_here(communicator.comm, on_a_core=len(masks) / len(masks[place]))
    return communicator


def _messages_going_on(
    manifest: Manifest, rank: int, communicator: Communicator | None
) -> AbstractContextManager[None]:
    if communicator is None or not computes_meanwhile(manifest, rank):
        return nullcontext()
    masks, place = _neighbours(manifest)
    return going_on(communicator.comm, on_a_core=len(masks) / len(masks[place]))


def _choose_way(program: LoadedProgram, manifest: Manifest, driver: str) -> str:
    """Of messages between devices, told to the program; in words where there may be any."""
    if not manifest.drivers or not manifest.uses_mpi:
        return ""
    from avial_lab.runtime.rank.device_messages import way_between

    way = way_between(manifest.ranks, driver)
    program.set_globals({"avial_direct": way.direct})
    return str(way)


def _failure(error: Exception) -> Failure:
    if isinstance(error, AvialError):
        return Failure(error.message, hint=error.hint)
    if isinstance(error, MemoryError):
        return Failure(
            "out of memory", hint="the arrays do not fit into the memory of this rank's machine"
        )
    told = disk_error(error) if isinstance(error, OSError) else None
    if told is not None:
        return Failure(told.message, hint=told.hint)
    return Failure(f"{type(error).__name__}: {error}", traceback=traceback.format_exc())


def _usable(data: np.ndarray) -> bool:
    """Whether compiled code may work in this memory: writable, aligned for every element type."""
    return data.flags.writeable and data.flags.c_contiguous and data.ctypes.data % ALIGNMENT == 0


def _elements(memory: np.ndarray, storage: Storage) -> np.ndarray:
    """The storage in its own index space; elements are opaque, so that every dtype is alike."""
    return memory.view(np.dtype((np.void, storage.itemsize))).reshape(storage.shape)


def _poison_byte(manifest: Manifest, storage: Storage) -> int:
    elements = {buffer.element for buffer in manifest.buffers if buffer.storage == storage.name}
    # All ones is a NaN in every floating-point format.
    return 0xFF if all("f" in element for element in elements) else 0xA5


@cache
def _standard_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def line_buffered() -> None:
    """What compiled code prints is written line by line, so that it survives the rank's death."""
    name = "__stdoutp" if sys.platform == "darwin" else "stdout"
    stdout = ctypes.c_void_p.in_dll(_standard_library(), name)
    line_by_line = 1  # _IOLBF, on Linux and macOS
    _standard_library().setvbuf(stdout, None, line_by_line, ctypes.c_size_t(0))


def main(argv: Sequence[str]) -> None:
    """Run the job in the directory `argv[0]` as this process's rank; its Outcome goes there."""
    from mpi4py import MPI

    from avial_lab.runtime.rank.world import release_shared_memory

    directory, rank = Path(argv[0]), MPI.COMM_WORLD.rank
    line_buffered()
    journal = Journal(directory, rank, pid=os.getpid())
    release_shared_memory()
    binary, options = read_job(directory)
    manifest = binary.manifest
    parts = read_parts(directory, rank)
    sizes = piece_sizes(manifest, pieces_of(manifest.inputs, rank), without=parts)
    try:
        inputs = joined(unpack(read_parcels(directory, rank), sizes), parts)
        program = load(binary.shared_object, digest(binary.shared_object), manifest)
    except Exception as error:  # as in `Load`
        outcome = Outcome(rank, failure=_failure(error))
    else:
        outcome = run(program, manifest, rank, inputs, journal=journal, options=options)
    write_outcome(directory, outcome)


if __name__ == "__main__":
    main(sys.argv[1:])
