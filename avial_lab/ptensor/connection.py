"""Recorded programs on a cluster: compiled once, run on arrays that stay there.

Recording -> the engines' arrays; array -> NumPy array.
"""

from __future__ import annotations

import os
import re
import secrets
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, TypeVar, cast
from zlib import crc32

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.core.device_arrays import DeviceArray, stand_ins
from avial_lab.core.errors import BindError, ClusterError, OptionError
from avial_lab.core.regions import Box
from avial_lab.core.words import count
from avial_lab.planning.homes import NoKernels
from avial_lab.planning.schedule import Piece
from avial_lab.program.compilation import compile as compile_program
from avial_lab.program.program import Program
from avial_lab.program.reference_run import OneProcess
from avial_lab.program.session import cluster as session_cluster
from avial_lab.program.session import use_cluster
from avial_lab.ptensor.elements import stored_dtype
from avial_lab.ptensor.layouts import Layout, Redistribution
from avial_lab.ptensor.memory_use import HeldBytes
from avial_lab.ptensor.recording import (
    Argument,
    Memory,
    Origin,
    Recorded,
    Recording,
    detach_elements,
    persons_line,
    refuse_lost,
    told,
    warn,
)
from avial_lab.runtime.rank import shards
from avial_lab.runtime.rank.copies import copies
from avial_lab.runtime.rank.functions import BLOCK, MissingFunctions, Name, learn
from avial_lab.runtime.rank.holders import (
    MOST_READ_BYTES,
    LostArray,
    Resident,
    StepDone,
    Wanted,
    as_told,
    boxes_of,
    new_resident,
    operands_to,
    sent_for,
)
from avial_lab.runtime.rank.interpreter import (
    INTEGERS,
    REALS,
    Declined,
    Plan,
    Sent,
    interpreted,
    needs,
    sent,
)
from avial_lab.runtime.rank.on_gpu import OnGpu
from avial_lab.runtime.rank.own_ranks import OwnRanks, no_rows, own_ranks
from avial_lab.runtime.rank.shards import ShardFunction, stepped_alone
from avial_lab.runtime.rank.traces import Ran
from avial_lab.trace import Trace

if TYPE_CHECKING:  # loads ipyparallel, without which ranks do that mpiexec has started
    from avial_lab.runtime.launch.cluster import Cluster
    from avial_lab.runtime.launch.residence import Residence

T = TypeVar("T")

MOST_PROGRAMS = 512

_LOOKED_AT = 1 << 16
"""Elements of an array, at most, that tell whether ranks bring in the same."""

_SEED_BITS = 32
"""Of what NumPy's older generator takes."""

MOST_SENT_BYTES = 1 << 14
"""Of rows, for reducing them without compiling it."""

MOST_SPENT = 20_000
"""Operations of a program that are computed one by one in as long as it takes to compile it."""


@dataclass(frozen=True)
class _Planned:
    """What is computed without compiling it. given: what each rank is to have of the arrays that it
    takes; made: the names of what comes out. reduces: whether rows are added up, or the like.
    """

    given: Mapping[str, Wanted]
    made: Sequence[str]
    plan: Sent
    reduces: bool


