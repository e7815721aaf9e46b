"""Our own program on one rank, loaded once and run again and again as every contestant is.

Binary, rank, what the caller's arrays give it -> the outcome of each run.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.core.buffers import Number, Storage
from avial_lab.core.errors import AvialError
from avial_lab.runtime.native.loader import LoadedProgram, digest
from avial_lab.runtime.rank import engine
from avial_lab.runtime.rank.exchange import pieces_of
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.journal import Journal
from avial_lab.runtime.rank.outcome import Outcome
from avial_lab.runtime.rank.parcels import aligned_copy
from avial_lab.runtime.rank.threads import Threads


class OwnRank:
    """One rank: its pieces of the arrays, in the same memory every time, all of which was just
    written when a run begins: what is read with the caller's values, what a program only writes
    with wrong bytes, so that an element it forgets is noticed.

    On one rank nothing happens between that and the run, as with a function in C; several ranks
    wait for each other in between.
    """

    def __init__(
        self, binary: Binary, rank: int, pieces: Sequence[np.ndarray], threads: int
    ) -> None:
        shared = binary.shared_object
        self.manifest, self.rank = binary.manifest, rank
        self.program = engine.load(shared, digest(shared), binary.manifest)
        if not self.manifest.uses_mpi:
            self.program = _Fresh(self.program.library, self.program.entry, self._write)
        self.given = [aligned_copy(piece) for piece in pieces]
        self.pieces = [aligned_copy(piece) for piece in pieces]
        self.options = Options(threads=Threads(threads))
        self.kept: dict[str, np.ndarray] = {}
        # What the engine puts into memory of its own it does before the program is called.
        self.filled = {piece.storage for piece in pieces_of(self.manifest.inputs, rank)}
        self.before: dict[str, np.ndarray] = {}
        self.outcome = Outcome(rank)
        self.runs = 0
        with tempfile.TemporaryDirectory(prefix="avial-race-") as folder:
            # Nobody reads it: its files are gone, its memory stays.
            self.journal = Journal(Path(folder), rank, pid=os.getpid())

    @property
    def note(self) -> str:
        """What is to be known of the runs."""
        return self.outcome.team.note

    def run(self) -> Outcome:
        """Raises AvialError where the run fails."""
        if self.manifest.uses_mpi:  # else it is done when the program is called
            self._write()
        for name in self.kept.keys() & self.filled:
            self._spoil(name)
        self.runs += 1
        self.outcome = engine.run(
            self.program,
            self.manifest,
            self.rank,
            self.pieces,
            journal=self.journal,
            options=self.options,
            number=self.runs,
            kept=self.kept,
        )
        if self.outcome.failure is not None:
            raise AvialError(self.outcome.failure.message, hint=self.outcome.failure.hint)
        return self.outcome

    def _write(self) -> None:
        for piece, given in zip(self.pieces, self.given, strict=True):
            np.copyto(piece, given)
        for name in self.kept.keys() - self.filled:
            self._spoil(name)

    def _spoil(self, name: str) -> None:
        memory = self.kept[name]
        np.copyto(memory, self.before.setdefault(name, np.full_like(memory, 0xFF)))


@dataclass(frozen=True)
class _Fresh(LoadedProgram):
    """All its memory is written right before it runs, as that of a function in C: what the engine
    does before takes some hundred µs, in which others on the machine take lines of the last cache.
    """

    write: Callable[[], None]

    def call(
        self,
        storages: Sequence[Storage],
        memory: Sequence[np.ndarray],
        numbers: Sequence[Number] = (),
    ) -> None:
        run = self.prepared(storages, memory, numbers)
        self.write()
        run()
