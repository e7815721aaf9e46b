"""Running a Binary under plain mpiexec: no cluster, the ranks live for one run.

Binary, arrays -> the arrays written in place, Trace.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

from avial_lab.artifact.binary import Binary
from avial_lab.artifact.manifest import Manifest
from avial_lab.core.errors import ClusterError
from avial_lab.core.toolchain import tool
from avial_lab.runtime.launch.guardian import Guardian
from avial_lab.runtime.launch.hosts import (
    Hub,
    SilentHosts,
    Where,
    end_hub,
    host_lost,
    lost_host,
    node_names,
    relayed,
    start_hub,
)
from avial_lab.runtime.launch.processes import (
    environment,
    kill_all,
    last_lines,
    mpiexec_options,
    private_folder,
    refuse_copies,
    refuse_crowd,
    start_hint,
    stopped_among,
)
from avial_lab.runtime.launch.progress import ProgressReporter
from avial_lab.runtime.rank.array_files import FilePart, file_parts, files_of, readable, told
from avial_lab.runtime.rank.exchange import CallerArrays, caller_arrays
from avial_lab.runtime.rank.job import (
    Options,
    read_outcome,
    write_inputs,
    write_job,
    write_parts,
)
from avial_lab.runtime.rank.journal import read_death, read_journal, witnessed
from avial_lab.runtime.rank.outcome import (
    GRACE_S,
    Outcome,
    Spans,
    interrupted,
    rank_died,
    ranks_failed,
    results_of,
    timed_out,
)
from avial_lab.runtime.rank.output import last_printed, output_path
from avial_lab.runtime.rank.relay import PLACE
from avial_lab.runtime.rank.threads import cores
from avial_lab.runtime.rank.traces import trace_of
from avial_lab.trace import Trace

_POLL_S = 0.02


def run(
    binary: Binary,
    arrays: Mapping[str, np.ndarray],
    *,
    timeout: float | None = None,
    spans: Spans | None = None,
    options: Options | None = None,
    reporter: ProgressReporter | None = None,
    where: Where | None = None,
) -> Trace:
    """Run the binary on `binary.manifest.ranks` ranks of this machine, or `where`; results are
    written into `arrays`.

    timeout in seconds, None for no limit; `spans` gives each task's place in the cell;
    `reporter` reports its progress.
    Whatever goes wrong (RunError, ClusterError, KeyboardInterrupt), the arrays are as they were and
    no process is left.
    """
    manifest = binary.manifest
    caller = caller_arrays(manifest, arrays)
    refuse_copies()
    options = options or Options()
    if where is None:
        refuse_crowd(manifest.ranks)
        options.threads.on([cores()] * manifest.ranks, 0)
    else:
        _refuse_few(where, manifest.ranks)
        where.check()
    with _folder() as directory:
        try:
            write_job(directory, binary, options)
            feed = _Feed(directory, caller, file_parts(caller) if where else {})
            feed.begin()
        except OSError as error:
            raise _no_room(error) from None
        place = PLACE if where else str(directory)
        program = [sys.executable, "-m", "avial_lab.runtime.rank.engine", place]
        reporter = reporter or ProgressReporter(manifest)
        reporter.begin(directory, lambda rank: read_journal(directory, rank))
        try:
            with (
                _started(program, manifest.ranks, directory, where) as ranks,
                closing(SilentHosts(where, directory, manifest.ranks)) as silent,
            ):
                outcomes = _await(
                    ranks, feed, silent, manifest, reporter, timeout=timeout, spans=spans or {}
                )
        except KeyboardInterrupt as error:
            steps = {rank: _step(directory, rank) for rank in range(manifest.ranks)}
            stopped = interrupted(manifest, reporter.elapsed_s, steps)
            reporter.end(stopped)
            raise stopped from error
        except BaseException as error:
            reporter.end(error)
            raise
        # Every rank has finished: only now the caller's arrays are touched.
        caller.write_results(results_of(outcomes))
        reporter.end()
        return trace_of(manifest, outcomes)


@contextmanager
def _folder() -> Generator[Path]:
    """A folder for one run, of this user alone (0700)."""
    try:
        folder = private_folder("avial-run-")
    except OSError as error:
        raise _no_room(error) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _no_room(error: OSError) -> ClusterError:
    return ClusterError(
        f"the files of the run cannot be written to {tempfile.gettempdir()}: {error.strerror}",
        hint="free some space there, or set TMPDIR to another folder",
    )


@dataclass
class _Ranks:
    """The processes of one run; `processes` fills as the ranks report their pids.

    The guardian watches mpiexec and the ranks it leaves behind when it is killed.
    """

    process: subprocess.Popen[bytes]
    guardian: Guardian
    directory: Path
    log: Path
    ranks: int
    where: Where | None = None
    processes: dict[int, psutil.Process] = field(default_factory=dict[int, psutil.Process])

    def printed(self) -> str:
        """The end of what mpiexec and the ranks printed."""
        logs = [self.log, *(output_path(self.directory, rank) for rank in range(self.ranks))]
        texts = [log.read_text(errors="replace", encoding="utf-8") for log in logs if log.exists()]
        return last_lines("\n".join(text for text in texts if text))

    def find(self) -> None:
        """Look for ranks on this machine that have come up since."""
        for rank in range(self.ranks if self.where is None else 0):
            if rank in self.processes:
                continue
            entry = read_journal(self.directory, rank)
            if entry is not None:
                try:
                    self.processes[rank] = psutil.Process(entry.pid)
                    self.guardian.watch(os.getpgid(entry.pid))
                except (psutil.NoSuchProcess, ProcessLookupError):
                    continue


@contextmanager
def _started(
    program: Sequence[str], ranks: int, directory: Path, where: Where | None
) -> Generator[_Ranks]:
    """The ranks; none is left on the way out, whichever way that is."""
    log = directory / "log"
    with closing(Guardian(directory)) as guardian:
        launch = _launch(program, ranks, directory, where, guardian)
        with log.open("wb") as output:
            process = subprocess.Popen(
                launch.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | launch.environment,
                cwd=directory,  # not the caller's: a numpy.py there would be imported
                start_new_session=True,  # Ctrl-C comes to the caller, who then kills
            )
        started = _Ranks(process, guardian, directory, log, ranks, where)
        try:
            guardian.watch(process.pid)
            yield started
        finally:
            if launch.hub is not None:
                end_hub(launch.hub.process)
            if process.poll() is None:
                kill_all([psutil.Process(process.pid)])
                process.wait()
            started.find()
            kill_all(list(started.processes.values()))
            guardian.release(process.pid)


class _Launch(NamedTuple):
    command: list[str]
    environment: dict[str, str]
    hub: Hub | None = None


def _launch(
    program: Sequence[str], ranks: int, directory: Path, where: Where | None, guardian: Guardian
) -> _Launch:
    """How the ranks are started; those of other hosts find a hub here."""
    if where is None:
        command = [str(tool("mpiexec")), "-n", str(ranks), *mpiexec_options()]
        return _Launch([*command, *witnessed(program, directory)], environment(ranks))
    address = where.address()
    hub = start_hub(directory, where, address, guardian)
    command = [*where.command(), "-n", str(ranks), *where.arguments(address, directory.name)]
    return _Launch(
        [*command, *relayed(program)], environment(ranks, here=False) | hub.environment, hub
    )


def _refuse_few(where: Where, ranks: int) -> None:
    if ranks > where.most:
        raise ClusterError(
            f"{ranks} ranks do not fit on {where}", hint="name more hosts, or raise --ppn"
        )


@dataclass
class _Feed:
    """Each rank's inputs, for the hub to bring: those in files only once it is known that the
    rank cannot read them there. `parts` are those, by rank.

        RANK.files    the files, as the client sees them (JSON)       written here
        RANK.seen     why the rank cannot read them (JSON, by path)   by the hub
        RANK.given    its inputs are there                            here
    """

    directory: Path
    caller: CallerArrays
    parts: Mapping[int, Mapping[int, FilePart]]
    reasons: dict[int, dict[str, str]] = field(default_factory=dict[int, dict[str, str]])

    def begin(self) -> None:
        for rank in range(self.caller.manifest.ranks):
            if rank in self.parts:
                seen = {file.path: file.seen for file in files_of(self.parts[rank])}
                (self.directory / f"{rank}.files").write_text(json.dumps(seen), encoding="utf-8")
            else:
                write_inputs(self.directory, rank, self.caller.inputs_of(rank))

    def poll(self) -> None:
        for rank in self.parts.keys() - self.reasons.keys():
            seen = self.directory / f"{rank}.seen"
            if seen.exists():
                self.reasons[rank] = json.loads(seen.read_text(encoding="utf-8"))
                self._give(rank)

    def _give(self, rank: int) -> None:
        mine = readable(self.parts[rank], self.reasons[rank])
        try:
            write_parts(self.directory, rank, mine)
            write_inputs(self.directory, rank, self.caller.inputs_of(rank, without=mine))
        except OSError as error:
            raise _no_room(error) from None
        (self.directory / f"{rank}.given").touch()


def _await(
    ranks: _Ranks,
    feed: _Feed,
    silent: SilentHosts,
    manifest: Manifest,
    reporter: ProgressReporter,
    *,
    timeout: float | None,
    spans: Spans,
) -> list[Outcome]:
    """The Outcomes of all ranks, or RunError with the first failure."""
    deadline = time.monotonic() + timeout if timeout is not None else float("inf")
    patience = float("inf")
    while True:
        reporter.poll()
        try:
            ranks.process.wait(_POLL_S)
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
        ranks.find()
        feed.poll()
        outcomes = {
            rank: outcome
            for rank in range(manifest.ranks)
            if (outcome := read_outcome(ranks.directory, manifest, rank)) is not None
        }
        failures = {r: o.failure for r, o in outcomes.items() if o.failure is not None}
        if failures:
            reporter.failed = {rank: failure.step for rank, failure in failures.items()}
            patience = min(patience, time.monotonic() + GRACE_S)
            if len(outcomes) == manifest.ranks or ended or time.monotonic() > patience:
                raise ranks_failed(manifest, failures, spans)
            continue
        if ended and len(outcomes) == manifest.ranks:
            if ranks.where is not None:
                nodes = node_names(ranks.where, manifest.ranks)
                reporter.inputs = told(feed.parts, feed.reasons, nodes)
            return list(outcomes.values())
        if unreached := silent.lost_at_last() if ended else silent.lost():
            raise host_lost(*unreached)
        for rank in range(manifest.ranks):
            death = read_death(ranks.directory, rank)
            # A journal says that the rank was there; its process may have gone before we looked.
            step = _step(ranks.directory, rank)
            if death is not None and step is not None:
                reporter.failed[rank] = step
                said = last_printed(ranks.directory, rank)
                raise rank_died(manifest, rank, step, reporter.cause(death), spans, said=said)
            if death is not None and ranks.where is not None:
                # What starts ranks elsewhere now ends the others, whose connections are closed.
                raise ClusterError(
                    f"rank {rank} ended while it was starting, of {death}\n{ranks.printed()}",
                    hint=ranks.where.hint,
                )
        for rank in range(manifest.ranks if ranks.where else 0):
            gone = lost_host(ranks.directory, rank)
            if gone is not None:
                raise host_lost(*gone)
        if ended:
            raise ClusterError(
                f"mpiexec could not start {ranks.ranks} ranks:\n{ranks.printed()}",
                hint=ranks.where.hint if ranks.where else start_hint(ranks.ranks),
            )
        if time.monotonic() > deadline:
            assert timeout is not None
            late = [rank for rank in range(manifest.ranks) if rank not in outcomes]
            steps = {rank: _step(ranks.directory, rank) for rank in late}
            stopped = stopped_among(ranks.processes, late)
            raise timed_out(manifest, timeout, steps, spans, stopped=stopped)


def _step(directory: Path, rank: int) -> int | None:
    entry = read_journal(directory, rank)
    return None if entry is None else entry.step
