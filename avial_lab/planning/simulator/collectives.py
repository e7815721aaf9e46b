"""What MPI does for one call of all ranks: how many rounds, and how many bytes through each rank.

A collective, its ranks and bytes -> Rounds, by the algorithm that MPICH picks (Thakur,
Rabenseifner, Gropp 2005; the limits are those of MPICH's `MPIR_CVAR_BCAST_…` and
`MPIR_CVAR_ALLGATHER_…`).
"""

from __future__ import annotations

from dataclasses import dataclass

SHORT_BROADCAST, LONG_BROADCAST, FEW_RANKS = 12_288, 524_288, 8
SHORT_GATHER, LONG_GATHER = 81_920, 524_288


@dataclass(frozen=True)
class Rounds:
    """`rounds` one after the other, each with the latency of a message; meanwhile `nbytes` go
    through the link of each rank.
    """

    algorithm: str
    rounds: int
    nbytes: float


def broadcast(ranks: int, nbytes: int) -> Rounds:
    """From one rank to all others.

    >>> broadcast(1024, 8), broadcast(1024, 1 << 20)
    ... # doctest: +NORMALIZE_WHITESPACE
    (Rounds(algorithm='binomial tree', rounds=10, nbytes=80),
     Rounds(algorithm='scatter and ring', rounds=1033, nbytes=2095104.0))
    """
    steps = _log2(ranks)
    if nbytes < SHORT_BROADCAST or ranks < FEW_RANKS:
        return Rounds("binomial tree", steps, steps * nbytes)
    twice = 2 * nbytes * (ranks - 1) / ranks
    if nbytes < LONG_BROADCAST and ranks & (ranks - 1) == 0:
        return Rounds("scatter and recursive doubling", 2 * steps, twice)
    return Rounds("scatter and ring", steps + ranks - 1, twice)


def gather_to_all(ranks: int, total: int) -> Rounds:
    """Every rank gets what the others have, `total` bytes with its own; `nbytes` counts its own."""
    steps = _log2(ranks)
    if total < LONG_GATHER and ranks & (ranks - 1) == 0:
        return Rounds("recursive doubling", steps, total)
    if total < SHORT_GATHER:
        return Rounds("Bruck", steps, total)
    return Rounds("ring", ranks - 1, total)


def barrier(ranks: int) -> Rounds:
    """Dissemination (Hensgen, Finkel, Manber 1988)."""
    return Rounds("dissemination", _log2(ranks), 0)


def _log2(ranks: int) -> int:
    """Of the power of two that has room for all."""
    return max(ranks - 1, 0).bit_length()
