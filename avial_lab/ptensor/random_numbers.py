"""Random numbers that hang on a seed and on their place alone, not on the number of ranks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from avial_lab.ptensor.arrays import Array
from avial_lab.runtime.rank import shards

if TYPE_CHECKING:
    from avial_lab.ptensor.namespace import Namespace


class Random:
    """`xp.random`."""

    def __init__(self, xp: Namespace) -> None:
        self._xp = xp

    def default_rng(self, seed: int) -> Generator:
        """Numbers of that seed, from the first on."""
        return Generator(self._xp, seed)


class Generator:
    """The numbers of `numpy.random.Generator(numpy.random.Philox(seed))`; every rank makes those of
    its own rows.
    """

    def __init__(self, xp: Namespace, seed: int) -> None:
        self._xp = xp
        self._seed = seed
        self._drawn = 0

    def random(self, size: Any = None) -> Array:
        """Float64 in [0, 1), as NumPy's."""
        if size is None:
            return self._xp.reshape(self.random(1), ())
        shape = tuple(size) if isinstance(size, tuple | list) else (size,)
        (made,) = self._xp.connection.step(
            shards.uniform, (), 1, seed=self._seed, drawn=self._drawn, shape=shape
        )
        self._drawn += math.prod(shape)
        return self._xp._around(made)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = None) -> Array:
        """As NumPy computes it: low + (high - low) * random()."""
        return self._xp.add(self._xp.multiply(self.random(size), high - low), low)
