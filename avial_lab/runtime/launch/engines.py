"""A set of engines: one MPI world that ipyparallel drives, from its start to its end.

A number of ranks -> EngineSet. A set is never repaired: when a rank is lost or stuck, the set is
killed and another one takes its place, so no engine is ever in doubt.

    this process ──zmq──► controller ──zmq──► engine = MPI rank 0
          │                            └────► engine = MPI rank 1 …
          └── guardian: kills mpiexec and the controller when this process dies
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import ipyparallel
import numpy as np
import psutil
from ipyparallel.error import EngineError, RemoteError

from avial_lab.core.errors import ClusterError
from avial_lab.core.toolchain import tool
from avial_lab.core.version import version
from avial_lab.runtime.launch.guardian import Guardian
from avial_lab.runtime.launch.hosts import (
    Hub,
    SilentHosts,
    Where,
    end_hub,
    ended_ranks,
    host_lost,
    lost_host,
    relayed,
    start_hub,
    this_machine,
    where_of,
    words_of,
)
from avial_lab.runtime.launch.lines import Lines
from avial_lab.runtime.launch.ports import held_ports
from avial_lab.runtime.launch.processes import (
    Ends,
    environment,
    is_alive,
    kill_all,
    last_lines,
    local_note,
    mpiexec_options,
    private_folder,
    refuse_crowd,
    start_hint,
)
from avial_lab.runtime.launch.profiles import accompany, process_here
from avial_lab.runtime.launch.registry import Known, Record, new_folder, this_owner, write_record
from avial_lab.runtime.rank.engine import Facts, Probe
from avial_lab.runtime.rank.journal import Entry, read_death, read_journal, witnessed
from avial_lab.runtime.rank.lines import Line, Listen, connected, wait_on
from avial_lab.runtime.rank.output import output_path
from avial_lab.runtime.rank.relay import LEASE_S

Progress = Callable[[str], None]
"""Called, with a few words, with what is being waited for."""

Answer = TypeVar("Answer", covariant=True)


class Call(Protocol[Answer]):
    """What an engine is asked to do; travels by its class's name and its fields."""

    def __call__(self, *arguments: np.ndarray) -> Answer: ...


_POLL_S = 0.03
_TELL_S = 0.5
"""How often those who wait hear the same again, so that they see that something goes on."""

_HEARTBEAT_MS = 250
"""ipyparallel takes an engine in after two beats: with its own 3 s, starting takes 6 s longer."""

_PROBE_S = 60.0
"""An engine that has not said by then what it is hangs."""

_LISTEN_S = 60.0
"""An engine that does not open a socket by then hangs."""

_ANSWER_S = 3.0
"""How long a controller is waited for before it is asked again, and whether it is still there."""

_PORTS = 18
"""As many as a controller listens on."""

_ADDRESS_TAKEN = "Address already in use"
_STARTS = 3
"""How often a start is tried where somebody else took an address: the next ones are others."""

_LOG = logging.getLogger("avial_lab.cluster")
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False  # what matters is raised; ipyparallel's own words would land in the cell


Wait = Callable[[float], None]
"""Until one more answer has come, or for so many seconds."""


@dataclass(frozen=True)
class EngineSpec:
    """What to start: `ranks` engines, here, or `where`, or as ipyparallel's `profile` says.

    Every set of a cluster has its `id`. keep_s: seconds they wait for another owner when theirs is
    gone; `gpus` is for that one to know. lease_s: seconds after which engines elsewhere end that do
    not hear from here.
    """

    ranks: int
    profile: str | None = None
    timeout_s: float = 60.0
    gpus: int = 0
    keep_s: float = 0.0
    id: str = field(default_factory=lambda: secrets.token_hex(2))
    where: Where | None = None
    lease_s: float = LEASE_S


