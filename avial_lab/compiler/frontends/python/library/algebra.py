"""Linear algebra."""

from __future__ import annotations

# ruff: noqa: ANN001, ANN201, E741 - NumPy's own names and signatures
# pyright: basic
import numpy as np


def cholesky(a):
    """numpy.linalg.cholesky (Golub, Van Loan, Matrix Computations, 4.2)."""
    n = a.shape[0]
    l = np.zeros((n, n), a.dtype)
    for i in range(n):
        for j in range(i):
            s = a[i, j]
            for k in range(j):
                s -= l[i, k] * l[j, k]
            l[i, j] = s / l[j, j]
        d = a[i, i]
        for k in range(i):
            d -= l[i, k] * l[i, k]
        l[i, i] = np.sqrt(d)
    return l


def solve(a, b):
    """numpy.linalg.solve: elimination with partial pivoting (Golub, Van Loan, 3.4)."""
    n = a.shape[0]
    lu = a.copy()
    x = np.zeros(b.shape, (lu[0, 0] + b.flatten()[0]).dtype)
    x[:] = b
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(lu[i, k]) > abs(lu[p, k]):
                p = i
        for j in range(n):
            t = lu[k, j]
            lu[k, j] = lu[p, j]
            lu[p, j] = t
        row = x[k].copy() if x.ndim > 1 else x[k]
        x[k] = x[p]
        x[p] = row
        for i in range(k + 1, n):
            f = lu[i, k] / lu[k, k]
            for j in range(k, n):
                lu[i, j] -= f * lu[k, j]
            x[i] -= f * x[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= lu[i, j] * x[j]
        x[i] = x[i] / lu[i, i]
    return x


def inv(a):
    """numpy.linalg.inv."""
    return solve(a, np.eye(a.shape[0], dtype=a.dtype))


def cov(m):
    """numpy.cov of rows of observations."""
    m = m * np.float64(1)
    apart = m - np.mean(m, axis=1, keepdims=True)
    return apart @ apart.T / (m.shape[1] - 1)


def corrcoef(x):
    """numpy.corrcoef of rows of observations."""
    c = cov(x)
    d = np.sqrt(np.diagonal(c))
    return c / d[:, None] / d[None, :]


def det(a):
    """numpy.linalg.det: the pivots of an elimination (Golub, Van Loan, 3.4)."""
    n = a.shape[0]
    lu = a * 1.0
    found = lu.dtype.type(1)
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(lu[i, k]) > abs(lu[p, k]):
                p = i
        if p != k:
            found = -found
            for j in range(n):
                t = lu[k, j]
                lu[k, j] = lu[p, j]
                lu[p, j] = t
        found *= lu[k, k]
        if lu[k, k] != 0:
            for i in range(k + 1, n):
                f = lu[i, k] / lu[k, k]
                for j in range(k + 1, n):
                    lu[i, j] -= f * lu[k, j]
    return found


def norm(x, ord=None, axis=None):
    """numpy.linalg.norm: the root of the sum of squares, and 1 and inf of vectors."""
    if ord is None or (ord == 2 and (x.ndim == 1 or axis is not None)):
        return np.sqrt(np.sum(np.abs(x) ** 2, axis))
    if x.ndim > 1 and axis is None:
        raise TypeError("norms of matrices are those of Frobenius here")
    if ord == 1:
        return np.sum(np.abs(x), axis)
    if ord == np.inf:
        return np.max(np.abs(x), axis)
    raise TypeError("norms of vectors are 1, 2 and inf here")


def matrix_power(a, n):
    """numpy.linalg.matrix_power."""
    if n == 0:
        return np.eye(a.shape[0], dtype=a.dtype)
    if n < 0:
        return matrix_power(inv(a), -n)
    if n == 1:
        return a.copy()
    half = matrix_power(a, n // 2)
    return half @ half @ a if n % 2 else half @ half


def trace(a, offset=0):
    """numpy.trace."""
    return np.sum(np.diagonal(a, offset))


def diag(v, k=0):
    """numpy.diag: the diagonal of a matrix, or a matrix of one."""
    if v.ndim == 2:
        return np.diagonal(v, k)
    n = v.shape[0]
    out = np.zeros((n + abs(k), n + abs(k)), v.dtype)
    for i in range(n):
        out[i + max(-k, 0), i + max(k, 0)] = v[i]
    return out


def fill_diagonal(a, val):
    """numpy.fill_diagonal of two dimensions with a number."""
    for i in range(min(a.shape[0], a.shape[1])):
        a[i, i] = val


def vdot(a, b):
    """numpy.vdot of one dimension."""
    return np.sum(np.conj(a) * b)


def inner(a, b):
    """numpy.inner of one dimension."""
    if a.ndim != 1 or b.ndim != 1:
        raise TypeError("np.inner takes one dimension here")
    return np.dot(a, b)


def cross(a, b):
    """numpy.cross of three components."""
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


def kron(a, b):
    """numpy.kron of one or two dimensions."""
    if a.ndim == 1:
        n, m = a.shape[0], b.shape[0]
        row = np.empty(n * m, (a[:1] * b[:1]).dtype)
        for i in range(n):
            for j in range(m):
                row[i * m + j] = a[i] * b[j]
        return row
    rows, columns = b.shape
    out = np.empty((a.shape[0] * rows, a.shape[1] * columns), (a[:1, :1] * b[:1, :1]).dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(rows):
                for l in range(columns):
                    out[i * rows + k, j * columns + l] = a[i, j] * b[k, l]
    return out


def vander(x, N=None):  # noqa: N803 - as NumPy calls it
    """numpy.vander, falling powers."""
    columns = x.shape[0] if N is None else N
    out = np.ones((x.shape[0], columns), np.promote_types(x.dtype, np.int64))
    for i in range(x.shape[0]):
        for j in range(columns - 2, -1, -1):
            out[i, j] = out[i, j + 1] * x[i]
    return out


def identity(n, dtype=np.float64):
    """numpy.identity."""
    return np.eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=np.float64):  # noqa: N803 - as NumPy calls it
    """numpy.tri."""
    return np.tril(np.ones((N, N if M is None else M), dtype), k)


def polyval(p, x):
    """numpy.polyval, by Horner's rule."""
    x = np.asarray(x)
    y = x * 0
    for k in range(p.shape[0]):
        y = y * x + p[k]
    return y
