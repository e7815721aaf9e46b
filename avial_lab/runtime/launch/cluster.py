"""Cluster: engines that stay, and runs of Binaries on them.

Binary, arrays, Cluster -> the arrays written in place, Trace. A run that fails, hangs or is
interrupted costs the engines, never the arrays: the set is killed at once and the next one starts
while the caller reads the error.
"""

from __future__ import annotations

import atexit
import contextlib
import enum
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar, cast

import ipyparallel
import numpy as np
from ipyparallel.error import EngineError, RemoteError

from avial_lab.artifact.binary import Binary
from avial_lab.core.errors import ClusterError, RunError, RunInterrupted
from avial_lab.core.regions import Box
from avial_lab.core.words import brief, count, format_bytes
from avial_lab.machine.cpu import level_for
from avial_lab.machine.devices import CPU
from avial_lab.machine.devices.cpu import canonical_cpu
from avial_lab.machine.topology import Device, Topology, drivers, gpus_driven
from avial_lab.planning.schedule import Piece
from avial_lab.runtime.launch import carried
from avial_lab.runtime.launch.engines import (
    EngineSet,
    EngineSpec,
    Progress,
    Wait,
    attach_engines,
    spec_of,
    start_engines,
    take_up_engines,
)
from avial_lab.runtime.launch.hosts import Where, host_lost, lost_host
from avial_lab.runtime.launch.processes import crowding, refuse_copies, stopped_among
from avial_lab.runtime.launch.progress import ProgressReporter
from avial_lab.runtime.launch.registry import clusters
from avial_lab.runtime.native.loader import digest
from avial_lab.runtime.rank.array_files import FilePart, Sees, file_parts, files_of, readable, told
from avial_lab.runtime.rank.engine import Facts, Load, Run, RunResident, outcome_of
from avial_lab.runtime.rank.exchange import CallerArrays, caller_arrays, piece_sizes, storage_table
from avial_lab.runtime.rank.holders import LostArray, Resident, given_pieces
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.journal import Entry, RankState
from avial_lab.runtime.rank.outcome import (
    GRACE_S,
    Failure,
    Outcome,
    Spans,
    interrupted,
    rank_died,
    ranks_failed,
    results_of,
    timed_out,
)
from avial_lab.runtime.rank.output import last_printed
from avial_lab.runtime.rank.parcels import large_sizes, pack
from avial_lab.runtime.rank.relay import LEASE_S
from avial_lab.runtime.rank.threads import Threads
from avial_lab.runtime.rank.traces import trace_of
from avial_lab.trace import Trace

Answer = TypeVar("Answer")

_POLL_S = 0.05
"""How often dead ranks are looked for during a run; a finished one is noticed at once."""

_WITNESS_S = 1.0
"""How long a rank's witness may take to write down what it saw."""


class ClusterState(enum.Enum):
    READY = "ready"
    RUNNING = "running"
    RESTARTING = "restarting"
    BROKEN = "broken"
    STOPPED = "stopped"


_WAITING = {
    ClusterState.RESTARTING: "new engines: the last run ended the old ones",
    ClusterState.RUNNING: "another run on this cluster",
}