@dataclass
class EngineSet:
    """Live engines. `facts[r]` and `views[r]` belong to MPI rank r; `loaded[r]` holds the keys of
    its programs.

    `processes` are those of the ranks on this machine, `owned` those this set was started as,
    `groups` what the guardian watches. `launcher` is there where ipyparallel's profile started it,
    `hub` where the ranks are on other hosts, whose files it brings (relay.py).
    """

    client: ipyparallel.Client
    folder: Path
    facts: tuple[Facts, ...] = ()
    views: tuple[Any, ...] = ()
    processes: dict[int, psutil.Process] = field(default_factory=dict)
    loaded: dict[int, set[str]] = field(default_factory=dict)
    owned: list[psutil.Process] = field(default_factory=list)
    groups: set[int] = field(default_factory=set)
    launcher: ipyparallel.Cluster | None = None
    guardian: Guardian | None = None
    close_client: bool = True
    hub: psutil.Process | None = None
    controller: psutil.Process | None = None
    lines: Lines | None = None
    _ends: Ends | None = None

    @property
    def ranks(self) -> int:
        return len(self.facts)

    def submit(self, rank: int, call: Call[Answer], *arguments: np.ndarray) -> Future[Answer]:
        """`call(*arguments)` on that rank; arrays among the arguments travel uncopied."""
        return self.views[rank].apply_async(call, *arguments)

    def ask_here(
        self,
        calls: Mapping[int, tuple[Any, ...]],
        *,
        look: Callable[[], None] = wait_on,
        kept: bool = True,
    ) -> tuple[dict[int, Future[Any]], Wait]:
        """(call, *arguments) by rank -> the answers, and how to wait for one more of them: where
        all engines are on this machine the thread that waits takes them itself, by lines (as
        `Lines.ask`).
        """
        if self.lines is None and self.hub is None and len(self.processes) == self.ranks:
            self.lines = self._open_lines()
        if self.lines is not None:
            asked = self.lines.ask(calls, look=look, kept=kept)
            return asked.answers, asked.wait
        answers = {rank: self.submit(rank, *call) for rank, call in calls.items()}

        def wait_for_one(timeout_s: float) -> None:
            pending = [answer for answer in answers.values() if not answer.done()]
            wait(pending, timeout=timeout_s, return_when=FIRST_COMPLETED)

        return answers, wait_for_one

    def _open_lines(self) -> Lines:
        paths = [str(self.folder / f"line-{os.getpid()}-{rank}") for rank in range(self.ranks)]
        answers = [self.submit(rank, Listen(path)) for rank, path in enumerate(paths)]
        ends: dict[int, Line] = {}
        for rank, (answer, path) in enumerate(zip(answers, paths, strict=True)):
            answer.result(timeout=_LISTEN_S)
            ends[rank] = connected(path)
            ends[rank].be_patient()
        self.forget(answers)
        return Lines(ends)

    def forget(self, answers: Sequence[Future[Any]]) -> None:
        """Drop the results that ipyparallel keeps of calls that are done."""
        kept = [answer for answer in answers if isinstance(answer, ipyparallel.AsyncResult)]
        if not kept:
            return
        self.client.purge_local_results(kept)
        self.client.history.clear()
        for view in self.views:
            view.history.clear()

    def lost(self) -> list[int]:
        """Ranks that are gone: their process, on this machine; their connection, elsewhere."""
        if self.hub is not None:
            return ended_ranks(self.folder, self.ranks)
        if not self._some_ended():
            return []
        return [rank for rank, process in self.processes.items() if not is_alive(process)]

    def ended(self) -> str:
        """What has gone of that which the engines need here; empty while all of it lives."""
        if not self._some_ended():
            return ""
        names = {"the controller": self.controller, "the hub of the hosts' connections": self.hub}
        return next((name for name, one in names.items() if one and not is_alive(one)), "")

    def _some_ended(self) -> bool:
        """Of the ranks, the controller and the hub; nothing is asked of each of them before."""
        known = [*self.processes.values(), *(p for p in (self.controller, self.hub) if p)]
        if self._ends is None or len(self._ends.processes) != len(known):
            self._ends = Ends(known)
        return self._ends.any()

    def in_reach(self, ranks: int) -> bool:
        """Whether the journals of the first `ranks` are files here, or come here."""
        return self.hub is not None or all(rank in self.processes for rank in range(ranks))

    def entry(self, rank: int) -> Entry | None:
        return read_journal(self.folder, rank)

    def death(self, rank: int) -> str | None:
        """What the rank died of, where that is known."""
        return read_death(self.folder, rank)

    def end(self) -> None:
        """No process is left, nor file. May be called again."""
        if self.launcher is not None:
            # Started through the user's profile: elsewhere, perhaps, and known to ipyparallel
            # alone.
            self.launcher.stop_cluster_sync()
        if self.hub is not None:
            end_hub(self.hub)  # before mpiexec: what it kills says no more that it has ended
        ours = self.launcher is not None or self.guardian is not None
        kill_all([*self.owned, *(self.processes.values() if ours else ())])
        if ours and self.controller is not None and not is_alive(self.controller):
            with suppress(ProcessLookupError):  # what it started, where somebody killed it
                os.killpg(self.controller.pid, signal.SIGKILL)
        if self.guardian is not None:
            for group in self.groups:
                self.guardian.release(group)
            self.guardian.close()
            self.guardian = None
        if self.lines is not None:
            self.lines.close()
        if self.close_client:
            self.client.close(linger=0)
        shutil.rmtree(self.folder, ignore_errors=True)

    def begin_run(self) -> None:
        """From now on they end with their owner: nobody else could take up the middle of a run."""
        if self.guardian is not None:
            self.guardian.busy()

    def end_run(self) -> None:
        """They may be kept again."""
        if self.guardian is not None:
            self.guardian.idle()

    def leave(self) -> None:
        """Let go of engines whose guardian keeps them for another owner."""
        assert self.guardian is not None
        if self.lines is not None:
            self.lines.close()
        self.client.close(linger=0)
        self.guardian.leave()


