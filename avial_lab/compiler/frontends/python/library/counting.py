"""How many elements are of a kind, and where; averages."""

from __future__ import annotations

# ruff: noqa: ANN001, ANN201, ANN202 - NumPy's own signatures
# pyright: basic
import numpy as np

COUNTS_IN_PYTHONS_INTEGERS = type(np.count_nonzero(np.ones(1))) is int
"""NumPy does so before 2.4."""


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


def count_nonzero(a):
    """numpy.count_nonzero of all elements."""
    found = np.sum(a != 0)
    return int(found) if COUNTS_IN_PYTHONS_INTEGERS else found


def flatnonzero(a):
    """numpy.flatnonzero."""
    if a.ndim > 1:
        return flatnonzero(a.flatten())
    out = np.empty(a.shape[0], np.int64)
    count = 0
    for i in range(a.shape[0]):
        if a[i] != 0:
            out[count] = i
            count += 1
    return out[:count]


def nonzero(a):
    """numpy.nonzero of one or two dimensions."""
    if a.ndim == 1:
        return (flatnonzero(a),)
    n, m = a.shape
    rows = np.empty(n * m, np.int64)
    columns = np.empty(n * m, np.int64)
    count = 0
    for i in range(n):
        for j in range(m):
            if a[i, j] != 0:
                rows[count] = i
                columns[count] = j
                count += 1
    return rows[:count], columns[:count]


def average(a, axis=None, weights=None):
    """numpy.average."""
    if weights is None:
        return np.mean(a, axis)
    if axis is not None or a.ndim != weights.ndim:
        raise TypeError("weights have the array's shape here, and there is no axis")
    return np.sum(a * weights) / np.sum(weights)


def nansum(a, axis=None):
    """numpy.nansum."""
    return np.sum(np.where(np.isnan(a), a.dtype.type(0), a), axis)


def nanmean(a):
    """numpy.nanmean of all elements."""
    known = ~np.isnan(a)
    return np.sum(np.where(known, a, a.dtype.type(0))) / np.sum(known)


def nanmax(a):
    """numpy.nanmax of all elements."""
    return _best(a, True)


def nanmin(a):
    """numpy.nanmin of all elements."""
    return _best(a, False)


def _best(a, greatest):
    if a.ndim > 1:
        return _best(a.flatten(), greatest)
    best = a[0]
    for i in range(a.shape[0]):
        value = a[i]
        if best != best or (value > best if greatest else value < best):
            best = value
    return best


def ptp(a, axis=None):
    """numpy.ptp."""
    return np.max(a, axis) - np.min(a, axis)


def position(a, greatest):
    """numpy.argmax and argmin of all elements of two dimensions."""
    n, m = a.shape
    best = a[0, 0]
    found = np.int64(0)
    for i in range(n):
        for j in range(m):
            value = a[i, j]
            better = value > best if greatest else value < best
            if better or (value != value and best == best):
                best = value
                found = np.int64(i * m + j)
    return found


def positions(a, greatest, axis):
    """numpy.argmax and argmin of two dimensions, along one."""
    if axis == 0:
        return positions(a.T, greatest, 1)
    out = np.empty(a.shape[0], np.int64)
    for i in range(a.shape[0]):
        out[i] = np.argmax(a[i]) if greatest else np.argmin(a[i])
    return out
