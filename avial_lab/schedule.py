"""Schedule: which device runs which task, in which order, and every byte that has to move for it.

TaskGraph, Topology -> Schedule. Placement, transfers and the steps of every rank are decided here, once; what
comes later translates them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from avial_lab.dag import TaskGraph
from avial_lab.regions import Box
from avial_lab.topology import Topology


class Policy(enum.Enum):
    """How tasks are placed: `levels` goes round-robin over the fitting devices within each level."""

    LEVELS = "levels"


class Sync(enum.Enum):
    """`edges`: a rank waits for the messages it reads. `levels`: and for everyone, after each level."""

    EDGES = "edges"
    LEVELS = "levels"


@dataclass(frozen=True)
class Placement:
    """Where a task runs, and why there."""

    task: str
    device: str
    rank: int
    level: int
    reason: str


@dataclass(frozen=True)
class Transfer:
    """`box` of `storage` goes from rank `source` to rank `dest`: `producer` wrote it, `consumer` needs it.

    `index` numbers the transfers of a schedule from 0 and serves as the message's tag (modulo MPI's tag limit).
    """

    index: int
    storage: str
    box: Box
    source: int
    dest: int
    producer: str
    consumer: str
    nbytes: int


class StepKind(enum.Enum):
    RUN = "run"  # the task called `task`
    POST = "post"  # start receiving transfer `transfer`
    SEND = "send"  # start sending it
    WAIT_RECEIVED = "received"  # wait until it has arrived
    WAIT_SENT = "sent"  # wait until its memory may be overwritten
    BARRIER = "barrier"  # wait for every rank


@dataclass(frozen=True)
class Step:
    """One thing a rank does; `task` for RUN, `transfer` (an index) for the four message steps."""

    kind: StepKind
    task: str = ""
    transfer: int = -1

    def __str__(self) -> str:
        return (
            f"{self.kind.value} {self.task or self.transfer}"
            if self.kind is not StepKind.BARRIER
            else "barrier"
        )


@dataclass(frozen=True)
class Piece:
    """`box` of `storage` on rank `rank`: given to it before the run, or taken from it after."""

    rank: int
    storage: str
    box: Box


@dataclass(frozen=True)
class Schedule:
    """Everything decided about a run.

    placements are in execution order (level, then program order). `programs[r]` is what rank r does, step by step;
    a rank without work has an empty one. `inputs` are the pieces of the caller's arrays each rank gets, `results`
    the written pieces that go back, each from one rank that holds its last version.
    """

    graph: TaskGraph
    topology: Topology
    policy: Policy
    sync: Sync
    placements: tuple[Placement, ...]
    transfers: tuple[Transfer, ...]
    programs: tuple[tuple[Step, ...], ...]
    inputs: tuple[Piece, ...]
    results: tuple[Piece, ...]
