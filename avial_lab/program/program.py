"""What a user holds: a compiled program, bound to arrays, that runs, explains itself and can be
checked.

Text, arrays -> Program. The compiler works in its own process (`program/compiler_client.py`);
nothing here loads MLIR.
"""

from __future__ import annotations

import os
import shlex
import struct
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from avial_lab import plot
from avial_lab.artifact.binary import Binary
from avial_lab.artifact.device_memory import refuse_too_large
from avial_lab.artifact.explanation import Choice, Explanation, Nest, arithmetic_told
from avial_lab.artifact.plan import Plan, plan_of_tasks
from avial_lab.artifact.plan_facts import between_devices_words
from avial_lab.artifact.stages import Inside, Stages
from avial_lab.compiler.frontends.notation.header import (
    holds_schedule,
)
from avial_lab.compiler.requests import (
    Build,
    Built,
    Explore,
    Explored,
    Look,
    LoopTimes,
    PrintBack,
    Referenced,
    Resume,
    RunReference,
    TaskTimes,
    TimeLoops,
    TimeTasks,
    Weigh,
    Weighed,
)
from avial_lab.core.buffers import UNBOUNDED, bind_arrays, read_box
from avial_lab.core.device_arrays import OnDevice
from avial_lab.core.errors import (
    AvialError,
    BindError,
    CellSpan,
    CheckError,
    CompilerCrash,
    CompilerTimeout,
    OptionError,
    RunError,
)
from avial_lab.core.files import disk_errors, written_whole
from avial_lab.core.regions import Box
from avial_lab.core.stand_ins import OnRanks
from avial_lab.core.words import brief, count, format_seconds, listed, shortened
from avial_lab.machine.demand import Demand
from avial_lab.machine.devices import GPU_FAMILY
from avial_lab.machine.measured import kept
from avial_lab.machine.roofline import Ceilings, estimated_ceilings, predicted
from avial_lab.machine.steadiness import watched
from avial_lab.machine.topologies import topology_called
from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.graph_facts import graph_summary
from avial_lab.planning.memory import held_bytes
from avial_lab.planning.other_sizes import OtherSizes
from avial_lab.planning.phase_costs import PhaseCosts
from avial_lab.planning.placement import is_by_hand, on_the_same_ranks, schedule_tasks
from avial_lab.planning.profile import Profile
from avial_lab.planning.scaling import Scaling, powers, scaling_of
from avial_lab.planning.schedule import Piece, Schedule
from avial_lab.planning.simulator.loops import simulated_turns
from avial_lab.planning.simulator.ranks import simulated
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.planning.turns import Turns
from avial_lab.program.agreement import (
    agreement,
    allowances,
    rounded_elsewhere,
    written_elements,
)
from avial_lab.program.cached_build import build
from avial_lab.program.command_line import command_line_of
from avial_lab.program.compiler_client import shared_compiler
from avial_lab.program.edited_origins import carried_over
from avial_lab.program.reference_run import OneProcess
from avial_lab.program.reproducer import reproducer
from avial_lab.program.session import cluster_for
from avial_lab.program.session import machine as session_machine
from avial_lab.program.tuned import family_key_of, profile_key_of, tuning_key_of, with_choice
from avial_lab.program.tuning import Search, checked_budget, remember
from avial_lab.program.turns import (
    DEFAULT_TRIPS,
    Walked,
    launches_by_phase,
    trips_in,
    turns_of,
    whole_demands,
    whole_times,
)
from avial_lab.runtime.launch import mpiexec
from avial_lab.runtime.launch.hosts import Where
from avial_lab.runtime.launch.one_rank import OneRank
from avial_lab.runtime.launch.processes import refuse_copies
from avial_lab.runtime.launch.progress import Progress, ProgressReporter
from avial_lab.runtime.native.device_values import on_host
from avial_lab.runtime.rank import in_place
from avial_lab.runtime.rank.exchange import caller_arrays
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.outcome import DEATH_HINTS, ENDLESS_HINT
from avial_lab.runtime.rank.output import Printed
from avial_lab.runtime.rank.parcels import as_bytes
from avial_lab.runtime.rank.threads import Threads
from avial_lab.trace import Trace
from avial_lab.trace.comparison import Comparison
from avial_lab.trace.run_facts import time_label

if TYPE_CHECKING:
    from avial_lab.runtime.launch.cluster import Cluster


_WORD = struct.Struct("=q")

MOST_WALKS = 8
"""Machines for which a program remembers what its ranks do there."""


@dataclass(frozen=True)
class Answers:
    """What is in the arrays after a run; `allowed` is how far an element may be from it, of arrays
    that hold floating-point sums in another order. All others have the same bits.
    """

    arrays: dict[str, np.ndarray]
    allowed: dict[str, float]

    def __repr__(self) -> str:
        exact = [name for name in self.arrays if name not in self.allowed]
        return brief(self, f"in {listed(list(self.arrays))}; bit for bit in {listed(exact)}")


