"""Functions as people spell them for Numba: nested functions, lambdas, comprehensions, `:=`, and
the names of NumPy's that its documentation lists. Each with what it is called with.
"""

# ruff: noqa: B905, C416, C417, E731, E743, F841, N806, PERF401, PLR, PLW, RET503, RET504, RET505, RUF015, SIM108, SIM110, UP - as people write functions
# pyright: basic
# pyright: reportPossiblyUnboundVariable=false, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false, reportIndexIssue=false, reportGeneralTypeIssues=false, reportReturnType=false, reportOptionalMemberAccess=false, reportOperatorIssue=false
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

R = np.random.default_rng(7)
CASES: list[tuple[Callable[..., Any], tuple[Callable[[], tuple[Any, ...]], ...]]] = []
K = 3


def case(*makers: Callable[[], tuple[Any, ...]]) -> Callable[[Any], Any]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append((function, makers))
        return function

    return add


def F(*shape: int) -> np.ndarray:
    return R.random(shape)


def I(n: int, *shape: int) -> np.ndarray:
    return R.integers(0, n, shape)


@case(lambda: (F(20),))
def nested_def(x):
    def square(v):
        return v * v

    s = 0.0
    for i in range(x.shape[0]):
        s += square(x[i])
    return s


@case(lambda: (F(20), 3.0))
def nested_closure(x, k):
    n = x.shape[0]

    def get(i):
        return x[i] * k

    out = np.empty(n)
    for i in range(n):
        out[i] = get(i) + get(n - 1 - i)
    return out


@case(lambda: (F(20),))
def with_lambda(x):
    f = lambda a, b: a * b + 1.0
    out = np.zeros_like(x)
    for i in range(len(x)):
        out[i] = f(x[i], 2.0)
    return out


@case(lambda: (F(20),))
def passed_lambda(x):
    def apply(g, v):
        return g(v)

    s = 0.0
    for v in x:
        s += apply(lambda t: t * t - 1, v)
    return s


@case(lambda: (F(20),))
def sum_gen(x):
    return sum(x[i] * x[i] for i in range(x.shape[0]))


@case(lambda: (F(20),))
def sum_list(x):
    return sum([v for v in x if v > 0.5])


@case(lambda: (F(20), 20))
def array_of_list(x, n):
    return np.array([x[i] * 2 for i in range(n)])


@case(lambda: (F(12),))
def nested_list(x):
    n = len(x)
    return np.array([[x[i] * x[j] for j in range(n)] for i in range(n)])


@case(lambda: (F(12),))
def list_variable(x):
    a = [2 * v for v in x]
    s = 0.0
    for i in range(len(a)):
        s += a[i]
    return s


@case(lambda: (F(12),))
def list_then_array(x):
    a = [math.sin(v) for v in x]
    return np.array(a)


@case(lambda: (F(12),), lambda: (-F(12),))
def any_all(x):
    return any(v < 0 for v in x), all(v < 2 for v in x)


@case(lambda: (F(12),))
def max_min_gen(x):
    return max(v * 2 for v in x), min(abs(v - 0.5) for v in x)


@case(lambda: (np.array([3, 4, 5, 100, 7]),))
def walrus(a):
    s = 0
    i = 0
    while (v := a[i]) < 50:
        s += v
        i += 1
    if (m := s * 2) > 10:
        return m
    return s


@case(
    lambda: (F(15),),
    lambda: (I(9, 15),),
    lambda: (F(4, 5),),
    lambda: (I(100, 15).astype(np.int8),),
    lambda: (F(15) > 0.5,),
    lambda: (F(15).astype(np.float32),),
)
def cumsum(x):
    return np.cumsum(x)


@case(lambda: (F(5, 6),))
def cumsum_axis(x):
    return np.cumsum(x, axis=0), x.cumsum(axis=1)


@case(lambda: (F(15),), lambda: (1 + I(3, 15),))
def cumprod(x):
    return np.cumprod(x)


@case(lambda: (F(15),), lambda: (I(9, 15),))
def diff(x):
    return np.diff(x)


@case(lambda: (F(5, 6),))
def diff2(x):
    return np.diff(x), np.diff(x, axis=0), np.diff(x, n=2)


@case(
    lambda: (F(31),),
    lambda: (I(9, 31),),
    lambda: (np.array([3.0, np.nan, 1.0, -0.0, 0.0, np.inf, np.nan, -5]),),
    lambda: (F(1),),
)
def sort(x):
    return np.sort(x)


@case(lambda: (F(31),), lambda: (I(9, 31),))
def sort_in_place(x):
    x.sort()
    return x[0], x[-1]


@case(lambda: (F(31),), lambda: (R.permutation(31),))
def argsort(x):
    return np.argsort(x)


@case(lambda: (F(31),))
def argsort_take(x):
    order = np.argsort(x)
    return x[order[:3]], x[order][::-1]


@case(
    lambda: (F(31),), lambda: (F(30),), lambda: (I(100, 31),), lambda: (np.array([1.0, np.nan, 2]),)
)
def median(x):
    return np.median(x)


@case(lambda: (F(31),))
def percentile(x):
    return np.percentile(x, 25.0), np.quantile(x, 0.75)


@case(lambda: (np.sort(F(31)), 0.5))
def searchsorted(a, v):
    return np.searchsorted(a, v), np.searchsorted(a, v, side="right")


@case(lambda: (np.sort(I(9, 31)), I(11, 6)))
def searchsorted_many(a, v):
    return np.searchsorted(a, v)


@case(lambda: (I(8, 40),))
def bincount(x):
    return np.bincount(x, minlength=8)


@case(lambda: (F(40), np.linspace(0, 1, 6)))
def digitize(x, bins):
    return np.digitize(x, bins)


@case(lambda: (I(5, 12),))
def unique(x):
    return np.unique(x)


@case(lambda: (F(20),))
def nonzero(x):
    return np.nonzero(x > 0.5)[0]


