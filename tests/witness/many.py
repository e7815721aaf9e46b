"""Many random programs three ways, in one process and most of them without ranks.

`python -m tests.witness.many SEED [SECONDS [MOST]]`: modules of one to `MOST` programs each until
the time is over; what differs is printed as text and arrays, and the exit status says whether any
did. Every third module is of tasks; every `ON_RANKS`-th runs on ranks of a cluster.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import numpy as np

import avial_lab
from avial_lab.core.errors import FaultWarning
from avial_lab.runtime.launch.cluster import Cluster
from avial_lab.runtime.launch.one_rank import OneRank, one_rank
from tests.witness import interpret
from tests.witness.drawn import Drawn
from tests.witness.packed import first_difference, packed

ON_RANKS = 8
RANKS = 3

SPENT: defaultdict[str, float] = defaultdict(float)
"""Seconds, by what."""


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def differs(program: Drawn, place: Cluster | OneRank, ranks: int) -> str:
    """What is different, or raised; empty where all three say the same. Raises Undefined."""
    began = time.perf_counter()
    want = interpret(program.text, program.arrays)
    SPENT["interpreter"] += time.perf_counter() - began
    have = {name: array.copy() for name, array in program.arrays.items()}
    try:
        warnings.simplefilter("error", FaultWarning)
        began = time.perf_counter()
        built = avial_lab.compile(program.text, arrays=have, ranks=ranks, strict=True)
        SPENT["compile"] += time.perf_counter() - began
        began = time.perf_counter()
        built.run(place, check=True, trace=False)
        SPENT["run and reference"] += time.perf_counter() - began
        for name, array in want.items():
            np.testing.assert_array_equal(built.arrays[name], array, err_msg=name, strict=True)
    except Exception as error:  # whatever it is, it is told
        return f"{type(error).__name__}: {error}"
    return ""


def main(arguments: Sequence[str]) -> int:
    number, seconds, most = (*map(int, arguments), *(0, 600, 40)[len(arguments) :])
    ends, module, done, wrong = time.monotonic() + seconds, 0, 0, 0
    cluster: list[Cluster] = []

    def on_ranks() -> Cluster:
        cluster[:] = cluster or [Cluster.start(cpu=RANKS, gpu=0)]
        return cluster[0]

    while time.monotonic() < ends:
        module += 1
        many = module % ON_RANKS == 0
        began = time.perf_counter()
        programs = packed(f"{number} {module}", 1 + 7 * module % most, tasks=module % 3 == 0)
        SPENT["drawing"] += time.perf_counter() - began
        place, ranks = (on_ranks(), RANKS) if many else (one_rank(), 1)
        found = first_difference(programs, partial(differs, place=place, ranks=ranks))
        done += len(programs.bodies)
        if found is not None:
            wrong += 1
            tell(f"WRONG module {module}, {ranks} ranks: {found[0]}\n{found[1]!r}")
        if module % 5 == 0 or time.monotonic() > ends:
            spent = ", ".join(f"{what} {s:.0f} s" for what, s in SPENT.items())
            tell(
                f"{time.strftime('%T')} {done} programs in {module} modules, {wrong} wrong; {spent}"
            )
    for each in cluster:
        each.stop()
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
