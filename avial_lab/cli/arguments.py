"""The command line's arguments."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from avial_lab import plot
from avial_lab.benchmarks.command import race_arguments
from avial_lab.benchmarks.kernel_suite import SIZES
from avial_lab.benchmarks.results_page import page_arguments
from avial_lab.benchmarks.worth_command import worth_arguments
from avial_lab.bundle.pack import CPU, PYTHONS
from avial_lab.cli.commands.bundle import bundle_command
from avial_lab.cli.commands.cluster import cluster_command
from avial_lab.cli.commands.graph import graph_command
from avial_lab.cli.commands.jupyter import (
    export_command,
    install_kernel_command,
    lab_command,
    remove_kernel_command,
)
from avial_lab.cli.commands.lower import lower_command
from avial_lab.cli.commands.models import import_command
from avial_lab.cli.commands.plan import ALL, plan_command, topology_command
from avial_lab.cli.commands.run import run_command
from avial_lab.cli.commands.search import search_command
from avial_lab.cli.commands.tools import bench_command, demo_command, doctor_command
from avial_lab.compiler.options import arguments
from avial_lab.core.command_line import NearestWords
from avial_lab.machine.presets import PRESET, PRESETS
from avial_lab.planning.policies import Policy
from avial_lab.planning.strategy_search import COSTS
from avial_lab.program.tuning import TUNE
from avial_lab.program.where import KEEP, where_arguments
from avial_lab.runtime.rank.threads import OVERSUBSCRIBE, THREADS


def argument_parser() -> argparse.ArgumentParser:
    parser = NearestWords(prog="avial-lab", description="Distributed heterogeneous programs.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="build a program and run it on MPI ranks")
    _program_arguments(run)
    _compile_options(run)
    where_arguments(run)
    run.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="save an array after the run",
    )
    run.add_argument("--check", action="store_true", help="compare with the sequential reference")
    run.add_argument(
        "--report",
        type=Path,
        metavar="FILE.html",
        help="write a report of everything as one HTML page",
    )
    run.add_argument(
        "--timeout", type=_seconds, metavar="S", help="stop the ranks after this many seconds"
    )
    run.add_argument("--tune", type=float, metavar="S", help=TUNE)
    run.add_argument("--threads", type=int, metavar="N", help=THREADS)
    run.add_argument("--oversubscribe", action="store_true", help=OVERSUBSCRIBE)
    traced = run.add_mutually_exclusive_group()
    traced.add_argument(
        "--trace",
        type=Path,
        metavar="FILE.json",
        help="write a trace of all events, for ui.perfetto.dev or chrome://tracing",
    )
    traced.add_argument("--no-trace", action="store_true", help="record no times during the run")
    run.add_argument("--json", action="store_true", help="print the facts of the run as JSON")
    run.set_defaults(command=run_command)

    graph = commands.add_parser("graph", help="show tasks, dependencies and levels")
    _program_arguments(graph)
    graph.add_argument("--format", choices=plot.FORMATS, help="default: by FILE's suffix, or text")
    graph.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to this file")
    graph.add_argument("--lanes", action="store_true", help="the schedule, device by device")
    _compile_options(graph)
    graph.set_defaults(command=graph_command)

    lower = commands.add_parser("lower", help="show the program after a stage of the lowering")
    _program_arguments(lower)
    _compile_options(lower)
    lower.add_argument(
        "--to",
        default="mpi",
        metavar="STAGE",
        help="avial, mpi, gpu, llvm, llvmir, object, ptx, sass (of ptxas; sass:sm_80) …",
    )
    lower.add_argument(
        "-o", "--output", type=Path, help="write to this file; with --to object, the shared object"
    )
    lower.set_defaults(command=lower_command)

    imported = commands.add_parser("import", help="show a model in ONNX as a function on tensors")
    imported.add_argument("model", type=Path, metavar="MODEL.onnx")
    _of_a_model(imported)
    imported.add_argument("-o", "--output", type=Path, metavar="FILE.mlir")
    imported.set_defaults(command=import_command)

    plan = commands.add_parser("plan", help="predict a run, and compare ways to place its tasks")
    plan.add_argument(
        "program",
        type=Path,
        nargs="?",
        metavar="PROG",
        help="a program or a kernel (kernels/3mm), a task graph: WfFormat or a Chrome trace "
        "(.json), STG; with --parallel a model: FILE.onnx, FILE.mlir (on tensors), mlp:8x512",
    )
    plan.add_argument(
        "--topology",
        default=f"{PRESET}laptop",
        metavar="T",
        help="a file (.yaml, SimGrid's .xml, .mlir with dlti), here (as measured), or one of "
        f"{', '.join(PRESET + name for name in PRESETS)}",
    )
    plan.add_argument(
        "--policy",
        default=ALL,
        choices=(ALL, *(each.value for each in Policy)),
        help="by default all but exact",
    )
    _question_arguments(plan)
    plan.add_argument(
        "--place",
        action="append",
        default=[],
        metavar="TASK=DEVICE",
        help="pin a task to a device (task3=gpu0); every policy keeps to that",
    )
    plan.add_argument(
        "-n", "--ranks", type=int, metavar="N", help="of loops, or divided; by default all of T's"
    )
    for flags, how in arguments(["on", "parallel"]):
        plan.add_argument(*flags, **how)
    _of_a_training(plan)
    plan.add_argument("--batch", metavar="N", help="rows of mlp:LAYERSxWIDTH")
    plan.add_argument(
        "--trips",
        type=int,
        metavar="N",
        help="iterations of a loop whose end depends on data, by default 2",
    )
    plan.add_argument(
        "--report",
        type=Path,
        metavar="FILE.html",
        help="of a program of loops: write its speed-up and its timeline as one HTML page",
    )
    plan.add_argument(
        "--budget", type=_seconds, metavar="S", help="how long search may take, in seconds"
    )
    plan.add_argument(
        "--trace", type=Path, metavar="FILE.json", help="write the best plan's trace, for Perfetto"
    )
    plan.add_argument("--json", action="store_true", help="print the plans as JSON")
    plan.add_argument(
        "--judge",
        type=Path,
        metavar="FILE.json",
        help="compare the simulator with stored answers; exit code 1 beyond the tolerances",
    )
    plan.set_defaults(command=plan_command, size="LARGE")  # it need not be run

    search = commands.add_parser("search", help="find degrees of parallelism for a model")
    search.add_argument(
        "model", metavar="MODEL", help="FILE.onnx, FILE.mlir (a function on tensors), or mlp:8x512"
    )
    search.add_argument(
        "--devices", required=True, metavar="N", help="how many devices; with --costs also 1,2,4"
    )
    _of_a_model(search)
    search.add_argument(
        "--topology",
        metavar="T",
        help="its ranks: a file, preset:NAME; by default here",
    )
    _of_a_training(search)
    search.add_argument(
        "--explain",
        action="append",
        metavar="HOW",
        help="why this configuration, as the table has it, is slower than the best or cannot be; "
        "given twice: the one against the other",
    )
    search.add_argument(
        "--simulate", type=int, default=10, metavar="N", help="how many of the best by events"
    )
    search.add_argument(
        "--batch",
        metavar="N",
        help="rows of mlp:LAYERSxWIDTH; with --costs also 512,1024",
    )
    search.add_argument(
        "--costs", choices=COSTS, help="of mlp:LAYERSxWIDTH: as microsoft/dist-ir simulates it"
    )
    search.add_argument(
        "--memory", type=float, metavar="GB", help="what a device has; more is infeasible"
    )
    search.add_argument("--json", action="store_true", help="print every configuration as JSON")
    search.set_defaults(command=search_command)

    topology = commands.add_parser("topology", help="show a machine that runs are planned for")
    topology.add_argument("name", nargs="?", metavar="T", help="a file, preset:NAME, or here")
    topology.add_argument(
        "--measure",
        action="store_true",
        help="measure this machine's cores, memory and messages, and keep that for `here`",
    )
    topology.add_argument(
        "--hosts", metavar="A,B", help="with --measure: these machines, and messages between them"
    )
    topology.add_argument("--ppn", type=int, metavar="N", help="ranks on each host; default: 2")
    topology.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write it: a picture (.svg), or a file to be edited (.yaml)",
    )
    topology.set_defaults(command=topology_command)

    bundle = commands.add_parser(
        "bundle", help="pack programs for machines where nothing is installed"
    )
    bundle.add_argument(
        "programs",
        nargs="*",
        metavar="PROG",
        help="kernels or files; by default all kernels, and some tasks",
    )
    bundle.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    bundle.add_argument(
        "-n",
        "--ranks",
        type=_counts,
        default=(1, 2),
        metavar="N,N",
        help="for so many ranks; by default 1,2",
    )
    bundle.add_argument(
        "--on",
        choices=("cpu", "gpu"),
        help="gpu: each rank drives one, and with answers for checks there; cpu: for runs on files "
        "alone; by default both, and all kernels for gpu",
    )
    bundle.add_argument(
        "--size",
        type=str.upper,
        choices=SIZES,
        help="of kernels; by default MINI, and SMALL for one rank in one element type",
    )
    bundle.add_argument("--fn", metavar="NAME", help="the function of an MLIR file with several")
    bundle.add_argument(
        "-D", "--define", action="append", default=[], dest="numbers", metavar="NAME=VALUE",
        help="a number of the program, or a size of the kernel",
    )  # fmt: skip
    bundle.add_argument(
        "--in", action="append", default=[], dest="inputs", metavar="NAME=VALUE",
        help="an array as large as those that it will run on (a=20x30xf32, a=a.npy), or a scalar",
    )  # fmt: skip
    bundle.add_argument("--seed", type=_seed, default=0, help="seed of the inputs")
    bundle.add_argument("--cpu-target", default=CPU, metavar="CPU", help=f"by default {CPU}")
    bundle.add_argument("--ppn", type=int, metavar="N", help="ranks on each node, for runs on CPUs")
    bundle.add_argument(
        "--slurm-script", action="store_true", help="with job.sh, which sbatch takes"
    )
    bundle.add_argument("--time", metavar="T", help="of the job: 1:00:00")
    bundle.add_argument("--partition", metavar="P", help="of the job")
    bundle.add_argument(
        "--race",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="with the race against CuPy, by default where no program is named",
    )
    bundle.add_argument(
        "--pythons",
        type=lambda text: tuple(text.split(",")),
        default=PYTHONS,
        metavar="3.N,3.N",
        help=f"there, to start several ranks; by default {','.join(PYTHONS)}",
    )
    bundle.set_defaults(command=bundle_command)

    show = commands.add_parser(
        "demo", help="the introductory example, from text to a run on a cluster"
    )
    show.add_argument("--report", type=Path, default=Path("demo.html"), metavar="FILE.html")
    show.add_argument("--picture", type=Path, metavar="FILE.svg", help="graph and schedule")
    show.set_defaults(command=demo_command)

    bench = commands.add_parser("bench", help="race avial_lab against its peers")
    bench.add_argument(
        "--self", action="store_true", dest="only_self", help="compiler, dispatch and messages"
    )
    bench.add_argument(
        "--predict", action="store_true", help="kernels predicted, then run: how far off"
    )
    bench.add_argument("--plan", action="store_true", help="simulator, policies and schedules")
    bench.add_argument(
        "--arrays", action="store_true", help="programs on arrays; KERNEL: fused, jacobi, kmeans …"
    )
    bench.add_argument(
        "--python", action="store_true", help="Python functions; KERNEL: heat, product, softmax …"
    )
    page_arguments(bench)
    worth_arguments(bench)
    race_arguments(bench)
    bench.set_defaults(command=bench_command)

    check = commands.add_parser(
        "doctor", help="check what is installed and whether it works together"
    )
    check.add_argument("--json", action="store_true")
    check.add_argument("--hosts", metavar="A,B", help="check these machines for `run --hosts`")
    check.set_defaults(command=doctor_command)

    passes = commands.add_parser(
        "passes", help="list the passes in their order, with the reason for it"
    )
    passes.add_argument(
        "name", nargs="?", metavar="PASS", help="only this pass, with the IR before and after it"
    )
    passes.add_argument("--json", action="store_true", help="print the rows as JSON")
    passes.set_defaults(command=_passes)

    cluster = commands.add_parser(
        "cluster", help="start a cluster, list those of this machine, or stop some"
    )
    cluster.add_argument("action", choices=("start", "list", "stop"))
    cluster.add_argument("id", nargs="?", default="")
    cluster.add_argument("-n", "--cpu", type=int, metavar="N", help="engines for CPU work, here")
    cluster.add_argument("--gpu", type=int, metavar="N", help="engines that drive a GPU")
    cluster.add_argument("--keep", type=_seconds, metavar="HOURS", help=KEEP)
    where_arguments(cluster)
    cluster.add_argument(
        "--all", action="store_true", help="also clusters that a running process owns"
    )
    cluster.set_defaults(command=cluster_command)

    kernel = commands.add_parser(
        "kernel", help="install a Jupyter kernel with the extension loaded"
    )
    _kernel_arguments(kernel)

    export = commands.add_parser(
        "export",
        help="write a notebook as a self-contained page, a function on tensors as a model in ONNX",
    )
    export.add_argument(
        "source",
        type=Path,
        metavar="SOURCE",
        help="NOTEBOOK.ipynb; FILE.mlir or MODEL.onnx, whose tensors become a model in ONNX",
    )
    export.add_argument("-o", "--output", type=Path, metavar="FILE")
    export.add_argument(
        "--to", choices=("html", "ipynb"), default="html", help="ipynb: a copy to work on"
    )
    export.add_argument(
        "--solutions",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="include the cells tagged `solution`, folded; they are left out by default",
    )
    export.add_argument("--execute", action="store_true", help="run the notebook first")
    export.add_argument("--fn", metavar="NAME", help="the function, if the file has several")
    _of_a_model(export)
    for flags, how in arguments(["gradient", "update"]):
        export.add_argument(*flags, **how)
    export.set_defaults(command=export_command)

    lab = commands.add_parser("lab", help="open JupyterLab on the notebooks")
    lab.add_argument("rest", nargs=argparse.REMAINDER, help="arguments for jupyter lab")
    lab.set_defaults(command=lab_command)
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
    install.set_defaults(command=install_kernel_command)
    remove = actions.add_parser("remove", help="remove it")
    remove.set_defaults(command=remove_kernel_command)
    for action in (install, remove):
        action.add_argument("--name", default="avial-mpi", help="by default avial-mpi")


def _program_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "program",
        type=Path,
        metavar="PROG",
        help="a file in avial's notation or in MLIR, a model in ONNX (.onnx), or a kernel of this "
        "repository (kernels/gemm)",
    )
    _question_arguments(parser)


def _bindings(parser: argparse.ArgumentParser, number: str, given: str) -> None:
    """Numbers and inputs by name; what they are, for `--help`."""
    parser.add_argument(
        "-D", "--define", action="append", default=[], dest="numbers", metavar="NAME=VALUE",
        help=number,
    )  # fmt: skip
    parser.add_argument(
        "--in", action="append", default=[], dest="inputs", metavar="NAME=VALUE", help=given
    )  # fmt: skip


def _of_a_model(parser: argparse.ArgumentParser) -> None:
    """What a model leaves open."""
    _bindings(
        parser,
        "a dimension that the model leaves open",
        "an input whose shape, or whose values, the model needs: a file, or 20x30xf32",
    )


def _of_a_training(parser: argparse.ArgumentParser) -> None:
    """A step of training that is made of a model, or of a function on tensors."""
    parser.add_argument(
        "--loss", metavar="L", help="a step of training of a model in ONNX: mse or cross-entropy"
    )
    parser.add_argument("--of", default="", metavar="NAME", help="the value that the loss is of")
    for flags, how in arguments(["gradient", "update"]):
        parser.add_argument(*flags, **how)


def _question_arguments(parser: argparse.ArgumentParser) -> None:
    """What a program is given."""
    parser.add_argument(
        "--fn", metavar="NAME", help="the function to run, if the MLIR file has several"
    )
    _bindings(
        parser,
        "a number of the program, or a size of the kernel",
        "a file (a=a.npy), zeros (c=20x30xf32), random values (a=random:20xi32), a scalar; "
        "NAME is an argument's name or position",
    )
    parser.add_argument("--seed", type=_seed, default=0, help="seed of random inputs")
    parser.add_argument(
        "--size",
        type=str.upper,
        choices=SIZES,
        default="SMALL",
        help="size of a kernel of this repository",
    )
    parser.add_argument(
        "--element", metavar="TYPE", help="element type of a kernel of this repository: f32 or f64"
    )


def _compile_options(parser: argparse.ArgumentParser) -> None:
    for flags, how in arguments():
        parser.add_argument(*flags, **how)


def _seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(
            f"{text} is not a time limit; expected a number of seconds"
        )
    return value


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value


def _passes(options: argparse.Namespace) -> int:
    from avial_lab.compiler.renamed import name_now
    from avial_lab.plot.page.passes import pass_text, passes_facts, passes_text

    name = options.name and name_now(options.name)
    text = pass_text(name) if name else ""  # an unknown name is an error
    if options.json:
        facts = [row for row in passes_facts() if name in (None, row["name"])]
        print(json.dumps(facts, indent=2))
    elif name:
        print(text)
    else:
        columns = shutil.get_terminal_size((160, 0)).columns
        print(passes_text(columns))
    return 0
