"""What a machine can do at most, as numbers: arithmetic in registers, and memory that streams.

Measured by `machine/measure.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ceilings:
    """flops_per_s: peak of fused multiply-adds, in vectors of `vector_bits`. bytes_per_s: STREAM
    triad. cache_bytes_per_s: the triad over arrays that fit a cache, by its level. All by `threads`
    threads.
    """

    threads: int
    element: str
    flops_per_s: float
    bytes_per_s: float
    vector_bits: int = 0
    cache_bytes_per_s: tuple[tuple[int, float], ...] = ()

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