@contextmanager
def _shared_file() -> Generator[tuple[IO[bytes], str]]:
    """A temporary file, and its name for another process. Linux's is gone with this one, however
    that ends.
    """
    with tempfile.TemporaryFile(buffering=0) as file:
        path = f"/proc/{os.getpid()}/fd/{file.fileno()}"
        if Path(path).exists():
            yield file, path
            return
    with tempfile.NamedTemporaryFile(prefix="avial-journal-", buffering=0) as file:
        yield file, file.name


@dataclass
class Program:
    """A built program, bound to the caller's arrays.

    `trace` is that of the last run, `printed` what its ranks printed. Everything else was decided
    by `compile` and does not change.
    """

    name: str
    arrays: dict[str, np.ndarray]
    question: Build = field(repr=False)
    built: Built = field(repr=False)
    trace: Trace | None = field(default=None, repr=False)
    check_report: str | None = field(default=None, repr=False)
    printed: Printed = field(default_factory=Printed, repr=False)
    edited: tuple[Program, str, str] | None = field(default=None, repr=False)
    """The program that this one was resumed from, the edited stage, and its text."""
    choice: Choice | None = field(default=None, repr=False)
    """What tuning found on this machine, where the program is compiled so."""
    division: str = field(default="", repr=False)
    """What the divisions are predicted to take, where the fastest was asked for."""
    _profiles: dict[str, Profile] = field(default_factory=dict[str, "Profile"], repr=False)
    _times: dict[int, LoopTimes] = field(default_factory=dict[int, "LoopTimes"], repr=False)
    """How long its compiled loops keep a core busy, by the number of threads."""
    _times_of_tasks: dict[tuple[int, ...], TaskTimes] = field(
        default_factory=dict[tuple[int, ...], "TaskTimes"], repr=False
    )
    """The same of its tasks, by the numbers that were asked for together."""
    _walks: dict[tuple[Topology, int], Turns] = field(
        default_factory=dict[tuple[Topology, int], "Turns"], repr=False
    )
    """What its ranks do, of a program of loops, by the machine without its speeds and by trips."""

    @property
    def status(self) -> str:
        """`ran on 3 ranks in 1.2 ms (measured), every array equals the reference`, or that it has
        not run.
        """
        if self.trace is None:
            return "compiled, not run yet"
        if not self.trace.ranks:
            return self.trace.label
        words = f"ran on {count(self.trace.ranks, 'rank')}"
        if self.trace.events:
            label = time_label(self.trace, self.schedule)
            words += f" in {format_seconds(self.trace.makespan_s)} ({label})"
        return f"{words}, {self.check_report}" if self.check_report else words

    def __str__(self) -> str:
        """What it is, what it runs on and works on, and how its last run went."""
        arrays = [f"{name}: {_type_of(array)}" for name, array in self.arrays.items()]
        lines = [
            f"{self.name}, from {self.cell}: {self.status}",
            graph_summary(self.graph, self.schedule),
            f"machine  {self.schedule.topology.summary}",
            f"arrays   {listed(arrays) or 'none'}",
            f"stages   {listed(list(self.stages), most=12)}",
        ]
        return "\n".join([*lines, *([self.choice.summary] if self.choice is not None else [])])

    def __repr__(self) -> str:
        return brief(
            self, f"{self.name}: {graph_summary(self.graph, self.schedule)}; {self.status}"
        )

    @property
    def text(self) -> str:
        return self.question.source.text

    @property
    def cell(self) -> str:
        return self.question.source.cell

    @property
    def graph(self) -> TaskGraph:
        return self.built.schedule.graph

    @property
    def schedule(self) -> Schedule:
        return self.built.schedule

    @property
    def stages(self) -> Stages:
        """The stages of the lowering by name, in order."""
        return Stages({stage.name: stage for stage in self.built.stages})

    def resume(self, stage: str, text: str) -> Program:
        """The program with `text` in place of one of its stages, lowered on from there.

        It works on the same arrays, its edited stages say so, and nothing of it is cached. A run
        with `check=True` compares with the reference of the program as it was before any edit. In
        `placed` a task's `avial.device` says where it goes; messages are found anew.

        Raises ParseError or VerifyError with the place in the stage (`stage mpi:12:7`), and what
        the passes from there on find.
        """
        edit = Resume(self.question, self.built, stage, text)
        built = shared_compiler().ask(edit)
        return Program(self.name, self.arrays, self.question, built, edited=(self, stage, text))

    @property
    def inside(self) -> Inside:
        """What the stages are made of: where each line comes from, what each pass did, counts.

        The program is lowered once more for it, watched.
        """
        return self._inside

    @cached_property
    def _inside(self) -> Inside:
        if self.edited is None:
            return shared_compiler().ask(Look(self.question, self.built))
        before, stage, text = self.edited
        edit = Resume(self.question, before.built, stage, text)
        after = shared_compiler().ask(Look(self.question, self.built, edit))
        old = before.stages[stage].text
        return carried_over(before.inside, old, self.built.stages, stage, after)

    @property
    def binary(self) -> Binary:
        return self.built.binary

    @cached_property
    def notation(self) -> str:
        """The program printed back in the short notation, roles and types filled in; of a plain
        function the tasks that it became.
        """
        question = PrintBack(self.question.source, grid=self.question.options.division.grid)
        return shared_compiler().ask(question).text

    @property
    def plan(self) -> Plan:
        """What it will move between its ranks and to and from their devices, and what each of them
        will hold.
        """
        return self.built.plan or self._plan_of_tasks

    @cached_property
    def _plan_of_tasks(self) -> Plan:
        return plan_of_tasks(self.schedule)

    @property
    def of_loops(self) -> bool:
        """Or else of tasks."""
        return self.built.plan is not None

    def explain(self, ceilings: Ceilings | None = None) -> Explanation:
        """Loop report and why, what each phase asks of the machine and what bounds it,
        how the program rounds, what tuning chose; print it.

        `ceilings` as `measure_ceilings` finds them in some seconds; else estimated ones, of one
        thread.
        """
        told = arithmetic_told(
            strict=self.question.options.strict,
            contracted=self.built.contracted,
            reordered=self.built.reordered,
            functions=self.built.functions,
        )
        reports = tuple(
            replace(report, model=_modelled(report.demand, ceilings))
            for report in self.built.reports
        )
        plan = self.built.plan
        between = between_devices_words(plan) if plan is not None else ""
        divided = (*self.built.divided, *filter(None, (self.division, between)))
        sizes, fault = self.built.sizes, self.built.fault
        return Explanation(reports, told, self.choice, sizes, fault, divided)

    def simulate(
        self, topology: Topology | str | Path | None = None, *, trips: int | None = None
    ) -> Trace:
        """What a run would be like, without one: every step of every rank, on the machine that the
        program was compiled for, or placed (a program of loops: compiled) anew for another: one
        that is there, a file, or `preset:…`. In a notebook that has changed a machine (`%avial
        topology`), that one where none is named. What was divided (`parallel`) or placed by hand
        keeps its ranks there.

        A task or a phase takes what it took in earlier runs here (the median), else what the
        roofline says. A loop whose end depends on data takes `trips` turns, by default as many as
        in the last run, else 2. Raises ScheduleError where the other machine has no device for a
        target.
        """
        machine = session_machine() if topology is None else topology_called(topology)
        return self.predicted(machine, trips=trips)

    def predicted(self, machine: Topology | None = None, *, trips: int | None = None) -> Trace:
        """As `simulate`; without a machine on the program's own, whatever the session's is."""
        if not self.of_loops:
            schedule = self._schedule_on(machine)
            trace = simulated(schedule, self.costs(machine))
            here = machine is None or machine == self.schedule.topology
            held = self.plan.touched_bytes if here else held_bytes(schedule)
            return replace(trace, held_bytes=held)
        walked = self._walked(machine, trips)
        trace = simulated_turns(walked.turns, walked.costs, walked.topology)
        if machine is None:
            trace = replace(trace, held_bytes=self.plan.touched_bytes)
        if walked.turns.complete or trips is not None or self.trace is None:
            return trace
        return replace(trace, note=f"{trace.note}, as in the last run")

    def predicted_on_changes(self, machine: Topology) -> Callable[[Topology], Trace]:
        """`predicted` on machines that `machine` was changed to: what was measured on that one
        scales what the roofline says of each, so that a change alone makes a difference.
        """

        def answer(changed: Topology) -> Trace:
            walked, as_it_is = self._walked(changed, None), self._walked(machine, None)
            costs = walked.costs
            if changed.speeds.nodes != machine.speeds.nodes:
                off = as_it_is.costs.off(as_it_is.turns, machine)
                costs = replace(costs, profile={}).times(off, walked.turns, changed)
            return simulated_turns(walked.turns, costs, changed)

        return answer

    def scaling(
        self,
        ranks: Sequence[int] = (),
        *,
        topology: Topology | str | Path | None = None,
        trips: int | None = None,
    ) -> Scaling:
        """Predicted speed-ups of a program of loops on so many ranks each, by default 1, 2, 4 …
        up to all that the machine has: where more of them stop paying, and why. What was measured
        on the program's own ranks scales what the roofline says of any number of them.
        """
        if not self.of_loops:
            raise AvialError(
                "a program of tasks is as fast as its placement",
                hint="avial_lab.plan(…) compares policies; simulate(topology) tells one",
            )
        machine = None if topology is None else topology_called(topology)
        most = machine.ranks if machine is not None else os.cpu_count() or 1
        found: dict[int, tuple[Trace, int]] = {}
        least: dict[int, float] = {}
        measured = False
        for n in sorted(set(ranks)) or powers(most):
            gpus = n if self.question.options.on == GPU_FAMILY else 0
            on = Topology.local(n, gpus=gpus) if machine is None else machine.first(n)
            walked = self._walked(on, trips)
            found[n] = simulated_turns(walked.turns, walked.costs, on), walked.turns.sent[0]
            free = on.never_waiting
            if free is not None:
                least[n] = simulated_turns(walked.turns, walked.costs, free).makespan_s
            measured |= bool(walked.costs.profile)
        label = machine.speeds.label if machine is not None else "this machine"
        return scaling_of(found, label, least=least, measured=measured)

    def costs(self, topology: Topology | None = None) -> Costs:
        """What is known of the seconds of its tasks; earlier runs count on their own machine."""
        machine = self.schedule.topology if topology is None else topology
        costs = Costs(self._demands, loops=self._task_times(machine).tasks)
        if topology is not None:
            return costs
        known = self._profile().seconds
        if known:
            return replace(costs, profile=known)
        size, others = self._sizes(None)
        scaled = others.seconds(size, self._modelled(costs))
        return replace(costs, profile=scaled, other_size=bool(scaled))

    def _modelled(self, costs: Costs) -> dict[tuple[str, str], float]:
        """Seconds of each task where it runs."""
        tasks, topology = self.graph.by_name, self.schedule.topology
        return {
            (placed.task, placed.device): costs.of(
                tasks[placed.task], topology.device(placed.device), self.graph, topology
            ).seconds
            for placed in self.schedule.placements
        }

    def _walked(self, topology: Topology | None, trips: int | None) -> Walked:
        """A program of loops, turn by turn."""
        open_sizes = next((b for b in self.graph.buffers if UNBOUNDED in b.shape), None)
        if open_sizes is not None:
            raise BindError(
                f"nothing can be predicted: the size of '{open_sizes.name}' is not known",
                hint=f"compile it with that array ({open_sizes.type})",
            )
        here = self.schedule.topology
        machine = here if topology is None else topology
        trips = self._trips_in(self.trace) if trips is None else trips
        key = replace(machine, platform=None), trips
        if key not in self._walks:
            anew = replace(self.question, topology=machine)
            built = self.built if key[0] == replace(here, platform=None) else None
            if built is None and self.edited is not None:
                raise AvialError("a program with a stage edited by hand is as it is for its ranks")
            if len(self._walks) == MOST_WALKS:
                self._walks.pop(next(iter(self._walks)))
            self._walks[key] = turns_of(anew, built, trips)
        turns = self._walks[key]
        demands = whole_demands(turns.begun, self.built.reports, self._weighed)
        loops = {
            cores: whole_times(turns.begun, self._loop_times(cores))
            for cores in {1, *machine.cores_of_rank}
        }
        launches = launches_by_phase(self.binary.manifest.kernels)
        costs = PhaseCosts(demands, launches=launches, loops=loops)
        # What was measured holds where links alone are other ones.
        if (machine.devices, machine.speeds.nodes) == (here.devices, here.speeds.nodes):
            profile = self._profile().seconds
            if not profile:
                size, known = self._sizes(None)
                profile = known.seconds(size, costs.seconds(turns, machine))
                costs = replace(costs, other_size=bool(profile))
            costs = replace(costs, profile=profile)
        elif _same_hardware(machine, here):
            own = self._walked(None, trips)
            costs = costs.times(own.costs.off(own.turns, here), turns, machine)
        return Walked(turns, costs, machine)

    def _trips_in(self, trace: Trace | None) -> int:
        """Of a loop whose end depends on data: as in that run."""
        if not self.of_loops or self.plan.complete or trace is None or not trace.turns:
            return DEFAULT_TRIPS
        return trips_in(self.question, self.built, dict(trace.turns))

    def _schedule_on(self, topology: Topology | None) -> Schedule:
        schedule = self.schedule
        if topology is None:
            return schedule
        if is_by_hand(schedule):
            return on_the_same_ranks(schedule, topology)
        return schedule_tasks(
            self.graph,
            topology,
            policy=schedule.policy,
            sync=schedule.sync,
            costs=self.costs(topology),
        )

    def compare(
        self,
        cluster: Cluster | Trace | None = None,
        *,
        runs: int = 5,
        threads: int | None = None,
    ) -> Comparison:
        """A prediction, made first, beside what then happens: so many runs on the cluster (or as
        `run` finds one), on the program's arrays, or a trace that there is already.
        """
        sources, tasks_of = self._sources(), "task" if not self.of_loops else "phase"
        if isinstance(cluster, Trace):
            trips = None if not self.of_loops else self._trips_in(cluster)
            return Comparison(self.predicted(trips=trips), (cluster,), sources, tasks_of)
        predicted = self.predicted()
        if runs < 1:
            raise OptionError(f"a comparison takes one run at least; got {runs}")
        known = kept()
        taken: list[Trace] = []
        with watched(0.0 if known is None else known.pace) as watch:
            for _ in range(runs):
                taken.append(self.run(cluster, threads=threads))
                watch.look()
        self._profile(threads).save()
        self._remember_size(threads)
        return Comparison(predicted, tuple(taken), sources, tasks_of, "; ".join(watch.doubts))

    def _sources(self) -> dict[str, str]:
        """Where the seconds of each task or phase come from."""
        if self.of_loops:
            costs = self._walked(None, None).costs
            return {run.name: costs.source(run.name).value for run in self.schedule.phases}
        costs, topology, tasks = self.costs(), self.schedule.topology, self.graph.by_name
        devices = {placed.task: placed.device for placed in self.schedule.placements}
        return {
            task: costs.of(tasks[task], topology.device(name), self.graph, topology).source.value
            for task, name in devices.items()
        }

    @property
    def _demands(self) -> Mapping[str, Demand]:
        """What its tasks ask of the machine."""
        return self._weighed.demands

    @cached_property
    def _weighed(self) -> Weighed:
        return shared_compiler().ask(Weigh(self.question.source))

    def _loop_times(self, threads: int) -> LoopTimes:
        """Of its loops, as they are compiled, by so many threads."""
        if threads not in self._times:
            stage = next((each for each in self.built.stages if each.name == "loops"), None)
            text, entry = "" if stage is None else stage.text, self.binary.manifest.entry
            question = TimeLoops(self.question.source, text, entry, threads)
            self._times[threads] = shared_compiler().ask(question)
        return self._times[threads]

    def _task_times(self, machine: Topology) -> TaskTimes:
        """Of its tasks, by as many threads as ranks of that machine have."""
        threads = tuple(sorted({1, *machine.cores_of_rank}))
        if threads not in self._times_of_tasks:
            question = TimeTasks(self.question.source, self.question.options, threads)
            self._times_of_tasks[threads] = shared_compiler().ask(question)
        return self._times_of_tasks[threads]

    def _profile(self, threads: int | None = None) -> Profile:
        """Of its runs with so many threads, here."""
        key = profile_key_of(self.question, self.schedule, threads)
        return self._profiles.setdefault(key, Profile(key))

    def _sizes(self, threads: int | None) -> tuple[str, OtherSizes]:
        """What names its size, and what is known of others."""
        size = profile_key_of(self.question, self.schedule, threads)
        return size, OtherSizes(family_key_of(self.question, self.schedule, threads))

    def _remember_size(self, threads: int | None) -> None:
        """For predictions of the same program at other sizes."""
        if self.of_loops:
            walked = self._walked(None, None)
            costs = replace(walked.costs, profile={})
            modelled = costs.seconds(walked.turns, walked.topology)
        else:
            modelled = self._modelled(self.costs(self.schedule.topology))
        size, known = self._sizes(threads)
        known.remember(size, self._profile(threads).seconds, modelled)

    def tune(
        self, seconds: float = 10.0, *, threads: int | None = None, oversubscribe: bool = False
    ) -> Program:
        """The program as it is fastest here, of what was measured in about so many seconds: other
        sizes and passes left out, around what the model chose, each in turn with the best until
        then. It is remembered: whoever compiles the same program here again gets it so.

        It is measured on one rank, with `threads` as in `run`, on copies of the arrays. What was
        best is compared with the reference, once the time is over.
        """
        budget = checked_budget(seconds)
        self._check_tunable()
        model = replace(self.question.options, ranks=1, gpus=0, without=(), sizes=())
        alone = replace(self.question, topology=None)
        compiler = shared_compiler()
        search = Search(
            lambda options: compiler.ask(replace(alone, options=options)),
            budget,
            Threads(threads, oversubscribe),
        )
        choice, best, trials = search.run(model, self.arrays)
        with closing(trials):
            left = trials.left()
        before = self._memory()
        self._agreement(best, left, before, self._referenced(before, timeout=None))
        remember(tuning_key_of(self.question), choice)
        question = with_choice(self.question, choice)
        return Program(self.name, self.arrays, question, build(question, None), choice=choice)

    def _check_tunable(self) -> None:
        if self.edited is not None:
            raise AvialError("a program with a stage edited by hand cannot be tuned")
        if not self.of_loops or self.schedule.topology.gpus:
            raise AvialError("only programs of loops on CPUs can be tuned")
        if self.choice is None and self.question.options.is_chosen:
            raise AvialError(
                "the search starts from what the model chose, and this program was given sizes "
                "or leaves out some pass",
                hint="compile it without --sizes and --without",
            )

    @property
    def nests(self) -> tuple[Nest, ...]:
        """Of a program of loops, each nest's first iterations and which of them need which."""
        return self._nests

    @cached_property
    def _nests(self) -> tuple[Nest, ...]:
        if not self.built.reports:
            return ()
        question = Explore(self.question.source, grid=self.question.options.division.grid)
        explored: Explored = shared_compiler().ask(question)
        names = {report.name for report in self.built.reports}
        return tuple(nest for nest in explored.nests if nest.name in names)

    def nest(self, name: str) -> Nest:
        """The nest of that name, as `explain()` calls it; raises AvialError for any other."""
        found = {nest.name: nest for nest in self.nests}
        if name in found:
            return found[name]
        near = get_close_matches(name, found, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(found) or 'none'}"
        raise AvialError(f"there is no nest '{name}'", hint=hint)

    @property
    def seconds(self) -> Mapping[str, float]:
        """What each part of the compilation took."""
        return self.built.seconds

    @disk_errors()
    def run(
        self,
        cluster: Cluster | OneProcess | OneRank | None = None,
        *,
        check: bool = False,
        timeout: float | None = None,
        trace: bool = True,
        threads: int | None = None,
        oversubscribe: bool = False,
        device_seed: int = 0,
        progress: Progress | None = None,
        where: Where | None = None,
    ) -> Trace:
        """Run the program on its arrays, in place, and return what happened when; without `trace`
        no times are taken, and it has no events.

        Without a cluster it runs on the session's (`avial_lab.cluster()`) where that has ranks
        enough; else the ranks are started for this run alone by `mpiexec`. With `check` the
        reference runs first, on copies; a difference raises CheckError (the arrays then hold the
        run's values). In place of a cluster OneProcess runs the reference itself, on the arrays;
        its trace has neither ranks nor events. OneRank is a process that stays, for programs of one
        rank.

        Each rank divides its loops among `threads` threads, by default as many as it has cores: a
        machine's, divided by the ranks there. More of them are refused without `oversubscribe`.

        An emulated GPU does everything as late as it may, or in an order drawn from `device_seed`.

        `progress` is called with what the ranks are doing, five times a second at most,
        and how it ended. `where`: on other machines, for this run alone (`Hosts`, `Slurm`).

        Ranks on other machines that see the file of a mapped array (`numpy.load(…, mmap_mode="c")`)
        read their parts of it there; to others they are sent. The trace's note says which.
        """
        check_timeout(timeout)
        _check_place(cluster, threads)
        self.printed = Printed()
        if any(isinstance(array, OnDevice) for array in self.arrays.values()):
            return self._run_in_place(
                check=check, timeout=timeout, trace=trace, device_seed=device_seed,
                threads=Threads(threads, oversubscribe), elsewhere=cluster or where,
            )  # fmt: skip
        lent = next((a.given for a in self.arrays.values() if isinstance(a, OnRanks)), None)
        place = cluster or where
        if lent is not None and place is not None and not lent.lies_on(place):
            raise BindError(
                "arrays of ptensor are used on the ranks that have them, and others are asked for",
                hint="leave the cluster out, or pass numpy.asarray(x)",
            )
        if lent is None and place is None:
            cluster = cluster_for(self.binary.manifest.ranks)
        if lent is None and isinstance(cluster, OneProcess):
            return self._run_in_order(cluster, check=check, timeout=timeout)
        before = self._memory() if check else {}
        expected = self._referenced(before, timeout=timeout) if check else None
        options = Options(
            traced=trace, threads=Threads(threads, oversubscribe), device_seed=device_seed,
            gpu_memory=self._gpu_memory(),
        )  # fmt: skip
        reporter = ProgressReporter(self.binary.manifest, progress)
        how: Any = {
            "timeout": timeout,
            "spans": self.spans,
            "options": options,
            "reporter": reporter,
        }
        try:
            if lent is not None:
                taken = cast("Trace", lent.run(self, self.arrays, **how))
            elif isinstance(cluster, OneRank):
                taken = cluster.run(self.binary, self.arrays, **how)
            elif cluster is None:
                taken = mpiexec.run(self.binary, self.arrays, where=where, **how)
            else:
                # Its client takes 0.3 s to load, which who has none does not wait for.
                from avial_lab.runtime.launch.cluster import run as run_on_cluster

                there = cast("Cluster", cluster)
                taken = run_on_cluster(self.binary, self.arrays, there, **how)
        finally:
            self.printed = reporter.printed
        if reporter.inputs:
            taken = replace(taken, note="; ".join(filter(None, [taken.note, *reporter.inputs])))
        self.trace = taken
        if trace and self.edited is None:
            self._profile(threads).add(taken)
        if expected is not None:
            after = on_host(self.arrays)
            self.check_report = self._agreement(self.built, after, before, expected, timeout)
        return self.trace

    def _run_in_place(
        self,
        *,
        check: bool,
        timeout: float | None,
        trace: bool,
        device_seed: int,
        threads: Threads,
        elsewhere: object,
    ) -> Trace:
        """In this process, on arrays that are on its GPU."""
        if elsewhere is not None and not isinstance(elsewhere, OneRank):
            raise BindError(
                "arrays on a GPU are used in the process that has them, and another is asked for",
                hint="leave the cluster out, or pass arrays of the host",
            )
        refuse_copies()
        before = self._memory() if check else {}
        expected = self._referenced(before, timeout=timeout) if check else None
        options = Options(
            traced=trace, threads=threads, device_seed=device_seed, gpu_memory=self._gpu_memory()
        )
        self.trace = in_place.run(self.binary, self.arrays, spans=self.spans, options=options)
        if expected is not None:
            after = on_host(self.arrays)
            self.check_report = self._agreement(self.built, after, before, expected, timeout)
        return self.trace

    def _gpu_memory(self) -> int:
        """The bytes that a run may take on each GPU, 0 for all; RunError where it takes more."""
        limit = self.question.options.gpu_memory
        if limit is None:
            return 0
        manifest = self.binary.manifest
        for place in range(manifest.ranks, manifest.ranks + len(manifest.drivers)):
            refuse_too_large(manifest.stays, manifest.ranks, place, limit, limit)
        return limit

    def _agreement(
        self,
        built: Built,
        arrays: Mapping[str, np.ndarray],
        before: Mapping[str, np.ndarray],
        expected: Referenced,
        timeout: float | None = None,
    ) -> str:
        """That `arrays` are what the reference makes of `before`; `built` is what ran."""
        return agreement(
            self.graph.storages,
            arrays,
            expected.data,
            built.reordered,
            nudged=lambda: self._nudged(before, timeout).data,
            written=written_elements(built.written),
        )

    def _nudged(self, before: Mapping[str, np.ndarray], timeout: float | None) -> Referenced:
        """The reference with other roundings: of its products, and of what it is given."""
        other = not self.question.options.strict
        given = {name: rounded_elsewhere(array) for name, array in before.items()}
        try:
            return self._referenced(given, strict=other, timeout=timeout)
        except (CheckError, RunError):  # a number that was an index, say
            return self._referenced(before, strict=other, timeout=timeout)

    def _run_in_order(self, place: OneProcess, *, check: bool, timeout: float | None) -> Trace:
        caller = caller_arrays(self.binary.manifest, self.arrays)
        after = self.reference(timeout=timeout).data
        written = {access.storage for access in self.built.written}
        own = {buffer.storage for buffer in self.graph.buffers if buffer.temporary}
        caller.write_results(
            (Piece(0, storage.name, Box.whole(storage.shape)), as_bytes(after[storage.name]))
            for storage in self.graph.storages
            if storage.name in written - own
        )
        self.check_report = None
        unchecked = "; this is the reference run itself, so nothing is compared" if check else ""
        self.trace = Trace(0, (), place.label + unchecked)
        return self.trace

    @disk_errors()
    def reference(self, *, timeout: float | None = None) -> Referenced:
        """What the program computes in program order in one process, on copies of the arrays as
        they are now.

        Raises CheckError where an index leaves its buffer, and RunError where a task ends the
        process or takes longer than `timeout` seconds.
        """
        return self._referenced(self._memory(), timeout=timeout)

    def answers(self, *, timeout: float | None = None) -> Answers:
        """What a run on the arrays as they are now must leave in them, by the reference."""
        before = self._memory()
        expected = self._referenced(before, timeout=timeout)
        after = {name: array.copy() for name, array in self.arrays.items()}
        written = {access.storage for access in self.built.written}
        caller_arrays(self.binary.manifest, after).write_results(
            (
                Piece(0, storage.name, Box.whole(storage.shape)),
                as_bytes(expected.data[storage.name]),
            )
            for storage in self.graph.storages
            if storage.name in written and all(name in after for name in storage.buffers)
        )
        allowed = allowances(
            self.graph.storages,
            after,
            expected.data,
            self.built.reordered,
            lambda: self._nudged(before, timeout).data,
        )
        by_storage = {s.name: s.buffers for s in self.graph.storages}
        return Answers(
            after,
            {name: bound for key, bound in allowed.items() for name in by_storage[key]},
        )

    def _memory(self) -> dict[str, np.ndarray]:
        """Copies of the storages as they are now."""
        arrays = on_host(self.arrays)
        return {
            storage.name: read_box(arrays, storage, Box.whole(storage.shape))
            for storage in self.graph.storages
            if all(buffer in self.arrays for buffer in storage.buffers)
        }

    def _referenced(
        self,
        data: Mapping[str, np.ndarray],
        *,
        strict: bool | None = None,
        timeout: float | None,
    ) -> Referenced:
        """What the reference makes of `data`, with the program's own arithmetic or another."""
        if strict is None:
            strict = self.question.options.strict
        with _shared_file() as (journal, path):
            journal.write(_WORD.pack(-1))
            journal.flush()
            # With the results' arrays: sizes that follow from what tensors share in memory need not
            # follow where each has memory of its own.
            source = replace(self.question.source, binding=bind_arrays(self.arrays))
            bounds = not self.question.options.no_bounds
            question = RunReference(source, data, path, strict, bounds)
            try:
                result: Referenced = shared_compiler().ask(question, timeout_s=timeout)
            except CompilerCrash as crash:
                step = _step_in(journal)
                if isinstance(crash, CompilerTimeout):
                    crash.hint = f"{ENDLESS_HINT}; {crash.hint}"
                if step < 0:
                    raise
                raise self._reference_ended(step, crash.message, crash.hint) from None
            step = _step_in(journal)
        if result.ended:
            hint = DEATH_HINTS.get(result.ended.rpartition(" ")[2])
            raise self._reference_ended(step, result.ended, hint)
        if result.violations:
            first = result.violations[0]
            if first.asserted:
                raise self._reference_ended(step, _ASSERTED + first.message, None, first.span)
            raise CheckError(
                first.message, span=first.span, hint="found by the sequential reference run"
            )
        return result

    def _reference_ended(
        self, step: int, what: str, hint: str | None, span: CellSpan | None = None
    ) -> RunError:
        """The error for a reference run that did not come back from its task number `step`."""
        if not holds_schedule(self.text):  # it runs a plain function as one, whatever its tasks
            return RunError(f"the sequential reference run ended: {what}", span=span, hint=hint)
        task = self.graph.tasks[step]
        return RunError(
            f"the sequential reference run ended in task '{task.name}': {what}",
            span=span or task.span,
            hint=hint,
        )

    @property
    def command(self) -> str:
        """The line that makes it again from a file with its text, and runs it on random data."""
        return shlex.join(command_line_of(self.name, self.question, self.schedule.topology))

    def save_picture(self, path: str | Path, *, lanes: bool = False) -> Path:
        """The task graph by level, or its schedule in `lanes`, as a file; its ending says which:
        `.svg`, `.png`, `.dot`, `.json` (`plot.graph_from_json` reads it back) or `.txt`.
        """
        path = Path(path)
        form = path.suffix.removeprefix(".").replace("txt", "text")
        picture = plot.exported(form, self.graph, self.schedule, self.trace, lanes=lanes)
        try:
            path.write_bytes(picture)
        except OSError as error:
            raise AvialError(f"cannot write {path}: {error.strerror or error}") from error
        return path

    def save_repro(self, path: str | Path, *, stage: str | None = None) -> Path:
        """Write a Python file that builds the program again, edits by hand included, and compares
        a stage (the last of MLIR by default) with what it is now; versions and commands are in
        it. It needs nothing but avial_lab; arrays of more than 200 kB together are left out.
        """
        path, stages = Path(path), self.stages
        if stage is not None and stage not in stages:
            raise AvialError(f"there is no stage '{stage}'", hint=f"there are: {', '.join(stages)}")
        text = reproducer(
            self.question,
            stages,
            self.arrays,
            storages=self.graph.storages,
            topology=self.schedule.topology,
            edits=self._edits,
            stage=stage or "llvm",
            name=self.name,
            file=path.name,
        )
        with written_whole(path) as file:
            file.write(text)
        return path

    @property
    def _edits(self) -> list[tuple[str, str]]:
        """The stages edited by hand and their texts, the first edit first."""
        if self.edited is None:
            return []
        before, stage, text = self.edited
        return [*before._edits, (stage, text)]

    def report(self, path: str | Path) -> Path:
        """Write everything about the program into one HTML file that needs nothing else.

        The file is there whole or not at all; AvialError where it cannot be written.
        """
        path, page = Path(path), plot.report_html(self)
        try:
            with written_whole(path) as file:
                file.write(page)
        except OSError as error:
            raise AvialError(f"cannot write {path}: {error.strerror or error}") from error
        return path

    @cached_property
    def spans(self) -> dict[str, CellSpan]:
        """Where each task or phase stands in its source."""
        return {task.name: task.span for task in self.graph.tasks if task.span is not None}


