"""Deriche's recursive smoothing filter over an image: along the rows there and back, then along the
columns there and back.
"""

from __future__ import annotations

import numpy as np

from kernels.kernel import Arguments, Array, Kernel, Role, Scalar, datasets


def deriche(
    alpha: np.floating,
    imgIn: np.ndarray,
    imgOut: np.ndarray,
    y1: np.ndarray,
    y2: np.ndarray,
) -> None:
    e1, e2, e3 = np.exp(-alpha), np.exp(-2 * alpha), np.exp(2 * alpha)
    k = (1 - e1) * (1 - e1) / (1 + 2 * alpha * e1 - e3)
    forwards = (k, k * e1 * (alpha - 1))
    backwards = (k * e1 * (alpha + 1), -k * e2)
    memory = (alpha.dtype.type(2) ** -alpha, -e2)
    _smooth(imgIn.T, y1.T, y2.T, forwards, backwards, memory)
    imgOut[...] = y1 + y2
    _smooth(imgOut, y1, y2, forwards, backwards, memory)
    imgOut[...] = y1 + y2


def _smooth(
    image: np.ndarray,
    there: np.ndarray,
    back: np.ndarray,
    forwards: tuple[np.floating, np.floating],
    backwards: tuple[np.floating, np.floating],
    memory: tuple[np.floating, np.floating],
) -> None:
    """Down the rows of `image` into `there`, up into `back`; what lies outside is 0."""
    nothing = np.zeros_like(image[0])
    x1, v1, v2 = nothing, nothing, nothing
    for i in range(len(image)):
        there[i] = forwards[0] * image[i] + forwards[1] * x1 + memory[0] * v1 + memory[1] * v2
        x1, v1, v2 = image[i], there[i], v1
    x1, x2, v1, v2 = nothing, nothing, nothing, nothing
    for i in reversed(range(len(image))):
        back[i] = backwards[0] * x1 + backwards[1] * x2 + memory[0] * v1 + memory[1] * v2
        x1, x2, v1, v2 = image[i], x1, back[i], v1


def _tolerance(arguments: Arguments, after: Arguments) -> dict[str, np.ndarray]:
    """The coefficients may be off by a few ulp (exp and pow are not the same everywhere), which
    moves the poles of a stable filter: an error relative to what the image and its responses hold.
    """
    largest = max(float(np.abs(array).max()) for array in (arguments["imgIn"], *after.values()))
    eps = float(np.finfo(after["imgOut"].dtype).eps)
    return {
        name: np.full(after[name].shape, 512 * eps * largest) for name in ("imgOut", "y1", "y2")
    }


KERNEL = Kernel(
    name="deriche",
    arguments={
        "alpha": Scalar(values=lambda draw: 0.25),
        "imgIn": Array("W H"),
        "imgOut": Array("W H", Role.OUT),
        "y1": Array("W H", Role.SCRATCH),
        "y2": Array("W H", Role.SCRATCH),
    },
    datasets=datasets("W H", (64, 64), (192, 128), (720, 480), (4096, 2160), (7680, 4320)),
    compute=deriche,
    flops=lambda s: 30 * s["W"] * s["H"],
    dependences="i is parallel in the first three nests and j in the last three; the other loop of "
    "each filter is a recurrence through the last two results, forwards or back, and between "
    "the two directions the image is transposed.",
    exact=False,
    tolerance=_tolerance,
)
