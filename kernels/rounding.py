"""How large rounding errors can be: numbers that carry a bound on their own.

A computation written in NumPy -> the same computation, with an error for each element.

A running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, section 3.3), with
one change: a chain of additions remembers how many terms it has and the sum of their magnitudes, so
that its bound, k · eps · Σ|terms|, holds for every order of the terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import ArrayLike


class Rounded(NDArrayOperatorsMixin):
    """An array of computed sums.

    value      in double precision
    magnitude  Σ|terms| of the chain of additions that made it
    additions  how many there were
    inherited  what the terms' own errors add up to
    dtype      the type whose rounding is bounded
    """

    def __init__(
        self,
        value: ArrayLike,
        magnitude: ArrayLike,
        additions: ArrayLike,
        inherited: ArrayLike,
        dtype: np.dtype[Any],
    ) -> None:
        self.value, self.magnitude = np.asarray(value), np.asarray(magnitude)
        self.additions, self.inherited = np.asarray(additions), np.asarray(inherited)
        self.dtype = dtype

    @classmethod
    def of(cls, array: ArrayLike, *, dtype: np.dtype[Any], error: ArrayLike = 0.0) -> Rounded:
        """`array`, each element off by at most `error`."""
        value = np.array(array, np.float64)
        zero = np.zeros(value.shape)
        return cls(value, np.abs(value), zero, zero + np.asarray(error), dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def error(self) -> np.ndarray:
        """How far each element may be from what exact arithmetic gives."""
        eps = float(np.finfo(self.dtype).eps)
        own = np.where(self.additions > 0, self.additions * eps * self.magnitude, 0.0)
        result: np.ndarray = self.inherited + own
        return result

    def copy(self) -> Rounded:
        return Rounded(
            np.array(self.value),
            np.array(self.magnitude),
            np.array(self.additions),
            np.array(self.inherited),
            self.dtype,
        )

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: Index) -> Rounded:
        return Rounded(
            self.value[index],
            self.magnitude[index],
            self.additions[index],
            self.inherited[index],
            self.dtype,
        )

    def __setitem__(self, index: Index, new: Operand) -> None:
        lifted = _lift(new, self.dtype)
        self.value[index] = lifted.value
        self.magnitude[index] = lifted.magnitude
        self.additions[index] = lifted.additions
        self.inherited[index] = lifted.inherited

    def __array_ufunc__(
        self,
        ufunc: np.ufunc,
        method: str,
        *inputs: Operand,
        out: tuple[Rounded] | None = None,
        **options: object,
    ) -> Rounded | np.ndarray:
        if method != "__call__" or ufunc not in _RULES or options:
            return NotImplemented
        result = _RULES[ufunc](*(_lift(item, self.dtype) for item in inputs))
        if out is None or out[0].shape == ():
            return result  # of a scalar, `w -= x` makes a new one, as NumPy's own do
        out[0][...] = result
        return out[0]


Operand = Rounded | ArrayLike
Index = Any
"""Whatever NumPy takes as an index."""


def _lift(item: Operand, dtype: np.dtype[Any]) -> Rounded:
    return item if isinstance(item, Rounded) else Rounded.of(item, dtype=dtype)


def _leaf(
    value: np.ndarray, error: np.ndarray, dtype: np.dtype[Any], *, roundings: float = 1.0
) -> Rounded:
    eps = float(np.finfo(dtype).eps)
    return Rounded.of(value, error=error + roundings * eps * np.abs(value), dtype=dtype)


def _add(x: Rounded, y: Rounded) -> Rounded:
    return Rounded(
        x.value + y.value,
        x.magnitude + y.magnitude,
        x.additions + y.additions + 1,
        x.inherited + y.inherited,
        x.dtype,
    )


def _negative(x: Rounded) -> Rounded:
    return Rounded(-x.value, x.magnitude, x.additions, x.inherited, x.dtype)


def _multiply(x: Rounded, y: Rounded) -> Rounded:
    ex, ey = x.error(), y.error()
    return _leaf(x.value * y.value, np.abs(x.value) * ey + np.abs(y.value) * ex + ex * ey, x.dtype)


def _divide(x: Rounded, y: Rounded) -> Rounded:
    ex, ey = x.error(), y.error()
    value = x.value / y.value
    room = np.abs(y.value) - ey
    error = np.where(room > 0, (ex + np.abs(value) * ey) / room, np.inf)
    return _leaf(value, error, x.dtype)


def _sqrt(x: Rounded) -> Rounded:
    error = x.error()
    root = np.sqrt(x.value)
    # |√a - √b| is at most |a - b| / √a and at most √|a - b|
    return _leaf(root, np.fmin(error / root, np.sqrt(error)), x.dtype)


def _larger(x: Rounded, y: Rounded) -> Rounded:
    return _leaf(
        np.maximum(x.value, y.value), np.maximum(x.error(), y.error()), x.dtype, roundings=0
    )


def _smaller(x: Rounded, y: Rounded) -> Rounded:
    return _leaf(
        np.minimum(x.value, y.value), np.maximum(x.error(), y.error()), x.dtype, roundings=0
    )


_RULES: dict[np.ufunc, Callable[..., Rounded | np.ndarray]] = {
    np.add: _add,
    np.subtract: lambda x, y: _add(x, _negative(y)),
    np.negative: _negative,
    np.multiply: _multiply,
    np.true_divide: _divide,
    np.sqrt: _sqrt,
    np.maximum: _larger,
    np.minimum: _smaller,
    np.less_equal: lambda x, y: x.value <= y.value,
    np.less: lambda x, y: x.value < y.value,
}
