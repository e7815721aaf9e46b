"""Elementary functions as vector code: within an ulp of the truth, and right where it is special.

The truth is mpmath's, to 100 digits more than are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

from avial_lab.compiler.codegen.math.functions import LIMITS
from tests.compiler.codegen.math.compiled import DTYPES, NAMES, TWO, values

MOST = {"expm1": 1.15, "tanh": 1.1, "tan": 1.1, "atan": 1.1, "atan2": 1.45, "asin": 1.15,
        "acos": 1.1, "sinh": 1.3, "cosh": 1.3}  # fmt: skip
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
    "atan": [(-4, 4), (0.5, 0.6), (1.9, 2.1), (-1e-3, 1e-3), (0, 1e3)],
    "asin": [(-1, 1), (0.49, 0.51), (0.99, 1), (-1e-3, 1e-3), (-0.51, -0.49), (-1, -0.99)],
    "sinh": [
        (-711, 711),
        (-90, 90),
        (-3, 3),
        (0.9, 1.1),
        (-1e-3, 1e-3),
        (17, 20),
        (709.7, 710.5),
        (88.7, 89.5),
    ],
    "cbrt": [(-9, 9), (0.3, 3), (0, 1e-307), (0, 1e-37), (1e9, 1e10)],
    "sin": [(-1.6, 1.6), (-3216, 3216), (-1.7e6, 1.7e6), (0.7, 0.8), (2.2, 2.5)],
}
RANGES |= {"log2": RANGES["log"], "log10": RANGES["log"], "cos": RANGES["sin"]}
RANGES |= {"tan": RANGES["sin"], "acos": RANGES["asin"], "cosh": RANGES["sinh"]}
"""Where the functions bend, beside all bit patterns."""

INF, NAN, PI = np.inf, np.nan, np.pi
_OF_LOG: list[tuple[float, ...]] = [
    (0.0, -INF),
    (-0.0, -INF),
    (INF, INF),
    (-INF, NAN),
    (-1.0, NAN),
    (-1e-42, NAN),
    (1, 0),
]
SPECIAL: dict[str, list[tuple[float, ...]]] = {
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
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (INF, PI / 2), (-INF, -PI / 2), (1e30, PI / 2)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (1.5, NAN), (1, PI / 2)],
    "acos": [(1, 0.0), (-1, PI), (INF, NAN), (-INF, NAN), (-1.5, NAN), (0.0, PI / 2)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e4, INF), (-1e4, -INF)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (1e4, INF), (-1e4, INF)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (27, 3), (-0.125, -0.5)],
    "atan2": [(s * y, x, s * want) for s in (1.0, -1.0) for y, x, want in (
        (0.0, 0.0, 0.0), (0.0, -0.0, PI), (0.0, 2, 0.0), (0.0, -2, PI), (1, 0.0, PI / 2),
        (1, -0.0, PI / 2), (1, INF, 0.0), (1, -INF, PI), (INF, 1, PI / 2), (INF, -1, PI / 2),
        (INF, INF, PI / 4), (INF, -INF, 3 * PI / 4), (0.0, INF, 0.0), (0.0, -INF, PI),
        (2.0**-100, 2.0**40, 2.0**-140), (1e38, 1e38, PI / 4), (1e38, -1e38, 3 * PI / 4))]
    + [(NAN, 1, NAN), (1, NAN, NAN), (NAN, INF, NAN), (INF, NAN, NAN), (NAN, 0.0, NAN)],
    "powf": [(x, y, 1.0) for x in (0.0, -0.0, 3, -3, INF, -INF, NAN) for y in (0.0, -0.0)]
    + [(1.0, y, 1.0) for y in (-2.5, 1e30, INF, -INF, NAN)] + [(NAN, 3, NAN), (2, NAN, NAN)]
    + [(-1.0, y, 1.0) for y in (INF, -INF, 2, 1e30)] + [(-1.0, 3, -1.0), (-1.0, NAN, NAN)]
    + [(0.0, -3, INF), (-0.0, -3, -INF), (-0.0, -2, INF), (-0.0, -0.5, INF), (-0.0, -INF, INF)]
    + [(0.0, 3, 0.0), (-0.0, 3, -0.0), (-0.0, 2, 0.0), (-0.0, 0.5, 0.0), (-0.0, INF, 0.0)]
    + [(x, -INF, INF) for x in (0.5, -0.5)] + [(x, -INF, 0.0) for x in (1.5, -1.5, -INF)]
    + [(x, INF, 0.0) for x in (0.5, -0.5)] + [(x, INF, INF) for x in (1.5, -1.5, -INF)]
    + [(-INF, -3, -0.0), (-INF, -2.5, 0.0), (-INF, 3, -INF), (-INF, 2.5, INF), (-INF, 2, INF)]
    + [(INF, -0.5, 0.0), (INF, 0.5, INF), (-2, 0.5, NAN), (-1e-30, -2.5, NAN), (-2, -3, -0.125)]
    + [(2, 100, 2.0**100), (2, -149, 2.0**-149), (10, 2, 100), (0.0, 1e-30, 0.0), (7, 1, 7)]
    + [(1e-30, 1e30, 0.0), (-1e-30, -1e30, INF), (-10, 401, -INF), (-10, -401, -0.0)],
}  # fmt: skip
"""Arguments with the values that they must have, the sign of zero included."""

TRUTH: dict[str, Callable[..., Any]] = {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "log2": lambda x: mpmath.log(x, 2),
    "powf": lambda x, y: mpmath.power(x, y).real,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
}
"""What mpmath has under another name."""

every_name = pytest.mark.parametrize("name", NAMES)
every_element = pytest.mark.parametrize("element", DTYPES)
every_limited = pytest.mark.parametrize("name", [name.removeprefix("math.") for name in LIMITS])
fused_or_not = pytest.mark.parametrize("fused", [True, False])


def arguments(name: str, element: str, count: int = 250) -> tuple[np.ndarray, ...]:
    """Random bit patterns, numbers from RANGES, and those next to powers of two."""
    rng, dtype = np.random.default_rng(3), DTYPES[element]
    limits = np.finfo(dtype)
    if name in TWO:
        return _pairs(name, rng, dtype, count)
    parts = [_any(rng, dtype, count)]
    parts += [rng.uniform(low, high, count).astype(dtype) for low, high in RANGES[name]]
    powers = np.ldexp(dtype(1), np.arange(int(limits.minexp) - limits.nmant, limits.maxexp, 7))
    for power in (powers, -powers):
        parts += [power, np.nextafter(power, dtype(0)), np.nextafter(power, dtype(np.inf))]
    return (np.concatenate(parts).astype(dtype),)


def _any(rng: np.random.Generator, dtype: type, count: int) -> np.ndarray:
    limits = np.finfo(dtype)
    bits = rng.integers(0, 1 << limits.bits, count, dtype=np.uint64)
    return bits.astype(f"u{limits.bits // 8}").view(dtype)


def _pairs(name: str, rng: np.random.Generator, dtype: type, count: int) -> tuple[np.ndarray, ...]:
    """Random bit patterns, small whole numbers, and from PAIRS."""
    whole = rng.integers(-9, 10, (2, count)).astype(dtype)
    found = [(_any(rng, dtype, count), _any(rng, dtype, count)), tuple(whole)]
    found += [make(rng, dtype, count) for make in PAIRS[name]]
    x, y = map(np.concatenate, zip(*found, strict=True))
    return x, y


def powers_from(spread: float) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """x with a binary logarithm up to `spread`, and exponents for powers of all sizes there are."""

    def make(rng: np.random.Generator, dtype: type, count: int) -> tuple[np.ndarray, np.ndarray]:
        most = np.finfo(dtype).maxexp
        logarithms = rng.uniform(-spread * most, spread * most, count)
        x = np.exp2(logarithms.astype(dtype))
        y = rng.uniform(-1.08 * most, most, count) / np.log2(x.astype(float))
        return x, y.astype(dtype)

    return make


def sides(rng: np.random.Generator, dtype: type, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Of slopes around those where the cases change, and any."""
    x = rng.normal(size=count) * np.exp2(rng.uniform(-60, 60, count))
    slopes = rng.choice([0.5625, 2.0, 1.0, 0.01, 100.0], count) * rng.uniform(0.9, 1.1, count)
    y = x * slopes * rng.choice([-1.0, 1.0], count)
    return y.astype(dtype), x.astype(dtype)


