"""The value of N European options, to buy (call) and to sell (put)."""

from __future__ import annotations

import math

import numpy as np

from kernels.kernel import Arguments, Array, Kernel, Role, Scalar, between, datasets

_ERF = np.vectorize(math.erf, otypes=[np.float64])


def black_scholes(
    rate: np.floating,
    volatility: np.floating,
    price: np.ndarray,
    strike: np.ndarray,
    years: np.ndarray,
    call: np.ndarray,
    put: np.ndarray,
) -> None:
    """In double precision throughout, rounded at the end."""
    s, x, t = (array.astype(np.float64) for array in (price, strike, years))
    r, v = float(rate), float(volatility)
    spread = v * np.sqrt(t)
    d1 = (np.log(s / x) + (r + v * v / 2) * t) / spread
    due = x * np.exp(-r * t)
    value = s * _normal(d1) - due * _normal(d1 - spread)
    call[...] = value
    put[...] = value + due - s


def _normal(d: np.ndarray) -> np.ndarray:
    """How likely a standard normal variable is below `d`."""
    result: np.ndarray = (1 + _ERF(d / math.sqrt(2))) / 2
    return result


def _tolerance(arguments: Arguments, after: Arguments) -> dict[str, np.ndarray]:
    """The terms are at most price and strike; what log, exp, erf and the division by the spread add
    is some tens of their ulp (spread is at least 0.1, and the slope of a normal at most 0.4).
    """
    eps = float(np.finfo(after["call"].dtype).eps)
    largest = 64 * eps * (arguments["price"].astype(np.float64) + arguments["strike"])
    return {"call": largest, "put": largest}


KERNEL = Kernel(
    name="black-scholes",
    arguments={
        "rate": Scalar(values=between(0.01, 0.05)),
        "volatility": Scalar(values=between(0.2, 0.4)),
        "price": Array("N", values=between(10.0, 100.0)),
        "strike": Array("N", values=between(10.0, 100.0)),
        "years": Array("N", values=between(0.25, 2.0)),
        "call": Array("N", Role.OUT),
        "put": Array("N", Role.OUT),
    },
    datasets=datasets("N", (1000,), (10000,), (100000,), (2000000,), (10000000,)),
    compute=black_scholes,
    flops=lambda s: 24 * s["N"],
    dependences="i is parallel, every option by itself.",
    exact=False,
    tolerance=_tolerance,
)
