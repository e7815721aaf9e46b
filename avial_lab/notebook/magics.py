"""The magics: thin doors to public functions.

A line of options (and a cell) -> one call of `avial_lab.compile`, `Program.run`, `Cluster.start`
…, and its result shown.
"""

from __future__ import annotations

import argparse
import inspect
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import MagicArgumentParser, argument, magic_arguments
from IPython.display import HTML, display
from traitlets import Float

import avial_lab
from avial_lab.benchmarks.kernel_suite import SIZES, kernel_program, kernel_sentences
from avial_lab.compiler.frontends.onnx.losses import LOSSES
from avial_lab.compiler.options import arguments, given
from avial_lab.core.command_line import NearestWords, nearest
from avial_lab.core.errors import AvialError, CheckError, InternalError
from avial_lab.core.words import format_bytes
from avial_lab.machine.cpu import this_cpu
from avial_lab.machine.topologies import topology_called
from avial_lab.machine.topology import Topology
from avial_lab.notebook.background import BackgroundStart
from avial_lab.notebook.clusters import (
    StartOptions,
    cluster_list,
    cluster_status,
    connect_cluster,
    leave_at_restart,
    start_cluster,
)
from avial_lab.notebook.display import PARTS, Note, View, kernel_table, program_table
from avial_lab.notebook.live import compiling, watched
from avial_lab.notebook.python_cells import arguments as python_arguments
from avial_lab.notebook.python_cells import define, is_python
from avial_lab.notebook.stepper import Stepping
from avial_lab.planning.placement import is_by_hand
from avial_lab.planning.planned import best_of, plan_by_each, policy_table
from avial_lab.planning.policies import Policy
from avial_lab.planning.scaling import powers
from avial_lab.planning.what_if import (
    WhatIf,
    what_if_divided,
    what_if_of_loops,
    what_if_placed,
)
from avial_lab.plot.views.topology import topology_figure
from avial_lab.program.compilation import Namespace
from avial_lab.program.divisions import divisible_model, divisible_program
from avial_lab.program.model_search import search
from avial_lab.program.models import Model
from avial_lab.program.program import Program
from avial_lab.program.session import compiled_so_far, made_since, use_cluster
from avial_lab.program.session import machine as session_machine
from avial_lab.program.tuning import TUNE
from avial_lab.program.where import where_arguments, where_given
from avial_lab.runtime.launch.processes import crowd_warning
from avial_lab.runtime.launch.registry import clusters, stop_clusters
from avial_lab.runtime.rank.threads import OVERSUBSCRIBE, THREADS

DEFINE = "a number of the program, from a Python expression: -D n=len(a)"
SHOW = f"what to show: some of {','.join(PARTS)}, or none; by default all that apply"
NO_TRACE = "record no times during the run"
EXPECT = "the cell succeeds only if it fails with an error that contains TEXT"


def _compile_options(magic: Any) -> Any:  # noqa: ANN401 - IPython's, which has no types
    """Declare the options of `compile`, as `@argument` does one."""
    for flags, how in reversed(list(arguments())):
        magic = argument(*flags, **how)(magic)
    return magic


class _LineParser(NearestWords, MagicArgumentParser):  # pyright: ignore[reportIncompatibleMethodOverride] - as there
    """IPython's, which raises UsageError."""


class _arguments(magic_arguments):  # noqa: N801 - a decorator
    """IPython's, which makes a parser of its own kind and takes no other."""

    def __call__(self, func: Any) -> Any:  # noqa: ANN401 - IPython's, which has no types
        made = super().__call__(func)
        made.parser.__class__ = _LineParser
        return made