def great_sides(rng: np.random.Generator, dtype: type, count: int) -> tuple[np.ndarray, np.ndarray]:
    """With a sum that may be infinite."""
    x, y = rng.uniform(0.3, 0.99, (2, count)).astype(dtype) * np.finfo(dtype).max
    return x, y


def least_sides(rng: np.random.Generator, dtype: type, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Of few digits, or none: half of one is one."""
    x, y = rng.integers(-9, 10, (2, count)) * np.exp2(rng.integers(0, 60, count))
    least = np.finfo(dtype).smallest_subnormal
    return x.astype(dtype) * least, y.astype(dtype) * least


PAIRS: dict[str, list[Callable[..., tuple[np.ndarray, np.ndarray]]]] = {
    "atan2": [sides, great_sides, least_sides],
    "powf": [powers_from(spread) for spread in (1e-5, 3e-4, 5e-4, 1e-3, 0.01, 0.1, 1.0)],
}
"""Where the functions of two arguments bend."""


def quarter_turns(element: str, count: int = 2000) -> np.ndarray:
    """The numbers nearest to multiples of π/2 within the limit: those of which most digits go."""
    rng, most = np.random.default_rng(4), int(limit_of("sin", element) / np.pi * 2)
    turns = [*range(-9, 10), *map(int, rng.integers(-most, most, count))]
    with mpmath.workprec(200):
        return np.array([float(k * mpmath.pi / 2) for k in turns], DTYPES[element])


def limit_of(name: str, element: str) -> float:
    return LIMITS[f"math.{name}"][np.finfo(DTYPES[element]).bits]


def ulps(name: str, x: Sequence[Any], value: Any) -> float:
    """How far `value` is from the function of x; infinitely far where it is special and wrong."""
    limits = np.finfo(type(value))
    with mpmath.workprec(200):
        truth = (TRUTH.get(name) or getattr(mpmath, name))(*(mpmath.mpf(float(a)) for a in x))
        if abs(truth) >= mpmath.mpf(float(limits.max)) * (1 + mpmath.mpf(2) ** -limits.nmant / 4):
            return 0.0 if value == (np.inf if truth > 0 else -np.inf) else np.inf
        if not np.isfinite(value):
            return np.inf
        exponent = max(int(mpmath.frexp(truth)[1]) - 1, int(limits.minexp)) if truth else 0
        step = mpmath.mpf(2) ** (exponent - limits.nmant)
        return float(abs(mpmath.mpf(float(value)) - truth) / step)


def in_domain(name: str, *x: np.ndarray) -> tuple[np.ndarray, ...]:
    least = {"log1p": -1, "log": 0, "log2": 0, "log10": 0}.get(name, -np.inf)
    x = _those(np.logical_and.reduce([np.isfinite(each) for each in x]) & (x[0] > least), *x)
    if name in ("asin", "acos"):
        return _those(abs(x[0]) <= 1, *x)
    if name == "powf":
        return _those((x[0] > 0) | ((x[0] < 0) & (np.trunc(x[1]) == x[1])), *x)
    return x


def _those(chosen: np.ndarray, *x: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(each[chosen] for each in x)


def check_ulps(name: str, *x: np.ndarray, fused: bool) -> None:
    found = values(name, *x, fused=fused)
    off = [ulps(name, a, b) for a, b in zip(zip(*x, strict=True), found, strict=True)]
    worst = int(np.argmax(off))
    most = max(MOST.get(name, 1.0), 1.0 if fused else MOST_APART)
    at = [each[worst] for each in x]
    assert off[worst] <= most, f"{name}{at!r} is {found[worst]!r}: {off[worst]} ulp"


@pytest.mark.quick("True-f64-*", "False-f32-*")
@every_name
@every_element
@fused_or_not
def test_ulps(name: str, element: str, *, fused: bool) -> None:
    check_ulps(name, *in_domain(name, *arguments(name, element)), fused=fused)


@every_name
@every_element
@fused_or_not
def test_special_values(name: str, element: str, *, fused: bool) -> None:
    dtype = DTYPES[element]
    nowhere = (NAN,) * len(SPECIAL[name][0])
    *x, want = np.array([*SPECIAL[name], nowhere], dtype).T
    found = values(name, *x, fused=fused)
    np.testing.assert_array_equal(found, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(want)[known])


@pytest.mark.quick("f32-*", "f64-exp", "f64-sin")
@every_name
@every_element
def test_a_value_hangs_on_its_arguments_alone(name: str, element: str) -> None:
    """Not on whether they stood in a vector, or in what was left over."""
    x = arguments(name, element, 40)
    together = values(name, *x)
    alone = [values(name, *(each[k : k + 1] for each in x)) for k in range(x[0].size)]
    np.testing.assert_array_equal(together, np.concatenate(alone))
    np.testing.assert_array_equal(values(name, *x, lanes=8), together)


@pytest.mark.quick("True-f64-*", "False-f32-*")
@every_limited
@every_element
@fused_or_not
def test_ulps_beside_quarter_turns(name: str, element: str, *, fused: bool) -> None:
    check_ulps(name, quarter_turns(element), fused=fused)


@every_limited
@every_element
def test_up_to_the_limit_there_is_no_need_to_ask(name: str, element: str) -> None:
    limit = DTYPES[element](limit_of(name, element))
    x = np.concatenate(
        [quarter_turns(element, 50), np.linspace(-limit, limit, 99, dtype=type(limit))]
    )
    np.testing.assert_array_equal(values(name, x, near=True), values(name, x))


NEAREST = 6381956970095103 * 2.0**797
"""No number of double precision is nearer to a multiple of π/2 (J.-M. Muller, Elementary Functions,
section 11.3): its cosine is -4.69e-19.
"""


@every_limited
@every_element
@fused_or_not
def test_ulps_beyond_the_limit(name: str, element: str, *, fused: bool) -> None:
    dtype, rng = DTYPES[element], np.random.default_rng(7)
    limit, most = limit_of(name, element), float(np.finfo(dtype).max)
    sizes = np.exp(rng.uniform(np.log(limit), np.log(most), 150))
    multiples = quarter_turns(element, 20) * dtype(1e6)
    edges = [limit, np.nextafter(dtype(limit), dtype(INF)), most, 2.0**62, 2.0**63, 2.0**64]
    worst = [NEAREST, -NEAREST] if element == "f64" else []
    x = np.concatenate([sizes, -sizes, multiples, edges, worst]).astype(dtype)
    check_ulps(name, x, fused=fused)


@every_limited
@pytest.mark.parametrize("lanes", [1, 8])
def test_beyond_the_limit_there_is_other_code(name: str, lanes: int) -> None:
    """Lanes that are not keep their code's value; so do those where the limit is reached."""
    limit = limit_of(name, "f64")
    x = np.array([np.nextafter(limit, INF), 1e300, -1e25, 1.0, limit, -limit, 2.0, 3.0, 4.0])
    found, near = values(name, x, lanes=lanes), values(name, x, near=True)
    known = np.array([getattr(math, name)(each) for each in x[:3]])
    np.testing.assert_allclose(found[:3], known, rtol=2.0**-52)
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
