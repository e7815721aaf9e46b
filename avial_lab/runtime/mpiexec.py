"""Running a Binary under plain mpiexec: no cluster, the ranks live for one run.

Binary, arrays -> the arrays written in place, Trace. Also how mpiexec is called here at all: the command, the
environment, the processes it started.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import psutil

import avial_lab.runtime.engine
from avial_lab.binary import Binary, Manifest
from avial_lab.errors import ClusterError, RunError
from avial_lab.runtime.exchange import caller_arrays
from avial_lab.runtime.guardian import Guardian
from avial_lab.runtime.job import Options, read_outcome, write_inputs, write_job
from avial_lab.runtime.journal import read_death, read_journal, witnessed
from avial_lab.runtime.outcome import Outcome, Spans, rank_died, rank_failed, timed_out, trace_of
from avial_lab.toolchain import tool
from avial_lab.trace import Trace

_POLL_S = 0.02


def run(
    binary: Binary,
    arrays: Mapping[str, np.ndarray],
    *,
    timeout: float | None = None,
    spans: Spans | None = None,
    options: Options | None = None,
) -> Trace:
    """Run the binary on `binary.manifest.ranks` ranks of this machine; results are written into `arrays`.

    timeout in seconds, None for no limit; `spans` tells where each task stands in the cell. Whatever goes wrong
    (RunError, ClusterError, KeyboardInterrupt), the arrays are as they were and no process is left.
    """
    manifest = binary.manifest
    caller = caller_arrays(manifest, arrays)
    with tempfile.TemporaryDirectory(prefix="avial-run-") as folder:  # 0700
        directory = Path(folder)
        write_job(directory, binary, options or Options())
        for rank in range(manifest.ranks):
            write_inputs(directory, rank, caller.inputs_of(rank))
        program = [sys.executable, "-m", avial_lab.runtime.engine.__name__, folder]
        with _started(program, manifest.ranks, directory) as ranks:
            outcomes = _await(ranks, manifest, timeout=timeout, spans=spans or {})
        # Every rank has finished: only now the caller's arrays are touched.
        caller.write_results({outcome.rank: outcome.results for outcome in outcomes})
        return trace_of(manifest, outcomes)


def command(ranks: int) -> list[str]:
    """`mpiexec -n RANKS …`, to be followed by the program; for ranks that all live on this machine."""
    return [str(tool("mpiexec")), "-n", str(ranks), *options_of_mpiexec()]


@cache
def options_of_mpiexec() -> tuple[str, ...]:
    """What this machine's mpiexec is asked for.

    Hydra (MPICH's) stays off the network: names that do not resolve, VPNs and firewalls do not matter on one machine.
    """
    about = subprocess.run(
        [tool("mpiexec"), "--version"], capture_output=True, text=True, check=False
    )
    if "HYDRA" not in about.stdout.upper():
        return ()
    loopback = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    return ("-iface", loopback[0]) if loopback else ()


def environment(ranks: int) -> dict[str, str]:
    """What ranks on this machine get on top of the caller's environment."""
    package_root = str(Path(avial_lab.__file__).parent.parent)
    paths = [path for path in (os.environ.get("PYTHONPATH"), package_root) if path]
    changes = {
        "PYTHONPATH": os.pathsep.join(paths),
        "UCX_HANDLE_ERRORS": "none",  # a crash is reported here, not in a page of C frames
        "UCX_LOG_LEVEL": "fatal",
    }
    if ranks > len(
        psutil.Process().cpu_affinity() if hasattr(psutil.Process, "cpu_affinity") else []
    ):
        # MPICH waits in a busy loop; with more ranks than cores the waiting ones must let go of the core.
        changes |= {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
    return changes


def log_tail(path: Path, *, lines: int = 20) -> str:
    """The end of what mpiexec and the ranks printed."""
    text = path.read_text(errors="replace") if path.exists() else ""
    return "\n".join(text.splitlines()[-lines:]) or "(no output)"


@dataclass
class _Ranks:
    """The processes of one run; `processes` fills as the ranks tell their pids."""

    process: subprocess.Popen[bytes]
    directory: Path
    log: Path
    ranks: int
    processes: dict[int, psutil.Process] = field(default_factory=dict)

    def find(self) -> None:
        """Look for ranks that have come up since."""
        for rank in range(self.ranks):
            if rank in self.processes:
                continue
            entry = read_journal(self.directory, rank)
            if entry is not None:
                try:
                    self.processes[rank] = psutil.Process(entry.pid)
                except psutil.NoSuchProcess:
                    continue


def is_alive(process: psutil.Process) -> bool:
    """Whether it still runs; a zombie, which only waits to be collected, does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill_all(processes: Sequence[psutil.Process]) -> None:
    """SIGKILL for the processes and all they started; returns when they are gone.

    A rank blocked in MPI heeds nothing less.
    """
    family = [member for process in processes for member in _family(process)]
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    deadline = time.monotonic() + 10
    while any(map(is_alive, family)):
        if time.monotonic() > deadline:
            pids = [process.pid for process in family if is_alive(process)]
            raise ClusterError(f"the processes {pids} survive SIGKILL", hint="restart this machine")
        time.sleep(0.005)


def _family(process: psutil.Process) -> list[psutil.Process]:
    """The process and its descendants; only itself where it is gone."""
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


@contextmanager
def _started(program: Sequence[str], ranks: int, directory: Path) -> Iterator[_Ranks]:
    """The ranks; none is left on the way out, whichever way that is."""
    log = directory / "log"
    guardian = Guardian()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command(ranks), *witnessed(program, directory)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | environment(ranks),
            cwd=directory,  # not the caller's: a numpy.py there would be imported
            start_new_session=True,  # Ctrl-C comes to the caller, who then kills
        )
    started = _Ranks(process, directory, log, ranks)
    try:
        guardian.watch(process.pid)
        yield started
    finally:
        if process.poll() is None:
            kill_all([psutil.Process(process.pid)])
            process.wait()
        started.find()
        kill_all(list(started.processes.values()))
        guardian.release(process.pid)
        guardian.close()


def _await(
    ranks: _Ranks, manifest: Manifest, *, timeout: float | None, spans: Spans
) -> list[Outcome]:
    """The Outcomes of all ranks, or RunError with the first failure."""
    deadline = time.monotonic() + timeout if timeout is not None else float("inf")
    while True:
        try:
            ended = ranks.process.wait(_POLL_S) is not None
        except subprocess.TimeoutExpired:
            ended = False
        ranks.find()
        outcomes = {
            rank: outcome
            for rank in range(manifest.ranks)
            if (outcome := read_outcome(ranks.directory, manifest, rank)) is not None
        }
        for rank, outcome in outcomes.items():
            if outcome.failure is not None:
                raise rank_failed(manifest, rank, outcome.failure, spans)
        if ended and len(outcomes) == manifest.ranks:
            return list(outcomes.values())
        for rank in range(manifest.ranks):
            death = read_death(ranks.directory, rank)
            if death is not None and rank in ranks.processes:
                raise rank_died(manifest, rank, _step(ranks, rank), death, spans)
        if ended:
            raise ClusterError(
                f"mpiexec could not start {ranks.ranks} ranks:\n{log_tail(ranks.log)}",
                hint="run `avial-lab doctor`; it tries the same with two ranks",
            )
        if time.monotonic() > deadline:
            assert timeout is not None
            steps = {r: _step(ranks, r) for r in range(manifest.ranks) if r not in outcomes}
            raise timed_out(manifest, timeout, steps, spans)


def _step(ranks: _Ranks, rank: int) -> int | None:
    entry = read_journal(ranks.directory, rank)
    return None if entry is None else entry.step
