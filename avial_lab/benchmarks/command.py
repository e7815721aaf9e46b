"""`avial-lab bench KERNEL… --against …`: the race as a command.

Arguments -> the table, or JSON, on stdout; every round on stderr as it ends.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from avial_lab.benchmarks import PEERS, Configuration, race
from avial_lab.benchmarks.contestants import ARRAY_PEERS, OTHER_PEERS, PYTHON_PEERS
from avial_lab.benchmarks.html_report import report_html
from avial_lab.benchmarks.json_report import report_facts
from avial_lab.benchmarks.kernel_suite import POLYBENCH, SIZES, kernel_names
from avial_lab.benchmarks.made import made_by
from avial_lab.benchmarks.table import Report, Round
from avial_lab.compiler.options import CompileOptions, arguments
from avial_lab.core.errors import BindError
from avial_lab.program.tuning import TUNE, checked_budget

_ALL_PEERS = tuple(dict.fromkeys((*PEERS, *ARRAY_PEERS, *PYTHON_PEERS, *OTHER_PEERS)))


def race_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of a race."""
    parser.add_argument(
        "kernels", nargs="*", metavar="KERNEL", help="kernels of this repository; default: all"
    )
    parser.add_argument(
        "--against",
        type=_peers,
        default=PEERS,
        metavar="PEER,…",
        help=f"peers to race against: {', '.join(PEERS)} (with --arrays {', '.join(ARRAY_PEERS)}, "
        f"with --python {', '.join(PYTHON_PEERS)}); default: all of them",
    )
    parser.add_argument(
        "--ranks",
        type=_counts("ranks"),
        default=(1,),
        metavar="N,…",
        help="ranks, one race for each number; on several the peers are C and NumPy with MPI",
    )
    parser.add_argument(
        "--threads",
        type=_counts("threads"),
        default=(1,),
        metavar="N,…",
        help="threads of each contestant, per rank; one race for each number",
    )
    parser.add_argument("--polybench", action="store_true", help="the thirty kernels of PolyBench")
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="write everything as JSON (fields: avial_lab/benchmarks/json_report.py); by default, "
        "or with -, to stdout instead of the table",
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write tables and pictures into one page"
    )
    parser.add_argument("--size", type=str.upper, choices=SIZES, default="SMALL")
    parser.add_argument(
        "--element",
        default="",
        metavar="TYPE,…",
        help="f32, f64 …; of each kernel the first that it has; default: its own first",
    )
    for flags, how in arguments(("without", "strict", "blas")):  # of our own programs
        parser.add_argument(*flags, **how)
    parser.add_argument(
        "--tune", type=float, metavar="S", help=f"{TUNE}; before each race, for our own program"
    )


def race_command(options: argparse.Namespace) -> int:
    """Race, and print the report; 0 where every contestant has a correct result."""
    names = _kernels(options)
    check_json(options)
    for peer in options.against:
        if peer not in PEERS:
            raise BindError(
                f"{peer} does not race on kernels", hint="add --arrays or --python, or leave it out"
            )
    # What makes no sense is said before anybody races.
    own = CompileOptions.of(without=options.without, strict=options.strict, blas=options.blas)
    configuration = Configuration(
        size=options.size,
        elements=tuple(filter(None, options.element.split(","))),
        against=options.against,
        ranks=options.ranks,
        threads=options.threads,
        without=",".join(own.without),
        strict=own.strict,
        blas=own.blas,
        tune=None if options.tune is None else checked_budget(options.tune),
        on_round=_print_round,
    )
    report = race(names, configuration)
    if options.html is not None:
        write_file(options.html, report_html(report))
    if options.json == "-":
        print(_json(report, options))
    else:
        if options.json:
            write_file(Path(options.json), _json(report, options))
        print(report)
    if not report.whole:
        return 130  # as a shell says it of what was interrupted
    return 1 if report.faults else 0


def check_json(options: argparse.Namespace) -> None:
    """BindError where a kernel's name was taken for the file's."""
    if options.json in kernel_names():
        raise BindError(
            f"--json {options.json} would write a file of that name",
            hint="name the kernels before --json, or write --json -",
        )


def _kernels(options: argparse.Namespace) -> tuple[str, ...]:
    there = kernel_names()
    if not there:
        raise BindError(
            "there are no kernels to race on",
            hint="kernels come with the repository, not with the installed package",
        )
    chosen = (*options.kernels, *(POLYBENCH if options.polybench else ()))
    return tuple(dict.fromkeys(chosen)) or there


def _json(report: Report, options: argparse.Namespace) -> str:
    return json.dumps(report_facts(report, made_by(options.given)), indent=2)


def write_file(path: Path, text: str) -> None:
    """BindError where it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BindError(f"{path} cannot be written: {error.strerror}") from None


def _print_round(raced: Round) -> None:
    """One round in one line: a long race is watched."""
    times = ", ".join(
        f"{result.contestant} {result.median_s * 1e3:.3f} ms"
        if result.seconds
        else f"{result.contestant} !"
        for result in raced.results
    )
    where = f"{raced.kernel} {raced.element}, {raced.ranks} × {raced.threads}"
    ratio = "" if raced.ratio is None else f"; {raced.ratio:.2f} ×"
    print(f"{where}: {times}{ratio}", file=sys.stderr, flush=True)


def _peers(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in _ALL_PEERS:
            known = ", ".join(_ALL_PEERS)
            raise argparse.ArgumentTypeError(f"there is no peer '{name}', only {known}")
    return names


def _counts(what: str) -> Callable[[str], tuple[int, ...]]:
    """Read `1,2` as numbers from 1 to what this machine has."""

    def counts(text: str) -> tuple[int, ...]:
        most = os.cpu_count() or 1
        try:
            numbers = tuple(dict.fromkeys(int(part) for part in text.split(",")))
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text} is not a list of numbers; expected for example 1,2"
            ) from None
        for number in numbers:
            if not 1 <= number <= most:
                raise argparse.ArgumentTypeError(
                    f"{number} {what}: this machine can race from 1 to {most}"
                )
        return numbers

    return counts
