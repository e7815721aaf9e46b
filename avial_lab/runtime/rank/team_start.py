"""How long the threads of a rank take to begin together, and until the last of them is done.

A number of threads -> one line of JSON, {"team_s": seconds}, the median of many empty regions of
the OpenMP runtime that programs call; null without such a runtime.

    python -m avial_lab.runtime.rank.team_start 4
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path
from statistics import median

import numpy as np

import avial_lab.machine
from avial_lab.core.c_compiler import any_compiler, loaded
from avial_lab.runtime.rank.threads import openmp

_REGIONS, _FIRST = 4_000, 200
"""The first ones wake the threads."""


def team_s(threads: int) -> float | None:
    """None where a rank has one thread, whatever is asked for."""
    library = openmp()
    if library is None or threads < 2:
        return None
    source = Path(avial_lab.machine.__file__).with_name("team_start.c").read_text(encoding="utf-8")
    taken = np.zeros(_REGIONS)
    loaded(any_compiler().build(source)).team_starts(
        library["__kmpc_fork_call"], library["__kmpc_push_num_threads"],
        library["__kmpc_global_thread_num"], threads, ctypes.c_long(_REGIONS),
        ctypes.c_void_p(taken.ctypes.data),
    )  # fmt: skip
    return median(taken[_FIRST:].tolist())


if __name__ == "__main__":
    os.write(1, json.dumps({"team_s": team_s(int(sys.argv[1]))}).encode() + b"\n")
