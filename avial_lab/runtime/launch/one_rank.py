"""Runs of one rank in a process that stays: no mpiexec, no cluster, nothing to start but once.

Binary, the caller's arrays -> Trace, the arrays written in place. The arrays go by memory that both
processes see; a crash over there ends that process alone, and the next run has another.
"""

from __future__ import annotations

import atexit
import mmap
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.artifact.manifest import Manifest
from avial_lab.core.buffers import Storage, read_box
from avial_lab.core.errors import AvialError, RunError
from avial_lab.core.regions import Box
from avial_lab.runtime.launch.processes import private_folder, refuse_copies
from avial_lab.runtime.launch.progress import ProgressReporter
from avial_lab.runtime.launch.worker_process import AskedProcess, answer_all
from avial_lab.runtime.native.loader import LoadedProgram, digest
from avial_lab.runtime.rank import engine
from avial_lab.runtime.rank.exchange import caller_arrays, pieces_of
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.journal import Journal, read_journal
from avial_lab.runtime.rank.outcome import (
    Outcome,
    Spans,
    interrupted,
    rank_died,
    ranks_failed,
    timed_out,
)
from avial_lab.runtime.rank.output import Printed, last_printed
from avial_lab.runtime.rank.parcels import ALIGNMENT, as_bytes
from avial_lab.runtime.rank.threads import cores
from avial_lab.runtime.rank.traces import trace_of
from avial_lab.trace import Trace

NO_LIMIT_S = 1e7
MOST_PROGRAMS = 128
"""Loaded at a time."""
_ROOM = 1 << 20
"""Bytes that the common memory begins with."""


@dataclass(frozen=True)
class Load:
    """One more program."""

    key: str
    binary: Binary = field(repr=False)


@dataclass(frozen=True)
class Share:
    """The common memory is in this file now."""

    path: str
    nbytes: int


@dataclass(frozen=True)
class Run:
    """`places`: where each storage begins in the common memory, in the manifest's order. Answered
    by the Outcome, its results in the common memory.
    """

    key: str
    places: tuple[int, ...]
    options: Options


class OneRank:
    """The caller's end. One run at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: AskedProcess | None = None
        self._loaded: dict[str, None] = {}
        self._memory: mmap.mmap | None = None
        self._folder: Path | None = None
        self._told = 0
        atexit.register(self.close)

    def run(
        self,
        binary: Binary,
        arrays: Mapping[str, np.ndarray],
        *,
        timeout: float | None = None,
        spans: Spans | None = None,
        options: Options | None = None,
        reporter: ProgressReporter | None = None,
    ) -> Trace:
        """As `mpiexec.run`: whatever goes wrong, the arrays are as they were."""
        manifest = binary.manifest
        caller = caller_arrays(manifest, arrays)
        refuse_copies()
        options = options or Options()
        options.threads.on([cores()], 0)
        reporter = reporter or ProgressReporter(manifest)
        with self._lock:
            try:
                process = self._ready(binary)
                outcome = self._asked(process, binary, arrays, options, timeout, spans or {})
                if outcome.failure is not None:
                    raise ranks_failed(manifest, {0: outcome.failure}, spans or {})
                storages = {storage.name: storage for storage in manifest.storages}
                places = dict(zip(storages, _places(manifest.storages), strict=True))
                caller.write_results(
                    (piece, self._piece(storages[piece.storage], places[piece.storage], piece.box))
                    for piece in outcome.pieces
                )
            finally:
                reporter.printed = self._printed()
        return trace_of(manifest, [outcome])

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        self._loaded, self._memory, self._told = {}, None, 0

    # -- the other process -------------------------------------------------------------------------

    def _ready(self, binary: Binary) -> AskedProcess:
        """It runs, has the program, and room for its arrays."""
        if self._process is None or self._process.process.poll() is not None:
            self.close()
            self._folder = private_folder("avial-one-")
            with (self._folder / "0.out").open("wb") as errors:
                self._process = AskedProcess(
                    "from avial_lab.runtime.launch import one_rank; one_rank.main()",
                    limit_s=NO_LIMIT_S,
                    own_group=True,
                    errors=errors,
                )
            self._process.ask(str(self._folder))
        if len(self._loaded) > MOST_PROGRAMS:
            self.close()
            return self._ready(binary)
        key = _key(binary)
        if key not in self._loaded:
            self._process.ask(Load(key, binary))
            self._loaded[key] = None
        needed = _total(binary.manifest.storages)
        if self._memory is None or len(self._memory) < needed:
            self._share(self._process, needed)
        return self._process

    def _share(self, process: AskedProcess, needed: int) -> None:
        """Common memory of that size, or twice what there was."""
        size = max(needed, _ROOM, 2 * len(self._memory or b""))
        handle, path = tempfile.mkstemp(prefix="avial-one-", dir=_shared_folder())
        try:
            os.ftruncate(handle, size)
            self._memory = mmap.mmap(handle, size)
            process.ask(Share(path, size))
        except OSError as error:
            raise RunError(
                f"no room for {size:,} bytes of arrays: {error.strerror}",
                hint="free some of /dev/shm, or of the folder for temporary files",
            ) from None
        finally:
            os.close(handle)
            Path(path).unlink()

    def _asked(
        self,
        process: AskedProcess,
        binary: Binary,
        arrays: Mapping[str, np.ndarray],
        options: Options,
        timeout: float | None,
        spans: Spans,
    ) -> Outcome:
        manifest = binary.manifest
        places = _places(manifest.storages)
        by_name = dict(zip((s.name for s in manifest.storages), places, strict=True))
        storages = {storage.name: storage for storage in manifest.storages}
        for piece in pieces_of(manifest.inputs, 0):
            storage = storages[piece.storage]
            data = read_box(arrays, storage, piece.box)
            target = self._piece(storage, by_name[storage.name], piece.box)
            target[...] = data.view(target.dtype).reshape(target.shape)
        process.limit_s = NO_LIMIT_S if timeout is None else timeout
        began = time.monotonic()
        try:
            answer = process.ask(Run(_key(binary), tuple(places), options))
        except KeyboardInterrupt as error:
            steps = {0: self._step()}
            self._process = None
            raise interrupted(manifest, time.monotonic() - began, steps) from error
        except AvialError as error:
            raise self._ended(manifest, error, timeout, spans) from None
        assert isinstance(answer, Outcome)
        return answer

    def _ended(
        self, manifest: Manifest, error: AvialError, timeout: float | None, spans: Spans
    ) -> RunError:
        step = self._step()
        if timeout is not None and error.message.startswith("no answer"):
            return timed_out(manifest, timeout, {0: step}, spans)
        if not error.message.startswith("its process ended"):  # nobody foresaw it
            return RunError(error.message, hint=str(self._printed()) or error.hint)
        death = error.message.rpartition(" ")[2]
        said = "" if self._folder is None else last_printed(self._folder, 0)
        named = death if death.startswith("SIG") else None
        return rank_died(manifest, 0, step, named, spans, said=said)

    def _step(self) -> int | None:
        entry = None if self._folder is None else read_journal(self._folder, 0)
        return None if entry is None else entry.step

    def _piece(self, storage: Storage, place: int, box: Box) -> np.ndarray:
        assert self._memory is not None
        return _elements(self._memory, storage, place)[(*box.slices, ...)]

    def _printed(self) -> Printed:
        """What this run has printed."""
        if self._folder is None:
            return Printed()
        with (self._folder / "0.out").open("rb") as file:
            file.seek(self._told)
            text = file.read()
        self._told += len(text)
        lines = tuple(text.decode(errors="replace").splitlines())
        return Printed({0: lines}) if lines else Printed()


@cache
def one_rank() -> OneRank:
    """This process's."""
    return OneRank()