def start_engines(spec: EngineSpec, *, progress: Progress) -> EngineSet:
    """A new set as `spec` says; ClusterError with what mpiexec printed where it does not start."""
    asked: Future[list[frozenset[str]]] | None = None
    if spec.where:
        progress(f"asking {spec.where}")
        # Meanwhile the controller starts here, which takes as long.
        asked = ThreadPoolExecutor(1).submit(spec.where.check)
    elif not spec.profile:
        refuse_crowd(spec.ranks)
        if local_note():
            progress(local_note())
    starts = 0
    while True:
        starting, starts = _Starting(spec, new_folder(spec.id), progress, asked), starts + 1
        try:
            return starting.start()
        except BaseException as error:
            again = isinstance(error, ClusterError) and starting.address_taken()
            starting.abandon()
            if not again or starts == _STARTS:
                raise


def attach_engines(client: ipyparallel.Client, *, close: bool) -> EngineSet:
    """The engines somebody else started; `end` leaves them running. `close`: the client is ours."""
    folder = private_folder("avial-journals-")
    engines = EngineSet(client, folder, close_client=close)
    try:
        _probe(engines)
    except BaseException:
        engines.end()
        raise
    return engines


def take_up_engines(record: Record) -> EngineSet:
    """The engines of a cluster that an earlier owner left; ClusterError where it has an
    owner.
    """
    guardian = Guardian.joined(record.folder)
    if isinstance(guardian, str):
        raise ClusterError(
            f"cluster '{record.id}' cannot be reconnected: {guardian}",
            hint="one process at a time owns a cluster; `avial-lab cluster list` shows all",
        )
    (file,) = record.folder.glob("profile/security/*-client.json")
    client = ipyparallel.Client(str(file), profile_dir=str(record.folder / "profile"))
    launchers = [process for known in record.launchers if (process := known.found())]
    engines = EngineSet(
        client, record.folder, guardian=guardian, owned=launchers, hub=_known(record.hub),
        controller=_known(record.controller),
    )  # fmt: skip
    try:
        _probe(engines)
    except BaseException:
        engines.end()
        raise
    _keep(engines, spec_of(record), started_s=record.started_s)
    return engines


def _known(process: Known | None) -> psutil.Process | None:
    return process.found() if process else None


def spec_of(record: Record) -> EngineSpec:
    """What would start the like of it."""
    return EngineSpec(
        record.ranks, timeout_s=record.timeout_s, gpus=record.gpus, keep_s=record.keep_s,
        id=record.id, where=where_of(record.where), lease_s=record.lease_s,
    )  # fmt: skip


def _keep(engines: EngineSet, spec: EngineSpec, *, started_s: float) -> None:
    """Make them known as this process's, which they may outlive."""
    assert engines.guardian is not None
    # The ranks' own groups as well: of what mpiexec leaves behind when it is killed, a rank in the
    # middle of a computation would be the last to notice.
    ranks = (os.getpgid(process.pid) for process in engines.processes.values())
    engines.groups = {process.pid for process in engines.owned} | set(ranks)
    for group in engines.groups:
        engines.guardian.watch(group)
    owner, name = this_owner()
    write_record(
        Record(
            id=spec.id, folder=engines.folder, gpus=spec.gpus, keep_s=spec.keep_s,
            timeout_s=spec.timeout_s, started_s=started_s, owner=owner, owner_name=name,
            launchers=tuple(map(Known.of, engines.owned)),
            engines=tuple(map(Known.of, engines.processes.values())), ranks=engines.ranks,
            hub=Known.of(engines.hub) if engines.hub else None,
            controller=Known.of(engines.controller) if engines.controller else None,
            where=words_of(spec.where), lease_s=spec.lease_s,
            nodes=tuple(dict.fromkeys(f.node for f in engines.facts)),
        )
    )  # fmt: skip
    engines.guardian.keep()