@dataclass(frozen=True)
class ClusterStatus:
    """What a cluster is at the moment; `facts` are its engines', by rank, `lost` those ranks whose
    engine has died since the last run.
    """

    state: ClusterState
    facts: tuple[Facts, ...]
    topology: Topology
    lost: tuple[int, ...] = ()

    def __str__(self) -> str:
        state = f"{len(self.lost)} of them dead" if self.lost else self.state.value
        lines = [f"cluster of {self.topology.ranks} engines, {state}"]
        for fact in self.facts:
            real = bool(fact.gpus.gpus)
            devices = ", ".join(
                f"{device.name} ({device.arch}{', emulated' * (device.emulated and not real)})"
                for device in self.topology.devices
                if device.rank == fact.rank
            )
            lines.append(
                f"  rank {fact.rank}  {devices}  on {fact.node}, pid {fact.pid}, "
                f"{fact.cores} cores, {fact.memory_bytes / 2**30:.0f} GiB"
                + (f", {fact.gpus}" if fact.gpus.gpus else "")
            )
        lines += self._emulated()
        lines += [
            f"  {crowding(ranks, cores, node)}" for node, (ranks, cores) in self._crowded().items()
        ]
        if self.lost:
            lines.append(f"  {lost_words(self.lost)}; the next run starts new engines by itself")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return brief(self, f"{self.state.value}: {self.topology.summary}")

    def _emulated(self) -> list[str]:
        """Why, machine by machine."""
        driving = {device.rank for device in self.topology.devices if device.emulated}
        why = {fact.node: fact.gpus.missing for fact in self.facts if fact.rank in driving}
        return [f"  GPUs are emulated on {on}: {told}" for on, told in why.items() if told]

    def _crowded(self) -> dict[str, tuple[int, int]]:
        """Ranks and cores of every machine that has more ranks than cores."""
        ranks = Counter(fact.node for fact in self.facts)
        return {
            fact.node: (ranks[fact.node], fact.cores)
            for fact in self.facts
            if ranks[fact.node] > fact.cores
        }


def lost_words(ranks: Sequence[int]) -> str:
    """`the engine of rank 0 has died`."""
    if len(ranks) == 1:
        return f"the engine of rank {ranks[0]} has died"
    return f"the engines of ranks {', '.join(map(str, ranks))} have died"


