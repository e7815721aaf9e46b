"""What this machine can do at most: arithmetic in registers, and memory and caches that stream.

Threads, element type -> Ceilings, measured here and now by `ceilings.c`, in a process of its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from avial_lab.core.c_compiler import any_compiler, loaded
from avial_lab.core.element_types import ELEMENT_TYPES
from avial_lab.core.errors import AvialError
from avial_lab.machine.host import Machine, pinned_environment, pins, this_machine
from avial_lab.machine.measured import MeasuredNode
from avial_lab.machine.roofline import Ceilings

_LEAST_TRIAD_BYTES = 3 << 26  # 192 MiB in three arrays: more than the last cache of most machines
_CACHE_BYTES = 1 << 26  # so much is moved in each measure of a cache
_ROUNDS = 200_000  # some milliseconds: the best of many short ones is one without a neighbour
_LIMIT_S = 120.0


def measure_ceilings(threads: int, element: str) -> Ceilings:
    """Some seconds. `element` is a float: integers have the ceilings of the one as wide, which is
    close.

    Raises AvialError where there is no C compiler with OpenMP.
    """
    cores = pins(threads)
    command = [sys.executable, "-m", "avial_lab.machine.measure", element, str(threads)]
    try:
        done = subprocess.run(
            command,
            env=os.environ | pinned_environment(cores),
            capture_output=True,
            encoding="utf-8",
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise AvialError("measuring the machine's ceilings took too long") from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise AvialError(f"the machine's ceilings could not be measured: {said}")
    found = json.loads(done.stdout)
    caches = tuple((int(level), float(rate)) for level, rate in found["caches"])
    streams = tuple((int(nbytes), float(rate)) for nbytes, rate in found["streams"])
    return Ceilings(
        threads, element, found["flops"], found["triad"], found["vector_bits"], caches, streams
    )


def measure_node(cores: int, say: Callable[[str], None] = lambda _: None) -> MeasuredNode:
    """A core of this machine, and its memory by so many of them. `say` is told what is measured.

    Raises AvialError where there is no C compiler with OpenMP.
    """
    say("arithmetic, memory and caches of one core")
    one = measure_ceilings(1, "f64")
    say("memory by all cores at once")
    everyone = measure_ceilings(cores, "f64")
    memory = max(one.bytes_per_s, everyone.bytes_per_s)
    return MeasuredNode(one.flops_per_s, one.bytes_per_s, memory, _caches(one))


def _caches(one: Ceilings) -> tuple[tuple[int, float], ...]:
    """Sizes up to which a core is as fast; a larger one is never faster."""
    found: list[tuple[int, float]] = []
    fastest = one.bytes_per_s
    for nbytes, rate in reversed(one.streams):
        if rate > fastest:
            found.insert(0, (nbytes, rate))
            fastest = rate
    return tuple(found)


def _sizes(machine: Machine) -> list[int]:
    """Half of the second cache, and twice as much again and again until half of the last: where a
    cache ends, rates fall over several such, as neighbours have their part of it.
    """
    known = [cache.nbytes // 2 for cache in machine.caches if cache.level > 1]
    sizes = known[:1]
    while sizes and 2 * sizes[-1] <= known[-1]:
        sizes.append(2 * sizes[-1])
    return sizes


def _measured(element: str, threads: int, machine: Machine) -> dict[str, object]:
    kind, itemsize = ELEMENT_TYPES[element].c_type, ELEMENT_TYPES[element].nbytes
    text = Path(__file__).with_name("measure.c").read_text(encoding="utf-8")
    source = f"#define T {kind}\n#define NAMED(name) name\n{text}"
    library = loaded(any_compiler(extra=["-ffast-math"]).build(source))
    library.omp_set_num_threads(threads)
    peak, triad = library.peak_flops, library.triad_bytes
    peak.restype = triad.restype = ctypes.c_double

    def streamed(total_bytes: int, moved_bytes: int, times: int) -> float:
        """Over three arrays for each thread, of `total_bytes` for all threads together."""
        elements = max(total_bytes // (3 * threads * itemsize), 64)
        rounds = max(moved_bytes // (3 * elements * itemsize * threads), 1)
        return triad(ctypes.c_long(elements), ctypes.c_long(rounds), ctypes.c_long(times))

    # Half of a cache: the other half is for what else is there.
    caches = [
        (c.level, streamed(c.nbytes * max(threads // c.shared_by, 1) // 2, _CACHE_BYTES, 20))
        for c in machine.caches
        if c.level > 1
    ]
    last = max((c.nbytes for c in machine.caches), default=0)
    room = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    return {
        "flops": max(peak(ctypes.c_long(_ROUNDS)) for _ in range(40)),
        "triad": streamed(min(max(_LEAST_TRIAD_BYTES, 6 * last), room), 0, 16),
        "vector_bits": library.vector_bits(),
        "caches": caches,
        "streams": [
            (nbytes, streamed(nbytes, _CACHE_BYTES, 20))
            for nbytes in (_sizes(machine) if threads == 1 else ())
        ],
    }


if __name__ == "__main__":
    found = _measured(sys.argv[1], int(sys.argv[2]), this_machine())
    os.write(1, json.dumps(found).encode())
