"""What this machine can do, found by trying: arithmetic, memory, caches, and messages of two ranks.

Nothing -> Measured, in some ten seconds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from avial_lab.core.errors import AvialError
from avial_lab.core.toolchain import run, tool
from avial_lab.machine.host import this_machine
from avial_lab.machine.measure import measure_ceilings
from avial_lab.machine.measured import Measured, keep, line_through
from avial_lab.machine.roofline import Ceilings
from avial_lab.runtime.launch.processes import mpiexec_options
from avial_lab.runtime.rank.threads import cores

_LIMIT_S = 20.0


def measure_machine(say: Callable[[str], None] = lambda _: None) -> Measured:
    """And keeps it for this machine. `say` is told what is being measured.

    Raises AvialError without a C compiler or MPI, and where two ranks do not answer in time.
    """
    say("arithmetic, memory and caches of one core")
    one = measure_ceilings(1, "f64")
    say("memory by all cores at once")
    everyone = measure_ceilings(len(cores()), "f64")
    say("messages between two ranks")
    found = Measured(
        one.flops_per_s,
        one.bytes_per_s,
        max(one.bytes_per_s, everyone.bytes_per_s),
        _caches(one),
        *line_through(*_ping_pong()),
    )
    keep(found)
    return found


def _caches(one: Ceilings) -> tuple[tuple[int, float], ...]:
    """(Half of a cache: the other half is for what else is there.)"""
    room = {cache.level: cache.nbytes // 2 for cache in this_machine().caches}
    return tuple(
        (room[level], rate) for level, rate in one.cache_bytes_per_s if rate > one.bytes_per_s
    )


def _ping_pong() -> tuple[list[int], list[float]]:
    command = (str(tool("mpiexec")), "-n", "2", *mpiexec_options())
    program = (sys.executable, "-m", "avial_lab.runtime.rank.ping_pong")
    done = run((*command, *program), limit_s=_LIMIT_S)
    if done.returncode:
        raise AvialError(
            f"two ranks could not exchange messages: {done.complaint}",
            hint="avial-lab doctor says what is wrong with MPI",
        )
    rows: list[tuple[int, float]] = json.loads(done.stdout.strip().splitlines()[-1])
    return [int(nbytes) for nbytes, _ in rows], [float(seconds) for _, seconds in rows]
