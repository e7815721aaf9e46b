"""Random numbers that hang on a seed and on their place alone, not on the number of ranks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from avial_lab.ptensor.arrays import Array
from avial_lab.runtime.rank import shards

if TYPE_CHECKING:
    from avial_lab.ptensor.namespace import Namespace


class Random:
    """`xp.random`; NumPy's older functions, too, whose numbers are those of `numpy.random` of the
    same seed. Without one it is another every time, and the same on all ranks.
    """

    def __init__(self, xp: Namespace) -> None:
        self._xp = xp
        self._older: np.random.RandomState | None = None

    def default_rng(self, seed: Any = None) -> Generator:
        """NumPy's generator of that seed, from the first number on."""
        if isinstance(seed, Generator):
            return seed
        return self.Generator(
            np.random.default_rng(self._xp.connection.seed() if seed is None else seed)
        )

    def Generator(self, bits: Any) -> Generator:
        """Of NumPy's bits: `xp.random.Generator(xp.random.Philox(seed))`."""
        return Generator(
            self._xp,
            bits if isinstance(bits, np.random.Generator) else np.random.Generator(bits),
        )

    def seed(self, seed: int | None = None) -> None:
        self._older = np.random.RandomState(self._xp.connection.seed() if seed is None else seed)

    def RandomState(self, seed: int | None = None) -> Random:
        """NumPy's older generator, apart from the one that `seed` is for."""
        made = Random(self._xp)
        made.seed(seed)
        return made

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in _BITS:
            return getattr(np.random, name)
        if name.startswith("_") or not hasattr(np.random.RandomState, name):
            raise AttributeError(f"random.{name} is not supported for arrays on ranks")
        if self._older is None:
            self.seed()
        return _brought(self._xp, self._older, name)


class Generator:
    """The numbers of NumPy's generator; of `random` and `uniform` every rank makes those of its own
    rows, of the rest all of them, and keeps its rows.
    """

    def __init__(self, xp: Namespace, numpys: np.random.Generator) -> None:
        self._xp = xp
        self._numpys = numpys

    @property
    def bit_generator(self) -> np.random.BitGenerator:
        """NumPy's, here."""
        return self._numpys.bit_generator

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """In [0, 1), as NumPy's."""
        bits = self._numpys.bit_generator
        name = type(bits).__name__
        shape = tuple(size) if isinstance(size, tuple | list) else (size,)
        if out is not None:
            out[...] = self.random(out.shape, out.dtype)
            return out
        if size is None or not shape or np.dtype(dtype) != np.float64:
            return _brought(self._xp, self._numpys, "random")(size, dtype)
        if name not in shards.ADVANCING:
            return self._xp.asarray(self._numpys.random(size))
        (made,) = self._xp.connection.step(
            shards.uniform, (), 1, generator=name, state=bits.state, shape=shape
        )
        shards.pass_over(bits, math.prod(shape))
        return self._xp._around(made)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """As NumPy computes it: low + (high - low) * random()."""
        if size is None or not (isinstance(low, int | float) and isinstance(high, int | float)):
            return _brought(self._xp, self._numpys, "uniform")(low, high, size)
        return self._xp.add(self._xp.multiply(self.random(size), high - low), low)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or not hasattr(np.random.Generator, name):
            raise AttributeError(f"a generator of numbers on ranks has no {name}")
        return _brought(self._xp, self._numpys, name)


def _brought(xp: Namespace, generator: Any, name: str) -> Callable[..., Any]:
    """NumPy's method: what it draws here is brought to the ranks."""

    def method(*args: Any, **given: Any) -> Any:
        if args and isinstance(args[0], Array):
            if name == "shuffle":
                axis = (*args[1:], given.get("axis", 0))[0]
                order = np.arange(args[0].shape[axis])
                generator.shuffle(order)
                args[0][...] = xp.take(args[0], order, axis=axis)
                return None
            if name in ("permutation", "choice"):
                return xp.take(
                    args[0], getattr(generator, name)(len(args[0]), *args[1:], **given), axis=0
                )
            args = tuple(np.asarray(each) if isinstance(each, Array) else each for each in args)
        given = {k: np.asarray(v) if isinstance(v, Array) else v for k, v in given.items()}
        drawn = getattr(generator, name)(*args, **given)
        return xp.asarray(drawn) if isinstance(drawn, np.ndarray) else drawn

    return method


_BITS = ("BitGenerator", "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64", "SeedSequence")
"""NumPy's classes that a generator is made of."""
