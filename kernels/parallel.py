"""`prange` for the peers of the race: Numba's where it is installed, else Python's `range`.

With it the loops in `peers.py` are plain Python, which runs without Numba and says the same.
"""

from __future__ import annotations

__all__ = ["BLOCKS", "prange"]

try:
    from numba import prange
except ImportError:
    prange = range

BLOCKS = 8
"""Into so many parts rows are dealt where every part sums an array of its own."""