@magics_class
class AvialMagics(Magics):
    """`%%avial` and `%avial`; `programs` are the session's by name, `cluster` the one that was
    started here.

    `%config AvialMagics.timeout = 60` gives every run of a lesson so many seconds.
    """

    timeout = Float(
        0.0, help="Time limit of a run in seconds if --timeout is not given; 0: none"
    ).tag(config=True)

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._shell = shell
        self.programs: dict[str, Program] = {}
        self._since = compiled_so_far()  # what others of this process compiled is not listed
        self._drafts: dict[str, dict[str, str]] = {}  # typed in a stepper, by program and stage
        self._session_cluster: avial_lab.Cluster | avial_lab.OneProcess | None = None
        self.starting: BackgroundStart | None = None  # the last one; over, or still going on
        self.tell: Callable[[], None] = lambda: None  # they have changed; from any thread
        leave_at_restart(shell, lambda: self.cluster)

    @property
    def cluster(self) -> avial_lab.Cluster | avial_lab.OneProcess | None:
        return self._session_cluster

    @cluster.setter
    def cluster(self, cluster: avial_lab.Cluster | avial_lab.OneProcess | None) -> None:
        self._session_cluster = cluster
        use_cluster(cluster)  # what Python's `program.run()` takes

    @_arguments()
    @argument("-o", "--out", metavar="NAME", help="bind the program to this Python variable")
    @argument("--name", help="its name in %%avial list; by default NAME of --out, or cellN")
    @_compile_options
    @argument("--tune", type=float, metavar="SECONDS", help=TUNE)
    @argument("-D", "--define", action="append", default=[], metavar="NAME=EXPR", help=DEFINE)
    @argument("--fn", metavar="NAME", help="the function to run, if there are several")
    @argument("--lang", choices=["c"], help="the cell is C: a function of loops on arrays")
    @argument("--run", action="store_true", help="run the program; its arrays change in place")
    @argument(
        "--check",
        action="store_true",
        help="run the program and compare with the sequential reference",
    )
    @argument("--timeout", type=float, metavar="SECONDS", help="stop the run after this time")
    @argument("--threads", type=int, metavar="N", help=THREADS)
    @argument("--oversubscribe", action="store_true", help=OVERSUBSCRIBE)
    @argument("--no-trace", action="store_true", help=NO_TRACE)
    @argument("--show", metavar="LIST", help=SHOW)
    @argument("--expect-error", nargs="?", const="", metavar="TEXT", help=EXPECT)
    @argument("-q", "--quiet", action="store_true", help="show nothing")
    @line_cell_magic
    def avial(self, line: str, cell: str | None = None) -> None:
        """Compile the program in the cell, show how it is split and scheduled, and run it.

        The program's buffers are the NumPy arrays of the same name. A cell without avial's
        operations is a plain function of MLIR; its arguments are variables in the same way. A cell
        that begins with `def` or a decorator is a function in Python; with --lang=c it is one in C.

        A value that begins with a dash is written `--opt=-value`; one with blanks in quotes:
        `--expect-error="no device"`.

        As a line magic:

          %avial [list]                        the programs of this session
          %avial show [NAME] [--show=LIST]     draw one again
          %avial run [NAME] [--check] [--timeout=S] [--threads=N] [--no-trace] [-q]
          %avial stages [NAME [STAGE]]          its lowering, stage by stage
          %avial step [NAME] [--stage=S]        step through it, compare, edit a stage
          %avial report [NAME] FILE.html        everything about it in one page
          %avial plan [NAME] [--topology=T] [--policy=P] [--bandwidth=X] [--latency=X]
                                               its run, predicted here or on T (a file, or
                                               preset:laptop …), if links were X times as fast
          %avial topology [T]                   a machine: drawn, changed in the page, saved; then
                                               plan and simulate() take it
          %avial parallel [NAME] [--devices=N] [--loss=mse] [--of=V] [--optimizer=R] [--memory=GB]
                          [--topology=T]       ways to divide a model, or a function on tensors:
                                               a table and a cloud; pick one, see it, run it
          %avial load                          the kernels there are
          %avial load KERNEL [--size=S] [-D n=N] [--element=f64] [--seed=N]
                                               one of our kernels, in a new cell, and its arrays
                                               (--arrays: these alone)
          %avial doctor                        what is installed here, and whether it works
          %avial help                          this
          %avial cluster start [--cpu=N] [--gpu=N] [--profile=P] [--or-reference] [--background]
          %avial cluster start --hosts=A,B [--ppn=N] | --slurm -N=N [--ppn=N] [--time=T] [--keep=H]
          %avial cluster status | stop [--all] | list | connect [ID]
                                               list: all on this machine; connect: to one that a
                                               restart left, or a kernel that is gone
        """
        if cell is None:
            self._line(line)
            return
        options = _parse(self.avial.parser, line)
        self._settle()
        if options.expect_error is not None:
            self._expect_error(options, cell)
            return
        try:
            program = self._compile(options, cell)
        except AvialError:
            self._tell_of_the_old(options.out)
            raise
        self._show(program, options)

    def _tell_of_the_old(self, name: str | None) -> None:
        """After a cell that failed: its variable still holds what an earlier one put there."""
        old = self._shell.user_ns.get(name)
        if isinstance(old, Program):
            display(Note(f"{name} still holds the program of {old.cell}"))

    def _compile(self, options: argparse.Namespace, cell: str) -> Program:
        """One call of `avial_lab.compile`, and of `Program.run` where asked for."""
        parts_of(options.show)  # a wrong list is said before the work
        number, magic_line = _running(self._shell)
        name = options.name or options.out or f"cell{number}"
        topology = self.cluster.topology if self.cluster and options.ranks is None else None
        if options.lang is not None or is_python(cell):
            return self._compile_function(options, cell, magic_line, f"In [{number}]")
        with compiling(name, self._shell, quiet=options.quiet) as progress:
            program = avial_lab.compile(
                "\n" * magic_line + cell,  # so that lines are numbered as in the editor
                arrays=Namespace(self._shell.user_ns),
                scalars=self._scalars(options.define),
                topology=topology,
                function=options.fn,
                cell=f"In [{number}]",
                name=name,
                progress=progress,
                **given(options),
            )
        program = self._known(program, options)
        if options.run or options.check:
            self._go(program, options)
        return program

    def _known(self, program: Program, options: argparse.Namespace) -> Program:
        """Tuned where that is asked for, and among the session's programs."""
        if options.tune is not None:
            threads, more = options.threads, options.oversubscribe
            program = program.tune(options.tune, threads=threads, oversubscribe=more)
        self.programs.pop(program.name, None)  # so that the latest is last
        self.programs[program.name] = program
        if options.out:
            self._shell.user_ns[_identifier(options.out)] = program
        return program

    def _compile_function(
        self, options: argparse.Namespace, cell: str, before: int, place: str
    ) -> Program:
        """The cell's function in Python or C, compiled for the variables of its parameters' names.
        before: lines above it in the editor.
        """
        chosen = given(options)
        if self.cluster and options.ranks is None:
            chosen["ranks"] = self.cluster.topology.ranks
        if options.lang == "c":  # whose reader takes a tenth of a second to load
            from avial_lab.compiler.frontends.c.functions import c_function
            from avial_lab.program.c_functions import CProgram

            found = c_function("\n" * before + cell, place, options.fn)
            function = CProgram(found, chosen)
            self._shell.user_ns[function.py_func.__name__] = function
        else:
            function = define("#\n" * before + cell, self._shell, chosen, name=place)
        names = self._shell.user_ns
        program = function.compile(
            **python_arguments(function, names, self._scalars(options.define))
        )
        program = self._known(
            replace(program, name=options.name or options.out or program.name), options
        )
        if options.run or options.check:
            with function.errors(program):
                self._go(program, options)
        return program

    def _go(self, program: Program, options: argparse.Namespace) -> None:
        """One call of `Program.run`, shown as it goes."""
        timeout = options.timeout or self.timeout or None
        run = partial(
            program.run, self.cluster, check=options.check, timeout=timeout,
            trace=not options.no_trace, threads=options.threads,
            oversubscribe=options.oversubscribe,
        )  # fmt: skip
        if options.quiet:
            run()
            return
        own_ranks = 0 if self.cluster else program.binary.manifest.ranks
        if crowded := crowd_warning(own_ranks):
            display(Note(crowded))
        with watched(program, self._shell) as progress:
            run(progress=progress)
        if options.check and not parts_of(getattr(options, "show", None)):
            display(Note(f"{program.name}: {program.status}"))

    def _expect_error(self, options: argparse.Namespace, cell: str) -> None:
        """The cell must fail, and so."""
        try:
            self._compile(options, cell)
        except InternalError:
            raise  # an internal fault is never an expected error
        except AvialError as error:
            if options.expect_error not in str(error):
                raise CheckError(
                    f"the cell failed, but its error does not contain '{options.expect_error}':\n"
                    f"{error}"
                ) from error
            if not options.quiet:
                display(Note("The cell fails, as expected:", f"{type(error).__name__}: {error}"))
            return
        raise CheckError("the cell was expected to fail, and did not")

    def _scalars(self, definitions: Iterable[str]) -> dict[str, Any]:
        pairs = [definition.partition("=") for definition in definitions]
        wrong = next(
            (name for name, _, value in pairs if not name.isidentifier() or not value), None
        )
        if wrong is not None:
            raise UsageError(f"-D takes NAME=EXPR, not '{wrong}'")
        return {name: self._shell.ev(expression) for name, _, expression in pairs}

    def _show(self, program: Program, options: argparse.Namespace) -> None:
        parts = parts_of(options.show)
        if parts and not options.quiet:
            display(View(program, parts))

    def _line(self, line: str) -> None:
        """`%avial COMMAND …`."""
        if set(line.split()) & {"-h", "--help"}:
            line = "help"
        options = _parse(line_parser(), line)
        commands = {
            "list": self._list,
            "show": self._show_again,
            "run": self._run,
            "stages": self._stages,
            "step": self._step,
            "report": self._report,
            "plan": self._plan,
            "topology": self._topology,
            "parallel": self._parallel,
            "load": self._load,
            "doctor": self._doctor,
            "help": self._help,
            "cluster": self._cluster,
        }
        commands[options.command or "list"](options)

    def _list(self, _: argparse.Namespace) -> None:
        there = {id(program): program for program in self.known_programs().values()}
        display(program_table(tuple(there.values())))

    def _help(self, _: argparse.Namespace) -> None:
        text = inspect.cleandoc(self.avial.__doc__ or "").removeprefix("::").lstrip("\n")
        display(Note("%avial and %%avial", text))

    def _doctor(self, _: argparse.Namespace) -> None:
        """In a process of its own, which tries MPI and the compiler."""
        subprocess.run([sys.executable, "-m", "avial_lab", "doctor"], check=False)

    def _show_again(self, options: argparse.Namespace) -> None:
        display(View(self._program(options.name), parts_of(options.show)))

    def _run(self, options: argparse.Namespace) -> None:
        self._settle()
        program = self._program(options.name)
        self._tell_of_other_arrays(program)
        self._go(program, options)
        if not options.quiet:
            display(View(program, ("timeline",)))

    def _tell_of_other_arrays(self, program: Program) -> None:
        """A program works on the arrays that it was compiled with, whatever has their names now."""
        now = self._shell.user_ns
        other = [
            name
            for name, array in program.arrays.items()
            if isinstance(now.get(name), np.ndarray)
            and array.size
            and not np.may_share_memory(now[name], array)
        ]
        if other:
            names = " and ".join(other)
            words = f"{program.name} uses the arrays it was compiled with; {names} now"
            verb = "names another array" if len(other) == 1 else "name other arrays"
            display(Note(f"{words} {verb}: run the cell again to compile for the new"))

    def _stages(self, options: argparse.Namespace) -> None:
        program = self._program(options.name)
        if options.stage is None:
            display(View(program, ("stages",)))
            return
        display(program.stages[_known("stage", options.stage, program.stages)])

    def _step(self, options: argparse.Namespace) -> None:
        program = self._program(options.name)
        if options.stage is not None:
            _known("stage", options.stage, program.stages)
        if getattr(self._shell, "kernel", None) is None:  # a terminal: it has no widgets
            display(View(program, ("stages",), explored=False))
            return
        drafts = self._drafts.setdefault(program.name, {})
        stepping = Stepping(program, drafts=drafts, on_version=self._keep)
        display(stepping.widget(options.stage))

    def _keep(self, program: Program) -> None:
        """A program gone on from a stage edited by hand: under a name of its own, and not the
        latest, which is what a bare `%avial run` runs.
        """
        names = (f"{program.name}-{number}" for number in count(1))
        program.name = next(name for name in names if name not in self.programs)
        self.programs = {program.name: program, **self.programs}

    def _report(self, options: argparse.Namespace) -> None:
        path = self._program(options.name).report(options.file)
        display(Note(f"Written: {path} ({format_bytes(path.stat().st_size)})"))

    def _plan(self, options: argparse.Namespace) -> None:
        """Policies in one table, or ranks; and the simulated run."""
        program = self._program(options.name)
        here = program.schedule.topology
        machine = session_machine() or here
        if options.topology is not None:
            machine = topology_called(options.topology)
        if (options.bandwidth, options.latency) != (1.0, 1.0):
            machine = machine.with_links(bandwidth=options.bandwidth, latency=options.latency)
        if program.of_loops:
            scaling = program.scaling(powers(machine.ranks, base=4), topology=machine)
            display(scaling)
            display(scaling.last)
            self._sliders(
                what_if_of_loops(program.predicted_on_changes(machine), machine), program.name
            )
            return
        if is_by_hand(program.schedule) and options.policy is None:
            display(program.predicted(machine))
            divided = what_if_divided(program.predicted, program.schedule, machine)
            self._sliders(divided, program.name)
            return
        costs = program.costs(None if machine == here else machine)
        policies = () if options.policy is None else (Policy(options.policy),)
        found = plan_by_each(program.graph, machine, policies, costs=costs)
        title = f"{program.name} on {machine.speeds} ({machine.ranks:,} ranks), simulated"
        display(policy_table(found, title))
        best = best_of(found)
        display(best)
        self._sliders(what_if_placed(best), program.name)

    def _topology(self, options: argparse.Namespace) -> None:
        """The machine named; else the one that was changed, the latest program's, or this one."""
        if options.machine is not None:
            machine = topology_called(options.machine)
        elif (edited := session_machine()) is not None:
            machine = edited
        elif self.known_programs():
            machine = self._program(None).schedule.topology
        else:
            machine = Topology.local(this_cpu().cores)
        try:
            from avial_lab.notebook.topology_widget import TopologyWidget
        except ImportError:  # (without anywidget there is the picture)
            display(HTML(topology_figure(machine)))
            return
        display(TopologyWidget(machine))

    def _parallel(self, options: argparse.Namespace) -> None:
        """The ways to divide a model, or a program on tensors, over ranks."""
        machine = session_machine()
        if options.topology is not None:
            machine = topology_called(options.topology)
        elif machine is None:
            devices = options.devices or (self.cluster.topology.ranks if self.cluster else 4)
            machine = Topology.local(devices)
        machine = machine if options.devices is None else machine.first(options.devices)
        models = {k: v for k, v in self._shell.user_ns.items() if isinstance(v, Model)}
        if options.name in models or (options.name is None and models):
            model = models[options.name or next(reversed(models))]
            how = {"loss": options.loss or "", "of": options.of, "optimizer": options.optimizer}
            asked = divisible_model(model, machine, **how)
        else:
            if options.name is not None and not self.known_programs():
                _known("model", options.name, models)
            asked = divisible_program(self._program(options.name), machine)
        room = options.memory and options.memory * 1e9
        found = search(asked.source, machine, memory_bytes=room, simulated=options.simulate)
        try:
            from avial_lab.notebook.parallel_widget import ParallelWidget
        except ImportError:  # (without anywidget there is the table)
            display(Note(f"{asked.name} on {machine.speeds.label}", str(found)))
            return
        display(ParallelWidget(asked, found))

    def _sliders(self, asked: WhatIf, name: str) -> None:
        """Where the page can show them."""
        try:
            from avial_lab.notebook.what_if_widget import WhatIfWidget
        except ImportError:  # (without anywidget the tables and the picture are there)
            return
        display(WhatIfWidget(asked, f"What if? {name} on {asked.machine.speeds.label}, simulated"))

    def _load(self, options: argparse.Namespace) -> None:
        """A kernel's text in the next cell, its arrays and numbers among the variables."""
        if options.kernel is None:
            display(kernel_table(kernel_sentences()))
            return
        kernel = kernel_program(
            options.kernel,
            size=options.size,
            element=options.element,
            numbers=self._scalars(options.define),
            seed=options.seed,
        )
        self._shell.user_ns.update(kernel.arrays | kernel.scalars)
        if not options.arrays:
            self._shell.set_next_input(f"%%avial --check\n{kernel.text}")
        display(Note(kernel.note))

    def _cluster(self, options: argparse.Namespace) -> None:
        if options.action == "list":
            display(cluster_list())
            return
        self._settle()
        if options.action == "start":
            self.stop_cluster()
            wanted = _start_options(options)
            if options.background:
                self.start_in_background(wanted)
            else:
                self.cluster = start_cluster(wanted)
            return
        if options.action == "connect":
            connected = connect_cluster(options.id)
            self.stop_cluster()
            self.cluster = connected
        if options.action == "stop":
            self._stop(every=options.all)
            return
        display(cluster_status(self.cluster))

    def _stop(self, *, every: bool) -> None:
        mine = self.cluster is not None
        self.stop_cluster()
        others = clusters() if every else ()
        stop_clusters(others)
        stopped = mine + len(others)
        words = {0: "no cluster is running", 1: "the cluster is stopped"}
        display(Note(words.get(stopped, f"{stopped} clusters are stopped")))

    def start_in_background(self, options: StartOptions) -> None:
        """A cluster, while the notebook goes on."""

        def keep(cluster: avial_lab.Cluster | avial_lab.OneProcess) -> None:
            self.cluster = cluster

        # The panel may come later.
        self.starting = BackgroundStart(options, keep=keep, tell=lambda: self.tell())

    def _settle(self) -> None:
        """What needs a cluster waits for one that is being started."""
        if self.starting is not None:
            self.starting.wait()

    def stop_cluster(self) -> None:
        if self.cluster is not None:
            self.cluster.stop()
        self.cluster = None

    def known_programs(self) -> dict[str, Program]:
        """By name: those that Python compiled, those in variables, then those of this session's
        cells, the latest last.
        """
        variables = self._shell.user_ns.items()
        held = {key: value for key, value in variables if isinstance(value, Program)}
        known = {id(program) for program in (*held.values(), *self.programs.values())}
        others = {each.name: each for each in made_since(self._since) if id(each) not in known}
        return {**others, **held, **self.programs}

    def _program(self, name: str | None) -> Program:
        """The one called `name`: of this session, or in a variable; by default the latest."""
        everything = self.known_programs()
        if not everything:
            hint = "write a program in a cell that begins with %%avial"
            raise AvialError("there is no program yet", hint=hint)
        latest = next(reversed(everything))
        return everything[latest if name is None else _known("program", name, everything)]


