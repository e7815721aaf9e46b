"""`avial-lab bench --passes`: what each optional pass is worth, as a command.

Arguments -> the table, or JSON, on stdout; every program on stderr as it is done.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from avial_lab.benchmarks.command import check_json, write_file
from avial_lab.benchmarks.contestants import PEERS
from avial_lab.benchmarks.kernel_suite import POLYBENCH
from avial_lab.benchmarks.made import made_by
from avial_lab.benchmarks.subjects import subject_names
from avial_lab.benchmarks.worth import Configuration, worth
from avial_lab.benchmarks.worth_table import Timed, worth_facts
from avial_lab.compiler.catalogue import OPTIONAL
from avial_lab.compiler.options import CompileOptions
from avial_lab.core.errors import BindError
from avial_lab.machine.host import busy


def worth_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of timing passes, beside those of a race."""
    parser.add_argument(
        "--passes",
        action="store_true",
        help="what each optional pass (with --without: each of these) is worth on the kernels and "
        "the programs of tests/foreign, each raced against itself without the pass",
    )
    parser.add_argument(
        "--seconds",
        type=_seconds,
        metavar="S",
        help="with --passes: begin nothing more after so many, and say what was not reached",
    )


def worth_command(options: argparse.Namespace) -> int:
    """Time the passes and print the table; 0 where every answer was right."""
    _refuse(options)
    check_json(options)
    own = CompileOptions.of(without=options.without)
    asked = (*options.kernels, *(POLYBENCH if options.polybench else ()))
    configuration = Configuration(
        size=options.size,
        elements=tuple(filter(None, options.element.split(","))),
        ranks=options.ranks[0],
        threads=options.threads[0],
        seconds=options.seconds,
        passes=own.without or OPTIONAL,
        on_timed=_print_timed,
    )
    names, doubts = subject_names(asked), busy()
    report = worth(names, configuration)
    report = replace(report, notes=(*doubts, *report.notes))
    text = json.dumps(worth_facts(report, made_by(options.given)), indent=2)
    if options.json == "-":
        print(text)
    else:
        if options.json:
            write_file(Path(options.json), text)
        print(report)
    if report.interrupted:
        return 130  # as a shell says it of what was interrupted
    return 1 if report.faults else 0


def _refuse(options: argparse.Namespace) -> None:
    """BindError for what is the race's alone."""
    given = {
        "--self": options.only_self,
        "--against": options.against != PEERS,
        "--tune": options.tune is not None,
        "--html": options.html is not None,
        "--strict": options.strict,
        "--blas": options.blas,
        "--ranks with several numbers": len(options.ranks) > 1,
        "--threads with several numbers": len(options.threads) > 1,
    }
    for flag, is_given in given.items():
        if is_given:
            raise BindError(f"bench --passes does not go with {flag}", hint="leave one out")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return seconds


def _print_timed(timed: Timed) -> None:
    """One program in one line: a long session is watched."""
    gains = sorted((r for r in timed.races if not r.fault), key=lambda r: r.gain, reverse=True)
    words = ", ".join(f"{race.left_out} {race.gain:.2f}" for race in gains)
    if timed.unreached:
        words = f"{words or 'no race'}; {len(timed.unreached)} passes not reached"
    outcome = timed.skipped or words or "the same without any pass"
    print(f"{timed.program} {timed.element}: {outcome}", file=sys.stderr, flush=True)
    for fault in timed.faults:
        print(fault, file=sys.stderr, flush=True)
