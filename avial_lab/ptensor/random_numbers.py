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

    def default_rng(self, seed: int | None = None) -> Generator:
        """Numbers of that seed, from the first on."""
        return Generator(self._xp, self._xp.connection.seed() if seed is None else seed)

    def seed(self, seed: int | None = None) -> None:
        self._older = np.random.RandomState(self._xp.connection.seed() if seed is None else seed)

    def RandomState(self, seed: int | None = None) -> Random:
        """NumPy's older generator, apart from the one that `seed` is for."""
        made = Random(self._xp)
        made.seed(seed)
        return made

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or not hasattr(np.random.RandomState, name):
            raise AttributeError(f"random.{name} is not supported for arrays on ranks")
        if self._older is None:
            self.seed()
        return _brought(self._xp, self._older, name)


class Generator:
    """The numbers of `numpy.random.Generator(numpy.random.Philox(seed))`; of `random` and `uniform`
    every rank makes those of its own rows, of the rest all of them, and keeps its rows.
    """

    def __init__(self, xp: Namespace, seed: int) -> None:
        self._xp = xp
        self._seed = seed
        self._numpys = np.random.Generator(np.random.Philox(seed))

    def random(self, size: Any = None) -> Array:
        """Float64 in [0, 1), as NumPy's."""
        if size is None:
            return self._xp.reshape(self.random(1), ())
        shape = tuple(size) if isinstance(size, tuple | list) else (size,)
        (made,) = self._xp.connection.step(
            shards.uniform, (), 1, seed=self._seed, drawn=_drawn(self._numpys), shape=shape
        )
        _pass_over(self._numpys, math.prod(shape))
        return self._xp._around(made)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = None) -> Array:
        """As NumPy computes it: low + (high - low) * random()."""
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
                args[0][...] = xp.take(args[0], generator.permutation(len(args[0])), axis=0)
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


def _drawn(generator: np.random.Generator) -> int:
    """Words of 64 bits that Philox has given."""
    state: Any = generator.bit_generator.state
    blocks = sum(int(word) << 64 * k for k, word in enumerate(state["state"]["counter"]))
    return blocks * shards.PHILOX_WORDS - (shards.PHILOX_WORDS - state["buffer_pos"])


def _pass_over(generator: np.random.Generator, words: int) -> None:
    """Philox begins a block anew where it advances."""
    bits: Any = generator.bit_generator
    drawn = _drawn(generator) + words
    before = bits.state
    fresh: Any = np.random.Philox(0)
    fresh.state = {
        **before,
        "buffer_pos": shards.PHILOX_WORDS,
        "state": {**before["state"], "counter": np.zeros(4, np.uint64)},
    }
    fresh.advance(drawn // shards.PHILOX_WORDS)
    fresh.random_raw(drawn % shards.PHILOX_WORDS)
    after = fresh.state
    bits.state = {**after, "has_uint32": before["has_uint32"], "uinteger": before["uinteger"]}
