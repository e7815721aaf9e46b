"""Task graph: which task must finish before which may start, and why.

Tasks with the regions they touch -> TaskGraph: RAW, WAR and WAW edges in program order, with buffer, region, bytes.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property

from avial_lab.arrays import Buffer, Storage
from avial_lab.errors import CellSpan
from avial_lab.regions import Region
from avial_lab.topology import Target


class Hazard(enum.Enum):
    READ_AFTER_WRITE = "RAW"
    WRITE_AFTER_READ = "WAR"
    WRITE_AFTER_WRITE = "WAW"
    EXPLICIT = "after"


class TaskKind(enum.Enum):
    TASK = "task"
    REPLICATE = "replicate"
    CONVERGE = "converge"


@dataclass(frozen=True)
class Access:
    """What a task reads or writes of one storage, through the buffer it names.

    `region` counts in the storage's index space and holds every element that may be touched. For a write, `exact`
    says that every element of the region is certainly written; where it is not, the old values have to be there first.
    """

    buffer: str
    storage: str
    region: Region
    exact: bool = True


@dataclass(frozen=True)
class Task:
    """One task in program order; `summary` says in a few words what its body does (`scf.parallel 20`)."""

    name: str
    target: Target
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    after: tuple[str, ...] = ()
    kind: TaskKind = TaskKind.TASK
    summary: str = ""
    span: CellSpan | None = None


@dataclass(frozen=True)
class Dependency:
    """`after` may not start before `before` has finished: they touch `region` of `buffer`, `nbytes` in all.

    An explicit edge (`after %task1`) has no buffer, an empty region and 0 bytes.
    """

    before: str
    after: str
    hazard: Hazard
    buffer: str
    region: Region
    nbytes: int


@dataclass(frozen=True)
class TaskGraph:
    """Tasks in program order, and every dependency between two of them."""

    tasks: tuple[Task, ...]
    dependencies: tuple[Dependency, ...]
    buffers: tuple[Buffer, ...]
    storages: tuple[Storage, ...]

    @cached_property
    def level_of(self) -> dict[str, int]:
        """Longest-path depth of every task; 0 where it waits for none."""
        raise NotImplementedError

    @cached_property
    def levels(self) -> tuple[tuple[Task, ...], ...]:
        """The tasks by level, in program order within each."""
        raise NotImplementedError
