"""Elementary functions as vector code: within an ulp of the truth, and right where it is special.

The truth is mpmath's, to 100 digits more than are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from avial_lab.elementary.functions import LIMITS
from tests.elementary.compiled import DTYPES, NAMES, values

MOST = {"expm1": 1.15, "tanh": 1.1}
MOST_APART = 1.3
"""Ulp between value and truth, else 1; and where products and sums are rounded apart."""

RANGES: dict[str, list[tuple[float, float]]] = {
    "exp": [(-746, 710), (-104, 89), (-1, 1), (-745.2, -708), (-104, -87)],
    "exp2": [(-1076, 1025), (-151, 129), (-1, 1), (-1075, -1021), (-150, -125)],
    "expm1": [(-40, 710), (-20, 89), (-1, 1), (-1e-3, 1e-3), (34, 40), (14, 18)],
    "log": [(0, 4), (0.5, 2), (0.99, 1.01), (0, 1e-307), (0, 1e-37)],
    "log1p": [(-1, 4), (-0.3, 0.5), (-1e-3, 1e-3), (0, 1e10)],
    "erf": [(-6, 6), (-1.2, 1.2), (0.84, 0.85), (-1e-3, 1e-3)],
    "tanh": [(-20, 20), (-1, 1), (0.74, 0.76), (-1e-3, 1e-3)],
    "sin": [(-1.6, 1.6), (-3216, 3216), (-1.7e6, 1.7e6), (0.7, 0.8), (2.2, 2.5)],
}
RANGES |= {"log2": RANGES["log"], "log10": RANGES["log"], "cos": RANGES["sin"]}
"""Where the functions bend, beside all bit patterns."""

INF, NAN = np.inf, np.nan
_OF_LOG = [(0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, NAN), (-1.0, NAN), (-1e-42, NAN), (1, 0)]
SPECIAL: dict[str, list[tuple[float, float]]] = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e4, INF), (-1e4, 0.0)],
    "exp2": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e4, INF), (-1e4, 0.0), (7, 128),
             (127, 2.0**127), (-126, 2.0**-126), (-149, 2.0**-149)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (1e4, INF), (-1e4, -1.0)],
    "log": _OF_LOG,
    "log2": [*_OF_LOG, (2.0**100, 100), (2.0**-149, -149)],
    "log10": [*_OF_LOG, (1e3, 3), (1e10, 10)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, NAN), (-1.0, -INF), (-1.5, NAN)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (30.0, 1.0), (-30.0, -1.0)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (30.0, 1.0), (-30.0, -1.0)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
}  # fmt: skip
"""Arguments with the values that they must have, the sign of zero included."""

TRUTH: dict[str, Callable[[Any], Any]] = {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "log2": lambda x: mpmath.log(x, 2),
}
"""What mpmath has under another name."""

every_name = pytest.mark.parametrize("name", NAMES)
every_element = pytest.mark.parametrize("element", DTYPES)
every_limited = pytest.mark.parametrize("name", [name.removeprefix("math.") for name in LIMITS])
fused_or_not = pytest.mark.parametrize("fused", [True, False])


def arguments(name: str, element: str, count: int = 250) -> np.ndarray:
    """Random bit patterns, numbers from RANGES, and those next to powers of two."""
    rng, dtype = np.random.default_rng(3), DTYPES[element]
    limits = np.finfo(dtype)
    bits = rng.integers(0, 1 << limits.bits, count, dtype=np.uint64)
    parts = [bits.astype(f"u{limits.bits // 8}").view(dtype)]
    parts += [rng.uniform(low, high, count).astype(dtype) for low, high in RANGES[name]]
    powers = np.ldexp(dtype(1), np.arange(int(limits.minexp) - limits.nmant, limits.maxexp, 7))
    for power in (powers, -powers):
        parts += [power, np.nextafter(power, dtype(0)), np.nextafter(power, dtype(np.inf))]
    return np.concatenate(parts).astype(dtype)


def quarter_turns(element: str, count: int = 2000) -> np.ndarray:
    """The numbers nearest to multiples of π/2 within the limit: those of which most digits go."""
    rng, most = np.random.default_rng(4), int(limit_of("sin", element) / np.pi * 2)
    turns = [*range(-9, 10), *map(int, rng.integers(-most, most, count))]
    with mpmath.workprec(200):
        return np.array([float(k * mpmath.pi / 2) for k in turns], DTYPES[element])


def limit_of(name: str, element: str) -> float:
    return LIMITS[f"math.{name}"][np.finfo(DTYPES[element]).bits]


def ulps(name: str, x: Any, value: Any) -> float:
    """How far `value` is from the function of x; infinitely far where it is special and wrong."""
    limits = np.finfo(type(x))
    with mpmath.workprec(200):
        truth = (TRUTH.get(name) or getattr(mpmath, name))(mpmath.mpf(float(x)))
        if abs(truth) >= mpmath.mpf(float(limits.max)) * (1 + mpmath.mpf(2) ** -limits.nmant / 4):
            return 0.0 if value == (np.inf if truth > 0 else -np.inf) else np.inf
        if not np.isfinite(value):
            return np.inf
        exponent = max(int(mpmath.frexp(truth)[1]) - 1, int(limits.minexp)) if truth else 0
        step = mpmath.mpf(2) ** (exponent - limits.nmant)
        return float(abs(mpmath.mpf(float(value)) - truth) / step)


def in_domain(name: str, x: np.ndarray) -> np.ndarray:
    least = {"log1p": -1, "log": 0, "log2": 0, "log10": 0}.get(name, -np.inf)
    return x[np.isfinite(x) & (x > least)]


@every_name
@every_element
@fused_or_not
def test_ulps(name: str, element: str, *, fused: bool) -> None:
    x = in_domain(name, arguments(name, element))
    found = values(name, x, fused=fused)
    off = [ulps(name, a, b) for a, b in zip(x, found, strict=True)]
    worst = int(np.argmax(off))
    most = MOST.get(name, 1.0) if fused else MOST_APART
    assert off[worst] <= most, f"{name}({x[worst]!r}) is {found[worst]!r}: {off[worst]} ulp"


@every_name
@every_element
@fused_or_not
def test_special_values(name: str, element: str, *, fused: bool) -> None:
    dtype = DTYPES[element]
    x, want = np.array([*SPECIAL[name], (NAN, NAN)], dtype).T
    found = values(name, x, fused=fused)
    np.testing.assert_array_equal(found, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(want)[known])


@every_name
@every_element
def test_a_value_hangs_on_its_argument_alone(name: str, element: str) -> None:
    """Not on whether it stood in a vector, or in what was left over."""
    x = arguments(name, element, 40)
    together = values(name, x)
    alone = np.concatenate([values(name, x[k : k + 1]) for k in range(x.size)])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(values(name, x, lanes=8), alone)


@every_limited
@every_element
@fused_or_not
def test_ulps_beside_quarter_turns(name: str, element: str, *, fused: bool) -> None:
    x = quarter_turns(element)
    found = values(name, x, fused=fused)
    off = [ulps(name, a, b) for a, b in zip(x, found, strict=True)]
    worst = int(np.argmax(off))
    most = 1.0 if fused else MOST_APART
    assert off[worst] <= most, f"{name}({x[worst]!r}) is {found[worst]!r}: {off[worst]} ulp"


@every_limited
@every_element
def test_up_to_the_limit_there_is_no_need_to_ask(name: str, element: str) -> None:
    limit = DTYPES[element](limit_of(name, element))
    x = np.concatenate(
        [quarter_turns(element, 50), np.linspace(-limit, limit, 99, dtype=type(limit))]
    )
    np.testing.assert_array_equal(values(name, x, near=True), values(name, x))


@every_limited
@pytest.mark.parametrize("lanes", [1, 8])
def test_beyond_the_limit_libm_is_asked(name: str, lanes: int) -> None:
    """Lanes that are not keep their code's value; so do those where the limit is reached."""
    limit = limit_of(name, "f64")
    x = np.array([np.nextafter(limit, INF), 1e300, -1e25, 1.0, limit, -limit, 2.0, 3.0, 4.0])
    found, near = values(name, x, lanes=lanes), values(name, x, near=True)
    assert found[:3].tolist() == [getattr(math, name)(each) for each in x[:3]]
    assert (near != found).tolist() == [False, True, True] + 6 * [False]
    np.testing.assert_array_equal(values(name, x[3:], lanes=lanes), found[3:])


@pytest.mark.parametrize(
    ("name", "element", "most", "least"),
    [
        ("exp", "f64", 709.782712893384, -745.1332191019411),
        ("exp", "f32", 88.72283, -103.972076),
        ("exp2", "f64", np.nextafter(1024.0, 0.0), np.nextafter(-1075.0, 0.0)),
        ("exp2", "f32", np.nextafter(np.float32(128), 0), np.nextafter(np.float32(-150), 0)),
    ],
)
def test_the_edges_of_the_range(name: str, element: str, most: float, least: float) -> None:
    """The last arguments with a value that is no infinity and not zero, and the next ones."""
    dtype = DTYPES[element]
    x = np.array([most, least], dtype)
    beyond = np.nextafter(x, np.array([INF, -INF], dtype))
    greatest, smallest = values(name, x)
    assert np.isfinite(greatest)
    assert smallest == np.finfo(dtype).smallest_subnormal
    assert values(name, beyond).tolist() == [INF, 0.0]
