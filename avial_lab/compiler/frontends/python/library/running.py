"""Sums along a row, differences, and what a window does."""

from __future__ import annotations

# ruff: noqa: ANN001, ANN201, ANN202 - NumPy's own signatures
# pyright: basic
import numpy as np


def cumsum(a, axis=None, dtype=None):
    """numpy.cumsum."""
    return _running(a, axis, dtype, True)


def cumprod(a, axis=None, dtype=None):
    """numpy.cumprod."""
    return _running(a, axis, dtype, False)


def sums(array, axis=0, dtype=None):
    """numpy.add.accumulate."""
    return _running(array, axis, dtype, True)


def products(array, axis=0, dtype=None):
    """numpy.multiply.accumulate."""
    return _running(array, axis, dtype, False)


def _running(a, axis, dtype, adds):
    if axis is None and a.ndim > 1:
        return _running(a.flatten(), 0, dtype, adds)
    if axis is not None and (axis + a.ndim) % a.ndim != a.ndim - 1:
        return _running(np.swapaxes(a, axis, -1), -1, dtype, adds).swapaxes(axis, -1)
    if dtype is None:
        out = np.zeros(a.shape, np.sum(a).dtype)
    else:
        out = np.zeros(a.shape, dtype)
    if a.ndim > 1:
        for i in range(a.shape[0]):
            out[i] = _running(a[i], -1, out.dtype, adds)
        return out
    total = out.dtype.type(0 if adds else 1)
    for i in range(a.shape[0]):
        if adds:
            total += a[i]
        else:
            total *= a[i]
        out[i] = total
    return out


def diff(a, n=1, axis=-1):
    """numpy.diff."""
    if n == 0:
        return a
    if n > 1:
        return diff(diff(a, n - 1, axis), 1, axis)
    if (axis + a.ndim) % a.ndim != a.ndim - 1:
        return np.swapaxes(diff(np.swapaxes(a, axis, -1)), axis, -1)
    if a.dtype.kind == "b":
        return a[..., 1:] != a[..., :-1]
    return a[..., 1:] - a[..., :-1]


def ediff1d(ary):
    """numpy.ediff1d of one dimension."""
    return ary[1:] - ary[:-1]


def correlate(a, v, mode="valid"):
    """numpy.correlate: one is moved along the other."""
    if v.shape[0] > a.shape[0]:
        return correlate(v, a, mode)[::-1]
    n, m = a.shape[0], v.shape[0]
    if m == 0:
        raise ValueError("v cannot be empty")
    if mode == "valid":
        first, count = m - 1, n - m + 1
    elif mode == "same":
        first, count = (m - 1) - (m // 2), n
    else:
        first, count = 0, n + m - 1
    out = np.zeros(count, (a[:1] * v[:1]).dtype)
    for i in range(count):
        at = i + first - (m - 1)
        for k in range(m):
            if at + k >= 0 and at + k < n:
                out[i] += a[at + k] * np.conj(v[k])
    return out


def convolve(a, v, mode="full"):
    """numpy.convolve."""
    if v.shape[0] > a.shape[0]:
        return convolve(v, a, mode)
    n, m = a.shape[0], v.shape[0]
    if m == 0:
        raise ValueError("v cannot be empty")
    if mode == "valid":
        first, count = m - 1, n - m + 1
    elif mode == "same":
        first, count = (m - 1) // 2, n
    else:
        first, count = 0, n + m - 1
    out = np.zeros(count, (a[:1] * v[:1]).dtype)
    for i in range(count):
        at = i + first
        for k in range(m):
            if at - k >= 0 and at - k < n:
                out[i] += a[at - k] * v[k]
    return out


def interp(x, xp, fp, left=None, right=None):
    """numpy.interp: between the two points beside it, in NumPy's order of operations."""
    if np.ndim(x) > 0:
        out = np.zeros(x.shape[0])
        for i in range(x.shape[0]):
            out[i] = interp(x[i], xp, fp, left, right)
        return out
    n = xp.shape[0]
    below = float(fp[0]) if left is None else float(left)
    above = float(fp[n - 1]) if right is None else float(right)
    low = 0
    high = n
    while low < high:  # how many points are not above it
        middle = (low + high) // 2
        if xp[middle] <= x:
            low = middle + 1
        else:
            high = middle
    x = np.float64(x)
    found = x
    if low == 0:
        if x == x:
            found = np.float64(below)
    elif low == n:
        found = np.float64(fp[n - 1]) if x == xp[n - 1] else np.float64(above)
    elif xp[low - 1] == x:
        found = np.float64(fp[low - 1])
    else:
        j = low - 1
        x0, x1 = np.float64(xp[j]), np.float64(xp[j + 1])
        y0, y1 = np.float64(fp[j]), np.float64(fp[j + 1])
        slope = (y1 - y0) / (x1 - x0)
        found = slope * (x - x0) + y0
        if found != found:
            found = slope * (x - x1) + y1
            if found != found and fp[j] == fp[j + 1]:
                found = np.float64(fp[j])
    return found


def trapezoid(y, x=None, dx=1.0):
    """numpy.trapezoid along one dimension."""
    if x is None:
        return (dx * (y[1:] + y[:-1]) / 2.0).sum()
    return ((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2.0).sum()


def growing(a):
    """numpy.maximum.accumulate of one dimension."""
    out = a.copy()
    for i in range(1, a.shape[0]):
        out[i] = np.maximum(out[i - 1], a[i])
    return out


def falling(a):
    """numpy.minimum.accumulate of one dimension."""
    out = a.copy()
    for i in range(1, a.shape[0]):
        out[i] = np.minimum(out[i - 1], a[i])
    return out


def add_at(a, indices, b):
    """numpy.add.at of one dimension."""
    for i in range(indices.shape[0]):
        a[indices[i]] += b if np.ndim(b) == 0 else b[i]


def subtract_at(a, indices, b):
    """numpy.subtract.at of one dimension."""
    for i in range(indices.shape[0]):
        a[indices[i]] -= b if np.ndim(b) == 0 else b[i]
