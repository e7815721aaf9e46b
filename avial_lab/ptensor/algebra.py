"""Linear algebra by LAPACK, through NumPy: a stack of matrices where its matrices lie, one matrix
on rank 0.

Arrays -> arrays, by the names of the array API standard's `linalg`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from avial_lab.ptensor.arrays import Array

if TYPE_CHECKING:
    from avial_lab.ptensor.namespace import Namespace


class EighResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    U: Array
    S: Array
    Vh: Array


class Linalg:
    """`xp.linalg`. numpy.linalg.LinAlgError as NumPy raises it, and costs nobody anything."""

    LinAlgError = np.linalg.LinAlgError

    def __init__(self, xp: Namespace) -> None:
        self._xp = xp

    def _of_matrices(
        self, name: str, *operands: Array, results: int = 1, **options: Any
    ) -> tuple[Array, ...]:
        """NumPy's function on stacks of matrices, whose stack dimensions are alike."""
        for x in operands:
            if x.ndim < 2:
                raise np.linalg.LinAlgError(
                    f"{x.ndim}-dimensional array given. Array must be at least two-dimensional"
                )
        first = operands[0]
        return self._xp.mapped(
            f"linalg.{name}", operands, along=(first.ndim - 2, first.ndim - 1),
            places=(0,) * results, options=options,
        )  # fmt: skip

    def _within(self, name: str, x: Array, rtol: Any) -> Array:
        """A function with a tolerance, or one for each matrix, which is divided as they are."""
        if not isinstance(rtol, Array) or x.ndim < 3:
            return self._of_matrices(name, x, **_given(rtol=_here(rtol)))[0]
        each = self._xp.broadcast_to(rtol, x.shape[:-2])
        return self._xp.mapped(
            f"linalg.{name}", [x, each], along=(x.ndim - 2, x.ndim - 1), named=("rtol",)
        )[0]

    # -- decompositions ----------------------------------------------------------------------------

    def cholesky(self, x: Array, /, upper: bool = False) -> Array:
        return self._of_matrices("cholesky", x, upper=upper)[0]

    def eigh(self, x: Array, /) -> EighResult:
        return EighResult(*self._of_matrices("eigh", x, results=2))

    def eigvalsh(self, x: Array, /) -> Array:
        return self._of_matrices("eigvalsh", x)[0]

    def qr(self, x: Array, /, mode: str = "reduced") -> QRResult:
        if mode not in ("reduced", "complete"):
            raise ValueError("mode is 'reduced' or 'complete'")
        return QRResult(*self._of_matrices("qr", x, results=2, mode=mode))

    def svd(self, x: Array, /, full_matrices: bool = True, compute_uv: bool = True) -> Any:
        if not compute_uv:
            return self.svdvals(x)
        return SVDResult(*self._of_matrices("svd", x, results=3, full_matrices=full_matrices))

    def svdvals(self, x: Array, /) -> Array:
        return self._of_matrices("svd", x, compute_uv=False)[0]

    # -- equations ---------------------------------------------------------------------------------

    def det(self, x: Array, /) -> Array:
        return self._of_matrices("det", x)[0]

    def slogdet(self, x: Array, /) -> SlogdetResult:
        return SlogdetResult(*self._of_matrices("slogdet", x, results=2))

    def inv(self, x: Array, /) -> Array:
        return self._of_matrices("inv", x)[0]

    def pinv(self, x: Array, /, rtol: Any = None) -> Array:
        return self._within("pinv", x, rtol)

    def solve(self, x1: Array, x2: Array, /) -> Array:
        if x2.ndim == 1:
            return self.solve(x1, x2[:, None])[..., 0]
        stack = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
        both = [self._xp.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (x1, x2)]
        return self._of_matrices("solve", *both)[0]

    def matrix_rank(self, x: Array, /, rtol: Any = None) -> Array:
        return self._within("matrix_rank", x, rtol)

    def matrix_power(self, x: Array, n: int, /) -> Array:
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
        base = self.inv(x) if n < 0 else x
        made: Array | None = None
        left = abs(n)
        while left:
            if left & 1:
                made = base if made is None else self._xp.matmul(made, base)
            left >>= 1
            if left:
                base = self._xp.matmul(base, base)
        unit = self._xp.eye(x.shape[-1], dtype=x.dtype)
        return self._xp.broadcast_to(unit, x.shape).copy() if made is None else made

    # -- norms -------------------------------------------------------------------------------------

    def matrix_norm(self, x: Array, /, keepdims: bool = False, ord: Any = "fro") -> Array:
        (made,) = self._xp.mapped(
            "linalg.matrix_norm", [x], along=(x.ndim - 2, x.ndim - 1),
            options={"keepdims": keepdims, "ord": ord},
        )  # fmt: skip
        return made

    def vector_norm(
        self, x: Array, /, axis: Any = None, keepdims: bool = False, ord: float = 2
    ) -> Array:
        xp = self._xp
        size = xp.abs(xp.astype(x, float, copy=False) if x.dtype.kind in "iub" else x)
        if ord == np.inf or ord == -np.inf:
            function = xp.max if ord > 0 else xp.min
            return function(size, axis=axis, keepdims=keepdims)
        if ord == 0:
            nonzero = xp.astype(xp.not_equal(size, 0), size.dtype)
            return xp.sum(nonzero, axis=axis, keepdims=keepdims)
        if ord == 1:
            return xp.sum(size, axis=axis, keepdims=keepdims)
        if ord == 2:
            return xp.sqrt(xp.sum(xp.square(size), axis=axis, keepdims=keepdims))
        total = xp.sum(xp.pow(size, float(ord)), axis=axis, keepdims=keepdims)
        return xp.pow(total, 1.0 / ord)

    def norm(self, x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
        """As numpy.linalg.norm."""
        if ord is None:
            return self.vector_norm(x, axis=axis, keepdims=keepdims)
        if (axis is None and x.ndim == 2) or (isinstance(axis, tuple) and len(axis) == 2):
            pair = (0, 1) if axis is None else axis
            moved = self._xp.moveaxis(x, pair, (-2, -1))
            made = self.matrix_norm(moved, keepdims=keepdims, ord=ord)
            return self._xp.moveaxis(made, (-2, -1), pair) if keepdims else made
        return self.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)

    # -- products ----------------------------------------------------------------------------------

    def matmul(self, x1: Array, x2: Array, /) -> Array:
        return self._xp.matmul(x1, x2)

    def tensordot(self, x1: Array, x2: Array, /, axes: Any = 2) -> Array:
        return self._xp.tensordot(x1, x2, axes=axes)

    def vecdot(self, x1: Array, x2: Array, /, axis: int = -1) -> Array:
        return self._xp.vecdot(x1, x2, axis=axis)

    def matrix_transpose(self, x: Array, /) -> Array:
        return x.mT

    def outer(self, x1: Array, x2: Array, /) -> Array:
        if x1.ndim != 1 or x2.ndim != 1:
            raise ValueError("Input arrays must be one-dimensional")
        return self._xp.multiply(x1[:, None], x2[None, :])

    def cross(self, x1: Array, x2: Array, /, axis: int = -1) -> Array:
        xp = self._xp
        shape = np.broadcast_shapes(x1.shape, x2.shape)
        if shape[axis] != 3:
            raise ValueError("Both input arrays must be (arrays of) 3-dimensional vectors")
        left, right = (
            [xp.take(xp.broadcast_to(x, shape), np.array(k), axis=axis) for k in range(3)]
            for x in (x1, x2)
        )
        parts = [
            xp.subtract(
                xp.multiply(left[(k + 1) % 3], right[(k + 2) % 3]),
                xp.multiply(left[(k + 2) % 3], right[(k + 1) % 3]),
            )
            for k in range(3)
        ]
        return xp.stack(parts, axis=axis)

    def diagonal(self, x: Array, /, offset: int = 0) -> Array:
        return self._xp.diagonal(x, offset, -2, -1)

    def trace(self, x: Array, /, offset: int = 0, dtype: Any = None) -> Array:
        return self._xp.sum(self.diagonal(x, offset=offset), axis=-1, dtype=dtype)


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _here(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, Array) else value
