"""Functions of NumPy's, written in the Python that programs are made of.

They are never run: a call of NumPy's function is translated as a call of these.
"""

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
    apart = m - np.mean(m, axis=1, keepdims=True)
    return apart @ apart.T / (m.shape[1] - 1)


def histogram(a, bins=10, weights=None):
    """numpy.histogram with equal bins, by NumPy's own rule for elements at an edge."""
    low = np.min(a)
    high = np.max(a)
    edges = np.linspace(low, high, bins + 1)
    if weights is None:
        counts = np.zeros(bins, np.int64)
    else:
        counts = np.zeros(bins, weights.dtype)
    scale = bins / (high - low)
    for i in range(a.shape[0]):
        k = int((a[i] - low) * scale)
        if k == bins:
            k = k - 1
        if a[i] < edges[k]:
            k = k - 1
        if k != bins - 1 and a[i] >= edges[k + 1]:
            k = k + 1
        if weights is None:
            counts[k] += 1
        else:
            counts[k] += weights[i]
    return counts, edges
