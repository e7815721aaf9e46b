"""`loops` for Numba; NumPy has no erf, SciPy has."""

from __future__ import annotations

import math

import numpy as np

from kernels.parallel import prange


def loops(
    rate: np.generic,
    volatility: np.generic,
    price: np.ndarray,
    strike: np.ndarray,
    years: np.ndarray,
    call: np.ndarray,
    put: np.ndarray,
) -> None:
    number = price.dtype.type
    one, two, root_half = number(1), number(2), number(math.sqrt(0.5))
    drift = rate + volatility * volatility / two
    for i in prange(price.shape[0]):
        spread = volatility * np.sqrt(years[i])
        d1 = (np.log(price[i] / strike[i]) + drift * years[i]) / spread
        due = strike[i] * np.exp(-rate * years[i])
        first = (one + math.erf(d1 * root_half)) / two
        second = (one + math.erf((d1 - spread) * root_half)) / two
        value = price[i] * first - due * second
        call[i] = value
        put[i] = value + due - price[i]


def scipy_arrays(
    rate: np.generic,
    volatility: np.generic,
    price: np.ndarray,
    strike: np.ndarray,
    years: np.ndarray,
    call: np.ndarray,
    put: np.ndarray,
) -> None:
    """Whole arrays, with SciPy's normal distribution."""
    from scipy.special import ndtr

    number = price.dtype.type
    spread = volatility * np.sqrt(years)
    d1 = (np.log(price / strike) + (rate + volatility * volatility / number(2)) * years) / spread
    due = strike * np.exp(-rate * years)
    np.subtract(price * ndtr(d1), due * ndtr(d1 - spread), out=call)
    np.add(call, due, out=put)
    np.subtract(put, price, out=put)