class Cluster:
    """Engines for runs, one run at a time; another thread's run waits for its turn.

    Made by `Cluster.start` or `Cluster.connect`; a context manager that stops it. Stops by itself
    when Python exits.
    """

    def __init__(self, engines: EngineSet, *, spec: EngineSpec | None, gpus: int) -> None:
        self._spec = spec
        self._gpus = gpus
        self._engines: Future[EngineSet] = Future()
        self._engines.set_result(engines)
        self._turn = threading.Lock()
        self._runs = 0
        self._stopped = False
        self.died = ""
        """Whose death the last engines were replaced for, in words."""
        self.topology = topology_of(engines.facts, gpus=gpus)
        self._facts = engines.facts
        self._at_exit = _at_exit(self, Cluster.stop)

    @classmethod
    def start(
        cls,
        cpu: int = 2,
        gpu: int = 1,
        *,
        profile: str | None = None,
        timeout: float = 60.0,
        keep_s: float = 0.0,
        progress: Progress | None = None,
        where: Where | None = None,
        lease_s: float | None = None,
    ) -> Cluster:
        """`cpu` engines for CPU work and `gpu` more that drive a GPU each, as cpu + gpu MPI ranks.

        With `where` they are on other machines: as many as that says, in place of `cpu`, the last
        `gpu` of which drive a GPU (`Hosts.parse("node1,node2", ppn=2)`, `Slurm(4, ppn=16)`). They
        end when this process does, and where its machine cannot be reached any more, `lease_s`
        seconds later (by default less than a minute).

        A profile is one of ipyparallel's (Slurm, SSH, …), which must start the engines as one MPI
        world. timeout, in seconds, is for the engines to come up; `progress` is called with what is
        being waited for. If this process ends without `stop`, and not in the middle of a run, the
        engines wait `keep_s` seconds for another that connects to them by the cluster's `id`.
        """
        if where is not None:
            cpu = where.most - gpu
        if cpu < 0 or gpu < 0 or cpu + gpu < 1:
            raise ClusterError(
                f"a cluster of {cpu} CPU and {gpu} GPU engines is not possible",
                hint="ask for at least one engine",
            )
        refuse_copies()
        spec = EngineSpec(
            cpu + gpu, profile, timeout, gpu, keep_s, where=where, lease_s=lease_s or LEASE_S
        )
        engines = start_engines(spec, progress=progress or _quiet)
        return cls(engines, spec=spec, gpus=gpu)

    @classmethod
    def connect(
        cls,
        cluster_id: str = "",
        *,
        profile: str | None = None,
        client: ipyparallel.Client | None = None,
        gpu: int = 0,
    ) -> Cluster:
        """The cluster of that id: one that an earlier process left behind (`avial-lab
        cluster list`), which is then this process's.

        Or one of ipyparallel's (`ipcluster list`), or that behind `client`, whose last `gpu` ranks
        drive a GPU. It is not ours: `stop` leaves it running, and engines lost in a failed run stay
        lost. Only one process at a time may run programs on it.
        """
        if client is None and not profile:
            left = [record for record in clusters() if record.id == cluster_id]
            if left:
                return cls(take_up_engines(left[0]), spec=spec_of(left[0]), gpus=left[0].gpus)
        if client is None:
            try:
                found = ipyparallel.Cluster.from_file(cluster_id=cluster_id, profile=profile or "")
                client = cast("ipyparallel.Client", found.connect_client_sync())
            except OSError as error:
                raise ClusterError(
                    f"no cluster '{cluster_id}' is known: {error}",
                    hint="`ipcluster list` lists the running ones",
                ) from None
            return cls(attach_engines(client, close=True), spec=None, gpus=gpu)
        return cls(attach_engines(client, close=False), spec=None, gpus=gpu)

    @property
    def id(self) -> str:
        """What `connect` and `avial-lab cluster` call it; empty for one that is not ours."""
        return self._spec.id if self._spec is not None else ""

    @property
    def status(self) -> ClusterStatus:
        state = self._state()
        ready = state is ClusterState.READY
        lost = tuple(self._engines.result().lost()) if ready and self._spec is not None else ()
        return ClusterStatus(state, self._facts, self.topology, lost)

    def __str__(self) -> str:
        return str(self.status)

    def __repr__(self) -> str:
        number = count(self.topology.ranks, "engine")
        return brief(self, f"of {number}, {self._state().value}: {self.topology.summary}")

    def stop(self) -> None:
        """End every engine, the controller and their files; a run in another thread fails. May be
        called again.
        """
        self._stopped = True
        atexit.unregister(self._at_exit)
        if self._engines.exception() is None:  # a start that failed left nothing to end
            self._engines.result().end()

    def leave(self) -> None:
        """As `stop`, but engines that were started with `keep_s`, and have no run, are left for
        another process to connect to.
        """
        kept = self._spec is not None and self._spec.keep_s > 0
        if not kept or self._state() is not ClusterState.READY:
            self.stop()
            return
        self._stopped = True
        atexit.unregister(self._at_exit)
        self._engines.result().leave()

    def leave_at_exit(self) -> None:
        """When Python exits it is left, and not stopped."""
        atexit.unregister(self._at_exit)
        self._at_exit = _at_exit(self, Cluster.leave)

    @property
    def is_local(self) -> bool:
        """Whether it was started on this machine, by `start` alone."""
        return self._spec is not None and self._spec.where is None and not self._spec.profile

    @property
    def is_stopped(self) -> bool:
        """Whether it was stopped, here or from outside, and runs nothing any more."""
        return self._stopped

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @contextlib.contextmanager
    def turn(self) -> Generator[tuple[EngineSet, int]]:
        """The engines for one run, and the run's number; waits for other runs and for a restart.

        Whatever is raised inside costs the engines: MPI does not forget a run that stopped halfway.
        """
        with self._turn:
            if self._stopped:
                raise ClusterError(
                    "the cluster is stopped", hint="start a new one: Cluster.start()"
                )
            try:
                engines = self._living()
            except KeyboardInterrupt as error:
                raise RunInterrupted(
                    "the run was stopped before it began; the engines continue to start"
                ) from error
            self._runs += 1
            try:
                engines.begin_run()
                yield engines, self._runs
                engines.end_run()
            except _Harmless as harmless:
                engines.end_run()
                raise harmless.error from None
            except BaseException as error:
                self._stopped |= not engines.folder.exists()  # ended from outside
                self._replace(engines)
                if self._stopped and isinstance(error, RunError):
                    raise ClusterError("the cluster was stopped during the run") from None
                raise

    def _living(self) -> EngineSet:
        """The engines; fresh ones where some were killed since the last run, or could not be
        started after it: what was in the way, a host that was down, may be gone.
        """
        if self._spec is not None and self._engines.done() and self._engines.exception():
            self._engines = Future()
            self._start_into(self._engines, self._spec)
        engines = self._engines.result()
        if not engines.folder.exists():
            self.stop()
            raise ClusterError(
                "the cluster was stopped from outside", hint="start a new one: Cluster.start()"
            )
        if self._spec is not None and (engines.lost() or engines.ended()):
            self._replace(engines)
        return self._engines.result()

    def _state(self) -> ClusterState:
        if self._stopped:
            return ClusterState.STOPPED
        if not self._engines.done():
            return ClusterState.RESTARTING
        if self._engines.exception() is not None:
            return ClusterState.BROKEN
        return ClusterState.RUNNING if self._turn.locked() else ClusterState.READY

    def _replace(self, engines: EngineSet) -> None:
        """Kill the set now, so that nothing of the failed run goes on; start the next one in the
        background.
        """
        following: Future[EngineSet] = Future()
        self._engines = following
        if engines.folder.exists() and (lost := engines.lost()):
            self.died = lost_words(lost)
        try:
            engines.end()
        finally:
            if self._spec is None:
                following.set_exception(
                    ClusterError(
                        "the last run failed, and its engines may still be executing it",
                        hint="restart the cluster you connected to, and connect again",
                    )
                )
            elif not self._stopped:
                threading.Thread(
                    target=self._start_into, args=(following, self._spec), daemon=True
                ).start()
            else:
                following.set_exception(ClusterError("the cluster is stopped"))

    def _start_into(self, future: Future[EngineSet], spec: EngineSpec) -> None:
        try:
            engines = start_engines(spec, progress=_quiet)
        except (
            BaseException
        ) as error:  # the boundary of a thread: whoever waits for the engines gets it
            future.set_exception(error)
            return
        self._facts = engines.facts
        future.set_result(engines)