@dataclass
class Connection:
    """One cluster's arrays: what is recorded for them, and the programs they were computed by.

    device: "cuda:0" computes them by kernels of a GPU that each rank drives; of one rank that is
    this process they live there, too.
    """

    cluster: Cluster | OneProcess | OwnRanks
    device: str = "default"
    recording: Recording = field(default_factory=Recording)
    runs: int = 0
    compiled: int = 0
    gathers: int = 0
    gathered_bytes: int = 0
    interpreted: int = 0
    steps: int = 0
    messages: int = 0
    bytes_moved: int = 0
    _copied_bytes: int = 0
    always_compiled: bool = False
    held: HeldBytes = field(default_factory=HeldBytes)
    _last: Recorded | None = None
    _ran: Ran | None = None
    _wanted: tuple[str, Box, np.dtype] | None = None
    _read: np.ndarray | None = None
    _writing: bool = False
    _brought: list[tuple[int, weakref.ref[Memory]]] = field(
        default_factory=list["tuple[int, weakref.ref[Memory]]"]
    )
    _adopted: weakref.WeakValueDictionary[tuple[Any, ...], Memory] = field(
        default_factory=weakref.WeakValueDictionary
    )
    _recorded: dict[bytes, Any] = field(default_factory=dict[bytes, Any])
    _plans: dict[tuple[Any, ...], _Planned] = field(
        default_factory=dict["tuple[Any, ...]", "_Planned"]
    )
    _spent: dict[str, int] = field(default_factory=dict)
    _programs: OrderedDict[str, Program] = field(default_factory=OrderedDict)
    _ran_last: dict[str, Ran] = field(default_factory=dict[str, Ran])
    """Of each of these its last run."""
    _tables: OrderedDict[tuple[str, tuple[float, ...]], Resident] = field(
        default_factory=OrderedDict
    )

    def __post_init__(self) -> None:
        self.residence: Residence | OwnRanks | OnGpu | _InProcess
        if isinstance(self.cluster, OwnRanks):
            self.ranks = self.cluster.ranks
            alone = self.ranks == 1 and self.device != "default"
            self.residence = OnGpu(self.cluster) if alone else self.cluster
            self.lockstep = self.cluster.lockstep
            self.recording = Recording(device=self.device, ranks=self.ranks)
            if self.lockstep is not None:
                self.lockstep.recorders.append(self)
            return
        self.lockstep = None
        self.ranks = self.cluster.topology.ranks
        self.recording = Recording(device=self.device, ranks=self.ranks)
        if isinstance(self.cluster, OneProcess):
            self.residence = _InProcess(self.cluster)
        else:
            from avial_lab.runtime.launch.residence import Residence

            self.residence = Residence(self.cluster)

    @property
    def is_over(self) -> bool:
        """Whether there are no ranks any more."""
        return not isinstance(self.cluster, OwnRanks) and self.cluster.is_stopped

    @property
    def is_this_process(self) -> bool:
        """Whether the only rank is, and nobody else's program."""
        alone = isinstance(self.residence, OwnRanks) and self.lockstep is None
        return alone or isinstance(self.residence, OnGpu | _InProcess)

    @property
    def place(self) -> str:
        """Where the arrays are, in words."""
        if isinstance(self.cluster, OneProcess):
            return self.cluster.label
        return f"on {count(self.ranks, 'rank')}"

    def record(self) -> Recording:
        """The recording to add to."""
        return self.recording

    def meet(self, what: str, own: bytes = b"") -> bool:
        """All ranks of a script are about to do that, and have recorded the same before. Whether
        all of them have the same `own`.
        """
        if self.lockstep is None:
            return True
        line, said = told(persons_line()), self.recording.fingerprint
        return self.lockstep.meet(what, line, said, own)

    def _note(self, what: str, array: np.ndarray) -> None:
        """All ranks of a script bring the same in."""
        if self.lockstep is not None:
            flat = array.reshape(-1)
            checksum = crc32(flat[:: flat.size // _LOOKED_AT + 1].tobytes())
            marked = f"{what} of {array.dtype}, {array.shape} with the checksum {checksum:08x}"
            self.lockstep.note(marked, told(persons_line()))

    def entries(self) -> list[tuple[str, str]]:
        """What was recorded since the last run, and at which line, for people."""
        return self.recording.entries()

    def forget(self) -> None:
        """What was recorded, and what was brought in since the ranks met last: they differed."""
        recording, self.recording = self.recording, Recording(device=self.device, ranks=self.ranks)
        recording.settle(lambda memory: _lose(memory, recording.written))
        for met, reference in self._brought:
            memory = reference()
            if memory is not None and self.lockstep is not None and met == self.lockstep.met:
                memory.lost = True
        self._brought.clear()

    def run_if_full(self) -> None:
        """Between two operations: values of the recording are then nobody's any more."""
        if self.recording.is_full(for_certain=self.lockstep is not None):
            self.run()

    def run(
        self, read: tuple[Memory, Box] | None = None, *, met: bool = False
    ) -> np.ndarray | None:
        """Run what is recorded. Whatever happens, the next recording begins empty. read: what is
        wanted of an array then, which is the result where it has come along. met: all ranks of a
        script have recorded the same.
        """
        if not met:
            self.meet("runs what is recorded")
        recording, self.recording = self.recording, Recording(device=self.device, ranks=self.ranks)
        recorded = recording.finish(self._recorded)
        self._writing = False
        self._wanted, self._read = None, None
        if read is not None and read[0].name is not None:
            self._wanted = read[0].name[1:], read[1], read[0].dtype
        try:
            residents = self._run(recorded) if recorded is not None else {}
        except BaseException:
            # What was to be written is neither what it was nor what it was to be, once that began.
            written = recording.written if self._writing else set[str]()
            recording.settle(lambda memory: _lose(memory, written))
            raise
        if recorded is not None:
            origin = recording.origin() if recorded.alone else None
            for name in recorded.written & residents.keys():
                residents[name].again = (
                    partial(self._made_again, origin, name)
                    if origin is not None and name in recorded.alone
                    else None
                )
        recording.settle(lambda memory: _settle(memory, residents))
        for (message, line), flag in recording.watched_for.items():
            if flag.resident is not None and self._here(flag.resident, flag.dtype, Box((), ())):
                warn(message, line)
        return self._read

    @property
    def copied_bytes(self) -> int:
        """Between GPUs and the memory of those that drive them."""
        there = self.residence.copied_bytes if isinstance(self.residence, OnGpu) else 0
        return there + self._copied_bytes

    @property
    def last(self) -> Program | None:
        """That of the last run; compiled now where it has not been."""
        if self._last is None:
            return None
        program = self._program(self._last)
        if self._last.text in self._ran_last:
            program.trace = self._ran_last[self._last.text].trace
        return program

    @property
    def trace(self) -> Trace | None:
        """What happened when, of the last run of a compiled program."""
        return None if self._ran is None else self._ran.trace

    def _run(self, recorded: Recorded) -> dict[str, Resident]:
        self._last = recorded
        if self._is_interpreted(recorded):
            try:
                return self._interpret(recorded)
            except Declined:
                pass  # nothing has been written
            except MissingFunctions as missing:
                self._teach(missing.names)
                return self._run(recorded)
        return self._compute(recorded)

    def _is_interpreted(self, recorded: Recorded) -> bool:
        """Until that has cost as much as compiling would have: so it never costs more than twice as
        much as what had been best (Karlin, Manasse, Rudolph and Sleator 1988, on snoopy caching).
        """
        operations = recorded.operations
        if self.device != "default":
            return False  # it is that device's to compute
        if operations is None or self.always_compiled or recorded.text in self._programs:
            return False
        if isinstance(self.residence, _InProcess):  # which has no ranks with parts of their own
            return False
        spent = self._spent.get(recorded.text, 0) + len(operations)
        self._spent[recorded.text] = spent
        if len(self._spent) > 8 * MOST_PROGRAMS:
            del self._spent[next(iter(self._spent))]
        return spent <= MOST_SPENT

    def _interpret(self, recorded: Recorded) -> dict[str, Resident]:
        """NumPy computes, on each rank's part of what is written. Declined where compiled code
        sends less: partial results in place of rows.
        """
        planned = self._planned(recorded)
        operands = [
            (argument.resident, argument.dtype, wanted)
            for argument, wanted in (
                (recorded.arrays[name], wanted) for name, wanted in planned.given.items()
            )
            if argument.resident is not None
        ]
        if planned.reduces and sent_for(operands, self.ranks)[1] > MOST_SENT_BYTES:
            raise Declined("partial results are less")
        name, box, _ = self._wanted or ("", None, None)
        done = self._for_certain(
            [resident for resident, *_ in operands],
            lambda: self.residence.step(
                interpreted,
                operands,
                {
                    "plan": planned.plan,
                    "numbers": {REALS: recorded.reals, INTEGERS: recorded.integers},
                },
                len(planned.made),
                read=(planned.made.index(name), box) if box and name in planned.made else None,
                together=False,
            ),
        )
        self._read = done.read
        self.messages += done.messages
        self.bytes_moved += done.nbytes
        self.held.note(resident for resident, _ in done.results)
        self.interpreted += 1
        self.runs += 1
        return {
            name: resident for name, (resident, _) in zip(planned.made, done.results, strict=True)
        }

    def _teach(self, names: Sequence[Name]) -> None:
        """The ranks learn elementary functions: each is a program of its own, compiled once."""
        binaries = {name: self._of_a_block(*name) for name in names}
        self.residence.step(learn, [], {"binaries": binaries}, 0)

    def _of_a_block(self, function: str, kind: str) -> Binary:
        recording, dtype = Recording(), np.dtype(kind)
        given = Memory((BLOCK,), dtype, new_resident((BLOCK,), dtype.itemsize))
        value = recording.operation(
            "unary", [recording.read(given)], (BLOCK,), dtype, function=function
        )
        made = recording.holding(value)
        recorded = recording.finish({})
        assert recorded is not None, made
        arrays = {name: np.empty(each.shape, dtype) for name, each in recorded.arrays.items()}

        def make() -> Binary:
            cell = f"{function} of small arrays"
            return compile_program(recorded.text, arrays=arrays, ranks=1, cell=cell).binary

        return self.residence.once(make) if isinstance(self.residence, OwnRanks) else make()

    def _planned(self, recorded: Recorded) -> _Planned:
        """For arrays that lie as they do now."""
        arrays, ranks = recorded.arrays, self.ranks
        lie = [
            each.resident and tuple((p.rank, p.box) for p in each.resident.pieces)
            for each in arrays.values()
        ]
        key = recorded.text, tuple(lie)
        known = self._plans.get(key)
        if known is not None:
            return known
        assert recorded.operations is not None
        alike = _first_of_each_shape(arrays)
        made = [
            (
                name,
                argument.shape,
                boxes_of(argument.resident or alike.get(argument.shape), argument.shape, ranks),
            )
            for name, argument in arrays.items()
            if name in recorded.written
        ]
        wanted = [{f"%{name}": boxes[r] for name, _, boxes in made} for r in range(ranks)]
        each = [needs(recorded.operations, boxes) for boxes in wanted]
        given = {
            name: as_told([n.given.get(f"%{name}") for n in each])
            for name, argument in arrays.items()
            if argument.resident is not None and any(f"%{name}" in n.given for n in each)
        }
        plan = Plan(
            recorded.operations,
            each,
            [f"%{name}" for name in given],
            [(f"%{name}", shape, boxes) for name, shape, boxes in made],
        )
        if len(self._plans) >= MOST_PROGRAMS:
            del self._plans[next(iter(self._plans))]
        reduces = any(op.kind == "reduce" and 0 in op.axes for op in recorded.operations)
        names = [name for name, _, _ in made]
        planned = self._plans[key] = _Planned(given, names, sent(plan), reduces)
        return planned

    def _compute(self, recorded: Recorded) -> dict[str, Resident]:
        program = self._program(recorded)
        self._writing = not isinstance(self.residence, OnGpu)  # where a run that fails undoes it
        residents = {
            name: argument.resident or self.residence.new(argument.shape, argument.dtype.itemsize)
            for name, argument in recorded.arrays.items()
        }
        ran, self._read = self._for_certain(
            residents.values(),
            lambda: self._run_program(program, residents | self._tables_of(recorded)),
        )
        self.held.note(residents.values())
        self._ran = self._ran_last[recorded.text] = ran
        self._count(ran)
        return residents

    def _for_certain(self, needed: Iterable[Resident], call: Callable[[], T]) -> T:
        """What the call gives; where engines have died, once the arrays that it needs are made
        again. LostArray with the line of one that cannot be.
        """
        try:
            return call()
        except LostArray as error:
            self._tables.clear()  # of engines that are gone
            gone = cast("Residence", self.residence).lost(needed)
            for each in gone:
                if each.again is None:
                    raise LostArray(error.why, each.line) from None
            for each in gone:
                each.renew()
            return call()

    def _made_again(self, origin: Origin, name: str) -> Resident:
        """An array that hangs on no other."""
        wanted, self._wanted = self._wanted, None
        memory = Memory(*origin.kinds[f"%{name}"])
        try:
            recorded = origin.recording(name, memory).finish(self._recorded)
            assert recorded is not None, name
            return self._run(recorded)[name]
        finally:
            self._wanted = wanted

    def run_on(
        self, program: Program, memories: Mapping[str, Memory], written: Set[str], **how: Any
    ) -> Trace:
        """A program that was not recorded, on these arrays by its storages, in place. written:
        those that it changes, which are lost where it fails. how: as `Residence.run` takes it.
        """
        if isinstance(self.residence, OwnRanks) and how.pop("timeout") is not None:
            raise BindError("ranks that mpiexec has started have no time limit")
        for name in written:
            detach_elements(memories[name])
        self.run()
        self.meet("runs a program")
        residents = {name: self._resident_of(memory) for name, memory in memories.items()}
        try:
            ran, _ = self._for_certain(
                residents.values(), lambda: self._run_program(program, residents, **how)
            )
        except BindError:
            raise
        except BaseException:
            for name in written:
                memories[name].lost = True
            raise
        for name in written:
            residents[name].again = None
        self._count(ran)
        return ran.trace

    def _resident_of(self, memory: Memory) -> Resident:
        if memory.resident is None:
            memory.resident = self.put(np.zeros(memory.shape, memory.dtype)).resident
        assert memory.resident is not None
        return memory.resident

    def _count(self, ran: Ran) -> None:
        self.messages += sum(move.messages for move in ran.moves)
        self.bytes_moved += sum(move.nbytes for move in ran.moves)
        self._copied_bytes += sum(copy.nbytes for copy in ran.copies)
        self.runs += 1

    def _run_program(
        self, program: Program, arrays: Mapping[str, Resident], **how: Any
    ) -> tuple[Ran, np.ndarray | None]:
        if isinstance(self.residence, _InProcess):
            return self.residence.run_program(program, arrays), None
        if isinstance(self.residence, OnGpu):
            return self.residence.run(program.binary, arrays), None
        if isinstance(self.residence, OwnRanks):
            return self.residence.run(program.binary, arrays, read=self._wanted)
        return self.residence.run(program.binary, arrays, read=self._wanted, **how)

    def _program(self, recorded: Recorded) -> Program:
        known = self._programs.get(recorded.text)
        if known is None:
            arrays: dict[str, np.ndarray] = {
                name: np.empty(argument.shape, stored_dtype(argument.dtype))
                for name, argument in recorded.arrays.items()
            }
            arrays |= {name: np.asarray(held) for name, held in _tables(recorded).items()}
            known = self._compiled(recorded.text, arrays)
            self.compiled += 1
            self._programs[recorded.text] = known
            if len(self._programs) > MOST_PROGRAMS:
                self._ran_last.pop(self._programs.popitem(last=False)[0], None)
        self._programs.move_to_end(recorded.text)
        return known

    def _compiled(self, text: str, arrays: dict[str, np.ndarray]) -> Program:
        """By one rank of those that run a script, for all of them."""

        def made(given: Mapping[str, np.ndarray]) -> Program:
            return compile_program(text, arrays=given, ranks=self.ranks, cell="recorded arrays")

        def make() -> Program:
            if isinstance(self.residence, OnGpu):
                with suppress(NoKernels):
                    return replace(made(stand_ins(arrays)), arrays={})
            return replace(made(arrays), arrays={})  # whose size is not to be sent

        if isinstance(self.residence, OwnRanks):
            self.meet("compiles what it has run last")
            return replace(self.residence.once(make), arrays=arrays)
        return replace(make(), arrays=arrays)

    def _tables_of(self, recorded: Recorded) -> dict[str, Resident]:
        """Numbers are given to every rank, once."""
        found: dict[str, Resident] = {}
        for name, held in _tables(recorded).items():
            key = (name, tuple(held.tobytes()))
            if key not in self._tables:
                self._tables[key] = self.residence.put(held, whole_on_each=True)
                if len(self._tables) > MOST_PROGRAMS:
                    self._tables.popitem(last=False)
            found[name] = self._tables[key]
        return found

    def step(
        self,
        function: ShardFunction,
        operands: Sequence[tuple[Memory, Wanted]] = (),
        results: int = 1,
        /,
        **parameters: Any,
    ) -> tuple[Memory, ...]:
        """Library code on shards, now: runs what is recorded, brings the operands to where they
        are wanted, and has all ranks call the function.
        """
        if any(memory.value is not None or memory.name is not None for memory, _ in operands):
            self.run()
        self.meet(f"calls library code, {function.__name__}")
        given: list[tuple[Resident, np.dtype, Wanted]] = []
        for memory, wanted in operands:
            refuse_lost(memory)
            if memory.resident is None:
                memory.resident = self.put(np.zeros(memory.shape, memory.dtype)).resident
            assert memory.resident is not None
            given.append((memory.resident, memory.dtype, wanted))
        done = self._for_certain(
            [resident for resident, *_ in given],
            lambda: self.residence.step(function, given, parameters, results),
        )
        self.messages += done.messages
        self.bytes_moved += done.nbytes
        self.held.note(resident for resident, _ in done.results)
        self.steps += 1
        line = persons_line()
        for k, (resident, _) in enumerate(done.results):
            resident.line = told(line)
            if not given:  # random numbers, rows of files: as they were made
                again = partial(self.residence.step, function, given, parameters, results)
                resident.again = lambda again=again, k=k: again().results[k][0]
        return tuple(Memory(r.storage.shape, dtype, r, line=line) for r, dtype in done.results)

    def seed(self) -> int:
        """Another one every time, the same on all ranks of a script."""
        return self.once(lambda: secrets.randbits(_SEED_BITS), "draws a seed")

    def once(self, make: Callable[[], T], what: str = "makes a file") -> T:
        """By one rank of those that run a script, for all of them."""
        if not isinstance(self.residence, OwnRanks):
            return make()
        self.meet(what)
        return self.residence.once(make)

    def put(self, array: np.ndarray) -> Memory:
        """A copy of the array, in blocks of its rows."""
        self._note("brings in an array", array)
        resident = self.residence.put(array)
        self.held.note([resident])
        memory = Memory(array.shape, array.dtype, resident, line=persons_line())
        resident.line = told(memory.line)
        if self.lockstep is not None:
            if self._brought and self._brought[-1][0] != self.lockstep.met:
                self._brought.clear()
            self._brought.append((self.lockstep.met, weakref.ref(memory)))
        return memory

    @property
    def gpu(self) -> int:
        """The one of this process that the arrays lie on; -1: on none."""
        return 0 if isinstance(self.residence, OnGpu) else -1

    def lies_with(self, other: Connection) -> bool:
        """Whether arrays of both are in one memory."""
        return self.gpu == other.gpu == -1

    def adopts(self, given: DeviceArray) -> bool:
        """Whether it may be an array of these where it lies."""
        return self.gpu >= max(given.number, 0)

    def adopt(self, given: DeviceArray, *, copy: bool) -> Memory:
        """An array of the GPU that this place's are on: itself, or a copy there. BindError for one
        that shares memory with another but is not the same.
        """
        residence, key = cast("OnGpu", self.residence), (given.address, given.shape, given.dtype)
        known = self._adopted.get(key)
        if known is not None and not copy:
            return known
        resident = residence.copy(given) if copy else residence.adopt(given)
        self.held.note([resident])
        memory = Memory(given.shape, given.dtype, resident, line=persons_line())
        resident.line = told(memory.line)
        if not copy:
            memory.read_only, self._adopted[key] = given.read_only, memory
            memory.stays = True
        return memory

    def on_gpu(self, memory: Memory) -> DeviceArray | None:
        """The array where it lies, if that is a GPU of this process; runs what it depends on."""
        if not isinstance(self.residence, OnGpu):
            return None
        if memory.value is not None or memory.name is not None:
            self.run()
        refuse_lost(memory)
        memory.stays, resident = True, self._resident_of(memory)
        there = self.residence.seen(resident, memory.dtype)
        return replace(there, held=resident, read_only=memory.read_only)

    def join(self, part: np.ndarray) -> Memory:
        """The parts of all ranks of a script, which stay where they are."""
        if not isinstance(self.residence, OwnRanks):
            raise ClusterError(
                "from_local is for scripts whose ranks run under mpiexec: here is one process",
                hint="asarray brings an array to the ranks",
            )
        self.meet("joins the ranks' parts")
        resident = self.residence.join(part)
        self.held.note([resident])
        return Memory(resident.storage.shape, part.dtype, resident, line=persons_line())

    def local(self, memory: Memory) -> tuple[np.ndarray, Box]:
        """This rank's part of a script's array, where it lies; runs what it depends on."""
        if not isinstance(self.residence, OwnRanks):
            raise ClusterError(
                "x.local is for scripts whose ranks run under mpiexec: here no part of it is",
                hint="numpy.asarray(x) brings all of it here; x.layout says who holds what",
            )
        if memory.value is not None or memory.name is not None:
            self.run()
        refuse_lost(memory)
        if memory.resident is None:
            box = no_rows(memory.shape)
            return np.broadcast_to(np.zeros((), memory.dtype), box.shape), box
        memory.stays = True
        return self.residence.local(memory.resident, memory.dtype)

    def all_here(self, memory: Memory) -> np.ndarray | None:
        """The array where it lies, if that is the memory of this process."""
        if not isinstance(self.residence, OwnRanks) or self.ranks > 1:
            return None
        part, _ = self.local(memory)
        if 0 in memory.shape:
            return np.empty(memory.shape, memory.dtype)
        if part.shape != memory.shape:
            return None
        if part.base is not None:
            part.flags.writeable = True
        return part

    def redistribution(self, memory: Memory, layout: Layout) -> Redistribution:
        """What `redistribute` would move; runs what the array depends on."""
        operands, _ = self._to(memory, layout)
        return Redistribution(layout.text, *sent_for(operands, self.ranks))

    def redistribute(self, memory: Memory, layout: Layout) -> None:
        """The array's elements to where the layout says."""
        operands, pieces = self._to(memory, layout)
        if isinstance(self.residence, _InProcess) or memory.resident is None:
            return
        if any(sent_for(operands, self.ranks)):
            self.meet(f"redistributes an array to {layout.text}")
            done = self._for_certain(
                [memory.resident],
                lambda: self.residence.step(shards.nothing, operands, {}, 0),
            )
            self.messages += done.messages
            self.bytes_moved += done.nbytes
        memory.resident.pieces = pieces
        memory.resident.asked = layout.text
        self.held.note([memory.resident])

    def _to(
        self, memory: Memory, layout: Layout
    ) -> tuple[list[tuple[Resident, np.dtype, Wanted]], tuple[Piece, ...]]:
        boxes = layout.boxes(memory.shape, self.ranks)
        if memory.value is not None or memory.name is not None:
            self.run()
        refuse_lost(memory)
        resident = memory.resident
        if resident is None:
            return [], ()
        name = resident.storage.name
        pieces = tuple(Piece(r, name, box) for r, those in enumerate(boxes) for box in those)
        return operands_to(resident, boxes, self.ranks), pieces

    def take(self, memory: Memory, box: Box) -> np.ndarray:
        """That box of it, here; runs what it depends on."""
        if self.meet(f"reads the array{_which(memory)}", f"{box}".encode()):
            return self._taken(memory, box)
        # Each rank of a script may look at another part: all take part in what anybody asks for.
        assert isinstance(self.residence, OwnRanks)
        hull = reduce(Box.hull, self.residence.told(box))
        place = zip(box.start, box.stop, hull.start, strict=True)
        return self._taken(memory, hull)[(..., *(slice(a - s, b - s) for a, b, s in place))]

    def _taken(self, memory: Memory, box: Box) -> np.ndarray:
        nbytes = box.size * memory.dtype.itemsize
        read: np.ndarray | None = None
        if memory.value is not None or memory.name is not None:
            read = self.run((memory, box) if nbytes <= MOST_READ_BYTES else None, met=True)
        refuse_lost(memory)
        self.gathers += 1
        self.gathered_bytes += nbytes
        if memory.resident is None:
            return np.zeros(box.shape, memory.dtype)
        if read is not None:
            return read
        return self._here(memory.resident, memory.dtype, box)

    def _here(self, resident: Resident, kind: np.dtype, box: Box) -> np.ndarray:
        return self._for_certain([resident], lambda: self.residence.take(resident, kind, box))


@dataclass
class _InProcess:
    """Without ranks: the reference computes, here."""

    place: OneProcess
    arrays: dict[int, np.ndarray] = field(default_factory=dict)

    def new(self, shape: Sequence[int], itemsize: int) -> Resident:
        made = new_resident(shape, itemsize)
        weakref.finalize(made, self.arrays.pop, made.number, None)
        return made

    def put(self, array: np.ndarray, *, whole_on_each: bool = False) -> Resident:
        del whole_on_each  # there is nowhere else
        made = self.new(array.shape, array.itemsize)
        self._keep(made, array.copy())
        return made

    def take(self, resident: Resident, dtype: np.dtype, box: Box) -> np.ndarray:
        return self.arrays[resident.number].view(dtype)[(..., *box.slices)].copy()

    def run_program(self, program: Program, arrays: Mapping[str, Resident]) -> Ran:
        given: dict[str, np.ndarray] = {}
        for name, resident in arrays.items():
            like = program.arrays[name]
            held = self.arrays.get(resident.number)
            given[name] = (
                np.zeros(like.shape, like.dtype) if held is None else held.view(like.dtype)
            )
        trace = replace(program, arrays=given).run(self.place)
        for name, resident in arrays.items():
            self._keep(resident, given[name])
        return Ran(trace.moves, lambda: trace)

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
        """Here, on all of the arrays."""
        del results, read, together
        parts = [self.arrays[resident.number].view(dtype) for resident, dtype, _ in operands]
        made = stepped_alone(function, parts, parameters)
        return StepDone(tuple((self.put(part), part.dtype) for part in made), 0, 0)

    def taken_bytes(self) -> list[int]:
        return [sum(array.nbytes for array in self.arrays.values())]

    def _keep(self, resident: Resident, array: np.ndarray) -> None:
        self.arrays[resident.number] = array
        resident.pieces = (Piece(0, resident.storage.name, Box.whole(array.shape)),)


def _first_of_each_shape(arrays: Mapping[str, Argument]) -> dict[tuple[int, ...], Resident]:
    """Operands that results of the same shape lie like."""
    found: dict[tuple[int, ...], Resident] = {}
    for argument in arrays.values():
        if argument.resident is not None:
            found.setdefault(argument.shape, argument.resident)
    return found


def _which(memory: Memory) -> str:
    """What all ranks of a script call it."""
    if memory.resident is not None:
        return f" number {memory.resident.number}"
    return f" recorded as {memory.value or memory.name}" if memory.value or memory.name else ""


def _settle(memory: Memory, residents: Mapping[str, Resident]) -> None:
    memory.before = None
    if memory.name is not None:
        memory.resident = residents.get(memory.name[1:], memory.resident)
        if memory.resident is not None and not memory.resident.line:
            memory.resident.line = told(memory.line)


def _lose(memory: Memory, written: Set[str]) -> None:
    """A run has failed: that of an array which was given a new value only, before it began to
    write, leaves it what it had.
    """
    if memory.before is not None and not written:
        memory.resident = memory.before
    elif memory.resident is None or memory.name in written:
        memory.lost = True
    memory.before = None


def _tables(recorded: Recorded) -> dict[str, np.ndarray]:
    tables = {
        REALS: np.array(recorded.reals, np.float64),
        INTEGERS: np.array(recorded.integers, np.int64),
    }
    return {name: held for name, held in tables.items() if held.size}


def default_place() -> Cluster | OneProcess | OwnRanks:
    """The ranks of this world, where mpiexec or srun has started several; else the session's
    cluster; else AVIAL_RANKS ranks (1): this process, or a cluster, which is then the session's.
    """
    if copies()[0] > 1:
        return own_ranks()
    try:
        found = session_cluster()
    except ClusterError:
        found = None
    if found is not None and not found.is_stopped:
        return found
    wanted = os.environ.get("AVIAL_RANKS", "1")
    if not re.fullmatch(r"[0-9]{1,6}", wanted) or int(wanted) < 1:
        raise OptionError(f"AVIAL_RANKS is {wanted!r}, no number of ranks")
    if int(wanted) == 1:
        return own_ranks()
    from avial_lab.runtime.launch.cluster import Cluster

    started = Cluster.start(cpu=int(wanted), gpu=0)
    use_cluster(started)
    return started
