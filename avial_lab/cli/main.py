"""The command line: `avial-lab run | graph | lower | demo | bench | doctor | export | …`.

Arguments -> text, files and an exit code. 0 only where the result is there (and equal to the
reference, with --check); errors go to stderr.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from avial_lab import plot
from avial_lab.benchmarks.command import race_arguments, race_command
from avial_lab.benchmarks.kernel_suite import SIZES, KernelProgram, is_kernel, kernel_program
from avial_lab.benchmarks.results_page import page_arguments, page_command
from avial_lab.benchmarks.worth_command import worth_arguments, worth_command
from avial_lab.compiler.frontends.notation.header import holds_schedule
from avial_lab.compiler.options import arguments, given
from avial_lab.compiler.requests import Analysis
from avial_lab.core.errors import AvialError, BindError, CheckError
from avial_lab.program import program
from avial_lab.program.inputs import (
    RandomArguments,
    allocate_missing,
    parse_inputs,
    parse_numbers,
    parse_outputs,
    random_arguments,
    save_array,
)
from avial_lab.program.program import Program
from avial_lab.program.tuning import TUNE
from avial_lab.runtime.rank.threads import OVERSUBSCRIBE, THREADS


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    options.given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return options.command(options)
    except AvialError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader (`head`, a pager) has seen enough; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def _show_warning(
    message: Warning | str, category: type[Warning], *_place: object, **_more: object
) -> None:
    """Without the line of ours that it comes from."""
    print(f"{category.__name__}: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="avial-lab", description="Distributed heterogeneous programs."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="build a program and run it on MPI ranks")
    _program_arguments(run)
    _compile_options(run)
    run.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="save an array after the run",
    )
    run.add_argument("--check", action="store_true", help="compare with the sequential reference")
    run.add_argument(
        "--report", type=Path, metavar="FILE.html", help="write everything into one page"
    )
    run.add_argument(
        "--timeout", type=_seconds, metavar="S", help="stop the ranks after so many seconds"
    )
    run.add_argument("--tune", type=float, metavar="S", help=TUNE)
    run.add_argument("--threads", type=int, metavar="N", help=THREADS)
    run.add_argument("--oversubscribe", action="store_true", help=OVERSUBSCRIBE)
    traced = run.add_mutually_exclusive_group()
    traced.add_argument(
        "--trace",
        type=Path,
        metavar="FILE.json",
        help="write what happened when, for ui.perfetto.dev or chrome://tracing",
    )
    traced.add_argument("--no-trace", action="store_true", help="take no times in the run")
    run.add_argument("--json", action="store_true", help="print the facts of the run as JSON")
    run.set_defaults(command=_run)

    graph = commands.add_parser("graph", help="show tasks, dependencies and levels")
    _program_arguments(graph)
    graph.add_argument("--format", choices=plot.FORMATS, help="default: what FILE ends in, or text")
    graph.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it there")
    graph.add_argument("--lanes", action="store_true", help="the schedule, device by device")
    _compile_options(graph)
    graph.set_defaults(command=_graph)

    lower = commands.add_parser("lower", help="show the program after a stage of the lowering")
    _program_arguments(lower)
    _compile_options(lower)
    lower.add_argument(
        "--to", default="mpi", metavar="STAGE", help="avial, mpi, gpu, llvm, llvmir, object, ptx …"
    )
    lower.add_argument(
        "-o", "--output", type=Path, help="write it there; with --to object, the shared object"
    )
    lower.set_defaults(command=_lower)

    show = commands.add_parser("demo", help="the deck's program, from text to a cluster")
    show.add_argument("--report", type=Path, default=Path("demo.html"), metavar="FILE.html")
    show.add_argument("--picture", type=Path, metavar="FILE.svg", help="graph and schedule")
    show.set_defaults(command=_demo)

    bench = commands.add_parser("bench", help="race avial_lab against its peers")
    bench.add_argument(
        "--self", action="store_true", dest="only_self", help="compiler, dispatch and messages"
    )
    page_arguments(bench)
    worth_arguments(bench)
    race_arguments(bench)
    bench.set_defaults(command=_bench)

    check = commands.add_parser("doctor", help="what is installed, and whether it works together")
    check.add_argument("--json", action="store_true")
    check.set_defaults(command=_doctor)

    passes = commands.add_parser("passes", help="which passes there are, in which order, and why")
    passes.add_argument(
        "name", nargs="?", metavar="PASS", help="this one, with the IR before and after it"
    )
    passes.add_argument("--json", action="store_true", help="print the rows as JSON")
    passes.set_defaults(command=_passes)

    cluster = commands.add_parser("cluster", help="the clusters on this machine; end some of them")
    cluster.add_argument("action", choices=("list", "stop"))
    cluster.add_argument("id", nargs="?", default="")
    cluster.add_argument("--all", action="store_true", help="also those that have an owner")
    cluster.set_defaults(command=_cluster)

    kernel = commands.add_parser("kernel", help="a kernel for Jupyter that has all this loaded")
    _kernel_arguments(kernel)

    export = commands.add_parser("export", help="a notebook as one page that needs nothing else")
    export.add_argument("notebook", type=Path, metavar="NOTEBOOK.ipynb")
    export.add_argument("-o", "--output", type=Path, metavar="FILE")
    export.add_argument(
        "--to", choices=("html", "ipynb"), default="html", help="ipynb: a copy to work on"
    )
    export.add_argument(
        "--solutions",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="with the cells tagged `solution`, folded; by default they are left out",
    )
    export.add_argument("--execute", action="store_true", help="run it first")
    export.set_defaults(command=_export)

    lab = commands.add_parser("lab", help="open JupyterLab on the notebooks")
    lab.add_argument("rest", nargs=argparse.REMAINDER, help="arguments for jupyter lab")
    lab.set_defaults(command=_lab)
    return parser


def _kernel_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="install|remove")
    install = actions.add_parser("install", help="with the extension loaded, and a cluster")
    where = install.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="for this user, the default")
    where.add_argument("--sys-prefix", action="store_true", help="for this Python's environment")
    where.add_argument("--prefix", help="in PREFIX/share/jupyter/kernels")
    install.add_argument("--cpu", type=int, default=2, metavar="N", help="engines for CPU work")
    install.add_argument("--gpu", type=int, default=1, metavar="N", help="engines with a GPU")
    install.set_defaults(command=_install_kernel)
    remove = actions.add_parser("remove", help="take it away again")
    remove.set_defaults(command=_remove_kernel)
    for action in (install, remove):
        action.add_argument("--name", default="avial-mpi", help="by default avial-mpi")


def _program_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "program",
        type=Path,
        metavar="PROG",
        help="a file in avial's notation or in MLIR, or a kernel of this repository (kernels/gemm)",
    )
    parser.add_argument(
        "--fn", metavar="NAME", help="the function that is meant, where a file of MLIR has several"
    )
    parser.add_argument(
        "-D",
        "--define",
        action="append",
        default=[],
        dest="numbers",
        metavar="NAME=VALUE",
        help="a number of the program, or a size of the kernel",
    )
    parser.add_argument(
        "--in",
        action="append",
        default=[],
        dest="inputs",
        metavar="NAME=VALUE",
        help="a file (a=a.npy), zeros (c=20x30xf32), random values (a=random:20xi32), a scalar; "
        "NAME is an argument's name or position",
    )
    parser.add_argument("--seed", type=_seed, default=0, help="of random inputs")
    parser.add_argument(
        "--size", type=str.upper, choices=SIZES, default="SMALL", help="of a kernel of ours"
    )
    parser.add_argument("--element", metavar="TYPE", help="of a kernel of ours: f32 or f64")


def _compile_options(parser: argparse.ArgumentParser) -> None:
    for flags, how in arguments():
        parser.add_argument(*flags, **how)


def _seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is no time to wait")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value


def _check_folders(*paths: Path | None) -> None:
    """Say before the work that a file cannot be written after it."""
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise BindError(f"cannot write {path}: there is no folder {path.parent}")


@contextlib.contextmanager
def _writing(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise BindError(f"cannot write {path}: {error.strerror}") from None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BindError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BindError(f"{path} is not a text file") from None


@dataclass(frozen=True)
class _Question:
    """What a command is about: the program's text and the arguments it is given.

    kernel, made_up: where the arguments come from, if not from the command line.
    """

    text: str
    cell: str
    function: str | None
    arrays: dict[str, np.ndarray]
    scalars: dict[str, Any]
    kernel: KernelProgram | None = None
    made_up: RandomArguments | None = None


def _question(options: argparse.Namespace) -> _Question:
    """The program with all its arguments: given, or made up and told on stderr."""
    arrays, scalars = parse_inputs(options.inputs, seed=options.seed)
    numbers = parse_numbers(options.numbers)
    twice = next((name for name in numbers if name in arrays or name in scalars), None)
    if twice is not None:
        raise BindError(f"'{twice}' is given by --in and by -D", hint="leave one out")
    cell = str(options.program)
    if is_kernel(options.program):
        kernel = kernel_program(
            options.program,
            size=options.size,
            element=options.element,
            numbers=numbers | scalars,
            seed=options.seed,
        )
        kernel.replace(arrays)
        _tell(kernel.told)
        return _Question(
            kernel.text, cell, kernel.function, kernel.arrays, kernel.scalars, kernel=kernel
        )
    text, scalars = _read_text(options.program), scalars | numbers
    if holds_schedule(text):
        analysis = program.analyse(text, arrays=arrays, scalars=scalars, cell=cell)
        return _Question(text, cell, None, allocate_missing(analysis.graph, arrays), scalars)
    made_up = random_arguments(
        text, arrays=arrays, scalars=scalars, function=options.fn, cell=cell, seed=options.seed
    )
    _tell(made_up.told)
    return _Question(text, cell, options.fn, made_up.arrays, made_up.scalars, made_up=made_up)


def _tell(line: str) -> None:
    """What was chosen for the user, beside the result."""
    if line:
        print(line, file=sys.stderr)


def _compile(options: argparse.Namespace, question: _Question) -> Program:
    return program.compile(
        question.text,
        arrays=question.arrays,
        scalars=question.scalars,
        function=question.function,
        cell=question.cell,
        name=options.program.stem,
        **given(options),
    )


def _make_indices_fit(compiled: Program, made_up: RandomArguments, seed: int) -> None:
    """Where the program takes integers made up for indices, and they leave its arrays, make up
    others.
    """
    if not made_up.integers:
        return
    try:
        compiled.reference()
    except CheckError:
        stop = made_up.draw_indices(seed)
        _tell(f"integers are indices here: drawn again, from 0 to {(stop or 1) - 1}")


def _run(options: argparse.Namespace) -> int:
    outputs = parse_outputs(options.out)
    _check_folders(*outputs.values(), options.report, options.trace)
    question = _question(options)
    compiled = _compile(options, question)
    unknown = [name for name in outputs if name not in compiled.arrays]
    if unknown:
        known = ", ".join(compiled.arrays) or "none"
        raise BindError(
            f"--out {unknown[0]}: the program has no such buffer", hint=f"its buffers are: {known}"
        )
    if question.made_up is not None:
        _make_indices_fit(compiled, question.made_up, options.seed)
    if options.tune is not None:
        compiled = compiled.tune(
            options.tune, threads=options.threads, oversubscribe=options.oversubscribe
        )
        _tell(str(compiled.choice))
    try:
        trace = compiled.run(
            check=options.check,
            timeout=options.timeout,
            trace=not options.no_trace,
            threads=options.threads,
            oversubscribe=options.oversubscribe,
        )
    finally:
        if compiled.printed:
            _tell(f"The ranks printed:\n{compiled.printed}")
    for name, path in outputs.items():
        save_array(path, compiled.arrays[name])
    if options.trace is not None:
        with _writing(options.trace):
            trace.save(options.trace)
    if options.check and question.kernel is not None:
        assert compiled.check_report is not None
        compiled.check_report += f"\n{question.kernel.compare(compiled.arrays)}"
    if options.report is not None:
        compiled.report(options.report)
    if options.json:
        print(json.dumps(_facts(compiled), indent=2))
        return 0
    print(plot.graph_text(compiled.graph, compiled.schedule))
    print(plot.trace_text(trace))
    if compiled.check_report is not None:
        print(compiled.check_report)
    return 0


def _graph(options: argparse.Namespace) -> int:
    """What waits for what; where a machine or lanes are asked for also who runs what, and what is
    sent.
    """
    _check_folders(options.output)
    ending = options.output.suffix.removeprefix(".") if options.output else "text"
    form = options.format or ("text" if ending == "txt" else ending)
    if form == "png" and options.output is None:
        raise BindError("a PNG is not for a terminal", hint="give -o FILE.png")
    placed = options.lanes or options.ranks is not None or options.gpus is not None
    if not placed:
        graph, schedule = _analyse(options).graph, None
    else:
        compiled = _compile(options, _question(options))
        graph, schedule = compiled.graph, compiled.schedule
    picture = plot.exported(form, graph, schedule, lanes=options.lanes)
    if options.output is None:
        print(picture.decode(), end="")
        return 0
    with _writing(options.output):
        options.output.write_bytes(picture)
    return 0


def _analyse(options: argparse.Namespace) -> Analysis:
    """Of a program with avial's operations, what its text and the arrays given say; a plain
    function is analysed for arguments like those it would be run with.
    """
    if not is_kernel(options.program):
        text = _read_text(options.program)
        if holds_schedule(text):
            arrays, scalars = parse_inputs(options.inputs, seed=options.seed)
            scalars |= parse_numbers(options.numbers)
            return program.analyse(
                text, arrays=arrays or None, scalars=scalars, cell=str(options.program)
            )
    question = _question(options)
    return program.analyse(
        question.text,
        arrays=question.arrays,
        scalars=question.scalars,
        function=question.function,
        cell=question.cell,
    )


def _lower(options: argparse.Namespace) -> int:
    _check_folders(options.output)
    compiled = _compile(options, _question(options))
    stages = [
        stage
        for name, stage in compiled.stages.items()
        if name == options.to or name.startswith(f"{options.to}:")
    ]
    if not stages:
        raise BindError(
            f"there is no stage '{options.to}'", hint=f"there are: {', '.join(compiled.stages)}"
        )
    text = "\n".join(stage.text for stage in stages)
    if options.output is None:
        print(text)
        return 0
    with _writing(options.output):
        if options.to == "object":
            options.output.write_bytes(compiled.binary.shared_object)
        else:
            options.output.write_text(text, encoding="utf-8")
    return 0


def _demo(options: argparse.Namespace) -> int:
    from avial_lab.lessons.demo import demo

    return demo(options.report, picture_path=options.picture)


def _doctor(options: argparse.Namespace) -> int:
    from avial_lab.cli import doctor

    return doctor.main(["--json"] if options.json else [])


def _bench(options: argparse.Namespace) -> int:
    if options.page:
        return page_command(options)
    if options.passes:
        return worth_command(options)
    if options.seconds is not None:
        raise BindError("--seconds is for bench --passes", hint="leave it out, or add --passes")
    if not options.only_self:
        return race_command(options)
    if options.kernels:
        raise BindError(
            f"bench --self measures the lab, not {options.kernels[0]}", hint="leave one out"
        )
    from avial_lab.benchmarks.self_bench import bench_self

    return bench_self(json_to=options.json, given=options.given)


def _passes(options: argparse.Namespace) -> int:
    from avial_lab.plot.page.passes import pass_text, passes_facts, passes_text

    text = pass_text(options.name) if options.name else ""  # an unknown name is an error
    if options.json:
        facts = [row for row in passes_facts() if options.name in (None, row["name"])]
        print(json.dumps(facts, indent=2))
    elif options.name:
        print(text)
    else:
        columns = shutil.get_terminal_size((160, 0)).columns
        print(passes_text(columns))
    return 0


def _install_kernel(options: argparse.Namespace) -> int:
    prefix = sys.prefix if options.sys_prefix else options.prefix
    install = _kernelspec().install_kernel
    folder = install(options.name, cpu=options.cpu, gpu=options.gpu, prefix=prefix)
    print(f"kernel '{options.name}' is in {folder}")
    return 0


def _remove_kernel(options: argparse.Namespace) -> int:
    print(f"removed {_kernelspec().remove_kernel(options.name)}")
    return 0


def _kernelspec() -> ModuleType:
    try:
        from avial_lab.notebook import kernelspec
    except ImportError as error:
        raise BindError(
            f"a kernel needs {error.name}, which is not installed",
            hint='in the clone: pip install -e ".[lab]"',
        ) from None
    return kernelspec


def _cluster(options: argparse.Namespace) -> int:
    from avial_lab.runtime.launch import registry  # psutil, which the other commands may do without

    if options.action == "stop":
        chosen = registry.clusters() if options.all else (registry.cluster_called(options.id),)
        registry.stop_clusters(chosen)
        registry.remove_traces()
        print(f"stopped {', '.join(record.id for record in chosen) or 'nothing: there is none'}")
        return 0
    for record in registry.clusters():
        print(record)
    return 0


def _export(options: argparse.Namespace) -> int:
    try:
        from avial_lab.notebook import export
    except ImportError as error:
        raise BindError(
            f"a notebook is exported with {error.name}, which is not installed",
            hint='in the clone: pip install -e ".[lab]"',
        ) from None
    source, output = options.notebook, options.output
    copy = options.to == "ipynb"
    if output is None:
        output = source.with_suffix(".student.ipynb" if copy else ".html")
    if output.resolve() == source.resolve():
        raise BindError(f"{output} would overwrite the notebook", hint="name another with -o")
    _check_folders(output)
    notebook = export.read_notebook(source)
    if options.execute:
        export.execute(notebook, source.parent)
    elif not (copy or export.has_outputs(notebook)):
        _tell(f"{source} has no outputs, so the page has no pictures; --execute runs it first")
    text = (
        export.student_copy(notebook, solutions=options.solutions)
        if copy
        else export.page(notebook, solutions=options.solutions, name=source.stem)
    )
    with _writing(output):
        output.write_text(text, encoding="utf-8")
    print(output)
    return 0


def _lab(options: argparse.Namespace) -> int:
    folder = Path(__file__).parents[2] / "notebooks"
    root = folder if folder.is_dir() else Path.cwd()
    return subprocess.call([sys.executable, "-m", "jupyter", "lab", str(root), *options.rest])


def _facts(compiled: Program) -> dict[str, Any]:
    """What a run was and did, for another program to read."""
    schedule, trace = compiled.schedule, compiled.trace
    return {
        **plot.graph_json(compiled.graph),
        "ranks": schedule.topology.ranks,
        "placements": [
            {
                "task": p.task,
                "device": p.device,
                "rank": p.rank,
                "level": p.level,
                "reason": p.reason,
            }
            for p in schedule.placements
        ],
        "transfers": [
            {
                "buffer": t.storage,
                "box": str(t.box),
                "from": t.source,
                "to": t.dest,
                "producer": t.producer,
                "consumer": t.consumer,
                "bytes": t.nbytes,
            }
            for t in schedule.transfers
        ],
        "seconds": dict(compiled.seconds),
        "makespan_s": trace.makespan_s if trace is not None else None,
        "check": compiled.check_report,
    }


if __name__ == "__main__":
    sys.exit(main())
