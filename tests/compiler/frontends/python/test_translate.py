"""Functions in Python: their translations mean the same, to the bit, with the same exceptions."""

# ruff: noqa: B007, C416, RET504, SIM105 - as people write functions
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from avial_lab import prange
from avial_lab.core.errors import AvialError
from avial_lab.program.function_calls import sizes_of
from tests.compiler.frontends.python.comparing import compare, interpreted, translated

R = np.random.default_rng(0)


def from_the_end(a, b):
    for i in range(len(a)):
        a[i] = a[i - 1] + b[-i]


def branches(a):
    s = 0
    for x in a:
        if x > 3:
            s += x
        elif x < -2:
            s -= 1
        else:
            continue
        s *= 2
    return s


def downwards_with_break(a, n):
    for i in range(n - 1, -1, -2):
        for j in range(i, n):
            if j == 3:
                break
            a[i, j] += i * 10 + j
    return a[0], a[1:, ::2], a.T


def guarded_by_and(a):
    i = 0
    while i < 8 and a[i] < 5:
        i += 1
    return i


def slices(a, b):
    t = a * 2 + b[None, :]
    a[1:, :] = a[:-1, :] + 1
    return t.sum(axis=0).max(), t, np.maximum(a, 0.5).min(), t[t.shape[0] // 2]


def early(a, x):
    n = 0
    for i in range(10):
        if x > i:
            return n, i
        n += i
    return n, -1


def products(a, b):
    return a @ b, a @ b[:, 0], np.dot(a[0], b[:, 1]), np.mean(a), (a > 0).any()


def integers(x, y):
    return x // y, x % y, -x // y, x << 2, x >> 1, x & y, x | y, ~x, x**3, x / y


def narrow(a8, u8, f32):
    return (
        a8[0] + 1,
        a8[0] * a8[1],
        u8[0] - u8[1],
        f32[0] * 2.0,
        f32 * 2 + a8,
        u8 // u8[0],
        a8 % 3,
        a8 // a8[2],
        -a8,
    )


def overlapping_parts(a):
    a[:] = 0
    a[::-1] = np.arange(len(a))
    a += 1
    a[2:5] *= a[3:6]
    b = a.copy()
    b[0] = 7
    return b


def helper(x, k=3):
    return x * k if x > 0 else -x


def calls_another(a):
    s = 0.0
    for i, x in enumerate(a):
        s = s + helper(x) + i
    p, q = s, 2.0
    p, q = q, p
    return p, q, math.sqrt(abs(s)), np.sqrt(a * a), max(q, s)


def triangle(n):
    a = np.zeros((n, n))
    b = np.ones(n, dtype=np.int32)
    for i in range(n):
        a[i, :i] = b[:i] + i
        a[i, i] = np.sum(a[i, : i + 1])
    return a


def becomes_a_float(a):
    x = 1
    for i in range(4):
        x = x + 0.5 if i % 2 else x
    return x


def raises(a, k):
    assert k > 2, "small"
    if k == 5:
        raise ValueError("five")
    return a[k]


def running(a):
    for i in range(a.shape[0]):
        t = a[i]
        for j in range(i):
            t -= a[j]
        a[i] = t
    m = a[0]
    for x in a[1:]:
        m = max(m, x)
    return m


def first_bound_in_a_loop(u, v):
    for k in range(3):
        w = u + v
        v[:] = w
    return w  # pyright: ignore[reportPossiblyUnboundVariable]


def swapped_scalars(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def masks(a, b, m):
    a[a > 0.5] = 0
    b[m] = b[m] * 2 + 1
    b[m] -= 1
    chosen = a[m]
    b[0] = 9
    return chosen.sum(), a[a < 0.25].mean(), np.where(m, a, b), np.clip(a, 0.1, 0.3)


def places(a, i, j):
    a[i] += a[j]
    return a[i], a[j] * 2, np.sum(a[i])


def added_in_place(pos, vel, n):
    for _ in range(n):
        pos += vel * 0.5
    return np.hstack((pos, vel)), np.triu(pos), np.add.outer(pos[0], vel[:, 1])


def library_functions(a, data):
    whole = a @ a.T + np.eye(a.shape[0], dtype=np.int64) * 40
    stack = np.reshape(a, (2, 1, 2, 4)) @ a.T[:, :2]
    counts, _ = np.histogram(data, 4)
    return whole, stack, counts


def grid(n):
    i, j = np.mgrid[0:n, 1:n]
    return i * 10 + j, np.arange(2, 9, 3), np.linspace(0, 1, 7), np.full((2, 2), 7)


def sizes_by_iteration(a):
    u, v = a.copy(), a * 2
    for i in range(3):
        a[:] = np.reshape(np.reshape(a, (2**i, 4 // 2**i)).T, (4,)) + i
        u, v = v, u
    return u, v


def sequences(a, b):
    s = 0
    for i in prange(3):
        s += a[i] * i
    for x, y in zip(a, b, strict=False):
        s += x * y
    for i in reversed(range(1, 4)):
        s = s * 2 + a[i]
    for i, x in enumerate(b, 1):
        s -= i * x
    for k in (2, 0, 1):
        s = s * 3 + b[k]
    for row in a.reshape(2, 2):
        s += row[0] * row[1]
    return s


def sequences_with_steps(a, n):
    s = 0
    for k, i in enumerate(range(len(a) - 1, -1, -3)):
        s = s * 2 + a[i] * k
    for x, i in zip(a, range(n, 0, -2), strict=False):
        s = s * 2 + x * i
    for i in reversed(range(0, n, 4)):
        s = s * 2 + i
    return s


def after_the_loop(a, t):
    for x in a:
        if x == t:
            break
    else:
        return -1
    found = 0
    for i in range(2, len(a)):
        if a[i] < 0:
            for j in range(2, i):
                if i % j == 0:
                    break
            else:
                continue
            found += i
        else:
            while t > 0:
                t -= 1
                if t == 2:
                    break
            else:
                found += 100
                break
        found += 7
    else:
        found += 1000
    return found


CASES: list[tuple[Any, ...]] = [
    (sequences_with_steps, np.arange(9), 17),
    (sequences_with_steps, np.arange(8), 16),
    (after_the_loop, np.arange(-9, 9), 99),
    (after_the_loop, np.arange(-9, 9), 5),
    (after_the_loop, np.arange(-19, 1), -3),
    (from_the_end, R.random(6), R.random(6)),
    (branches, np.arange(-5, 8)),
    (branches, R.integers(-5, 8, 9).astype(np.int8)),
    (downwards_with_break, np.zeros((6, 6)), 6),
    (downwards_with_break, np.zeros((5, 5), np.float32), 5),
    (guarded_by_and, np.arange(8)),
    (guarded_by_and, np.zeros(8)),
    (guarded_by_and, np.zeros(5)),  # IndexError
    (slices, R.random((4, 5)), R.random(5)),
    (early, R.random(3), 5.5),
    (early, R.random(3), -1.0),
    (products, R.integers(0, 9, (3, 4)), R.integers(0, 9, (4, 2))),
    (integers, 7, 3),
    (integers, -7, 3),
    (integers, 7, -3),
    (integers, 7, 0),  # ZeroDivisionError
    (
        narrow,
        np.array([100, 50, -7], np.int8),
        np.array([3, 9, 250], np.uint8),
        np.array([0.1, 0.2, 0.3], np.float32),
    ),
    (overlapping_parts, np.arange(8)),
    (overlapping_parts, np.arange(8.0)),
    (calls_another, R.standard_normal(5)),
    (triangle, 6),
    (becomes_a_float, R.random(2)),
    (raises, R.random(4), 3),
    (raises, R.random(4), 1),  # AssertionError
    (raises, R.random(8), 5),  # ValueError
    (raises, R.random(4), 7),  # IndexError
    (running, R.random(6)),
    (first_bound_in_a_loop, R.random(4), R.random(4)),
    (swapped_scalars, 10),
    (masks, R.random((3, 4)), R.random((3, 4)), R.random((3, 4)) > 0.4),
    (places, np.arange(8.0), np.array([1, -2, 3]), np.array([0, 4, 7])),
    (places, np.arange(8.0), np.array([1, 9, 3]), np.array([0, 4, 7])),  # IndexError
    (added_in_place, R.random((3, 3)), R.random((3, 3)), 4),
    (library_functions, R.integers(0, 5, (4, 4)), R.random(30)),
    (grid, 4),
    (sequences, np.arange(4), np.arange(1, 4)),
    (sizes_by_iteration, np.arange(4.0)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_it_means_what_python_means(case: tuple[Any, ...]) -> None:
    function, *args = case
    compare(function, *args)


def test_this_test_sees_a_wrong_value(monkeypatch: pytest.MonkeyPatch) -> None:
    from avial_lab.compiler.frontends.python.arithmetic import Arithmetic

    def truncated(self: Any, x: str, y: str, kind: Any) -> tuple[str, str]:
        quotient = self.e.value(f"arith.divsi {x}, {y} : {kind.mlir}")
        return quotient, self.e.value(f"arith.remsi {x}, {y} : {kind.mlir}")

    monkeypatch.setattr(Arithmetic, "_by_positive", truncated)
    with pytest.raises(AssertionError):
        compare(modulo, np.array([-7, 7]))


def modulo(a):
    return a % 3


def dictionary(a):
    d = {}
    d[0] = a[0]


def grows(a):
    found = [x for x in a]
    return found


def tries(a):
    try:
        a[0] = 1
    except IndexError:
        pass


def unbound(a):
    for i in range(len(a)):
        if a[i] > 0:
            found = i
    return found + missing  # noqa: F821 # pyright: ignore


def recursive(n):
    return recursive(n + 1)


@pytest.mark.parametrize(
    ("function", "line", "words"),
    [
        (dictionary, 1, "a dictionary or a set is not supported"),
        (grows, 2, "a list is not handed back"),
        (tries, 1, "try is not supported"),
        (unbound, 4, "name 'missing' is not defined"),
    ],
)
def test_what_is_not_there_is_refused_at_its_line(function: Any, line: int, words: str) -> None:
    with pytest.raises(AvialError) as caught:
        translated(function, np.arange(3.0))
    error = caught.value
    assert words in error.message
    assert error.span is not None
    assert error.span.cell == "test_translate.py"
    assert error.span.line == function.__code__.co_firstlineno + line
    assert "^" in str(error)


def test_recursion_without_an_end_is_refused() -> None:
    with pytest.raises(RecursionError, match="calls itself"):
        translated(recursive, 1)


def test_a_lambda_has_no_source() -> None:
    with pytest.raises(AvialError, match="lambda"):
        interpreted(lambda a: a, np.arange(3))


def heat(u, v):
    for i in range(1, u.shape[0] - 1):
        v[i] = 0.5 * (u[i - 1] + u[i + 1])


def test_accesses_are_affine_and_operations_know_their_line() -> None:
    text = translated(heat, np.zeros(9), np.zeros(9)).text
    assert "affine.for %i = 1 to 8 {" in text
    assert "affine.load %u[%i - 1]" in text
    line = heat.__code__.co_firstlineno + 2
    assert f'loc("test_translate.py":{line}:23)' in text


def moves(a, b, n):
    for i in range(n):
        b[i] = a[i + 1]


def test_what_sizes_say_of_subscripts_is_known_at_the_call() -> None:
    a, b = np.zeros(20), np.zeros(30)
    made = translated(moves, a, b, 9, open_sizes=True)
    assert made.apart
    sizes = sizes_of(made, {"a": a, "b": b})
    for n in range(18, 22):
        here = made.here({"a": a, "b": b, "n": n}, sizes)
        assert bool(here.apart) == (n > 19)


def moves_some(a, b):
    for i in range(len(a)):
        if a[i] > 0:
            b[i + 1] = a[i]


def test_a_branch_checks_what_may_be_beyond_the_end() -> None:
    a = np.zeros(20)
    assert "cf.assert" in translated(moves_some, a, np.zeros(20)).text
    assert "cf.assert" not in translated(moves_some, a, np.zeros(21)).text
    assert "cf.assert" not in translated(moves_some, a, np.zeros(21), open_sizes=True).text


def picked_by_data(a, places):
    total = 0.0
    for place in places:
        total += a[place]
        a[place] = -total
    return total


@pytest.mark.parametrize("last", [4, -5, 5, -6])
def test_places_that_data_give_count_from_both_ends(last: int) -> None:
    compare(picked_by_data, R.random(5), np.array([0, -1, last]))


def lengths(x, y):
    total = 0.0
    for i in range(len(x)):
        apart = x[i] - y[i]
        square = apart * apart + y[i] ** 2 + 0.5
        total += math.sqrt(square) + math.sqrt(square * math.exp(x[i]) / (1 + square))
    return total


def not_certainly_lengths(x, y):
    total = 0.0
    for i in range(len(x)):
        total += math.sqrt(x[i] * x[i] - y[i] * y[i]) + math.sqrt((x[i] * x[i]) / -0.0)
    return total


def test_roots_of_what_has_no_sign_need_no_check() -> None:
    x, y = R.random(4), R.random(4)
    assert "cf.assert" not in translated(lengths, x, y).text
    assert translated(not_certainly_lengths, x, y).text.count("math domain error") == 2
    compare(lengths, x, y)
    compare(not_certainly_lengths, x, y)