def run(
    binary: Binary,
    arrays: Mapping[str, np.ndarray],
    cluster: Cluster,
    *,
    timeout: float | None = None,
    spans: Spans | None = None,
    options: Options | None = None,
    reporter: ProgressReporter | None = None,
) -> Trace:
    """Run the binary on the first `binary.manifest.ranks` engines; results are written into
    `arrays`.

    timeout in seconds, None for no limit; `spans` gives each task's place in the cell;
    `reporter` reports its progress. Whatever goes wrong (RunError, ClusterError,
    KeyboardInterrupt), the arrays are as they were and the cluster is usable again.
    """
    caller = caller_arrays(binary.manifest, arrays)
    with _followed(
        binary, cluster, timeout=timeout, spans=spans, options=options, reporter=reporter
    ) as (watch, options):
        outcomes = watch.run(caller, options)
        # Every rank has finished: only now the caller's arrays are touched.
        caller.write_results(results_of(outcomes))
    return trace_of(binary.manifest, outcomes)


class Followed(TypedDict, total=False):
    """How a run is followed: seconds that it may take, where its tasks stand, who is told."""

    timeout: float | None
    spans: Spans | None
    reporter: ProgressReporter | None


def run_resident(
    binary: Binary,
    arrays: Mapping[str, Resident],
    cluster: Cluster,
    *,
    timeout: float | None = None,
    spans: Spans | None = None,
    reporter: ProgressReporter | None = None,
    options: Options | None = None,
    forgotten: tuple[int, ...] = (),
    read: tuple[str, Box] | None = None,
) -> tuple[EngineSet, list[Outcome]]:
    """Run the binary on arrays that the engines keep, by its storages. -> the engines, and by rank
    what happened and who holds what of all arrays afterwards, with that box of an array to `read`.
    forgotten: numbers of arrays that are to be freed before.
    Raises as `run` does, and LostArray where other engines have the arrays; after an error the
    arrays are lost with the engines.
    """
    homes = [resident.home for resident in arrays.values() if resident.pieces]
    numbers = {storage: resident.number for storage, resident in arrays.items()}
    with _followed(
        binary, cluster, timeout=timeout, spans=spans, options=options, reporter=reporter
    ) as (watch, options):
        if any(home is not watch.engines for home in homes):
            raise _Harmless(LostArray(cluster.died))
        given = given_pieces(arrays)
        return watch.engines, watch.run_resident(numbers, given, options, read, forgotten)


