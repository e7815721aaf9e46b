"""What a user holds: a compiled program, bound to arrays, that runs, explains itself and can be
checked.

Text, arrays -> Program. The compiler works in its own process (`program/compiler_client.py`);
nothing here loads MLIR.
"""

from __future__ import annotations

import re
import shlex
import struct
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from avial_lab import plot
from avial_lab.artifact.explanation import Choice, Demand, Explanation, Nest, arithmetic_told
from avial_lab.artifact.stages import Inside, Stages
from avial_lab.compiler.backends.llvm import Binary
from avial_lab.compiler.frontends.notation.header import (
    argument_named,
    holds_schedule,
    place_of,
    program_names,
)
from avial_lab.compiler.options import (
    CompileOptions,
    Keywords,
    command_line,
    takes_options,
    tuning_key,
)
from avial_lab.compiler.requests import (
    Analyse,
    Analysis,
    Build,
    Built,
    Explore,
    Explored,
    Look,
    PrintBack,
    Referenced,
    Resume,
    RunReference,
    Scalar,
    Source,
)
from avial_lab.core.buffers import bind_arrays, checked_array, read_box
from avial_lab.core.cache import digest, spelled
from avial_lab.core.element_types import dtype_of_element
from avial_lab.core.errors import (
    AvialError,
    BindError,
    CellSpan,
    CheckError,
    CompilerCrash,
    RunError,
)
from avial_lab.core.files import written_whole
from avial_lab.core.regions import Box
from avial_lab.core.stored import fingerprint
from avial_lab.core.words import brief, count, format_seconds, listed
from avial_lab.machine.ceilings import Ceilings
from avial_lab.machine.roofline import estimated_ceilings, predicted
from avial_lab.machine.topology import Topology
from avial_lab.planning.graph_facts import graph_summary
from avial_lab.planning.schedule import Piece, Schedule
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.program.agreement import agreement, rounded_elsewhere
from avial_lab.program.cached_build import build
from avial_lab.program.compiler_client import shared_compiler
from avial_lab.program.edited_origins import carried_over
from avial_lab.program.reference_run import OneProcess
from avial_lab.program.reproducer import reproducer
from avial_lab.program.tuning import Search, checked_budget, remember, remembered
from avial_lab.runtime.launch import mpiexec
from avial_lab.runtime.launch.progress import Progress, Teller
from avial_lab.runtime.native.ownership import Plan
from avial_lab.runtime.rank.exchange import caller_arrays
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.outcome import DEATH_HINTS
from avial_lab.runtime.rank.output import Printed
from avial_lab.runtime.rank.parcels import as_bytes
from avial_lab.runtime.rank.threads import Threads
from avial_lab.trace import Trace
from avial_lab.trace.run_facts import time_label

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from avial_lab.runtime.launch.cluster import Cluster

_WORD = struct.Struct("=q")