@case(lambda: (F(20),))
def where_one(x):
    return np.where(x > 0.5)[0]


@case(lambda: (F(20),))
def count_nonzero(x):
    return np.count_nonzero(x > 0.3)


@case(lambda: (F(9),), lambda: (F(4, 4),))
def diag(x):
    return np.diag(x)


@case(lambda: (F(5, 5),))
def trace(x):
    return np.trace(x)


@case(lambda: (F(5), F(5)))
def vdot(x, y):
    return np.vdot(x, y), np.dot(x, y), np.inner(x, y)


@case(lambda: (F(3), F(3)))
def cross(x, y):
    return np.cross(x, y)


@case(lambda: (F(4), F(3)))
def kron(x, y):
    return np.kron(x, y), np.outer(x, y)


@case(lambda: (F(5, 4),))
def norm(x):
    return np.linalg.norm(x)


@case(lambda: (F(5, 5) + 5 * np.eye(5),))
def det(x):
    return np.linalg.det(x)


@case(lambda: (np.array([[1.0, 2], [3, 4]]),))
def det2(x):
    return np.linalg.det(x)


@case(lambda: (F(5, 5), 3))
def matrix_power(x, n):
    return np.linalg.matrix_power(x, 3)


@case(lambda: (F(6), F(6)))
def stacks(x, y):
    return np.vstack((x, y)), np.column_stack((x, y)), np.stack((x, y)), np.hstack((x, y))


@case(lambda: (F(6), F(6)))
def stack_axis(x, y):
    return np.stack((x, y), axis=1), np.dstack((x, y))


@case(lambda: (F(7),))
def roll(x):
    return np.roll(x, 1), np.roll(x, -2)


@case(lambda: (F(4, 5),))
def roll_axis(x):
    return np.roll(x, 1, axis=0) + np.roll(x, -1, axis=1)


@case(lambda: (F(4, 5),))
def flips(x):
    return np.fliplr(x), np.flipud(x), np.rot90(x)


@case(lambda: (F(6),))
def tile(x):
    return np.tile(x, 3)


@case(lambda: (F(6), 1.5))
def hypot(x, y):
    return np.hypot(x, y), math.hypot(x[0], y)


@case(lambda: (F(6),))
def radians(x):
    return (
        np.radians(x),
        np.degrees(x),
        np.deg2rad(x),
        np.rad2deg(x),
        math.radians(x[0]),
        math.degrees(x[0]),
    )


@case(lambda: (np.array([1.0, np.nan, 3, -2]),))
def nans(x):
    return np.nansum(x), np.nanmax(x), np.nanmin(x), np.nanmean(x)


@case(lambda: (np.array([1.0, np.nan, 3, np.inf]),))
def nan_to_num(x):
    return np.nan_to_num(x)


@case(lambda: (F(20), F(20)))
def interp_like(x, y):
    return np.interp(np.array([0.1, 0.5, 0.9]), np.linspace(0, 1, 20), y)


@case(lambda: (F(8), F(3)))
def convolve(x, k):
    return np.convolve(x, k), np.convolve(x, k, mode="valid"), np.convolve(x, k, "same")


@case(lambda: (F(8), F(3)))
def correlate(x, k):
    return np.correlate(x, k, "valid")


@case(lambda: (F(20), F(20)))
def trapz(x, y):
    return np.trapezoid(y, dx=0.1)


@case(lambda: (F(4), 0.5))
def polyval(p, x):
    return np.polyval(p, x)


@case(lambda: (F(4, 6),))
def ptp(x):
    return np.ptp(x), np.ptp(x, axis=0)


@case(lambda: (F(4, 6),))
def argmax_axis(x):
    return np.argmax(x, axis=1), np.argmin(x, axis=0), np.argmax(x)


@case(lambda: (F(6), F(6)))
def allclose(x, y):
    return np.allclose(x, x), np.allclose(x, y), np.isclose(x, y)


@case(lambda: (F(6), F(6)))
def array_equal(x, y):
    return np.array_equal(x, x), np.array_equal(x, y)


@case(lambda: (np.array([True, False, True]), np.array([True, True, False])))
def bit_arrays(a, b):
    return np.bitwise_and(a, b), np.bitwise_or(a, b), np.bitwise_xor(a, b), np.invert(a), ~a


@case(lambda: (I(50, 6), I(4, 6)))
def shifts(a, b):
    return np.left_shift(a, b), np.right_shift(a, b), a << 2, np.bitwise_not(a)


@case(lambda: (I(50, 6), 1 + I(4, 6)))
def gcd(a, b):
    return np.gcd(a, b), np.lcm(a, b), math.gcd(12, 18)


@case(lambda: (I(50, 6), 1 + I(4, 6)))
def divmods(a, b):
    q, r = divmod(a[0], b[0])
    return q, r, np.remainder(a, b), np.fmod(a, b), np.true_divide(a, b)


@case(lambda: (F(6), F(6)))
def fmax(a, b):
    return np.fmax(a, b), np.fmin(a, b)


@case(lambda: (F(6),))
def reciprocal(a):
    return np.reciprocal(a), np.positive(a), np.exp2(a), np.sinc(a), np.signbit(a)


@case(lambda: (F(6), F(6)))
def logaddexp(a, b):
    return np.logaddexp(a, b)


@case(lambda: (F(3, 4),))
def shapes(x):
    return np.shape(x)[0], np.size(x), np.ndim(x), x.nbytes, x.itemsize, x.strides[0]


@case(lambda: (F(3, 4),))
def expand(x):
    return (
        np.expand_dims(x, 0),
        np.squeeze(np.expand_dims(x, 0)),
        np.atleast_2d(x[0]),
        np.swapaxes(x, 0, 1),
        np.moveaxis(x, 0, 1),
    )


@case(lambda: (F(3, 4),))
def flat_iter(x):
    s = 0.0
    for v in x.flat:
        s += v
    return s


