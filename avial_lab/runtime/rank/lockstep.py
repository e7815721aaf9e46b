"""Ranks that all run one script: before they do something together, each says what it has done
since the last time and is about to do, and where.

Entries of this rank -> nothing, or ScriptsDiffer on every rank. A rank that has come to its end
says so too, so that nobody waits for it. Ranks that differed once may go on: what was not done
together is forgotten on all of them.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import zip_longest
from typing import TYPE_CHECKING, Protocol

import numpy as np

from avial_lab.core.errors import AvialError

if TYPE_CHECKING:  # imports mpi4py, which starts MPI
    from mpi4py.MPI import Intracomm, Request

NOTICE_S = 10.0
"""After which a rank says that it waits, and where."""

_SPIN_S, _PAUSE_S, _LONGEST_PAUSE_S = 100e-6, 20e-6, 1e-3
_DIGEST_BYTES = 16
_ENDS = "ends"

Entry = tuple[str, str]
"""What a rank does, and the line of its script."""


class ScriptsDiffer(AvialError):
    """Ranks that should do the same do not."""


class Recorder(Protocol):
    """Who has something on every rank that is to be the same."""

    def entries(self) -> Sequence[Entry]:
        """What was recorded since the last meeting, for people."""
        ...

    def forget(self) -> None:
        """All ranks do: undo what was recorded or made since the last meeting."""
        ...


@dataclass
class Lockstep:
    """This rank's end. notes: what it has done by itself since the last meeting. met: meetings so
    far. over: why the ranks do nothing together any more.
    """

    comm: Intracomm
    notes: list[Entry] = field(default_factory=list[Entry])
    recorders: list[Recorder] = field(default_factory=list["Recorder"])
    met: int = 0
    over: str = ""

    def note(self, what: str, where: str) -> None:
        """The others will be asked whether they have done so, too."""
        self.notes.append((what, where))

    def meet(
        self,
        what: str,
        where: str,
        said: Callable[[], bytes] = bytes,
        own: bytes = b"",
    ) -> bool:
        """Returns once all ranks are about to do this. said: what they have to agree in besides.
        own: in what they may differ; whether they do not is the result.

        What nobody can reach any more lives on a rank until its collector comes: where the ranks
        differ, they look again after all have collected.
        """
        if self.over:
            raise ScriptsDiffer(f"{self.over}, and the ranks do nothing together any more")
        agree, alike = self._agree(what, said, own)
        if not agree and gc.collect() >= 0:
            agree, alike = self._agree(what, said, own)
        if agree:
            self.notes.clear()
            self.met += 1
            return alike
        mine = [*self.notes, *(e for r in self.recorders for e in r.entries()), (what, where)]
        all_of_them = self.comm.allgather(mine)
        self.notes.clear()
        gone = [rank for rank, entries in enumerate(all_of_them) if entries[-1][0] == _ENDS]
        if gone:
            self.over = f"the script of {_ranks(gone)} has ended"
        else:
            for recorder in self.recorders:
                recorder.forget()
        raise differing(all_of_them)

    def end(self, why: str) -> None:
        """The script of this rank is over."""
        if self.over:
            return
        with suppress(ScriptsDiffer):  # the others say it: here nothing was left to do
            self.meet(_ENDS, why)
        self.over = "this rank's script has ended"

    def _agree(self, what: str, said: Callable[[], bytes], own: bytes) -> tuple[bool, bool]:
        digest = blake2b(said(), digest_size=_DIGEST_BYTES)
        for done, _ in self.notes:
            digest.update(done.encode())
        digest.update(what.encode())
        apart = blake2b(own, digest_size=_DIGEST_BYTES)
        mine = np.frombuffer(digest.digest() + apart.digest(), np.uint8)
        all_of_them = np.empty((self.comm.size, 2 * _DIGEST_BYTES), np.uint8)
        try:
            self.patiently(self.comm.Iallgather(mine, all_of_them))
        except BaseException:
            self.over = "a rank was stopped while it waited"  # the others may be anywhere
            raise
        same = (all_of_them == mine).all(axis=0)
        return bool(same[:_DIGEST_BYTES].all()), bool(same[_DIGEST_BYTES:].all())

    def patiently(self, request: Request) -> None:
        """Wait without taking a core from those that are waited for."""
        began = time.perf_counter()
        pause, told = _PAUSE_S, False
        while not request.Test():
            waited = time.perf_counter() - began
            if waited < _SPIN_S:
                continue
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE_S)
            if waited > NOTICE_S and not told:
                told = True
                sys.stderr.write(
                    f"rank {self.comm.rank} of {self.comm.size} waits for the others, "
                    f"which do not come to what it does{_last(self.notes)}\n"
                )


def differing(ranks: Sequence[Sequence[Entry]]) -> ScriptsDiffer:
    """The error for what each rank has done, in order: the first place where they differ."""
    for entries in zip_longest(*ranks):
        if len({entry and entry[0] for entry in entries}) == 1:
            continue
        alike: dict[str, list[int]] = {}
        for rank, entry in enumerate(entries):
            alike.setdefault("nothing" if entry is None else entry[0], []).append(rank)
        told = [f"{_ranks(those)}: {what}{_at(entries[those[0]])}" for what, those in alike.items()]
        return ScriptsDiffer(
            f"the ranks do different things: {'; '.join(told)}",
            hint="under mpiexec every rank does the same with arrays, in the same order; ask for "
            "values on all ranks and print them on one; what each rank has for itself comes in by "
            "from_local",
        )
    return ScriptsDiffer("the ranks did different things with arrays of the same kinds")


def _ranks(those: Sequence[int]) -> str:
    return f"rank {those[0]}" if len(those) == 1 else f"ranks {', '.join(map(str, those))}"


def _at(entry: Entry | None) -> str:
    return f" ({entry[1]})" if entry is not None and entry[1] else ""


def _last(notes: Sequence[Entry]) -> str:
    return f" after {notes[-1][1]}" if notes else ""