def _key(binary: Binary) -> str:
    """Of all that it is made of: programs of other arrays may have the same machine code."""
    return binary.key


def _places(storages: Sequence[Storage]) -> list[int]:
    """Each a page of its own to begin with, and not the same line of it as the one before."""
    places: list[int] = []
    at = 0
    for k, storage in enumerate(storages):
        at = -(-at // mmap.PAGESIZE) * mmap.PAGESIZE + (k * engine.APART) % mmap.PAGESIZE
        places.append(-(-at // ALIGNMENT) * ALIGNMENT)
        at = places[-1] + storage.nbytes
    return places


def _total(storages: Sequence[Storage]) -> int:
    places = _places(storages)
    return places[-1] + storages[-1].nbytes if storages else 1


def _elements(memory: mmap.mmap, storage: Storage, place: int) -> np.ndarray:
    flat = np.frombuffer(memory, np.uint8, storage.nbytes, place)
    return flat.view(np.dtype((np.void, storage.itemsize))).reshape(storage.shape)


def _shared_folder() -> str | None:
    """Where files are memory; the folder for temporary ones where there is none."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


# -- the process's own end -------------------------------------------------------------------------


class _Rank:
    """What is loaded, and the common memory."""

    def __init__(self, folder: str) -> None:
        engine.line_buffered()
        self.journal = Journal(Path(folder), 0, pid=os.getpid())
        self.programs: dict[str, tuple[LoadedProgram, Manifest, dict[str, np.ndarray]]] = {}
        self.memory: mmap.mmap | None = None
        self.runs = 0

    def answer(self, question: Load | Share | Run) -> object:
        match question:
            case Load(key, binary):
                shared = binary.shared_object
                program = engine.load(shared, digest(shared), binary.manifest)
                self.programs[key] = (program, binary.manifest, {})
                return None
            case Share(path, nbytes):
                with Path(path).open("r+b") as file:
                    self.memory = mmap.mmap(file.fileno(), nbytes)
                return None
            case Run():
                return self.run(question)

    def run(self, question: Run) -> Outcome:
        program, manifest, kept = self.programs[question.key]
        assert self.memory is not None
        arrays = {
            storage.name: _elements(self.memory, storage, place)
            for storage, place in zip(manifest.storages, question.places, strict=True)
        }
        inputs = [
            as_bytes(arrays[p.storage][(*p.box.slices, ...)]) for p in pieces_of(manifest.inputs, 0)
        ]
        self.runs += 1
        outcome = engine.run(
            program,
            manifest,
            0,
            inputs,
            journal=self.journal,
            options=question.options,
            number=self.runs,
            kept=kept,
        )
        for piece, data in zip(outcome.pieces, outcome.results, strict=True):
            target = arrays[piece.storage][(*piece.box.slices, ...)]
            if not np.may_share_memory(target, data):
                target[...] = data.view(target.dtype).reshape(target.shape)
        return replace(outcome, results=())


def main() -> None:
    answer_all(_begin)


def _begin(folder: str) -> tuple[None, Callable[[Load | Share | Run], object]]:
    _end_with(os.getppid())
    return None, _Rank(folder).answer


def _end_with(parent: int) -> None:
    """Whatever runs here ends soon after who asked for it is gone."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