@case(lambda: (F(3, 4),))
def ndindex(x):
    s = 0.0
    for i, j in np.ndindex(x.shape):
        s += x[i, j]
    return s


@case(lambda: (F(3, 4),))
def ndenumerate(x):
    s = 0.0
    for (i, j), v in np.ndenumerate(x):
        s += v * i + j
    return s


@case(lambda: (F(3), F(4)))
def meshgrid(x, y):
    X, Y = np.meshgrid(x, y)
    return X + Y


@case(lambda: (F(12), I(12, 5)))
def take(x, i):
    return np.take(x, i), x.take(i)


@case(lambda: (F(12),))
def compress(x):
    return x[x > 0.5]


@case(lambda: (F(12),))
def masked_sum(x):
    return x[x > 0.5].sum(), np.sum(x[x < 0.2])


@case(lambda: (F(12), F(12)))
def select(x, y):
    return np.select([x > 0.5, y > 0.5], [x, y], 0.0)


@case(lambda: (F(12),))
def appended(x):
    return np.append(x, 1.0), np.append(x, x)


@case(lambda: (F(12),))
def ediff(x):
    return np.ediff1d(x)


@case(lambda: (F(4, 4),))
def identity(x):
    return np.identity(4) @ x, np.eye(4, k=1), np.tri(4)


@case(lambda: (F(4, 9),))
def corrcoef(x):
    return np.corrcoef(x)


@case(lambda: (F(12),))
def weighted(x):
    return np.average(x), np.average(x, weights=x)


@case(lambda: (F(5),))
def vander(x):
    return np.vander(x, 3)


@case(lambda: (I(2, 40),))
def run_lengths(a):
    best = run = 0
    for v in a:
        run = run + 1 if v else 0
        best = max(best, run)
    return best


