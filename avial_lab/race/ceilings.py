"""What this machine can do at most: arithmetic in registers, and memory that streams.

Threads, element type -> Ceilings, measured here and now by `ceilings.c`, in a process of its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from avial_lab.errors import AvialError
from avial_lab.race.native import any_compiler, loaded
from avial_lab.toolchain import run

_ELEMENTS = {"f32": "float", "f64": "double"}
_TRIAD_BYTES = 3 << 26  # 192 MiB in three arrays: more than the last cache of most machines
_ROUNDS = 4_000_000  # some tenths of a second


@dataclass(frozen=True)
class Ceilings:
    """flops_per_s: peak of fused multiply-adds. bytes_per_s: STREAM triad. By `threads` threads."""

    threads: int
    element: str
    flops_per_s: float
    bytes_per_s: float

    def seconds(self, flops: int, nbytes: int) -> float:
        """The least time that so much work can take: the roofline (Williams et al. 2009)."""
        return max(flops / self.flops_per_s, nbytes / self.bytes_per_s)

    def __str__(self) -> str:
        return (
            f"{self.threads} thread{'s' if self.threads > 1 else ''}, {self.element}: "
            f"{self.flops_per_s / 1e9:.1f} GFLOP/s (fused multiply-adds), "
            f"{self.bytes_per_s / 1e9:.1f} GB/s (STREAM triad)"
        )


def measure_ceilings(threads: int, element: str) -> Ceilings:
    """About a second. Integers have the ceilings of the float as wide, which is close.

    Raises AvialError where there is no C compiler with OpenMP.
    """
    element = {"i32": "f32", "i64": "f64"}.get(element, element)
    command = [sys.executable, "-m", "avial_lab.race.ceilings", element, str(threads)]
    done = run(command, limit_s=120)
    if done.returncode:
        raise AvialError(f"the machine's ceilings could not be measured: {done.complaint}")
    flops, nbytes = json.loads(done.stdout)
    return Ceilings(threads, element, flops, nbytes)


def _measured(element: str, threads: int) -> tuple[float, float]:
    kind = _ELEMENTS[element]
    text = Path(__file__).with_name("ceilings.c").read_text(encoding="utf-8")
    source = f"#define T {kind}\n#define NAMED(name) name\n{text}"
    library = loaded(any_compiler(extra=["-ffast-math"]).build(source))
    library.omp_set_num_threads(threads)
    peak, triad = library.peak_flops, library.triad_bytes
    peak.restype = triad.restype = ctypes.c_double
    elements = (
        _TRIAD_BYTES // 3 // ctypes.sizeof(ctypes.c_float if kind == "float" else ctypes.c_double)
    )
    flops = max(peak(ctypes.c_long(_ROUNDS // 4)) for _ in range(5))
    return flops, triad(ctypes.c_long(elements), ctypes.c_long(8))


if __name__ == "__main__":
    os.write(1, json.dumps(_measured(sys.argv[1], int(sys.argv[2]))).encode())
