"""How n devices add up what each of them has a part of, so that all have the sum.

Algorithm, devices, bytes -> rounds, bytes, seconds.

    ring      (n - 1) rounds of an n-th each; then everybody reads the blocks of the others
    tree      ceil(log2 n) rounds of all of it to the first device; then everybody reads it there
    doubling  log2 n rounds in which pairs exchange all of it; of the devices over a power of two
              each gives its part to one below, and gets the sum from there

Ring: Patarasuk and Yuan 2009. Recursive doubling, with the devices over a power of two folded in:
Thakur, Rabenseifner, Gropp 2005, section 4.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class SumBy(enum.Enum):
    RING = "ring"
    TREE = "tree"
    DOUBLING = "doubling"


@dataclass(frozen=True)
class SumCost:
    """`rounds` of messages one after the other, through the busiest link `nbytes` meanwhile;
    sent_bytes: of all devices together.
    """

    by: SumBy
    rounds: int
    nbytes: float
    sent_bytes: float

    def seconds(self, latency_s: float, bytes_per_s: float) -> float:
        return self.rounds * latency_s + self.nbytes / bytes_per_s


def cost_of_sum(by: SumBy, devices: int, nbytes: int) -> SumCost:
    """Of one device nothing moves.

    >>> cost_of_sum(SumBy.DOUBLING, 4, 100)
    SumCost(by=<SumBy.DOUBLING: 'doubling'>, rounds=2, nbytes=200, sent_bytes=800)
    """
    n, log2 = devices, (devices - 1).bit_length()
    if by is SumBy.RING:
        each = (n - 1) / n * nbytes
        return SumCost(by, 2 * (n - 1), 2 * each, 2 * n * each)
    if by is SumBy.TREE:
        rounds = log2 + (1 if n > 1 else 0)
        return SumCost(by, rounds, (log2 + n - 1) * nbytes, 2 * (n - 1) * nbytes)
    most, over = power_below(n)
    rounds = most.bit_length() - 1
    sent = (most * rounds + 2 * over) * nbytes
    rounds += 2 if over else 0
    return SumCost(by, rounds, rounds * nbytes, sent)


def power_below(devices: int) -> tuple[int, int]:
    """The largest power of two that so many devices make up, and how many are left."""
    most = 1 << (devices.bit_length() - 1)
    return most, devices - most


def fastest_sum(
    devices: int, nbytes: int, latency_s: float, bytes_per_s: float
) -> tuple[SumCost, ...]:
    """All of them, the fastest first; of equally fast ones the ring."""
    costs = [cost_of_sum(by, devices, nbytes) for by in SumBy]
    return tuple(sorted(costs, key=lambda each: each.seconds(latency_s, bytes_per_s)))
