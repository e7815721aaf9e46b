"""`avial-lab plan`: a run before it happens."""

from __future__ import annotations

import argparse

from avial_lab.core.errors import BindError
from avial_lab.planning.simulator.judge import judge


def plan_command(options: argparse.Namespace) -> int:
    if options.judge is None:
        raise BindError("nothing to plan", hint="give --judge FILE.json")
    verdict = judge(options.judge)
    print(verdict)
    return 0 if verdict.good else 1