@contextlib.contextmanager
def _followed(
    binary: Binary,
    cluster: Cluster,
    *,
    timeout: float | None,
    spans: Spans | None,
    options: Options | None,
    reporter: ProgressReporter | None,
) -> Generator[tuple[_Watch, Options]]:
    """The engines' turn with the binary loaded, and what goes wrong reported."""
    manifest = binary.manifest
    reporter = reporter or ProgressReporter(manifest)
    status = cluster.status
    waiting = _WAITING.get(status.state)
    if status.lost:
        waiting = f"new engines: {lost_words(status.lost)}"
    if waiting:
        reporter.wait_for(waiting)
    with cluster.turn() as (engines, number):
        if manifest.ranks > engines.ranks:
            raise _Harmless(
                ClusterError(
                    f"the program needs {manifest.ranks} ranks, "
                    f"and the cluster has {engines.ranks} engines",
                    hint=f"start a larger one, or compile for {engines.ranks} ranks",
                )
            )
        options = options or Options()
        try:
            _check_threads(options.threads, engines.facts[: manifest.ranks])
        except ClusterError as error:
            raise _Harmless(error) from None
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        watch = _Watch(engines, binary, deadline, timeout or 0.0, spans or {}, number, reporter)
        reporter.begin(engines.folder, watch.entry if engines.in_reach(manifest.ranks) else None)
        try:
            watch.load()
            yield watch, options
        except KeyboardInterrupt as error:
            stopped = interrupted(
                manifest, reporter.elapsed_s, watch.steps(range(manifest.ranks)),
                then="new engines are starting" if cluster.id else "",
            )  # fmt: skip
            reporter.end(stopped)
            raise stopped from error
        except BaseException as error:
            reporter.end(error)  # as long as the journals are there
            raise
        reporter.end()


def _check_threads(threads: Threads, facts: Sequence[Facts]) -> None:
    """Raises ClusterError where an engine could not have as many; before any of them begins."""
    for node in dict.fromkeys(fact.node for fact in facts):
        masks = [fact.mask for fact in facts if fact.node == node]
        for place in range(len(masks)):
            threads.on(masks, place)


def topology_of(facts: Sequence[Facts], *, gpus: int) -> Topology:
    """One CPU device a rank, and `gpus` GPUs as of `machine.topology.drivers`."""
    cpus = [
        Device(CPU.device_name(f.rank), CPU, f.rank, canonical_cpu(f.arch), f.node) for f in facts
    ]
    driven = [(facts[k].rank, facts[k].node) for k in drivers(len(facts), gpus)]
    cpu = level_for(fact.sets for fact in facts)
    return Topology(len(facts), (*cpus, *gpus_driven(driven)), cpu=cpu)