@dataclass
class _Starting:
    """A set on its way up, so that what is there already can be taken down again."""

    spec: EngineSpec
    folder: Path
    progress: Progress
    asked: Future[list[frozenset[str]]] | None = None
    """Whether the hosts can be used, which is known before ranks are started there."""
    cluster: ipyparallel.Cluster | None = None
    client: ipyparallel.Client | None = None
    guardian: Guardian | None = None
    hub: Hub | None = None

    def start(self) -> EngineSet:
        if self.spec.profile:
            return self._start(_profile_cluster(self.spec))
        # Only the hosts' engines come over the network, and to this address alone.
        address = self._address(self.spec.where) if self.spec.where else "127.0.0.1"
        with held_ports(_PORTS) as ports:
            return self._start(_own_cluster(self.folder, ports, address), address)

    def _address(self, where: Where) -> str:
        """Of this machine; where there is none, what is wrong with the hosts says more."""
        try:
            return where.address()
        except (ClusterError, OSError):
            if self.asked is not None:
                self.asked.result()
            raise

    def _start(self, given: ipyparallel.Cluster, address: str = "") -> EngineSet:
        spec, self.cluster = self.spec, given
        cluster: Any = given  # its `_sync` methods are made at run time
        self.progress("starting the controller")
        # What a profile starts nobody else could take up: `ipcluster` keeps such clusters.
        self.guardian = Guardian(self.folder, keep_s=0 if spec.profile else spec.keep_s)
        self._step(cluster.start_controller_sync)
        self._watch()
        if spec.where:
            self.hub = start_hub(
                self.folder, spec.where, address, self.guardian, lease_s=spec.lease_s
            )
        if self.asked is not None:
            self.asked.result()
        on = f" on {spec.where}" if spec.where else ""
        self.progress(f"starting {spec.ranks} engines{on}")
        options = _launch_options(spec, self.folder, address, self.hub)
        self._step(lambda: cluster.start_engines_sync(spec.ranks, **options))
        self._watch()
        self.client = client = self._step(self._connected)
        self._wait_for_engines()
        if self.address_taken():
            # The engines are there, and what is said over that address is lost.
            raise self._failed("the controller could not listen on one of its addresses")
        if spec.profile:
            self.hub = accompany(client, self.folder, self.guardian, lease_s=spec.lease_s)
        engines = EngineSet(
            client, self.folder, launcher=cluster if spec.profile else None,
            guardian=self.guardian, owned=self._processes(),
            hub=self.hub.process if self.hub else None, controller=process_here(cluster.controller),
        )  # fmt: skip
        self.progress("querying the engines")
        _probe(engines)
        _keep(engines, spec, started_s=time.time())
        return engines

    def _watch(self) -> None:
        """What has been started here."""
        assert self.guardian is not None
        for process in self._processes():
            self.guardian.watch(process.pid)

    def address_taken(self) -> bool:
        """Whether the controller, started here, found another where it was to listen: one that had
        chosen the port before it was held.
        """
        if self.spec.profile or self.cluster is None or self.cluster.controller is None:
            return False
        controller = self.cluster.controller
        try:
            said = Path(controller.output_file).read_text(errors="replace", encoding="utf-8")
        except FileNotFoundError:
            said = controller.get_output()  # where it has ended; before, what it said so far stays
        return _ADDRESS_TAKEN in said

    def abandon(self) -> None:
        if self.spec.profile and self.cluster is not None:
            self.cluster.stop_cluster_sync()
        if self.hub is not None:
            end_hub(self.hub.process)
        # mpiexec takes its ranks with it.
        kill_all(self._processes())
        if self.guardian is not None:
            self.guardian.close()
        if self.client is not None:
            self.client.close(linger=0)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _processes(self) -> list[psutil.Process]:
        """mpiexec, the controller and the hub, where they were started here."""
        if self.cluster is None:
            return []
        launchers = [*self.cluster.engines.values(), self.cluster.controller]
        started = [process for one in launchers if (process := process_here(one))]
        return [*started, self.hub.process] if self.hub else started

    def _step(self, call: Callable[[], Answer]) -> Answer:
        try:
            return call()
        except (OSError, RuntimeError, TimeoutError) as error:
            raise self._failed(str(error)) from error

    def _connected(self) -> ipyparallel.Client:
        """The controller writes down where it listens before it does; on a busy machine long
        before.
        """
        cluster: Any = self.cluster
        deadline = time.monotonic() + self.spec.timeout_s
        while True:
            try:
                return cluster.connect_client_sync(timeout=_ANSWER_S)
            except TimeoutError:
                dead = not all(map(is_alive, self._processes()))
                if dead or time.monotonic() > deadline:
                    raise

    def _wait_for_engines(self) -> None:
        assert self.client is not None
        with closing(SilentHosts(self.spec.where, self.folder, self.spec.ranks)) as silent:
            self._wait_for_all(self.client, silent)

    def _wait_for_all(self, client: ipyparallel.Client, silent: SilentHosts) -> None:
        deadline = time.monotonic() + self.spec.timeout_s
        there, told_s = -1, 0.0
        while there < self.spec.ranks:
            if len(client.ids) != there or time.monotonic() > told_s + _TELL_S:
                there, told_s = len(client.ids), time.monotonic()
                self.progress(f"waiting for engines: {there} of {self.spec.ranks}")
            if not all(map(is_alive, self._processes())):
                unreached = silent.lost_at_last()
                stopped = "the engines stopped while they were starting"
                raise self._failed(_lost_words(unreached) if unreached else stopped)
            if self.hub and (gone := ended_ranks(self.folder, self.spec.ranks)):
                raise self._failed(self._end_of(gone[0]))
            if unreached := silent.lost():
                raise self._failed(_lost_words(unreached))
            if time.monotonic() > deadline:
                raise self._failed(
                    f"{there} of {self.spec.ranks} engines started within {self.spec.timeout_s:g} s"
                )
            time.sleep(_POLL_S)

    def _end_of(self, rank: int) -> str:
        """How a rank on another host ended, that was to start."""
        lost = lost_host(self.folder, rank)
        if lost is not None:
            return f"host {lost[0]} (rank {rank}) is lost: {lost[1]}"
        death = read_death(self.folder, rank)
        return f"rank {rank} ended while it was starting" + (f", of {death}" if death else "")

    def _failed(self, reason: str) -> ClusterError:
        """`reason`, with the end of what controller and engines printed."""
        launchers = (
            [*self.cluster.engines.values(), self.cluster.controller] if self.cluster else []
        )
        said: dict[str, str] = {}
        for rank in range(self.spec.ranks):
            path = output_path(self.folder, rank)
            if path.exists() and path.stat().st_size:
                said[f"rank {rank}"] = path.read_text(errors="replace", encoding="utf-8")
                break  # they start alike, and so fail alike
        said |= {one.identifier: one.get_output() for one in launchers if one is not None}
        output = "\n".join(f"--- {who}\n{last_lines(text)}" for who, text in said.items())
        hint = start_hint(self.spec.ranks)
        if self.spec.profile:
            hint = f"try the profile by itself: `ipcluster start --profile={self.spec.profile}`"
        elif self.spec.where:
            hint = self.spec.where.hint
        return ClusterError(f"the cluster did not start: {reason}\n{output}".rstrip(), hint=hint)


