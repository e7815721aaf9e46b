"""Functions of one or two elements, in terms of others."""

from __future__ import annotations

# ruff: noqa: ANN001, ANN201, ANN202 - NumPy's own signatures
# pyright: basic
import math

import numpy as np


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """numpy.isclose."""
    near = np.abs(a - b) <= atol + rtol * np.abs(b)
    same = (near & np.isfinite(b)) | (a == b)
    if equal_nan:
        return same | (np.isnan(a) & np.isnan(b))
    return same


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """numpy.allclose."""
    return bool(np.all(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a1, a2):
    """numpy.array_equal."""
    if a1.shape != a2.shape:
        return False
    return bool(np.all(a1 == a2))


def _hypotenuse(x, y):
    """Without overflow on the way (Higham, Accuracy and Stability of Algorithms, 27.8)."""
    big, small = np.maximum(np.abs(x), np.abs(y)), np.minimum(np.abs(x), np.abs(y))
    part = small / np.where(big > 0, big, 1.0)
    return np.where(np.isinf(x) | np.isinf(y), np.inf, big * np.sqrt(1.0 + part * part))


def hypot(x1, x2):
    """numpy.hypot; of narrow floats by way of wide ones, as the C library does."""
    x, y = x1 * np.float64(1), x2 * np.float64(1)
    kind = np.fabs(x1 + x2).dtype
    if kind.itemsize == 8:
        return _hypotenuse(x, y)
    return np.where(np.isinf(x) | np.isinf(y), np.inf, np.sqrt(x * x + y * y)).astype(kind)


def fmax(x1, x2):
    """numpy.fmax."""
    return np.where(x1 != x1, x2, np.where(x2 != x2, x1, np.maximum(x1, x2)))


def fmin(x1, x2):
    """numpy.fmin."""
    return np.where(x1 != x1, x2, np.where(x2 != x2, x1, np.minimum(x1, x2)))


def nan_to_num(x, nan=0.0):
    """numpy.nan_to_num."""
    if x.dtype.kind != "f":
        return x + x.dtype.type(0)
    most = x.dtype.type(1.7976931348623157e308 if x.dtype.itemsize == 8 else 3.4028234663852886e38)
    finite = np.where(x > most, most, np.where(x < -most, -most, x))
    return np.where(np.isnan(x), x.dtype.type(nan), finite)


def reciprocal(x):
    """numpy.reciprocal of floats."""
    if x.dtype.kind != "f" and x.dtype.kind != "c":
        raise TypeError("np.reciprocal takes floats here: 1 / x")
    return x.dtype.type(1) / x


def angle(z, deg=False):
    """numpy.angle."""
    found = np.arctan2(np.imag(z), np.real(z))
    return found * (180 / math.pi) if deg else found


def logaddexp(x1, x2):
    """numpy.logaddexp: the greater one, and what the smaller one adds."""
    return np.where(
        x1 == x2,
        x1 + math.log(2.0),
        np.maximum(x1, x2) + np.log1p(np.exp(-np.abs(x1 - x2))),
    )


def divided(x, y):
    """divmod."""
    return x // y, x % y


def dist(p, q):
    """math.dist."""
    total = 0.0
    for a, b in zip(p, q):  # noqa: B905
        total += (a - b) * (a - b)
    return math.sqrt(total)


def length_of(x, y):
    """math.hypot of two numbers."""
    return float(_hypotenuse(x, y))


def gcd(a, b):
    """math.gcd of two numbers, by Euclid."""
    if np.asarray(a).dtype.kind == "f" or np.asarray(b).dtype.kind == "f":
        raise TypeError("'float' object cannot be interpreted as an integer")
    a, b = abs(a), abs(b)
    while b != 0:
        a, b = b, a % b
    return a


def gcds(x1, x2):
    """numpy.gcd."""
    if np.ndim(x1) == 0 and np.ndim(x2) == 0:
        return gcd(x1, x2)
    if np.ndim(x1) != 1 or np.ndim(x2) > 1:
        raise TypeError("np.gcd takes one dimension here")
    out = np.empty_like(x1)
    for i in range(x1.shape[0]):
        out[i] = gcd(x1[i], x2 if np.ndim(x2) == 0 else x2[i])
    return out


def lcms(x1, x2):
    """numpy.lcm."""
    found = gcds(x1, x2)
    return np.where(found == 0, found, np.abs(x1 // np.where(found == 0, 1, found) * x2))


def select(condlist, choicelist, default=0):
    """numpy.select of two or three conditions."""
    if len(condlist) == 1:
        return np.where(condlist[0], choicelist[0], default)
    return np.where(condlist[0], choicelist[0], select(condlist[1:], choicelist[1:], default))


def sinc(x):
    """numpy.sinc."""
    y = math.pi * np.where(x == 0, 1.0e-20, x)
    return np.sin(y) / y


def signbit(x):
    """numpy.signbit."""
    return np.copysign(1.0, x) < 0
