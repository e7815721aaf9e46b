"""Many random programs three ways, in one process and most of them without ranks.

`python -m tests.witness.many SEED [SECONDS [BODIES]]`: programs of so many bodies each until the
time is over; what differs is printed as text and arrays, and the exit status says whether any did.
Every `ON_RANKS`-th program runs on ranks of a cluster as well.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import avial_lab
from avial_lab.core.errors import FaultWarning
from avial_lab.runtime.launch.cluster import Cluster
from avial_lab.runtime.launch.one_rank import OneRank, one_rank
from tests.witness import interpret
from tests.witness.drawn import Drawn, functions, schedules
from tests.witness.values import Undefined

BATCH = 10
ON_RANKS = 8
RANKS = 3

SPENT: defaultdict[str, float] = defaultdict(float)


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def differs(program: Drawn, place: Cluster | OneRank, ranks: int) -> str:
    """What is different, or raised; empty where all three say the same."""
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


def drawn(name: str, bodies: int) -> list[Drawn]:
    """A few programs; always the same of one name."""
    found: list[Drawn] = []

    @seed(name)
    @settings(
        max_examples=BATCH, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip
    @given(program=st.one_of(functions(most=bodies), functions(most=bodies), schedules()))
    def draw(program: Drawn) -> None:
        found.append(program)

    draw()
    return found


def main(arguments: Sequence[str]) -> int:
    number, seconds, bodies = (*map(int, arguments), *(0, 600, 8)[len(arguments) :])
    ends, done, wrong = time.monotonic() + seconds, 0, 0
    cluster: list[Cluster] = []

    def on_ranks() -> Cluster:
        cluster[:] = cluster or [Cluster.start(cpu=RANKS, gpu=0)]
        return cluster[0]

    def check(program: Drawn) -> None:
        nonlocal done, wrong
        done += 1
        many = done % ON_RANKS == 0
        try:
            found = differs(program, on_ranks() if many else one_rank(), RANKS if many else 1)
        except Undefined:
            return
        if found:
            wrong += 1
            tell(f"WRONG {done}, {RANKS if many else 1} ranks: {found}\n{program!r}")

    batch = 0
    while time.monotonic() < ends:
        began = time.perf_counter()
        programs = drawn(f"{number} {batch}", bodies)
        SPENT["drawing"] += time.perf_counter() - began
        for program in programs:
            check(program)
        batch += 1
        spent = ", ".join(f"{what} {s:.0f} s" for what, s in SPENT.items())
        tell(f"{time.strftime('%T')} {done} programs, {wrong} wrong; {spent}")
    for each in cluster:
        each.stop()
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
