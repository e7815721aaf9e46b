"""`avial-lab bundle`: programs packed for machines where nothing is installed."""

from __future__ import annotations

import argparse
import shlex

from avial_lab.bundle.pack import pack
from avial_lab.cli.question import print_to_stderr
from avial_lab.core.errors import BindError


def bundle_command(options: argparse.Namespace) -> int:
    if any(count < 1 for count in options.ranks):
        raise BindError("a program is packed for one rank at least")
    contents = pack(
        options.output,
        options.programs,
        ranks=options.ranks,
        size=options.size,
        seed=options.seed,
        race=options.race,
        pythons=options.pythons,
        command=shlex.join(["avial-lab", *options.given]),
        say=print_to_stderr,
    )
    if not contents.cases:
        raise BindError("nothing could be packed", hint="the reasons are above")
    print(f"python3 {shlex.quote(str(options.output))}/run.py --minutes 8 -o results")
    return 0