_ASSERTED = "an assertion does not hold: "


def check_timeout(timeout: object) -> None:
    """OptionError for what is no number of seconds."""
    if timeout is None or (isinstance(timeout, int | float) and 0 < timeout <= _MOST_TIMEOUT_S):
        return
    raise OptionError(f"timeout must be seconds, more than 0; got {shortened(repr(timeout), 60)}")


def _check_place(cluster: object, threads: object) -> None:
    """OptionError for where a run cannot be."""
    if not isinstance(cluster, OneRank | None) and not hasattr(cluster, "topology"):
        raise OptionError(
            f"a program runs on a cluster, not on {type(cluster).__name__}",
            hint="the number of ranks is an option of compile: ranks=2",
        )
    if not isinstance(threads, int | None):
        raise OptionError(f"threads must be a whole number; got {shortened(repr(threads), 60)}")


_MOST_TIMEOUT_S = 1e9
"""More than any run: `select` takes no more than some 10^9 s."""


def _step_in(journal: IO[bytes]) -> int:
    """The task that a reference run has begun last; -1 before the first."""
    journal.seek(0)
    step: int = _WORD.unpack(journal.read())[0]
    return step


def _type_of(array: np.ndarray) -> str:
    """`float32[20, 30]`."""
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


def _same_hardware(machine: Topology, other: Topology) -> bool:
    """Whether the nodes of both are as fast, however many ranks they have."""
    kinds, others = (
        {replace(node.hardware, ranks=1) for node in each.speeds.nodes} for each in (machine, other)
    )
    return kinds == others


def _modelled(demand: Demand | None, ceilings: Ceilings | None) -> str:
    if demand is None:
        return ""
    if ceilings is not None:
        return predicted(demand, ceilings)
    return f"{predicted(demand, estimated_ceilings(demand.element))} (estimated, one thread)"