def _running(shell: InteractiveShell) -> tuple[int, int]:
    """The N of `In [N]` of the cell that runs, and the line of its magic: IPython takes away
    blank lines before it, and the editor counts them.
    """
    result = shell.displayhook.exec_result
    if result is None or result.execution_count is None:
        return shell.execution_count, 1
    text = (result.info.raw_cell if result.info else None) or ""
    blank = text[: len(text) - len(text.lstrip())]
    # (`shell.execution_count` is the next cell's already in IPython 9, if there is a history.)
    return result.execution_count, 1 + blank.count("\n")


def parts_of(show: str | None) -> tuple[str, ...]:
    """`dag,stages` -> ("dag", "stages"); all by default, () for `none`."""
    if show is None:
        return PARTS
    words = [word.strip() for word in show.split(",")]
    return () if words == ["none"] else tuple(_known("part", word, PARTS) for word in words)


def _known(noun: str, name: str, names: Iterable[str]) -> str:
    """`name`, which is one of `names`; else an error that offers the neighbour."""
    choices = list(names)
    if name in choices:
        return name
    near = nearest(name, choices)
    hint = f"did you mean '{near}'?" if near else f"there are {', '.join(choices)}"
    raise AvialError(f"there is no {noun} '{name}'", hint=hint)


def _start_options(options: argparse.Namespace) -> StartOptions:
    """As many engines of each kind as were asked for and no others; two and one by default."""
    where = where_given(options)
    cpu, gpu = options.cpu, options.gpu
    if cpu is None and gpu is None and where is None:
        cpu, gpu = 2, 1
    return StartOptions(
        1 if cpu is None else cpu, gpu or 0, options.profile, options.or_reference, where,
        options.keep * 3600 if options.keep else None,
    )  # fmt: skip


