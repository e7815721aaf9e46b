"""Who races on several ranks, and what each rank does.

GroupEntry, arguments, communicator -> a runner on every rank, which sets its own part of the arrays
back, runs once, and returns how long that took.

What is timed is the same for all: every rank holds its part of the arguments before the clock
starts, all start together from a barrier, and the time ends when the last rank has its part of the
results, which stay where they are. Ours is read from its trace: from the first event of any rank to
the end of the last, on the clock that they share; the others' is the longest of the ranks'.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.benchmarks.builders import peers_module
from avial_lab.benchmarks.c_peers import clocked
from avial_lab.benchmarks.own_program import OwnRank
from avial_lab.core.c_compiler import CCompiler, loaded
from avial_lab.core.errors import AvialError
from avial_lab.runtime.rank.exchange import caller_arrays
from avial_lab.runtime.rank.outcome import Outcome, results_of
from avial_lab.runtime.rank.parcels import aligned_copy
from avial_lab.runtime.rank.traces import trace_of

Comm = Any
"""mpi4py's communicator, which is imported on ranks only."""


class RankRunner(ABC):
    """One rank's end of a contestant. `note`: what is to be known of its runs."""

    note = ""

    @abstractmethod
    def run(self) -> object:
        """Run once; what its entry's `seconds` takes."""

    @abstractmethod
    def left(self) -> object:
        """What its entry's `merged` takes."""


class GroupEntry(ABC):
    """A contestant that is still to be built on every rank; travels as a pickle."""

    @abstractmethod
    def rank_runner(self, arguments: Mapping[str, Any], comm: Comm) -> RankRunner: ...

    @abstractmethod
    def seconds(self, answers: Sequence[Any]) -> float:
        """Of one run, from what all ranks' `run` gave."""

    @abstractmethod
    def merged(self, answers: Sequence[Any], arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The arrays, from what all ranks' `left` gave."""


# -- our own ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OwnGroup(GroupEntry):
    """Our own binary; `threads` of each rank."""

    binary: Binary = field(repr=False)
    threads: int

    def rank_runner(self, arguments: Mapping[str, Any], comm: Comm) -> RankRunner:
        return _OwnRankRunner(arguments, self.binary, comm.rank, self.threads)

    def seconds(self, answers: Sequence[Outcome]) -> float:
        return trace_of(self.binary.manifest, answers).makespan_s

    def merged(
        self, answers: Sequence[Outcome], arguments: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        arrays = {k: v.copy() for k, v in arguments.items() if isinstance(v, np.ndarray)}
        caller_arrays(self.binary.manifest, arrays).write_results(results_of(answers))
        return arrays


class _OwnRankRunner(RankRunner):
    def __init__(
        self, arguments: Mapping[str, Any], binary: Binary, rank: int, threads: int
    ) -> None:
        arrays = {k: v for k, v in arguments.items() if isinstance(v, np.ndarray)}
        pieces = caller_arrays(binary.manifest, arrays).inputs_of(rank)
        self.rank = OwnRank(binary, rank, pieces, threads)

    def run(self) -> Outcome:
        outcome = self.rank.run()
        self.note = self.rank.note
        return replace(outcome, results=(), pieces=())

    def left(self) -> Outcome:
        return self.rank.outcome


# -- peers -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PeerGroup(GroupEntry, ABC):
    """A peer whose arrays are dealt as the kernel's `peers_mpi.py` says."""

    peers: Path

    def seconds(self, answers: Sequence[float]) -> float:
        return max(answers)

    def merged(
        self, answers: Sequence[dict[str, np.ndarray]], arguments: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        from kernels import shares  # pyright: ignore

        return shares.collected(peers_module(self.peers).SHARES, answers)


@dataclass(frozen=True)
class CGroup(PeerGroup):
    """`peer_mpi.c`: a function `symbol` in C that sends its own messages."""

    compiler: CCompiler
    source: str = field(repr=False)
    symbol: str

    def rank_runner(self, arguments: Mapping[str, Any], comm: Comm) -> RankRunner:
        library = loaded(self.compiler.compiled(self.source))

        def build(now: Mapping[str, Any]) -> Callable[[], float]:
            place = {"comm": np.int64(comm.py2f()), "rank": np.int32(comm.rank)}
            return clocked(library, self.symbol, place | {"ranks": np.int32(comm.size)} | dict(now))

        return _PeerRankRunner(arguments, peers_module(self.peers), comm, build)


@dataclass(frozen=True)
class CallGroup(PeerGroup):
    """`arrays` of `peers_mpi.py`: NumPy and mpi4py."""

    def rank_runner(self, arguments: Mapping[str, Any], comm: Comm) -> RankRunner:
        module = peers_module(self.peers)

        def build(now: Mapping[str, Any]) -> Callable[[], float]:
            def timed() -> float:
                comm.Barrier()
                start = time.perf_counter()
                module.arrays(comm, *now.values())
                return time.perf_counter() - start

            return timed

        return _PeerRankRunner(arguments, module, comm, build)


class _PeerRankRunner(RankRunner):
    """A rank of a peer, with its own part of the arrays."""

    def __init__(
        self,
        arguments: Mapping[str, Any],
        module: ModuleType,
        comm: Comm,
        build: Callable[[Mapping[str, Any]], Callable[[], float]],
    ) -> None:
        from kernels import shares  # pyright: ignore

        short = [k for k, s in module.SHARES.items() if s.rows and len(arguments[k]) < comm.size]
        if short:
            raise AvialError(f"{short[0]} has fewer rows than there are ranks")
        self.before = shares.dealt(module.SHARES, arguments, comm.rank, comm.size)
        self.now = {
            k: aligned_copy(v) if isinstance(v, np.ndarray) else v for k, v in self.before.items()
        }
        self.timed = build(self.now)

    def run(self) -> float:
        for name, value in self.before.items():
            if isinstance(value, np.ndarray):
                np.copyto(self.now[name], value)
        return self.timed()

    def left(self) -> dict[str, np.ndarray]:
        return {k: v for k, v in self.now.items() if isinstance(v, np.ndarray)}