def _lost_words(unreached: tuple[str, str]) -> str:
    return "host {} is lost: {}".format(*unreached)


def _own_cluster(folder: Path, ports: Sequence[int], address: str) -> ipyparallel.Cluster:
    """A cluster whose controller is here, with a profile of its own: no start-up files are run.
    Engines reach it at `address`, and nobody else anywhere but on this machine.
    """
    listed = ",".join(map(str, ports))
    return ipyparallel.Cluster(
        engines="mpi",
        config=ipyparallel.cluster.cluster.Config(),
        load_profile=False,
        profile_dir=str(folder / "profile"),
        controller_ip="127.0.0.1",
        controller_args=[
            f"--IPController.engine_ip={address}",
            f"--IPController.ports={listed}",
            "--IPController.use_threads=True",  # one process instead of six
            "--IPController.db_class=NoDB",  # the default keeps every array that passed
            f"--HeartMonitor.period={_HEARTBEAT_MS}",
            "--HeartMonitor.max_heartmonitor_misses=240",
        ],
        delay=0.0,
        log=_LOG,
        shutdown_atexit=False,  # `end` and the guardian see to it
    )


def _profile_cluster(spec: EngineSpec) -> ipyparallel.Cluster:
    return ipyparallel.Cluster(
        profile=spec.profile, n=spec.ranks, log=_LOG, engine_timeout=int(spec.timeout_s)
    )


