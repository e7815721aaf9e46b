"""What the roofline says of a phase: what bounds it on this machine, and its least time.

Demand, Ceilings -> a line for people. The ceilings are measured ones (`measure_ceilings`), or those
estimated here in some milliseconds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from avial_lab.core.element_types import ITEMSIZE
from avial_lab.machine.constants import CLOCK_HZ, VECTOR_UNITS
from avial_lab.machine.cpu import this_cpu
from avial_lab.machine.demand import Demand


@dataclass(frozen=True)
class Ceilings:
    """flops_per_s: peak of fused multiply-adds, in vectors of `vector_bits`. bytes_per_s: STREAM
    triad. cache_bytes_per_s: the triad over arrays that fit a cache, by its level. All by `threads`
    threads. streams: the triad over so many bytes, from the second cache to the last, for one.
    """

    threads: int
    element: str
    flops_per_s: float
    bytes_per_s: float
    vector_bits: int = 0
    cache_bytes_per_s: tuple[tuple[int, float], ...] = ()
    streams: tuple[tuple[int, float], ...] = ()

    def seconds(self, flops: int, nbytes: int) -> float:
        """The least time that so much work can take: the roofline (Williams et al. 2009)."""
        return max(flops / self.flops_per_s, nbytes / self.bytes_per_s)

    def __str__(self) -> str:
        vectors = f" in vectors of {self.vector_bits} bits" if self.vector_bits else ""
        caches = "".join(
            f", {rate / 1e9:.1f} GB/s (triad in L{level})" for level, rate in self.cache_bytes_per_s
        )
        return (
            f"{self.threads} thread{'s' if self.threads > 1 else ''}, {self.element}: "
            f"{self.flops_per_s / 1e9:.1f} GFLOP/s (fused multiply-adds{vectors}), "
            f"{self.bytes_per_s / 1e9:.1f} GB/s (STREAM triad){caches}"
        )


MOST_BYTES = 1 << 28
"""Of the memory that is copied to see how fast that goes."""


def predicted(demand: Demand, ceilings: Ceilings) -> str:
    """In one line.

    >>> predicted(Demand(2_000_000, 40_000, "f64"), Ceilings(1, "f64", 40e9, 10e9))
    '2 MFLOP on 40 kB: 50 flops a byte, bound by arithmetic; 50 µs at least, at 40 GFLOP/s'
    >>> predicted(Demand(10_000, 160_000, "f64"), Ceilings(1, "f64", 40e9, 10e9))
    '10 kFLOP on 160 kB: 0.0625 flops a byte, bound by memory; 16 µs at least, at 10 GB/s'
    """
    intensity = demand.flops / demand.nbytes if demand.nbytes else float("inf")
    seconds = _scaled(ceilings.seconds(demand.flops, demand.nbytes), "s")
    arithmetic = intensity * ceilings.bytes_per_s >= ceilings.flops_per_s
    bound, rate = "memory", _scaled(ceilings.bytes_per_s, "B/s")
    if arithmetic:
        bound, rate = "arithmetic", _scaled(ceilings.flops_per_s, "FLOP/s")
    return (
        f"{_scaled(demand.flops, 'FLOP')} on {_scaled(demand.nbytes, 'B')}: "
        f"{intensity:.3g} flops a byte, bound by {bound}; {seconds} at least, at {rate}"
    )


_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def _scaled(value: float, unit: str) -> str:
    """Three digits.

    >>> _scaled(0.00123, "s"), _scaled(45.6e9, "B/s"), _scaled(0, "FLOP")
    ('1.23 ms', '45.6 GB/s', '0 FLOP')
    """
    for factor, prefix in _PREFIXES:
        if value >= factor and not (unit == "s" and factor > 1):
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.2g} {unit}"


@cache
def estimated_ceilings(element: str) -> Ceilings:
    """Of one thread, for floats of that type: so many multiply-adds a cycle as registers and units
    allow, at the clock that the kernel reports; and a copy in memory, measured.
    """
    cpu = this_cpu()
    lanes = cpu.lanes(ITEMSIZE[element])
    flops = VECTOR_UNITS * lanes * (2 if cpu.fma else 1) * _clock_hz()
    return Ceilings(1, element, flops, _copied_bytes_per_s(), 8 * cpu.vector_bytes)


def _clock_hz(text: Callable[[], str] = Path("/proc/cpuinfo").read_text) -> float:
    r"""Of the fastest core at this moment.

    >>> _clock_hz(lambda: "cpu MHz : 2000.000\ncpu MHz : 3000.000")
    3000000000.0
    """
    try:
        found = re.findall(r"^cpu MHz\s*:\s*([\d.]+)", text(), re.MULTILINE)
    except OSError:
        found = []
    return max((float(each) * 1e6 for each in found), default=CLOCK_HZ)


@cache
def _copied_bytes_per_s() -> float:
    """What is read and written, the best of a few copies of more than the caches hold."""
    nbytes = min(4 * this_cpu().last_bytes, MOST_BYTES)
    source, target = np.ones(nbytes // 16), np.zeros(nbytes // 16)
    best = 0.0
    for _ in range(5):
        start = time.perf_counter()
        np.copyto(target, source)
        best = max(best, 2 * target.nbytes / (time.perf_counter() - start))
    return best