def _identifier(name: str) -> str:
    if not name.isidentifier():
        raise UsageError(f"--out takes the name of a variable, not '{name}'")
    return name


def _parse(parser: argparse.ArgumentParser, line: str) -> argparse.Namespace:
    """Quotes as in a shell, so that `--opt="two words"` is one value."""
    try:
        return parser.parse_args(shlex.split(line))
    except ValueError as error:
        raise UsageError(f"{error}: {line}") from None


def line_parser() -> argparse.ArgumentParser:
    """What reads a line `%avial …`, and what is offered while it is typed."""
    parser = _LineParser(prog="%avial")
    commands = parser.add_subparsers(dest="command")
    for name in ("list", "doctor", "help"):
        commands.add_parser(name)
    show = commands.add_parser("show")
    show.add_argument("--show", metavar="LIST")
    run = commands.add_parser("run")
    run.add_argument("--check", action="store_true")
    run.add_argument("--timeout", type=float)
    run.add_argument("--threads", type=int, metavar="N", help=THREADS)
    run.add_argument("--oversubscribe", action="store_true", help=OVERSUBSCRIBE)
    run.add_argument("--no-trace", action="store_true")
    run.add_argument("-q", "--quiet", action="store_true")
    stages = commands.add_parser("stages")
    step = commands.add_parser("step")
    step.add_argument("--stage", metavar="S")
    report = commands.add_parser("report")
    for command in (show, run, stages, step, report):
        command.add_argument("name", nargs="?")
    stages.add_argument("stage", nargs="?")
    report.add_argument("file", metavar="FILE.html")
    plan = commands.add_parser("plan")
    plan.add_argument("name", nargs="?")
    plan.add_argument("--topology", metavar="T", help="a file, or preset:NAME")
    plan.add_argument("--policy", choices=[each.value for each in Policy])
    for what, times in (("--bandwidth", "as fast"), ("--latency", "as long to begin")):
        plan.add_argument(
            what, type=float, default=1.0, metavar="X", help=f"what if links took X times {times}"
        )
    topology = commands.add_parser("topology")
    topology.add_argument("machine", nargs="?", metavar="T")
    parallel = commands.add_parser("parallel")
    parallel.add_argument("name", nargs="?")
    parallel.add_argument("--devices", type=int, metavar="N")
    parallel.add_argument("--topology", metavar="T", help="a file, or preset:NAME")
    parallel.add_argument("--loss", choices=LOSSES)
    parallel.add_argument("--of", default="", metavar="VALUE")
    parallel.add_argument("--optimizer", default="sgd", metavar="RULE")
    parallel.add_argument("--memory", type=float, metavar="GB")
    parallel.add_argument("--simulate", type=int, default=3, metavar="N")
    load = commands.add_parser("load")
    load.add_argument("kernel", nargs="?")
    load.add_argument("--size", type=str.upper, choices=SIZES, default="SMALL")
    load.add_argument("--element", metavar="TYPE")
    load.add_argument("-D", "--define", action="append", default=[], metavar="NAME=EXPR")
    load.add_argument("--seed", type=int, default=0)
    load.add_argument("--arrays", action="store_true", help="its arrays and numbers, no cell")
    cluster = commands.add_parser("cluster")
    cluster.add_argument("action", choices=("start", "status", "stop", "list", "connect"))
    cluster.add_argument("id", nargs="?", default="")
    cluster.add_argument("--all", action="store_true")
    cluster.add_argument("-n", "--cpu", type=int, metavar="N")
    cluster.add_argument("--gpu", type=int, metavar="N")
    cluster.add_argument("--profile")
    cluster.add_argument("--or-reference", action="store_true")
    cluster.add_argument("--background", action="store_true")
    cluster.add_argument("--keep", type=float, metavar="HOURS")
    where_arguments(cluster)
    return parser
