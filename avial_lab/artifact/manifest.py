"""What an engine, and whoever watches one, has to know of a binary.

Schedule, or the plan of a program of loops -> Manifest. It is of one of two types: the messages are
known when the program is compiled, or the ownership runtime derives them while it runs. Everybody
else asks the interface.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from avial_lab.artifact.device_memory import Stay, stays_of_tasks
from avial_lab.artifact.kernels import KernelRow
from avial_lab.artifact.logs import Clock, EventLog, Row, StepLog
from avial_lab.core.buffers import Buffer, Number, Storage
from avial_lab.core.table import PRINTED_ROWS, Table, left_out
from avial_lab.core.words import brief, count, listed
from avial_lab.machine.devices import CPU, CUDA, place_name
from avial_lab.planning.homes import homes_of
from avial_lab.planning.schedule import (
    DeviceCopy,
    Piece,
    RankProgram,
    Schedule,
    Step,
    StepKind,
    Transfer,
)

_STEPS = (
    "The number is a message's. send, post: begin to send it, to receive it; "
    "sent, received: wait until that is done."
)


class Log(Protocol):
    """Reads what the ranks wrote down."""

    def rows(self, logs: Mapping[int, np.ndarray], clock: Clock) -> Iterator[Row]: ...


@dataclass(frozen=True)
class Standing:
    """How far a rank has come: `step` of `steps` events are over (of 0: nobody knows of how many);
    how often it has begun each task, and the bytes that it has sent.
    """

    step: int
    steps: int
    begun: Mapping[str, int]
    sent_bytes: int


@dataclass(frozen=True, kw_only=True)
class Manifest(ABC):
    """What an engine has to know to run the shared object.

    The entry takes one memref descriptor for each of `storages`, in that order, and `numbers`
    behind them: those that are no constants in the code. `results` are those foreseen. `kinds` are
    those of the devices that tasks are placed on, by the devices' names. `drivers` are the ranks
    that drive each device with memory of its own; none where nothing is launched there; `stays` say
    when arrays have memory on these, where that is known. `homes`: arrays that the caller has on a
    device, by storage and place; they are used there. `kernels` are those of loops.

    `edited` is the stage that was changed by hand, empty for a program as it was compiled.
    `instruction_sets` are those of the CPU it was compiled for, as Linux names them.

    A `mark` is what a rank keeps in its journal of where it is; -1 before the first event.
    """

    entry: str
    ranks: int
    buffers: tuple[Buffer, ...]
    storages: tuple[Storage, ...]
    inputs: tuple[Piece, ...]
    results: tuple[Piece, ...]
    devices: Mapping[str, str] = field(default_factory=dict[str, str])
    uses_mpi: bool = True
    edited: str = ""
    instruction_sets: tuple[str, ...] = ()
    numbers: tuple[Number, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict[str, str])
    drivers: tuple[int, ...] = ()
    kernels: tuple[KernelRow, ...] = ()
    stays: tuple[Stay, ...] = ()
    homes: tuple[tuple[str, int], ...] = ()

    @property
    def summary(self) -> str:
        """`3 ranks, arrays a, b`."""
        arrays = listed([buffer.name for buffer in self.buffers if not buffer.temporary])
        what = f"arrays {arrays}" if arrays else "no arrays"
        return f"{count(self.ranks, 'rank')}, {what}"

    @property
    def driver(self) -> str:
        """What drives its GPUs, of `DRIVERS`."""
        return CUDA.name if CUDA.name in self.kinds.values() else "apart"

    def devices_of(self, task: str, rank: int) -> tuple[str, ...]:
        """Where the task is, or this rank's part of the phase."""
        return (self.devices.get(task, CPU.device_name(rank)),)

    @property
    @abstractmethod
    def sparse(self) -> bool:
        """Whether a rank may touch a small part of an array alone, so that memory is to be taken
        page by page as it is touched.
        """

    @property
    @abstractmethod
    def log(self) -> Log:
        """What reads the ranks' logs."""

    @property
    @abstractmethod
    def tasks(self) -> Iterable[tuple[str, int]]:
        """Every task or phase, and how often it will be begun; 0 where only the run knows."""

    @property
    @abstractmethod
    def planned_bytes(self) -> int | None:
        """What the ranks will send in all; None where only the run knows."""

    @abstractmethod
    def at(self, rank: int, mark: int) -> Step | None:
        """The event that the rank is in; None before the first."""

    @abstractmethod
    def message(self, step: Step) -> Transfer | None:
        """What the event sends, receives or waits for; None where it is none of these."""

    def copy(self, step: Step) -> DeviceCopy | None:
        """What the event copies to a device or from one; None where it is no copy."""
        return None

    @abstractmethod
    def standing(self, rank: int, mark: int, begun: Sequence[int], sent: int) -> Standing:
        """How far the rank has come. begun, sent: what it has counted itself. A mark past the last
        event is that of a rank that is through.
        """


