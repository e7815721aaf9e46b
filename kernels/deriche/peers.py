"""`loops` for Numba, columns in blocks; `arrays` for NumPy, whole rows and columns at a time."""

from __future__ import annotations

import numpy as np

from kernels.parallel import BLOCKS, prange


def loops(
    alpha: np.generic, imgIn: np.ndarray, imgOut: np.ndarray, y1: np.ndarray, y2: np.ndarray
) -> None:
    number = imgIn.dtype.type
    w, h = imgIn.shape
    zero, one, two = number(0), number(1), number(2)
    e1, e2, e3 = np.exp(-alpha), np.exp(-two * alpha), np.exp(two * alpha)
    a1 = (one - e1) * (one - e1) / (one + two * alpha * e1 - e3)
    a2, a3, a4 = a1 * e1 * (alpha - one), a1 * e1 * (alpha + one), -a1 * e2
    b1, b2 = number(two**-alpha), -e2
    for i in prange(w):
        x1, x2, v1, v2 = zero, zero, zero, zero
        for j in range(h):
            value = a1 * imgIn[i, j] + a2 * x1 + b1 * v1 + b2 * v2
            y1[i, j] = value
            x1, v1, v2 = imgIn[i, j], value, v1
        x1, x2, v1, v2 = zero, zero, zero, zero
        for j in range(h - 1, -1, -1):
            value = a3 * x1 + a4 * x2 + b1 * v1 + b2 * v2
            y2[i, j] = value
            x1, x2, v1, v2 = imgIn[i, j], x1, value, v1
        for j in range(h):
            imgOut[i, j] = y1[i, j] + y2[i, j]
    for block in prange(BLOCKS):
        first, last = block * h // BLOCKS, (block + 1) * h // BLOCKS
        for i in range(w):
            for j in range(first, last):
                value = a1 * imgOut[i, j]
                if i > 0:
                    value += a2 * imgOut[i - 1, j] + b1 * y1[i - 1, j]
                if i > 1:
                    value += b2 * y1[i - 2, j]
                y1[i, j] = value
        for i in range(w - 1, -1, -1):
            for j in range(first, last):
                value = zero
                if i < w - 1:
                    value += a3 * imgOut[i + 1, j] + b1 * y2[i + 1, j]
                if i < w - 2:
                    value += a4 * imgOut[i + 2, j] + b2 * y2[i + 2, j]
                y2[i, j] = value
        for i in range(w):
            for j in range(first, last):
                imgOut[i, j] = y1[i, j] + y2[i, j]


def arrays(
    alpha: np.generic, imgIn: np.ndarray, imgOut: np.ndarray, y1: np.ndarray, y2: np.ndarray
) -> None:
    e1, e2, e3 = np.exp(-alpha), np.exp(-2 * alpha), np.exp(2 * alpha)
    a1 = (1 - e1) * (1 - e1) / (1 + 2 * alpha * e1 - e3)
    a2, a3, a4 = a1 * e1 * (alpha - 1), a1 * e1 * (alpha + 1), -a1 * e2
    b1, b2 = alpha.dtype.type(2) ** -alpha, -e2
    for image, there, back in ((imgIn.T, y1.T, y2.T), (imgOut, y1, y2)):
        nothing = np.zeros_like(image[0])
        x1, v1, v2 = nothing, nothing, nothing
        for i in range(len(image)):
            there[i] = a1 * image[i] + a2 * x1 + b1 * v1 + b2 * v2
            x1, v1, v2 = image[i], there[i], v1
        x1, x2, v1, v2 = nothing, nothing, nothing, nothing
        for i in reversed(range(len(image))):
            back[i] = a3 * x1 + a4 * x2 + b1 * v1 + b2 * v2
            x1, x2, v1, v2 = image[i], x1, back[i], v1
        np.add(y1, y2, out=imgOut)


def scipy_arrays(
    alpha: np.generic, imgIn: np.ndarray, imgOut: np.ndarray, y1: np.ndarray, y2: np.ndarray
) -> None:
    """SciPy's linear filters; y1 and y2 are scratch."""
    from scipy.signal import lfilter

    e1, e2, e3 = np.exp(-alpha), np.exp(-2 * alpha), np.exp(2 * alpha)
    a1 = (1 - e1) * (1 - e1) / (1 + 2 * alpha * e1 - e3)
    a2, a3, a4 = a1 * e1 * (alpha - 1), a1 * e1 * (alpha + 1), -a1 * e2
    number = imgIn.dtype.type
    memory = np.array([1, -(number(2) ** -alpha), e2], imgIn.dtype)
    there, back = np.array([a1, a2], imgIn.dtype), np.array([0, a3, a4], imgIn.dtype)
    image = imgIn
    for axis in (1, 0):
        ahead = lfilter(there, memory, image, axis=axis)
        ahead += np.flip(lfilter(back, memory, np.flip(image, axis), axis=axis), axis)
        image = ahead
    imgOut[...] = image