@case(lambda: (5,), lambda: (20,))
def fib(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@case(lambda: (60,))
def collatz(n):
    best, where = 0, 0
    for k in range(1, n):
        m, c = k, 0
        while m != 1:
            m = m // 2 if m % 2 == 0 else 3 * m + 1
            c += 1
        if c > best:
            best, where = c, k
    return best, where


@case(lambda: (F(10, 3), F(4, 3)))
def kmeans_step(x, c):
    n, k = x.shape[0], c.shape[0]
    label = np.zeros(n, dtype=np.int64)
    for i in range(n):
        d = np.array([((x[i] - c[j]) ** 2).sum() for j in range(k)])
        label[i] = np.argmin(d)
    new = np.zeros_like(c)
    for j in range(k):
        cnt = 0
        for i in range(n):
            if label[i] == j:
                new[j] += x[i]
                cnt += 1
        if cnt > 0:
            new[j] /= cnt
    return label, new


@case(lambda: (np.array([5, 2, 9, 1, 7]),))
def bubble(a):
    n = len(a)
    for i in range(n):
        for j in range(0, n - i - 1):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


@case(lambda: (F(30), 5))
def moving_average(x, w):
    out = np.empty(x.size - w + 1)
    s = x[:w].sum()
    out[0] = s / w
    for i in range(w, x.size):
        s += x[i] - x[i - w]
        out[i - w + 1] = s / w
    return out


@case(lambda: (F(30), 0.3))
def ema(x, alpha):
    out = np.empty_like(x)
    out[0] = x[0]
    for i in range(1, len(x)):
        out[i] = alpha * x[i] + (1 - alpha) * out[i - 1]
    return out


@case(lambda: (F(6, 2),))
def pdist(p):
    n = len(p)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            d[i, j] = d[j, i] = np.sqrt(np.sum((p[i] - p[j]) ** 2))
    return d


@case(lambda: (F(6), F(6)))
def haversine(lat, lon):
    R_EARTH = 6371.0

    def rad(x):
        return x * math.pi / 180

    total = 0.0
    for i in range(1, len(lat)):
        dlat, dlon = rad(lat[i] - lat[i - 1]), rad(lon[i] - lon[i - 1])
        a = (
            math.sin(dlat / 2) ** 2
            + math.cos(rad(lat[i - 1])) * math.cos(rad(lat[i])) * math.sin(dlon / 2) ** 2
        )
        total += 2 * R_EARTH * math.asin(math.sqrt(a))
    return total


@case(lambda: (10,))
def listed(n):
    out = []
    for i in range(n):
        out.append(i * i)
    return np.array(out)


@case(lambda: (F(10),))
def dict_comp(x):
    d = {i: x[i] for i in range(3)}
    return d[0]


@case(lambda: (F(10),))
def inner_function_two_results(x):
    def minmax(a):
        lo = hi = a[0]
        for v in a:
            if v < lo:
                lo = v
            if v > hi:
                hi = v
        return lo, hi

    lo, hi = minmax(x)
    return (x - lo) / (hi - lo)


@case(lambda: (F(6),))
def enumerate_gen(x):
    return sum(i * v for i, v in enumerate(x))


@case(lambda: (F(6), F(6)))
def zip_gen(x, y):
    return sum(a * b for a, b in zip(x, y)), sum((a - b) ** 2 for a, b in zip(x, y)) ** 0.5


@case(lambda: (F(4, 4),))
def two_for_gen(x):
    return sum(x[i, j] for i in range(4) for j in range(i, 4))


@case(lambda: (F(8),))
def map_sum(x):
    return sum(map(lambda v: v * 2, x))


@case(lambda: (F(8),))
def math_names(x):
    return (
        math.gamma(x[0] + 1),
        math.lgamma(x[1] + 1),
        math.erfc(x[2]),
        math.trunc(x[3] * 5),
        math.fmod(x[4], 0.3),
    )


@case(lambda: (F(8),))
def fsum(x):
    return math.prod((x[0], x[1])), math.dist((0.0, 1.0), (x[0], x[1]))


@case(lambda: (F(8),))
def in_tuple(x):
    s = 0
    for i in range(8):
        if i in (2, 3, 5):
            s += 1
    return s


@case(lambda: (F(8) + 1j * F(8),))
def complex_names(z):
    return np.abs(z), np.angle(z), z.conj(), np.real(z)


@case(lambda: (F(8),))
def ufunc_methods(x):
    return np.add.reduce(x), np.maximum.reduce(x), np.add.accumulate(x), np.maximum.accumulate(x)


@case(lambda: (F(6, 6),))
def tri_indices(x):
    return np.triu(x, 1), np.tril(x, -1), np.diagonal(x), np.fill_diagonal(x, 0.0)


@case(lambda: (F(8),))
def split(x):
    a, b = np.split(x, 2)
    return a + b


@case(lambda: (F(8), I(8, 4)))
def delete(x, i):
    return np.delete(x, 2)


@case(lambda: (np.zeros(5), np.array([0, 1, 1, 3]), np.ones(4)))
def add_at(a, i, v):
    np.add.at(a, i, v)
    return a


@case(lambda: (F(6),))
def logspace(x):
    return np.logspace(0.0, 2.0, 5), np.geomspace(1.0, 100.0, 3)


@case(lambda: (3, 5))
def full_dtype(n, m):
    a = np.full((n, m), 7, dtype=np.int32)
    b = np.zeros((n, m), np.float32)
    a[1:] += 1
    return a, b + a


@case(lambda: (F(6),))
def copyto(x):
    y = np.empty_like(x)
    np.copyto(y, x)
    y[:3] = 0
    return y


@case(
    lambda: (F(6), 2),
)
def ternary_chain(x, k):
    y = x if k > 1 else -x
    return y.sum()


@case(lambda: (F(6, 3),))
def rows_iter(x):
    s = 0.0
    for row in x:
        a, b, c = row
        s += a * b - c
    return s


@case(lambda: (np.array([1, 2, 3], np.uint8), np.array([250, 250, 250], np.uint8)))
def wrap8(a, b):
    return a + b, a * b, a - b


@case(lambda: (F(7),))
def while_else_break(x):
    i = 0
    while True:
        if x[i] > 0.9 or i == 6:
            break
        i += 1
    return i


@case(lambda: (I(256, 30).astype(np.uint8),))
def crc(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc ^= int(b)
        for _ in range(8):
            if crc & 1:
                crc = (crc >> 1) ^ 0xEDB88320
            else:
                crc >>= 1
    return crc ^ 0xFFFFFFFF


@case(lambda: (F(9),))
def late_binding(x):
    k = 0.0

    def f(v):
        return v + k

    s = 0.0
    for i in range(len(x)):
        s += f(x[i])
        k += 1
    return s


@case(lambda: (F(9),))
def late_binding_array(x):
    t = x * 2

    def f(i):
        return t[i]

    a = f(1)
    t = x * 3
    return a + f(1)


@case(lambda: (5,), lambda: (1,))
def recursion_within(n):
    def fact(k):
        return 1 if k <= 1 else k * fact(k - 1)

    return fact(5) + n


@case(lambda: (F(4),))
def mutual(x):
    def even(k):
        if k == 0:
            return True
        return odd(k - 1)

    def odd(k):
        if k == 0:
            return False
        return even(k - 1)

    s = 0.0
    if even(4):
        s += x[0]
    if odd(4):
        s += x[1]
    return s


@case(lambda: (F(9),))
def shadow(x):
    i = 100
    s = sum(x[i] for i in range(len(x)))
    return s + i


@case(lambda: (F(9),))
def shadow_in_loop(x):
    t = 0.0
    for i in range(3):
        t += sum(x[i] * k for k in range(i + 1)) + max(i for i in range(4))
        t *= i + 1
    return t


@case(lambda: (F(9),))
def default_late(x):
    k = 2.0

    def f(v, by=k):
        return v * by

    k = 5.0
    return f(x[0]) + k


@case(lambda: (F(9),))
def writes_within(x):
    out = np.zeros_like(x)

    def put(i, v):
        out[i] = v

    for i in range(len(x)):
        put(i, x[i] * 2)
    return out


@case(lambda: (F(9),))
def returns_function(x):
    def adder(k):
        return lambda v: v + k

    f, g = adder(1.0), adder(10.0)
    return f(x[0]), g(x[1])


@case(lambda: (I(9, 12),))
def walrus_in_if(a):
    t = 0
    for v in a:
        if (w := v * 2) > 8 and w < 14:
            t += w
        elif w > 14:
            t -= w
    return t, w


@case(lambda: (I(9, 12),))
def walrus_while(a):
    i = 0
    t = 0
    while i < len(a) and (t + 1) < 20:
        t += (v := a[i])
        i += 1
    return t, i, v


@case(lambda: (I(9, 12),))
def walrus_while_test(a):
    i = 0
    last = -1
    while (v := a[i] * 2) != 100:
        i += 1
        if i == 5:
            break
        last = v
    return v, i, last


@case(lambda: (F(9),), lambda: (np.zeros(0),))
def any_empty(x):
    return any(v > 0.5 for v in x), all(v > 0.5 for v in x), sum(1 for v in x if v > 0.5)


@case(lambda: (np.zeros(0),))
def max_empty(x):
    return max(v for v in x)


@case(lambda: (np.array([np.nan, 1.0, 2.0]),), lambda: (np.array([1.0, np.nan, 2.0]),))
def max_nan(x):
    return max(v for v in x), min(v for v in x)


@case(
    lambda: (np.array([np.nan, 1.0, 2.0]),),
    lambda: (np.array([1.0, np.nan, 2.0]),),
    lambda: (np.array([1.0, 5, 2.0]),),
)
def builtin_max_nan(x):
    return max(x), min(x)


@case(
    lambda: (np.array([np.nan, 1.0, 2.0]),),
    lambda: (np.array([1.0, np.nan, 2.0]),),
    lambda: (np.array([1.0, 5, 2.0]),),
)
def argmax_nan(x):
    return np.argmax(x), np.argmin(x)


@case(lambda: (np.array([[np.nan, 1.0, 2.0], [3, 2, np.nan]]),), lambda: (F(5, 4),))
def argmax_nan_2d(x):
    return np.argmax(x), np.argmin(x), np.argmax(x, axis=0), np.argmin(x, 1)


@case(lambda: (F(30),))
def masked_shape(x):
    y = x[x > 0.5]
    return len(y), y.shape[0], y.size, y.sum(), y.mean()


@case(lambda: (F(30),))
def masked_use(x):
    y = x[x > 0.5] * 2
    z = np.zeros_like(y)
    for i in range(len(y)):
        z[i] = y[i] + 1
    return y, z, np.sort(y)


@case(lambda: (F(30), I(30, 30) > 12))
def masked_two(x, m):
    return x[m], x[~m].max(), np.sort(x[m])[::-1]


@case(lambda: (F(5, 6),))
def masked_2d(x):
    return x[x > 0.4]


@case(lambda: (np.zeros(12),))
def masked_empty(x):
    return x[x > 1], x[x > 1].sum(), len(x[x > 1])


@case(lambda: (np.zeros(12),))
def masked_empty_max(x):
    return x[x > 1].max()


@case(lambda: (F(30),))
def outliers(x):
    m, s = x.mean(), x.std()
    good = x[np.abs(x - m) < s]
    return good.mean(), len(good)


@case(lambda: (F(12),))
def listed_if(x):
    return np.array([v * 2 for v in x if v > 0.4])


@case(lambda: (F(12),))
def listed_ints(x):
    a = [i // 2 for i in range(7)]
    return a[0], a[-1], len(a), sum(a), max(a), np.array(a)


@case(lambda: (F(12),))
def listed_floats(x):
    a = [float(i) / 2 for i in range(7)]
    return a[3], np.array(a) * x[0]


@case(lambda: (F(4, 3),))
def listed_rows(x):
    return np.array([row * 2 for row in x]), np.array([x[i] for i in range(4)])


@case(lambda: (F(4, 3),))
def listed_mixed(x):
    return np.array([1 if v > 0.5 else 0 for v in x[0]]), np.array([v > 0.5 for v in x[0]])


@case(lambda: (F(4, 3),))
def listed_tuple(x):
    a = [k + 1 for k in (1, 2)]
    return np.array([k * 2 for k in (1, 2, 3)]), a[0], a[1]


@case(lambda: (F(12),))
def listed_twice(x):
    a = [v * 2 for v in x]
    b = [a[i] + 1 for i in range(len(a) - 1)]
    return sum(a) + sum(b), np.array([p * q for p, q in zip(a, x)])


@case(lambda: (F(12),))
def list_in_loop(x):
    s = 0.0
    for i in range(1, 5):
        a = [x[k] * i for k in range(i)]
        s += sum(a)
    return s


@case(lambda: (F(12),))
def list_plus(x):
    a = [v for v in x]
    return np.array(a + a)


@case(lambda: (F(12),))
def list_store(x):
    a = [1 for v in x]
    a[0] = 2.5
    return sum(a)


@case(lambda: (F(12),))
def globals_within(x):
    def f(v):
        return v * K

    return sum(f(v) for v in x)


@case(lambda: (F(12), 4))
def n_in_list(x, n):
    return np.array([x[i] for i in range(n)])


@case(lambda: (F(12), 4))
def n_in_closure(x, n):
    def f():
        return n

    return x[f()]


@case(lambda: (F(6, 6),))
def diag_view(x):
    d = np.diagonal(x)
    x[0, 0] = 7.0
    return (
        d[0],
        np.eye(4, k=1),
        np.eye(3, 5, k=-1),
        np.diag(x[1], 1),
        np.diag(x, -2),
        np.trace(x, 1),
    )


@case(lambda: (F(6, 6),))
def returned_diagonal(x):
    return np.diagonal(x)


@case(
    lambda: (I(100, 64),),
    lambda: (I(3, 77),),
    lambda: (F(129).astype(np.float32),),
    lambda: (F(64) > 0.5,),
)
def stable(x):
    return np.argsort(x, kind="stable"), np.sort(x)


@case(lambda: (F(5, 7),))
def sort_axes(x):
    return np.sort(x, axis=0), np.sort(x), np.argsort(x, axis=0), np.sort(x, axis=None)


@case(lambda: (F(16),), lambda: (F(15),))
def running_median(x):
    out = np.empty(len(x) - 4)
    for i in range(len(out)):
        out[i] = np.median(x[i : i + 5])
    return out


@case(lambda: (np.array([3.0, 1, np.nan, 2, np.nan, 1]),), lambda: (I(4, 30),))
def uniques(x):
    u = np.unique(x)
    return u, len(u)


@case(lambda: (F(8),))
def walrus_comp(x):
    return sum((y := v) for v in x)


@case(lambda: (F(8),))
def tuple_functions(x):
    fs = (lambda v: v + 1, lambda v: v * 2)
    s = 0.0
    for f in fs:
        s += f(x[0])
    return s


@case(lambda: (F(8),))
def cond_lambda(x):
    f = (lambda v: v + 1) if x[0] > 0.5 else (lambda v: v * 2)
    return f(x[0])


@case(lambda: (F(8),))
def nested_break(x):
    def first(t):
        for i in range(len(x)):
            if x[i] > t:
                return i
        return -1

    return first(0.3), first(2.0)


@case(lambda: (I(12, 9),))
def in_range(a):
    t = 0
    for v in a:
        if v in (1, 2, 3) or v not in (4, 5, 6, 7):
            t += 1
    return t


@case(lambda: (F(3),))
def raise_within(x):
    def check(v):
        if v < 0:
            raise ValueError("negative")
        return v

    return check(x[0]) + check(-1.0)


@case(lambda: (F(3),))
def bad_call(x):
    f = lambda a: a
    return f(x[0], 2)


@case(lambda: (F(3),))
def sum_start(x):
    return sum((v for v in x), 10.0), sum([v for v in x], start=1)


@case(lambda: (F(3), F(3)))
def sum_bool(x, y):
    return (
        sum(a > b for a, b in zip(x, y)),
        sum(range(5)),
        max(range(4)),
        sum(i for i in range(4) if i % 2),
    )


@case(lambda: (F(10), 3))
def simpson(x, n):
    f = lambda t: t * t * math.exp(-t)
    h = 1.0 / 10
    return (
        h
        / 3
        * (
            f(0.0)
            + f(1.0)
            + 4 * sum(f(i * h) for i in range(1, 10, 2))
            + 2 * sum(f(i * h) for i in range(2, 10, 2))
        )
    )


@case(lambda: (F(10),))
def newton(x):
    def f(v, a):
        return v * v - a

    out = np.empty_like(x)
    for i in range(len(x)):
        v = 1.0
        for _ in range(20):
            v -= f(v, x[i]) / (2 * v)
        out[i] = v
    return out


@case(lambda: (F(40),))
def big_list_len(x):
    return [len(x), 2, 3][0], sum(len(x) for _ in range(3))


@case(lambda: (F(20),))
def folded_writes(x):
    a = np.logspace(0.0, 1.0, 4)
    a[0] = x[0]
    return a


@case(lambda: (F(20), np.array([0, 5, 5, 2])))
def scattered(x, i):
    np.add.at(x, i, 1.0)
    return np.take(x, i), np.cumsum(x)[i]


@case(lambda: (F(3, 4),))
def reshaped_is_seen(x):
    rows = x.reshape(2, 6)
    x[0, 0] = 3.0
    rows[1, 2] = 8.0
    flat = rows.ravel()
    flat[1:] = flat[:-1] * 2
    flat[:] = flat[::-1]
    return rows[0], flat


@case(lambda: (F(3, 4),))
def reshaped_own(x):
    own = x * 2
    flat = own.reshape(-1)
    for i in range(flat.shape[0]):
        flat[i] += i
    kept = own.ravel()
    for _ in range(2):
        kept = kept + 1
    return own, flat, kept


@case(lambda: (F(3, 4),))
def reshaped_in_a_loop(x):
    s = 0.0
    for k in range(3):
        columns = x.reshape(4, 3)
        columns[k] += 1
        s += columns[k, 0]
    return s


@case(lambda: (F(3, 4),))
def reshaped_part(x):
    part = x[1:].reshape(-1)
    own = x[1:].reshape(-1).copy()
    own[0] = 5.0
    return part, own


@case(lambda: (F(3, 4),))
def reshaped_part_written(x):
    part = x[1:].reshape(-1)
    part[0] = 5.0


@case(lambda: (F(3, 4),))
def flat_written(x):
    x.flat[3] = 9.0
    for i in range(x.size):
        x.flat[i] *= 2


@case(lambda: (F(3, 4),))
def ndindex_written(x):
    for k in np.ndindex(2):
        for i, j in np.ndindex(*x.shape):
            if i == j:
                continue
            x[i, j] += k[0] + i
        for place, v in np.ndenumerate(x):
            x[place] = v - 1


@case(lambda: (F(3, 4),))
def shape_assigned(x):
    own = x * 2
    own.shape = own.shape[0] * own.shape[1]
    own[3] = 1.0
    return own


@case(lambda: (F(3, 4),))
def shape_assigned_to_two(x):
    own = x * 2
    other = own
    own.shape = (12,)
    return other


@case(
    lambda: (np.array([7, -7, -(2**63), 5]), np.array([-3, 3, -1, 0])),
    lambda: (np.array([7, 250, 3], np.uint8), np.array([3, 7, 0], np.uint8)),
)
def fmod_of_integers(a, b):
    return np.fmod(a, b)


@case(lambda: (F(3),))
def drawn_at_random(x):
    np.random.seed(3)
    return x[0] + np.random.random()


@case(lambda: (F(3),))
def beyond_any_subscript(x):
    return x[2**70]


def line(n: int) -> np.ndarray:
    return np.arange(float(n))


@case(lambda: (line(6), line(6) + 1, line(6)), lambda: (I(9, 6), I(9, 6), line(6)))
def out_given(a, b, c):
    np.add(a, b, out=c)
    np.multiply(c, c, c)
    np.subtract(c, 1, out=(c,))
    d = np.clip(c, 1.0, 30.0, out=c)
    e = np.empty(6, np.bool_)
    np.greater(c, 2, out=e)
    np.logical_not(e, e)
    return d, e, np.add(a, 1, out=None)


@case(lambda: (line(12).reshape(3, 4), line(4)), lambda: (line(4), line(12).reshape(3, 4)))
def out_of_parts(a, b):
    np.maximum(a, b, out=a)
    np.multiply(a[1:], 2, out=a[:-1])
    np.add(a[:, 0], 1.0, a[:, 1])
    return np.negative(a[0], out=a[2])


@case(lambda: (line(6), I(9, 6)))
def out_of_another_kind(a, c):
    np.sqrt(a, out=c)


@case(lambda: (line(6), line(6)))
def out_where(a, c):
    np.add(a, 1, out=c, where=a > 2)


@case(lambda: (line(6), line(6)))
def out_of_nothing(a, c):
    np.add(a, 1, out=a + c)


@case(lambda: (line(5), 2.0), lambda: (line(5), 9.0))
def returns_nothing_early(a, t):
    for i in range(len(a)):
        if a[i] == t:
            return
    a[0] = 9.0


@case(lambda: (line(5), 2.0), lambda: (line(5), 0.5), lambda: (line(5), 9.0))
def returns_arrays(a, t):
    def other(k):
        if a[k] > t:
            return a * 2
        return a + 1

    b = other(1)
    if a[2] > t:
        return b, 3
    for i in range(len(a)):
        b[i] += t
        if b[i] > 4:
            return b, i
    return np.zeros(5), -1


@case(lambda: (line(5), 2.0), lambda: (line(5), 9.0))
def returns_or_raises(a, t):
    while True:
        a[0] += t
        if a[0] > 20:
            break
        if a[0] > 7:
            return a[0]
    if a[1] > t:
        return 2.0
    raise ValueError("none")


@case(lambda: (line(5), 2.0))
def returns_one_or_nothing(a, t):
    for i in range(len(a)):
        if a[i] > t:
            return i
    return None


@case(lambda: (line(5), 2.0))
def returns_the_callers_or_another(a, t):
    if a[0] > t:
        return a
    return a * 3


@case(lambda: (line(4), 0.5))
def rows_of_tuples(a, t):
    c = np.zeros((3, 4))
    for i in range(3):
        c[i] = (i, 2 * i, a[i], t)
    c[0, :2] = [5, t]
    return c


@case(lambda: (line(6),))
def stretches(a):
    s = 0.0
    for j in range(5):
        for k in np.arange(j + 1, 0, -1):
            s += k * a[k - 1]
        s += (np.arange(j, 5, 2) * 2).sum() + np.arange(2 * j, j).sum()
        s += len(np.arange(j, -1, -3)) + len(np.arange(5, 3))
        a[j:] += np.linspace(0.0, 1.0, 6 - j)
    return s


@case(lambda: (I(3, 2) + 2,), lambda: (np.array([0, 1]),), lambda: (np.array([2, -1]),))
def stretches_of_data(n):
    return np.arange(n[0]).sum(), np.arange(7, n[1], -2).sum(), np.linspace(1.0, 2.0, n[1]).sum()


@case(lambda: (np.array([1.25, 2.5, -3.14159, 1e10, np.nan]), 2.5), lambda: (I(99, 5), 3.5))
def rounded(a, x):
    return np.round(a, 2), a.round(1), np.round(x), round(x), round(a[1])


@case(lambda: (3.14159,))
def rounded_to_digits(x):
    return round(x, 2)


@case(lambda: (np.array([3, 0, 5], np.int8), 2.5), lambda: (np.array([0.0, 7.0, -1.0]), 0.0))
def values_of_and_or(a, x):
    one = a[0] and a[2], a[1] and a[2], a[1] or a[2], x and a[2] and 2.5, a[0] or x or 9
    test = a[0] > 1 and a[1] < 1, not (a[0] and a[1]), a[0] < a[2] < 9
    if (a[0] and a[1]) or not (x or a[2]):
        a[1] = 11
    return one, test


@case(lambda: (np.array([100, 100, 1], np.int8), I(9, 3, 4)), lambda: (F(5), F(2, 3) > 0.5))
def sums_as_python_adds(a, b):
    return sum(a), sum(b), sum(a, 5), sum(b[0], 2.5)


@case(
    lambda: (np.array([3, 1, 2], np.int8),),
    lambda: (np.array([7, 1, 2], np.uint16),),
    lambda: (np.array([2.5, 1.25, 7], np.float32),),
)
def kinds_of_floats(a):
    whole = np.rint(a), np.exp2(a), np.arctan2(a, a), np.vander(a), np.cov(a[None] * a[:, None])
    return whole, a * np.count_nonzero(a)


@case(lambda: (np.array([1, 3, 90], np.uint8), np.array([9, 4, 2], np.uint8)))
def points_between(x, y):
    return np.interp(2.5, x, y), np.polyval(y, 50), np.mean(x, dtype=np.float32)


@case(lambda: (np.array([True, False]),))
def signs_of_bools(a):
    return np.sign(a)


@case(lambda: (2.0, -1.0), lambda: (0.0, -1.0), lambda: (-2.0, -3.0), lambda: (0.0, 2.5))
def pythons_powers(x, y):
    return x**y, x**3


@case(lambda: (7, -2), lambda: (7, 2))
def pythons_shifts(x, y):
    return x >> y


@case(lambda: (3.0, 0.0), lambda: (-7.5, 2.0))
def pythons_remainder(x, y):
    return math.fmod(x, y)


@case(lambda: (F(4).astype(np.float32), 3.0, -2.0))
def pythons_floats(a, x, y):
    return a * math.atan2(x, y), a * math.copysign(x, y), math.isnan(x) + 1


@case(lambda: (line(8), 3), lambda: (line(40), 3))
def masked_and_masked_again(a, n):
    b = a[a > 1]
    c = b[b < 6]
    for i in range(n):
        b = b[b > i]
    return c.sum(), c * 2, b.sum(), b[b > 4]


@case(lambda: (line(8),), lambda: (line(40),))
def masked_and_written(a):
    b = a[a > 1]
    c = b
    b += 1
    b[b > 5] = 0
    b[0] = 9
    d = b[1:3]
    d[0] = 50
    np.add(b, 1, out=b)
    np.add.at(b, np.array([0, 0]), 2.0)
    e = a[a > 2]
    for i in range(len(e)):
        e[i] = e[i] * 2 + i
    return b, c, e, a


@case(lambda: (line(8),), lambda: (line(40),))
def masked_and_handed_on(a):
    def clear(x):
        x[1] = 0

    b = a[a > 1]
    clear(b)
    c = a[a > 2]
    c.sort()
    c.fill(3.0)
    return b.sum(), c.sum()


@case(lambda: (line(8),))
def masked_by_another_of_that_name(a):
    m = a > 2
    b = a[m]
    m = a < 5
    c = a[m]
    return b + c, (b * 2 + b).sum()


@case(lambda: (line(12).reshape(3, 4),))
def same_arrays_written(a):
    b = np.asarray(a)
    b[0] += 1
    c = a.astype(np.float64, copy=False)
    c[1, 1] = 50
    d = a.real
    d *= 2
    e = np.ascontiguousarray(a)
    e[2] = np.ascontiguousarray(a.T)[0, 1]
    return b.sum()


@case(lambda: (line(12).reshape(3, 4),))
def contiguous_part_written(a):
    b = np.ascontiguousarray(a[1:])
    b[0] = 1


@case(lambda: (line(3) + 1j,))
def part_of_complex_written(a):
    a.imag[0] = 7


@case(lambda: (line(3) + 1j,))
def part_of_complex_named_and_written(a):
    b = a.real
    b[0] = 7


@case(lambda: (line(8), 3), lambda: (line(40), 3))
def arrays_swapped(a, n):
    u, v = a.copy(), np.zeros_like(a)
    for _ in range(n):
        v[1:-1] = u[:-2] + u[2:]
        u, v = v, u
    return u, v


@case(lambda: (line(8),))
def arrays_in_a_tuple(a):
    t = (a, a * 2)
    a[1] = 4
    t[1][0] = 3
    return t[0].sum(), t[1]


@case(lambda: (line(8), np.array([0, 1, 1, 3])))
def places_named_twice(a, i):
    a[i] += 1
    return a


@case(lambda: (F(6), 4))
def shared_then_written(a, n):
    u, v = np.zeros(6), a.copy()
    for t in range(n):
        u = v
        v[0] = t
    return u, v


@case(lambda: (F(6), 4))
def shared_and_written_through_the_other(a, n):
    u, v = np.zeros(6), a.copy()
    for _ in range(n):
        u = v
        u[0] += 1
    return u, v


@case(lambda: (F(6), 4))
def shared_part_written(a, n):
    u, v = np.zeros(3), a.copy()
    for t in range(n):
        u = v[::2]
        v += t
    return u


@case(lambda: (F(6), 4))
def shared_and_changed_by_out(a, n):
    u, v = np.zeros(6), a.copy()
    for _ in range(n):
        u = v
        np.add(v, 1.0, out=v)
    return u


@case(lambda: (F(6), 4))
def shared_swap_by_a_third(a, n):
    u, v = a.copy(), np.zeros(6)
    for _ in range(n):
        for i in range(1, 5):
            v[i] = u[i - 1] + u[i + 1]
        old = u
        u = v
        v = old
    return u, v


@case(lambda: (F(6), 4))
def shared_by_nobody(a, n):
    u = a.copy()
    for _ in range(n):
        w = u + 1
        w[0] = 0
        u = w
    return u


@case(lambda: (F(6), 4))
def shared_and_only_read(a, n):
    u, v = np.zeros(6), a.copy()
    s = 0.0
    for _ in range(n):
        s += u[1] + v[2]
        u = v
    return s, u, v


@case(lambda: (F(6), 4))
def refused_shared_best(a, n):
    best, now = a.copy(), a.copy()
    for t in range(n):
        now[t] *= 0.5
        if now[0] < best[0]:
            best = now
    return best


@case(lambda: (F(6), 4))
def refused_shared_in_a_while(a, n):
    u, v, t = np.zeros(6), a.copy(), 0
    while t < n:
        u = v
        v[t] = -1
        t += 1
    return u


@case(lambda: (F(6) + 1j,))
def refused_part_by_function(z):
    r = np.real(z)
    r[0] = 9.0
    return z


@case(lambda: (F(6) + 1j,))
def refused_part_that_would_change(z):
    r = z.imag
    z[0] = 5 + 2j
    return r.copy()


@case(*(lambda t=t: (np.arange(6).astype(t), np.arange(3, 9).astype(t)) for t in "?bhBfed"))
def kinds_of_hypotenuses(x, y):
    return np.hypot(x, y), np.hypot(3.0, x[1]), np.fabs(x), x**2, np.square(y), x**2.0


@case(lambda: (12, 18), lambda: (12.0, 18))
def pythons_gcd(a, b):
    return math.gcd(a, b)


def small(kind):
    return (np.arange(7) * 3).astype(kind)


@case(*(lambda t=t: (small(t),) for t in "bBhIqQ"))
def ints_beside_pythons(x):
    return x > -100, x < 300, x <= 5000000000, x == -1, np.clip(x, -300, 4), np.clip(x, None, 5)


@case(*(lambda t=t: (small(t),) for t in "bBQ"))
def ints_beside_pythons_that_run(x):
    c = 0
    for k in range(-300, 301, 100):
        for v in x:
            c += (v > k) + 10 * (k >= v) + 100 * (v == k) + 1000 * (k != v)
    return c


@case(lambda: (small("b"),))
def ints_too_large(x):
    return x + 300


@case(*(lambda t=t: (small(t),) for t in "bfd"))
def ints_among_numpys(x):
    return np.array([[x[0], 1], [2, x[1]]]), np.array([x[0], 1.5]), np.array([x[0], x[1]])


@case(lambda: (F(5, 5), F(5)))
def rows_under_a_mask(x, r):
    keep = x[:, 0] > 0.4
    x[keep] = 2
    x[~keep] = r
    return x


@case(lambda: (F(5, 5),))
def refused_mask_and_more(x):
    x[x[:, 0] > 0.4, 1] = 2
    return x


@case(lambda: (F(5),))
def refused_starred(x):
    a, *b = (x[0], x[1], x[2])
    return a + b[0]


@case(lambda: (F(2, 3, 4),))
def transposed_by_numbers(x):
    return x.transpose(2, 0, 1)[1].copy(), np.transpose(x, (-1, 0, 1))[0]


@case(lambda: (np.arange(24).reshape(2, 3, 4),))
def running_sums(x):
    y = np.cumsum(x, axis=-1), np.add.accumulate(x[0]), np.multiply.accumulate(x[1], axis=1)
    return y, np.add.accumulate(x), np.amax(x), np.amin(x, axis=0)


@case(lambda: (F(3) + 1j,))
def refused_sinh_of_complex(x):
    return np.sinh(x)


@case(lambda: (F(3) + 1j,))
def refused_rounded_complex(x):
    return np.rint(x)