def _launch_options(
    spec: EngineSpec, folder: Path, address: str, hub: Hub | None
) -> dict[str, Any]:
    if spec.profile:
        return {}
    engine = [sys.executable, "-m", "ipyparallel.engine"]
    where = spec.where
    return {
        "mpi_cmd": where.command() if where else [str(tool("mpiexec"))],
        "mpi_args": where.arguments(address, folder.name) if where else list(mpiexec_options()),
        "engine_cmd": relayed(engine) if where else witnessed(engine, folder),
        # Nannies watch for engines that die; here their processes are watched directly.
        # Where a rank prints, its engine is to be quiet.
        "engine_args": [
            "--IPEngine.enable_nanny=False",
            "--IPEngine.log_level=ERROR",
            f"--IPEngine.timeout={spec.timeout_s}",  # they wait for the controller as we for them
        ],
        "environment": environment(spec.ranks, here=not where) | (hub.environment if hub else {}),
    }


def _probe(engines: EngineSet) -> None:
    """Ask every engine what it is, and put them in the order of their MPI ranks."""
    views = [engines.client[k] for k in sorted(engines.client.ids)]
    if not views:
        raise ClusterError("the cluster has no engines", hint="start some: `ipcluster engines`")
    answers = [view.apply_async(Probe(str(engines.folder))) for view in views]
    try:
        _wait_for_answers(engines, answers)
        facts: list[Facts] = [answer.get(timeout=0) for answer in answers]
    except (RemoteError, EngineError, TimeoutError) as error:
        raise ClusterError(
            f"an engine does not answer: {error}",
            hint="engines need avial_lab, mpi4py and a directory for temporary files",
        ) from error
    engines.forget(answers)
    order = sorted(range(len(facts)), key=lambda k: facts[k].rank)
    if [facts[k].rank for k in order] != list(range(len(facts))):
        raise ClusterError(
            f"the {len(facts)} engines are not the ranks of one MPI world",
            hint="start them with mpiexec: `ipcluster start --engines=mpi`, "
            "or c.Cluster.engine_launcher_class = 'mpi' in the profile; a template for Slurm: "
            "`srun --mpi=pmi2 {program_and_args} --mpi`",
        )
    _refuse_others(facts)
    engines.facts = tuple(facts[k] for k in order)
    engines.views = tuple(views[k] for k in order)
    engines.loaded = {rank: set() for rank in range(len(facts))}
    here = this_machine()
    for fact in engines.facts:
        # The same machine only if the journal it opened is the file seen here. The pids of other
        # hosts are other processes' here.
        entry = engines.entry(fact.rank)
        same = (fact.node, fact.boot) == (here.host, here.boot) and engines.hub is None
        if same and entry is not None and entry.pid == fact.pid:
            engines.processes[fact.rank] = psutil.Process(fact.pid)


def _wait_for_answers(engines: EngineSet, answers: Sequence[Any]) -> None:
    """Until all are there, or time is over; ClusterError where an engine has ended meanwhile."""
    until = time.monotonic() + _PROBE_S
    for answer in answers:
        while not answer.ready() and time.monotonic() < until:
            answer.wait(_POLL_S)
            gone = ended_ranks(engines.folder, len(answers)) if engines.hub else ()
            lost = lost_host(engines.folder, gone[0]) if gone else None
            if lost is not None:
                raise host_lost(*lost)
            if gone or not all(map(is_alive, engines.owned)):
                raise ClusterError(
                    "an engine ended while it was asked what it is", hint="start the cluster anew"
                )


def _refuse_others(facts: Sequence[Facts]) -> None:
    """ClusterError for engines that run another avial_lab than this one: what travels between them
    would be read as something else.
    """
    for fact in facts:
        theirs = getattr(fact, "version", "unknown")
        if theirs != version():
            raise ClusterError(
                f"the engine of rank {fact.rank} on {fact.node} runs avial_lab {theirs}, and this "
                f"is avial_lab {version()}",
                hint="install the same avial_lab on every host, and start the cluster anew",
            )
