"""Elements at other places, and arrays beside one another."""

from __future__ import annotations

# ruff: noqa: ANN001, ANN201 - NumPy's own signatures
# pyright: basic
import numpy as np


def roll(a, shift, axis=None):
    """numpy.roll along one dimension."""
    if axis is None and a.ndim > 1:
        return np.reshape(roll(a.flatten(), shift), a.shape)
    if axis is not None and (axis + a.ndim) % a.ndim != 0:
        return np.swapaxes(roll(np.swapaxes(a, 0, axis), shift, 0), 0, axis)
    n = a.shape[0]
    out = np.empty_like(a)
    if n > 0:
        by = shift % n
        for i in range(n):
            out[(i + by) % n] = a[i]
    return out


def fliplr(m):
    """numpy.fliplr."""
    return m[:, ::-1]


def flipud(m):
    """numpy.flipud."""
    return m[::-1]


def rot90(m, k=1):
    """numpy.rot90 of two dimensions."""
    if k % 4 == 0:
        return m
    if k % 4 == 1:
        return m[:, ::-1].T
    if k % 4 == 2:
        return m[::-1, ::-1]
    return m.T[:, ::-1]


def tile(A, reps):  # noqa: N803 - as NumPy calls it
    """numpy.tile of one dimension."""
    if A.ndim != 1:
        raise TypeError("np.tile takes one dimension here")
    n = A.shape[0]
    out = np.empty(n * reps, A.dtype)
    for k in range(reps):
        for i in range(n):
            out[k * n + i] = A[i]
    return out


def vstack(tup):
    """numpy.vstack."""
    if tup[0].ndim == 1:
        return np.stack(tup)
    return np.concatenate(tup)


def column_stack(tup):
    """numpy.column_stack."""
    if tup[0].ndim == 1:
        return np.stack(tup, 1)
    return np.concatenate(tup, 1)


def append(arr, values, axis=None):
    """numpy.append."""
    if axis is not None:
        return np.concatenate((arr, values), axis)
    if np.ndim(values) == 0:
        return np.concatenate((arr.flatten(), np.array([values])))
    return np.concatenate((arr.flatten(), values.flatten()))


def delete(arr, obj):
    """numpy.delete of one element."""
    n = arr.shape[0]
    if obj < -n or obj >= n:
        raise IndexError("index is out of bounds")
    at = obj + n if obj < 0 else obj
    out = np.empty(n - 1, arr.dtype)
    for i in range(n - 1):
        out[i] = arr[i] if i < at else arr[i + 1]
    return out


def expand_dims(a, axis):
    """numpy.expand_dims at the begin or the end."""
    if axis == 0:
        return a[None]
    if axis == 1:
        return a[:, None]
    if axis == -1 or axis == a.ndim:
        return a[..., None]
    raise TypeError("np.expand_dims adds at 0, 1 or -1 here")


def atleast_1d(a):
    """numpy.atleast_1d."""
    return np.array([a]) if np.ndim(a) == 0 else a


def atleast_2d(a):
    """numpy.atleast_2d."""
    if np.ndim(a) == 0:
        return np.array([[a]])
    return a[None] if a.ndim == 1 else a


def swapaxes(a, axis1, axis2):
    """numpy.swapaxes."""
    one, other = (axis1 + a.ndim) % a.ndim, (axis2 + a.ndim) % a.ndim
    if one == other:
        return a
    if a.ndim == 2:
        return a.T
    if a.ndim == 3 and one + other == 1:
        return np.transpose(a, (1, 0, 2))
    if a.ndim == 3 and one + other == 2:
        return np.transpose(a, (2, 1, 0))
    if a.ndim == 3:
        return np.transpose(a, (0, 2, 1))
    raise TypeError("np.swapaxes takes up to three dimensions here")


def meshgrid(x, y, indexing="xy"):
    """numpy.meshgrid of two rows."""
    n, m = x.shape[0], y.shape[0]
    if indexing == "ij":
        return x[:, None] + np.zeros((n, m), x.dtype), y[None, :] + np.zeros((n, m), y.dtype)
    return x[None, :] + np.zeros((m, n), x.dtype), y[:, None] + np.zeros((m, n), y.dtype)


def take(a, indices):
    """numpy.take of one dimension."""
    if a.ndim > 1:
        return take(a.flatten(), indices)
    return a[indices]


def copyto(dst, src):
    """numpy.copyto."""
    dst[...] = src


def dstack(tup):
    """numpy.dstack."""
    if tup[0].ndim == 1:
        return np.stack(tup, 1)[None]
    if tup[0].ndim == 2:
        return np.stack(tup, 2)
    return np.concatenate(tup, 2)