@dataclass(frozen=True, kw_only=True)
class KnownMessages(Manifest):
    """Tasks alone: `programs[r]` are the steps of rank r, `transfers` every message, `copies` all
    that goes to devices and from them.

    The mark is the index of the step, which writes its start and end to the slot of that number.
    `devices[task]` is the device's name.
    """

    programs: tuple[RankProgram, ...]
    transfers: tuple[Transfer, ...] = ()
    copies: tuple[DeviceCopy, ...] = ()

    @staticmethod
    def of(schedule: Schedule, kernels: tuple[KernelRow, ...] = ()) -> KnownMessages:
        """kernels: that its tasks launch on GPUs."""
        homes = homes_of(schedule.graph, schedule.topology.ranks, schedule.drivers)
        return KnownMessages(
            entry="main",
            ranks=len(schedule.programs),
            buffers=schedule.graph.buffers,
            storages=schedule.graph.storages,
            programs=schedule.programs,
            transfers=schedule.transfers,
            copies=schedule.copies,
            inputs=schedule.inputs,
            results=schedule.results,
            devices={placed.task: placed.device for placed in schedule.placements},
            uses_mpi=len(schedule.programs) > 1,
            kinds=schedule.device_kinds,
            drivers=schedule.drivers,
            kernels=kernels,
            stays=stays_of_tasks(schedule),
            homes=tuple(homes.items()),
        )

    @property
    def sparse(self) -> bool:
        return False

    @property
    def log(self) -> StepLog:
        return StepLog(self.programs, self.transfers, self.devices, self.copies)

    @property
    def tasks(self) -> Iterable[tuple[str, int]]:
        steps = (step for program in self.programs for step in program)
        return ((step.task, 1) for step in steps if step.kind is StepKind.RUN)

    @property
    def planned_bytes(self) -> int | None:
        return sum(transfer.nbytes for transfer in self.transfers)

    def at(self, rank: int, mark: int) -> Step | None:
        program = self.programs[rank]
        return program[mark] if 0 <= mark < len(program) else None

    def message(self, step: Step) -> Transfer | None:
        return self.transfers[step.transfer] if step.transfer >= 0 else None

    def copy(self, step: Step) -> DeviceCopy | None:
        return self.copies[step.copy] if step.copy >= 0 else None

    def standing(self, rank: int, mark: int, begun: Sequence[int], sent: int) -> Standing:
        """Steps are done in order: what comes before the mark is over."""
        program = self.programs[rank]
        done = program[: max(mark, 0)]
        over = sum(self.transfers[s.transfer].nbytes for s in done if s.kind is StepKind.SEND)
        here = (*done, *program[max(mark, 0) : mark + 1])
        tasks = {step.task: 1 for step in here if step.kind is StepKind.RUN}
        return Standing(len(done), len(program), tasks, over)

    def __str__(self) -> str:
        """What each rank does."""
        rows = tuple(
            (str(rank), f"{len(steps):,}", listed([str(step) for step in steps[:9]], most=9))
            for rank, steps in enumerate(self.programs[:PRINTED_ROWS])
        )
        numbers = frozenset({"rank", "steps"})
        notes = (left_out(len(self.programs), "rank", PRINTED_ROWS), _STEPS * bool(self.transfers))
        note = " ".join(filter(None, notes))
        return Table(self.summary, ("rank", "steps", "the first"), rows, numbers, note).to_text()

    def __repr__(self) -> str:
        return brief(self, f"of {self.summary}: {count(sum(map(len, self.programs)), 'step')}")


@dataclass(frozen=True, kw_only=True)
class DerivedMessages(Manifest):
    """Loops: every rank goes through the same `phases`, each as often as the others, and the
    ownership runtime (`native/ownership`) finds what has to be sent for them, and where results
    are.

    The mark is the phase's number. `rounds` is how often each is planned to be begun and
    `planned` the bytes planned to be sent; nothing and None where control depends on data.
    `launched`: the places of the devices that a phase is launched on, as far as planned.
    """

    phases: tuple[str, ...]
    rounds: tuple[int, ...] = ()
    planned: int | None = None
    launched: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])

    def devices_of(self, task: str, rank: int) -> tuple[str, ...]:
        """Those of this rank's where it launches the phase, else its CPU."""
        there = self.launched.get(task, ())
        own = [place for place in there if self.drivers[place - self.ranks] == rank]
        return tuple(place_name(place, self.ranks) for place in own or [rank])

    @property
    def sparse(self) -> bool:
        return True

    @property
    def log(self) -> EventLog:
        return EventLog(self.phases, self.storages, self.ranks)

    @property
    def tasks(self) -> Iterable[tuple[str, int]]:
        return zip(self.phases, self.rounds or (0,) * len(self.phases), strict=True)

    @property
    def planned_bytes(self) -> int | None:
        return self.planned

    def at(self, rank: int, mark: int) -> Step | None:
        if not 0 <= mark < len(self.phases):
            return None
        return Step(StepKind.RUN, self.phases[mark], times=self.rounds[mark] if self.rounds else 0)

    def message(self, step: Step) -> Transfer | None:
        return None

    def standing(self, rank: int, mark: int, begun: Sequence[int], sent: int) -> Standing:
        """The runtime counts what it begins and sends: of those begun all but the one that the rank
        is in are over. Where only the run knows how often phases are begun there is no total.
        """
        counted = dict(zip(self.phases, begun, strict=False))
        inside = 0 <= mark < len(self.phases)
        over = sum(counted.values()) - inside
        return Standing(over, max(sum(self.rounds), over) if self.rounds else 0, counted, sent)

    def __str__(self) -> str:
        """Its phases."""
        phases = f"phases: {listed(self.phases, most=PRINTED_ROWS)}"
        shown = self.kernels[:PRINTED_ROWS]
        more = left_out(len(self.kernels), "kernel", PRINTED_ROWS)
        lines = [f"{self.summary}\n{phases}; their messages are derived at run time"]
        return "\n".join([*lines, *map(str, shown), *filter(None, [more])])

    def __repr__(self) -> str:
        return brief(self, f"of {self.summary}: {count(len(self.phases), 'phase')}")