class _Harmless(Exception):
    """An error before any rank has begun: the engines are as good as before."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True)
class _Watch:
    """One run on a set of engines, followed from here."""

    engines: EngineSet
    binary: Binary
    deadline: float
    timeout_s: float
    spans: Spans
    number: int
    reporter: ProgressReporter

    def load(self) -> None:
        """Give the program to the engines that do not have it."""
        key, manifest = self.binary.key, self.binary.manifest
        lacking = [r for r in range(manifest.ranks) if key not in self.engines.loaded[r]]
        if not lacking:
            return
        call = Load(key, digest(self.binary.shared_object), self.binary.shared_object, manifest)
        failures = self._gather({rank: self.engines.submit(rank, call) for rank in lacking})
        failed = {rank: failure for rank, failure in failures.items() if failure is not None}
        self.engines.loaded |= {
            rank: self.engines.loaded[rank] | {key} for rank in lacking if rank not in failed
        }
        if failed:
            raise _Harmless(ranks_failed(manifest, failed, self.spans))

    def run(self, caller: CallerArrays, options: Options) -> list[Outcome]:
        """The Outcomes of all ranks; the first failure is raised, whatever the others do."""
        manifest, ranks = self.binary.manifest, range(self.binary.manifest.ranks)
        apart = self.engines.hub is not None  # on other hosts
        parts = self._read_there(file_parts(caller)) if apart else {}
        parcels = {
            rank: pack(caller.inputs_of(rank, without=parts.get(rank, ()))) for rank in ranks
        }
        if apart:
            large = {rank: parcels[rank][1:] for rank in ranks}
            carried.send(self.engines, self.number, large, self._answer, self._carrying("sent"))
            parcels = {rank: parcels[rank][:1] for rank in ranks}
        key = self.binary.key
        calls = {
            rank: (
                Run(key, rank, self.number, options, apart, parts.get(rank, {})),
                *parcels[rank],
            )
            for rank in ranks
        }
        answers, more = self.engines.ask_here(
            calls, look=lambda: self._look_for_trouble(ranks), kept=False
        )
        outcomes: dict[int, Any] = self._gather(answers, more, failing=_failure_in)
        if apart:
            sizes = {
                rank: large_sizes(piece_sizes(manifest, outcomes[rank][0].pieces)) for rank in ranks
            }
            fetched = carried.fetch(self.engines, sizes, self._answer, self._carrying("fetched"))
            outcomes = {rank: (*outcomes[rank], *fetched[rank]) for rank in ranks}
        return [outcome_of(manifest, outcomes[rank]) for rank in ranks]

    def _read_there(
        self, parts: Mapping[int, Mapping[int, FilePart]]
    ) -> dict[int, dict[int, FilePart]]:
        """Those input pieces that ranks read from files on their hosts; tells which, and why
        not.
        """
        asked = {
            rank: self.engines.submit(rank, Sees(tuple(files_of(mine))))
            for rank, mine in parts.items()
        }
        reasons = self._gather(asked)
        nodes = [fact.node for fact in self.engines.facts]
        self.reporter.inputs = told(parts, reasons, nodes)
        return {rank: readable(mine, reasons[rank]) for rank, mine in parts.items()}

    def _carrying(self, how: str) -> carried.Look:
        """Tells how far arrays are; raises where they will not arrive."""
        began = time.monotonic()

        def look(pending: set[int], arrived: int, total: int, nbytes: int) -> None:
            self._look_for_trouble(sorted(pending))
            seconds = max(time.monotonic() - began, 1e-6)
            fewer = f" as {format_bytes(nbytes)}" if nbytes < arrived else ""
            self.reporter.poll_carrying(
                f"arrays: {format_bytes(arrived)} of {format_bytes(total)} {how}{fewer}, "
                f"{format_bytes(int(arrived / seconds))}/s"
            )

        return look

    def run_resident(
        self,
        arrays: Mapping[str, int],
        given: tuple[Piece, ...],
        options: Options,
        read: tuple[str, Box] | None,
        forgotten: tuple[int, ...],
    ) -> list[Outcome]:
        """The same on arrays that stay with the engines."""
        key, manifest = self.binary.key, self.binary.manifest
        asked = read and (storage_table(manifest)[read[0]], read[1])
        calls = {
            rank: (RunResident(key, rank, self.number, options, arrays, given, asked, forgotten),)
            for rank in range(manifest.ranks)
        }
        answers, more = self.engines.ask_here(calls)
        outcomes: dict[int, Any] = self._gather(answers, more, failing=_failure_in)
        return [outcomes[rank][0] for rank in range(self.binary.manifest.ranks)]

    def _gather(
        self,
        answers: Mapping[int, Future[Answer]],
        more: Wait | None = None,
        *,
        failing: Callable[[Answer], Failure | None] | None = None,
    ) -> dict[int, Answer]:
        """What every rank answers; the first failure is raised while the others may hang.

        `failing` finds the failure in an answer. Each rank has a message of its own: one message to
        all of them would be answered only when all are done.
        """
        done: dict[int, Answer] = {}
        failures: dict[int, Failure] = {}
        patience = float("inf")
        while len(done) < len(answers) and time.monotonic() < patience:
            if more is not None:
                more(_POLL_S)
            else:
                pending = [future for rank, future in answers.items() if rank not in done]
                wait(pending, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            for rank, future in answers.items():
                # Of what comes after a failure only other failures matter, not what died of it.
                if rank not in done and future.done() and not (failures and future.exception()):
                    done[rank] = self._answer(rank, future)
                    failure = failing(done[rank]) if failing else None
                    if failure is not None:
                        failures[rank] = failure
                        self.reporter.failed[rank] = failure.step
                        patience = min(patience, time.monotonic() + GRACE_S)
            if not failures:
                self._look_for_trouble([rank for rank in answers if rank not in done])
            self.reporter.poll()
        if failures:
            raise ranks_failed(self.binary.manifest, failures, self.spans)
        self.engines.forget(list(answers.values()))
        return done

    def _answer(self, rank: int, future: Future[Answer]) -> Answer:
        try:
            return future.result()
        except EngineError:
            raise self._died(rank) from None
        except RemoteError as error:
            failure = Failure(f"{error.ename}: {error.evalue}", traceback=str(error.traceback))
            raise ranks_failed(self.binary.manifest, {rank: failure}, self.spans) from None

    def _look_for_trouble(self, pending: Sequence[int]) -> None:
        if not pending:
            return
        lost = self.engines.lost()
        if lost:
            raise self._died(*lost)
        ended = self.engines.ended()
        if ended:
            raise ClusterError(
                f"{ended} has ended, without which no engine answers",
                hint="somebody killed it, or memory ran out; the next run starts new engines",
            )
        if time.monotonic() > self.deadline:
            stopped = stopped_among(self.engines.processes, pending)
            steps = self.steps(pending)
            raise timed_out(
                self.binary.manifest, self.timeout_s, steps, self.spans, stopped=stopped
            )

    def steps(self, ranks: Iterable[int]) -> dict[int, int | None]:
        """Where each of the ranks is that has not finished; None if that is not known."""
        return {rank: self._step(rank) for rank in ranks if not self._is_over(rank)}

    def _is_over(self, rank: int) -> bool:
        entry = self.entry(rank)
        return entry is not None and entry.state is RankState.FINISHED

    def entry(self, rank: int) -> Entry | None:
        """What its journal says of this run."""
        entry = self.engines.entry(rank)
        return entry if entry is not None and entry.run == self.number else None

    def _died(self, *lost: int) -> Exception:
        """The error for the one of the lost ranks that died by itself."""
        patience = time.monotonic() + _WITNESS_S
        while not (deaths := {r: d for r in lost if (d := self.engines.death(r))}):
            if time.monotonic() > patience:
                break
            time.sleep(0.005)
        rank = next(iter(deaths), lost[0])
        gone = lost_host(self.engines.folder, rank)
        if not deaths and gone is not None:
            host, how = gone
            there = [fact.rank for fact in self.engines.facts if fact.node == host]
            return host_lost(host, how, there)
        if rank >= self.binary.manifest.ranks:
            return ClusterError(
                f"engine {rank}, which takes no part in the run, died"
                + (f" of {deaths[rank]}" if rank in deaths else "")
            )
        step = self._step(rank)
        self.reporter.failed[rank] = -1 if step is None else step
        death = self.reporter.cause(deaths.get(rank))
        said = last_printed(self.engines.folder, rank)
        return rank_died(self.binary.manifest, rank, step, death, self.spans, said=said)

    def _step(self, rank: int) -> int | None:
        """Where the rank is in this run; -1 if it has not begun."""
        entry = self.engines.entry(rank)
        if entry is None:
            return None
        mine = entry.run == self.number and entry.state is not RankState.IDLE
        return entry.step if mine else -1


def _failure_in(answer: Sequence[Any]) -> Failure | None:
    """The failure in what `Run` answers."""
    return answer[0].failure


def _quiet(_: str) -> None:
    """Tells nobody."""


def _at_exit(cluster: Cluster, end: Callable[[Cluster], None]) -> Callable[[], None]:
    """Registers what Python's exit does to it, and does not keep the cluster alive until then."""
    reference = weakref.ref(cluster)

    def at_exit() -> None:
        alive = reference()
        if alive is not None:
            end(alive)

    atexit.register(at_exit)
    return at_exit
