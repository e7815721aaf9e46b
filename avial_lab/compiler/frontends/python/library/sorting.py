"""What is done by an order of the elements. Numbers that are none come last, as in NumPy; equals
keep their order.
"""

from __future__ import annotations

# ruff: noqa: ANN001, ANN201, ANN202 - NumPy's own signatures
# pyright: basic
import numpy as np


def _comes_before(x, y):
    return x < y or (y != y and x == x)


def sort(a, axis=-1, kind=None, stable=None):
    """numpy.sort."""
    if axis is None:
        return sort(a.flatten())
    if (axis + a.ndim) % a.ndim != a.ndim - 1:
        return np.swapaxes(sort(np.swapaxes(a, axis, -1)), axis, -1)
    if a.ndim > 1:
        out = np.empty_like(a)
        for i in range(a.shape[0]):
            out[i] = sort(a[i])
        return out
    return _merged(a.copy(), lambda x: x)


def sort_in_place(a, axis=-1, kind=None):
    """numpy.ndarray.sort."""
    a[...] = sort(a, axis)


def _merged(old, key):
    """`old`, in order of `key` of its elements: merge sort, from pairs up (Knuth, The Art of
    Computer Programming 3, 5.2.4, algorithm S).
    """
    n = old.shape[0]
    new = np.empty_like(old)
    width = 1
    while width < n:
        low = 0
        while low < n:
            middle = min(low + width, n)
            high = min(low + 2 * width, n)
            i = low
            j = middle
            for k in range(low, high):
                left = j >= high
                if i < middle and not left:
                    left = not _comes_before(key(old[j]), key(old[i]))
                if left:
                    new[k] = old[i]
                    i += 1
                else:
                    new[k] = old[j]
                    j += 1
            low = high
        old[:] = new
        width = 2 * width
    return old


def argsort(a, axis=-1, kind=None, stable=None):
    """numpy.argsort, a stable one."""
    if a.ndim > 1:
        if (axis + a.ndim) % a.ndim != a.ndim - 1:
            return np.swapaxes(argsort(np.swapaxes(a, axis, -1)), axis, -1)
        rows = np.empty(a.shape, np.int64)
        for r in range(a.shape[0]):
            rows[r] = argsort(a[r])
        return rows
    return _merged(np.arange(a.shape[0]), lambda k: a[k])


def median(a):
    """numpy.median of all elements."""
    if a.ndim > 1:
        return median(a.flatten())
    ordered = sort(a)
    n = ordered.shape[0]
    middle = n // 2
    found = np.mean(ordered[middle : middle + 1])
    if n % 2 == 0:
        found = np.mean(ordered[middle - 1 : middle + 1])
    last = ordered[n - 1]
    if last != last:
        found = found * 0 + np.nan
    return found


def percentile(a, q):
    """numpy.percentile by linear interpolation."""
    return quantile(a, q / 100)


def quantile(a, q):
    """numpy.quantile by linear interpolation, rounded as NumPy does."""
    if a.ndim > 1:
        return quantile(a.flatten(), q)
    ordered = sort(a)
    if np.ndim(q) > 0:
        out = np.zeros(q.shape[0])
        for i in range(q.shape[0]):
            out[i] = _between(ordered, q[i])
        return out
    return _between(ordered, q)


def _between(ordered, q):
    if not (q >= 0 and q <= 1):
        raise ValueError("Quantiles must be in the range [0, 1]")
    n = ordered.shape[0]
    at = np.float64(q * (n - 1))
    below = int(at)
    part = at - below
    if np.issubdtype(ordered.dtype, np.floating):
        part = ordered.dtype.type(part)
    low = ordered[below]
    high = ordered[min(below + 1, n - 1)]
    apart = high - low
    found = low + apart * part
    if part >= 0.5:
        found = high - apart * (1 - part)
    last = ordered[n - 1]
    if last != last:
        found = found * 0 + np.nan
    return found


def searchsorted(a, v, side="left"):
    """numpy.searchsorted."""
    if np.ndim(v) > 0:
        out = np.zeros(v.shape[0], np.int64)
        for i in range(v.shape[0]):
            out[i] = searchsorted(a, v[i], side)
        return out
    low = 0
    high = a.shape[0]
    while low < high:
        middle = (low + high) // 2
        if side == "left":
            further = _comes_before(a[middle], v)
        else:
            further = not _comes_before(v, a[middle])
        if further:
            low = middle + 1
        else:
            high = middle
    return np.int64(low)


def digitize(x, bins, right=False):
    """numpy.digitize of growing or falling bins."""
    if np.ndim(x) > 0:
        out = np.zeros(x.shape[0], np.int64)
        for i in range(x.shape[0]):
            out[i] = digitize(x[i], bins, right)
        return out
    n = bins.shape[0]
    found = searchsorted(bins, x, "left" if right else "right")
    if n > 1 and bins[0] > bins[n - 1]:
        found = n - searchsorted(bins[::-1], x, "right" if right else "left")
    return found


def unique(ar):
    """numpy.unique: the different elements, in order."""
    ordered = sort(ar.flatten())
    n = ordered.shape[0]
    out = np.empty_like(ordered)
    count = 0
    for i in range(n):
        new = True
        if count > 0:
            last, here = out[count - 1], ordered[i]
            new = here != last and (here == here or last == last)
        if new:
            out[count] = ordered[i]
            count += 1
    return out[:count]