class Namespace(Mapping[str, object]):
    """A user's namespace as a place to find arrays in: what the program does not name is never
    looked at.
    """

    def __init__(self, names: Mapping[str, object]) -> None:
        self._names = names

    def __getitem__(self, name: str) -> object:
        return self._names[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return brief(self, f"of {count(len(self), 'name')}")


@takes_options
def compile(
    text: str,
    *,
    arrays: Mapping[str, object] | None = None,
    scalars: Mapping[str, Scalar] | None = None,
    topology: Topology | None = None,
    function: str | None = None,
    cell: str = "<program>",
    name: str = "program",
    timeout: float | None = None,
    **options: Unpack[Keywords],
) -> Program:
    """Parse, analyse, place, lower and build `text`, a program in avial's notation or in MLIR.

    A text without avial operations is plain MLIR; `function` is the func.func that is meant, by
    default the only one. Its arrays go by the arguments' names, or by their positions ("0").

    `arrays` are the buffers by name; they are written in place when the program runs. A `Namespace`
    may hold anything: only what the program names is taken from it. The machine is `topology`, or
    `ranks` CPU ranks of this one, the last `gpus` of which drive an (emulated) GPU each; by default
    one, if some target asks for a GPU.

    The other keywords are fields of `options.CompileOptions`. `policy` places tasks (by default
    `levels`), `division` says how loops are divided (`block`, `cyclic`, `cyclic(N)` or `grid`):
    each is refused where the program has nothing of the kind. With `sync="levels"` all ranks wait
    for each other after each level of the graph, in a loop after each level of its body.

    `without` names optional passes that are left out (`catalogue.OPTIONAL`, or `all`), to see what
    they are worth; `sizes` gives others theirs in place of the machine's (`block-loops{terms=128
    block=48}`; `catalogue.SIZES`). Without either it is compiled as `Program.tune` found best here,
    if it has; `sizes="model"`: not. With `strict` every product and sum is rounded on its own and
    in the program's order; else products that are only added are fused with the sum. With `blas`
    products of matrices call the BLAS that each rank's machine has, on the threads of the run; a
    run is refused where there is none
    (`runtime/rank/blas.py`). With `dynamic` a plain function is compiled once for arrays of
    whatever size its text leaves open (`memref<?x?xf64>`) and for any numbers: for others only what
    its accesses are is looked at again. Where that cannot be, it is compiled for what it is given;
    `explain()` says why, and which passes did less for want of a size.

    Raises ParseError, VerifyError, BindError, ScheduleError or PassError for what is wrong with the
    program, and CompilerCrash where the compiler's process died. Warns with FaultWarning where one
    of our own passes failed, and the program was compiled without it.
    """
    source, bound = _source(text, cell, arrays, scalars or {}, function)
    chosen = CompileOptions.of(**options)
    question = Build(source, topology, chosen)
    choice = None if chosen.without or chosen.sizes else remembered(_tuning_key(question))
    if choice is not None:
        question = _with_choice(question, choice)
    built = build(question, timeout)
    arrays = bound | _result_arrays(source, bound, built)
    return Program(name, arrays, question, built, choice=choice)


def analyse(
    text: str,
    *,
    arrays: Mapping[str, object] | None = None,
    scalars: Mapping[str, Scalar] | None = None,
    function: str | None = None,
    cell: str = "<program>",
) -> Analysis:
    """The tasks of `text` and their dependencies, without placing or building anything."""
    source, _ = _source(text, cell, arrays, scalars or {}, function)
    return shared_compiler().ask(Analyse(source))


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
    def plan(self) -> Plan | None:
        """What a program of loops will move on its ranks; None for one of tasks alone, whose
        `schedule` says it.
        """
        return self.built.plan

    def explain(self, ceilings: Ceilings | None = None) -> Explanation:
        """What became of each loop and why, what each phase asks of the machine and what bounds it,
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
        verdicts = tuple(
            replace(verdict, model=_modelled(verdict.demand, ceilings))
            for verdict in self.built.verdicts
        )
        return Explanation(verdicts, told, self.choice, self.built.sizes, self.built.fault)

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
        remember(_tuning_key(self.question), choice)
        question = _with_choice(self.question, choice)
        return Program(self.name, self.arrays, question, build(question, None), choice=choice)

    def _check_tunable(self) -> None:
        if self.edited is not None:
            raise AvialError("a program with a stage edited by hand is not tuned")
        if self.plan is None or self.schedule.topology.gpus:
            raise AvialError("only loops on CPUs are tuned, and the program has others")
        if self.choice is None and self.question.options.is_chosen:
            raise AvialError(
                "the search starts from what the model chose, and this program was told its sizes "
                "or does without some pass",
                hint="compile it without either",
            )

    @property
    def nests(self) -> tuple[Nest, ...]:
        """Of a program of loops, each nest's first iterations and which of them need which."""
        return self._nests

    @cached_property
    def _nests(self) -> tuple[Nest, ...]:
        if not self.built.verdicts:
            return ()
        question = Explore(self.question.source, grid=self.question.options.division.grid)
        explored: Explored = shared_compiler().ask(question)
        names = {verdict.name for verdict in self.built.verdicts}
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

    def run(
        self,
        cluster: Cluster | OneProcess | None = None,
        *,
        check: bool = False,
        timeout: float | None = None,
        trace: bool = True,
        threads: int | None = None,
        oversubscribe: bool = False,
        progress: Progress | None = None,
    ) -> Trace:
        """Run the program on its arrays, in place, and return what happened when; without `trace`
        no times are taken, and it has no events.

        Without a cluster the ranks are started for this run alone by `mpiexec`. With `check` the
        reference runs first, on copies; a difference raises CheckError (the arrays then hold the
        run's values). In place of a cluster OneProcess runs the reference itself, on the arrays;
        its trace has neither ranks nor events.

        Each rank divides its loops among `threads` threads, by default as many as it has cores: a
        machine's, divided by the ranks there. More of them are refused without `oversubscribe`.

        `progress` is told what the ranks are doing while they do it, five times a second at most,
        and how it ended.
        """
        self.printed = Printed()
        if isinstance(cluster, OneProcess):
            return self._run_in_order(cluster, check=check, timeout=timeout)
        before = self._memory() if check else {}
        expected = self._referenced(before, timeout=timeout) if check else None
        options = Options(traced=trace, threads=Threads(threads, oversubscribe))
        teller = Teller(self.binary.manifest, progress)
        how: Any = {"timeout": timeout, "spans": self._spans, "options": options, "teller": teller}
        try:
            if cluster is None:
                taken = mpiexec.run(self.binary, self.arrays, **how)
            else:
                # Its client takes 0.3 s to load, which who has none does not wait for.
                from avial_lab.runtime.launch.cluster import run as run_on_cluster

                taken = run_on_cluster(self.binary, self.arrays, cluster, **how)
        finally:
            self.printed = teller.printed
        self.trace = taken
        if expected is not None:
            self.check_report = self._agreement(self.built, self.arrays, before, expected, timeout)
        return self.trace

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
        written = {access.storage for task in self.graph.tasks for access in task.writes}
        own = {buffer.storage for buffer in self.graph.buffers if buffer.temporary}
        caller.write_results(
            (Piece(0, storage.name, Box.whole(storage.shape)), as_bytes(after[storage.name]))
            for storage in self.graph.storages
            if storage.name in written - own
        )
        self.check_report = None
        unchecked = "; there is no other run to compare it with" if check else ""
        self.trace = Trace(0, (), place.label + unchecked)
        return self.trace

    def reference(self, *, timeout: float | None = None) -> Referenced:
        """What the program computes in program order in one process, on copies of the arrays as
        they are now.

        Raises CheckError where an index leaves its buffer, and RunError where a task ends the
        process or takes longer than `timeout` seconds.
        """
        return self._referenced(self._memory(), timeout=timeout)

    def _memory(self) -> dict[str, np.ndarray]:
        """Copies of the storages as they are now."""
        return {
            storage.name: read_box(self.arrays, storage, Box.whole(storage.shape))
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
        with tempfile.NamedTemporaryFile(prefix="avial-journal-") as journal:
            journal.write(_WORD.pack(-1))
            journal.flush()
            question = RunReference(self.question.source, data, journal.name, strict)
            try:
                result: Referenced = shared_compiler().ask(question, timeout_s=timeout)
            except CompilerCrash as crash:
                step: int = _WORD.unpack(Path(journal.name).read_bytes())[0]
                if step < 0:
                    raise
                raise self._reference_ended(step, crash) from None
        if result.violations:
            first = result.violations[0]
            raise CheckError(
                first.message, span=first.span, hint="the sequential reference run met it first"
            )
        return result

    def _reference_ended(self, step: int, crash: CompilerCrash) -> RunError:
        """The error for a reference run that did not come back from its task number `step`."""
        if "SIGFPE" in crash.message:
            hint = f"{DEATH_HINTS['SIGFPE']}; {crash.hint}"
            crash = CompilerCrash(crash.message, hint=hint)
        if not holds_schedule(self.text):  # it runs a plain function as one, whatever its tasks
            return RunError(f"the sequential reference run ended: {crash.message}", hint=crash.hint)
        task = self.graph.tasks[step]
        return RunError(
            f"the sequential reference run ended in task '{task.name}': {crash.message}",
            span=task.span,
            hint=crash.hint,
        )

    @property
    def command(self) -> str:
        """The line that makes it again from a file with its text, and runs it on random data."""
        return shlex.join(_command(self.name, self.question, self.schedule.topology))

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
        a stage (the last of MLIR by default) with what it is now; versions and commands stand in
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
    def _spans(self) -> dict[str, CellSpan]:
        return {task.name: task.span for task in self.graph.tasks if task.span is not None}


def _type_of(array: np.ndarray) -> str:
    """`float32[20, 30]`."""
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


def _command(name: str, question: Build, topology: Topology) -> list[str]:
    """The arguments of `avial-lab run` that ask this question."""
    source = question.source
    kind = "avial" if holds_schedule(source.text) else "mlir"
    stem = re.sub(r"[^\w.-]+", "-", name)
    options = replace(question.options, ranks=topology.ranks, gpus=topology.gpus)
    words = ["avial-lab", "run", f"{stem}.{kind}", *command_line(options)]
    if source.function is not None:
        words += ["--fn", source.function]
    for buffer in source.binding.buffers if source.binding else ():
        shape = "".join(f"{extent}x" for extent in buffer.shape)
        words += ["--in", f"{buffer.name}=random:{shape}{buffer.element}"]
    for number, value in source.scalars.items():
        words += ["-D", f"{number}={str(value).lower() if isinstance(value, bool) else value}"]
    return [*words, "--check"]


# From what the caller gives to a question ---------------------------------------------------------


def _source(
    text: str,
    cell: str,
    arrays: Mapping[str, object] | None,
    scalars: Mapping[str, Scalar],
    function: str | None,
) -> tuple[Source, dict[str, np.ndarray]]:
    _check_types(text, arrays)
    known = program_names(text, function=function)
    scalars = {argument_named(name, known): _number(name, value) for name, value in scalars.items()}
    if arrays is None:
        return Source(text, cell, None, scalars, function), {}
    given = {argument_named(name, known): value for name, value in arrays.items()}
    if isinstance(arrays, Namespace):
        # A number given by itself (-D n=3) is meant, whatever the namespace has under that name.
        names = [name for name in known if name in arrays and name not in scalars]
        given = {name: arrays[name] for name in names}
        for name in [
            name for name, value in given.items() if isinstance(value, Scalar | np.generic)
        ]:
            scalars[name] = _number(name, given.pop(name))
    twice = next((name for name in given if name in scalars), None)
    if twice is not None:
        raise BindError(f"'{twice}' is given as an array and as a number", hint="leave one out")
    bound = {name: _array(name, value, text, cell) for name, value in given.items()}
    return Source(text, cell, bind_arrays(bound), scalars, function), bound


def _result_arrays(
    source: Source, bound: Mapping[str, np.ndarray], built: Built
) -> dict[str, np.ndarray]:
    """Arrays for what a plain function returns (result0, …), which no caller can know of."""
    if holds_schedule(source.text):
        return {}
    known = program_names(source.text, function=source.function)
    return {
        buffer.name: np.zeros(buffer.shape, dtype_of_element(buffer.element))
        for buffer in built.schedule.graph.buffers
        if not (buffer.temporary or buffer.name in bound or buffer.name in known)
    }


def _check_types(text: object, arrays: object) -> None:
    """What would otherwise fail far from here, in words about something else."""
    if not isinstance(text, str):
        raise TypeError(f"a program is a str, not {type(text).__name__}")
    if not isinstance(arrays, Mapping | None):
        raise TypeError(f"arrays is a mapping of names to arrays, not {type(arrays).__name__}")


def _array(name: str, value: object, text: str, cell: str) -> np.ndarray:
    """An array that a program can work on; what is none is shown where the program names it."""
    try:
        return checked_array(name, value)
    except BindError as error:
        place = place_of(text, name)
        error.span = None if place is None else CellSpan(cell, text, *place)
        raise


def _number(name: str, value: object) -> Scalar:
    """A number of Python's own; NumPy's are taken for it."""
    plain = cast("Any", value).item() if isinstance(value, np.generic) else value
    if isinstance(plain, Scalar):
        return plain
    kind = type(cast("object", value)).__name__
    raise BindError(
        f"the number '{name}' is {kind}, not bool, int or float",
        hint=f"an array is passed in arrays={{'{name}': …}}" if kind == "ndarray" else None,
    )


def _modelled(demand: Demand | None, ceilings: Ceilings | None) -> str:
    if demand is None:
        return ""
    if ceilings is not None:
        return predicted(demand, ceilings)
    return f"{predicted(demand, estimated_ceilings(demand.element))} (estimated, one thread)"


# What tuning found --------------------------------------------------------------------------------


def _tuning_key(question: Build) -> str:
    """What the best choice hangs on: the program, its arrays' shapes and types and its whole
    numbers, its arithmetic, the compiler and the machine.
    """
    source = question.source
    numbers = {k: v for k, v in source.scalars.items() if not isinstance(v, float)}
    program = (source.text, source.function, source.binding, tuple(sorted(numbers.items())))
    return digest(
        "tuned",
        repr(fingerprint()),
        spelled(program),
        tuning_key(question.options),
    )


def _with_choice(question: Build, choice: Choice) -> Build:
    options = question.options.changed(without=choice.without, sizes=choice.sizes)
    return replace(question, options=options)
