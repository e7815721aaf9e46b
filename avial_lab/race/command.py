"""`avial-lab bench KERNEL… --against …`: the race as a command.

Arguments -> the table, or JSON, on stdout; every heat on stderr as it ends.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable

from avial_lab.errors import BindError
from avial_lab.race import PEERS, Course, race
from avial_lab.race.table import Heat
from avial_lab.suite import SIZES, kernel_names


def race_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the race can be told."""
    parser.add_argument(
        "kernels", nargs="*", metavar="KERNEL", help="kernels of this repository; default: all"
    )
    parser.add_argument(
        "--against",
        type=_peers,
        default=PEERS,
        metavar="PEER,…",
        help=f"whom to race against: {', '.join(PEERS)}; default: all of them",
    )
    parser.add_argument(
        "--ranks",
        type=_counts("ranks"),
        default=(1,),
        metavar="N,…",
        help="ranks of our own program, one race for each number; peers are one process",
    )
    parser.add_argument(
        "--threads",
        type=_counts("threads"),
        default=(1,),
        metavar="N,…",
        help="threads of every contestant, one race for each number",
    )
    parser.add_argument("--size", type=str.upper, choices=SIZES, default="SMALL")
    parser.add_argument("--element", metavar="TYPE", help="f32, f64 …; default: the kernel's first")


def race_command(options: argparse.Namespace) -> int:
    """Race, and print the sheet; 0 where every contestant came home with the right answer."""
    course = Course(
        size=options.size,
        element=options.element,
        against=options.against,
        ranks=options.ranks,
        threads=options.threads,
        told=_tell,
    )
    names = tuple(options.kernels) or kernel_names()
    if not names:
        raise BindError(
            "there are no kernels to race on",
            hint="kernels come with the repository, not with the installed package",
        )
    sheet = race(names, course)
    print(json.dumps(sheet.facts(), indent=2) if options.json else sheet)
    return 1 if any(lane.fault for heat in sheet.heats for lane in heat.lanes) else 0


def _tell(heat: Heat) -> None:
    """One heat in one line: a long race is watched."""
    times = ", ".join(
        f"{lane.contestant} {lane.median_s * 1e3:.3f} ms"
        if lane.seconds
        else f"{lane.contestant} !"
        for lane in heat.lanes
    )
    where = f"{heat.kernel} {heat.element}, {heat.ranks} × {heat.threads}"
    print(f"{where}: {times}", file=sys.stderr, flush=True)


def _peers(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in PEERS:
            raise argparse.ArgumentTypeError(f"there is no peer '{name}', only {', '.join(PEERS)}")
    return names


def _counts(what: str) -> Callable[[str], tuple[int, ...]]:
    """Read `1,2` as numbers from 1 to what this machine has."""

    def counts(text: str) -> tuple[int, ...]:
        most = os.cpu_count() or 1
        try:
            numbers = tuple(dict.fromkeys(int(part) for part in text.split(",")))
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text} is no list of numbers like 1,2") from None
        for number in numbers:
            if not 1 <= number <= most:
                raise argparse.ArgumentTypeError(
                    f"{number} {what}: this machine can race from 1 to {most}"
                )
        return numbers

    return counts
