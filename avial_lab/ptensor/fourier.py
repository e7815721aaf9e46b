"""Discrete Fourier transforms by NumPy's: along a dimension that is not divided, after an exchange
where it was.

Arrays -> arrays, by the names of the array API standard's `fft`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from avial_lab.ptensor.arrays import Array

if TYPE_CHECKING:
    from avial_lab.ptensor.namespace import Namespace


class Fft:
    """`xp.fft`."""

    def __init__(self, xp: Namespace) -> None:
        self._xp = xp

    def fft(
        self, x: Array, /, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Array:
        return self._along("fft", x, n, axis, norm)

    def ifft(
        self, x: Array, /, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Array:
        return self._along("ifft", x, n, axis, norm)

    def rfft(
        self, x: Array, /, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Array:
        return self._along("rfft", x, n, axis, norm)

    def irfft(
        self, x: Array, /, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Array:
        return self._along("irfft", x, n, axis, norm)

    def hfft(
        self, x: Array, /, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Array:
        return self._along("hfft", x, n, axis, norm)

    def ihfft(
        self, x: Array, /, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Array:
        return self._along("ihfft", x, n, axis, norm)

    def fftn(self, x: Array, /, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
        return self._each(("fft", "fft"), x, s, axes, norm)

    def ifftn(self, x: Array, /, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
        return self._each(("ifft", "ifft"), x, s, axes, norm)

    def rfftn(self, x: Array, /, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
        return self._each(("rfft", "fft"), x, s, axes, norm)

    def irfftn(self, x: Array, /, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
        lengths, dims = _lengths(x, s, axes)
        if s is None and dims:
            lengths[-1] = 2 * (lengths[-1] - 1)
        for length, dim in list(zip(lengths, dims, strict=True))[:-1]:
            x = self._along("ifft", x, length, dim, norm)
        return self._along("irfft", x, lengths[-1], dims[-1], norm)

    def fft2(
        self, x: Array, /, s: Any = None, axes: Any = (-2, -1), norm: str = "backward"
    ) -> Array:
        return self.fftn(x, s, axes, norm)

    def ifft2(
        self, x: Array, /, s: Any = None, axes: Any = (-2, -1), norm: str = "backward"
    ) -> Array:
        return self.ifftn(x, s, axes, norm)

    def fftfreq(self, n: int, /, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
        del device
        return self._xp.asarray(np.fft.fftfreq(n, d).astype(dtype or np.float64))

    def rfftfreq(self, n: int, /, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
        del device
        return self._xp.asarray(np.fft.rfftfreq(n, d).astype(dtype or np.float64))

    def fftshift(self, x: Array, /, axes: Any = None) -> Array:
        dims = _dims(x, axes)
        return self._xp.roll(x, tuple(x.shape[d] // 2 for d in dims), axis=dims) if dims else x

    def ifftshift(self, x: Array, /, axes: Any = None) -> Array:
        dims = _dims(x, axes)
        return self._xp.roll(x, tuple(-(x.shape[d] // 2) for d in dims), axis=dims) if dims else x

    def _each(self, names: tuple[str, str], x: Array, s: Any, axes: Any, norm: str) -> Array:
        """The first on the last dimension, the second on the others, backwards as NumPy does it."""
        lengths, dims = _lengths(x, s, axes)
        last = True
        for length, dim in reversed(list(zip(lengths, dims, strict=True))):
            x = self._along(names[0] if last else names[1], x, length, dim, norm)
            last = False
        return x

    def _along(self, name: str, x: Array, n: int | None, axis: int, norm: str) -> Array:
        if not -x.ndim <= axis < x.ndim:
            raise np.exceptions.AxisError(axis, x.ndim)
        at = axis % x.ndim
        (made,) = self._xp.mapped(
            f"fft.{name}", [x], along=(at,), options={"n": n, "axis": at, "norm": norm}
        )
        return made


def _dims(x: Array, axes: Any) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(x.ndim))
    return tuple(a % x.ndim for a in (axes if isinstance(axes, Sequence) else (axes,)))


def _lengths(x: Array, s: Any, axes: Any) -> tuple[list[int], tuple[int, ...]]:
    """How many elements along which dimensions."""
    dims = _dims(x, axes)
    if s is None:
        return [x.shape[d] for d in dims], dims
    if axes is None:
        dims = dims[len(dims) - len(s) :]
    if len(s) != len(dims):
        raise ValueError("Shape and axes have different lengths.")
    return [x.shape[d] if n == -1 else int(n) for n, d in zip(s, dims, strict=True)], dims
