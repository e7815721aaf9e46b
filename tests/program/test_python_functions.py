"""Python functions as programs: compiled, and run."""

# ruff: noqa: B007 - as people write functions
from __future__ import annotations

import numpy as np
import pytest

import avial_lab
from avial_lab.core.errors import AvialError


@avial_lab.program
def heat(u, v, steps):
    for t in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        u[1:-1, 1:-1] = v[1:-1, 1:-1]


def test_it_computes_what_python_computes() -> None:
    u = np.random.default_rng(1).random((20, 31))
    v = np.zeros_like(u)
    wanted_u, wanted_v = u.copy(), v.copy()
    heat.py_func(wanted_u, wanted_v, 3)
    assert heat(u, v, 3) is None
    np.testing.assert_array_equal(u, wanted_u)
    np.testing.assert_array_equal(v, wanted_v)
    explained = heat.explain()
    lines = {report.span.line for report in explained.reports if report.span is not None}
    first = heat.py_func.__code__.co_firstlineno
    assert lines == {first + 2, first + 3, first + 6}
    assert list(heat.stages)[:2] == ["source", "avial"]
    assert "avial.task" in heat.notation or "avial.replicate" in heat.notation

    told = str(explained)
    assert "(unnamed)" not in told
    assert "iterations of j are independent and may be vectorised" in told
    shown = heat.getdoc()
    assert f"line {first + 3}  S1  divided over the ranks" in shown
    assert "float64[20, 31]" in shown


@avial_lab.program
def dead_read(a):
    n = 0
    for i in range(9):
        if a[i] < a[i]:
            n += 1
    return n


def test_a_read_that_decides_nothing_raises() -> None:
    with pytest.raises(IndexError):
        dead_read(np.zeros(5))


@avial_lab.program(isolated=True)
def writes_what_is_there(a):
    a[0] = a[0]


@avial_lab.program(isolated=True)
def does_nothing(a):
    pass


def test_the_same_machine_code_is_not_the_same_program() -> None:
    writes_what_is_there(np.zeros(3))
    a = np.ones(3)
    does_nothing(a)
    assert a.tolist() == [1.0] * 3


@avial_lab.program(ranks=2)
def total(a, b, scale):
    s = 0.0
    for i in range(a.shape[0]):
        b[i] = a[i] * scale
        s += b[i]
    return s


@pytest.mark.mpi
def test_it_is_divided_over_ranks() -> None:
    a, b = np.arange(32.0), np.zeros(32)
    assert total(a, b, 0.5) == (a * 0.5).sum()
    np.testing.assert_array_equal(b, a * 0.5)
    assert total.last.schedule.topology.ranks == 2


@avial_lab.program
def gather(a, index, k):
    s = 0
    for i in range(len(index)):
        s += a[index[i]] + 1 // k
    return s


def test_exceptions_are_pythons_at_their_line_and_the_next_call_works() -> None:
    a, index = np.arange(10), np.array([1, 2, -1])
    assert gather(a, index, 1) == 15
    line = gather.py_func.__code__.co_firstlineno + 4
    with pytest.raises(IndexError) as caught:
        gather(a, np.array([1, 2, 11]), 1)
    assert isinstance(caught.value, AvialError)
    assert caught.value.span is not None
    assert (caught.value.span.cell, caught.value.span.line) == ("test_python_functions.py", line)
    assert "s += a[index[i]]" in str(caught.value)
    with pytest.raises(ZeroDivisionError):
        gather(a, index, 0)
    assert gather(a, index, 1) == 15


def test_the_third_number_is_the_last_that_is_compiled() -> None:
    u = np.random.default_rng(1).random((8, 9))
    heat.versions.clear()
    for steps in (1, 2, 3, 4, 7):
        mine, other = u.copy(), u.copy()
        heat(mine, np.zeros_like(u), steps)
        heat.py_func(other, np.zeros_like(u), steps)
        np.testing.assert_array_equal(mine, other)
    assert len(heat.versions) == 3


SCALE = 2.0


@avial_lab.program
def scaled(a):
    return a * SCALE


def test_a_global_is_a_constant_until_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.arange(3.0)
    np.testing.assert_array_equal(scaled(a), a * 2)
    monkeypatch.setitem(scaled.py_func.__globals__, "SCALE", 3.0)
    np.testing.assert_array_equal(scaled(a), a * 3)


@avial_lab.program(check=True, ranks=1)
def doubled(a, b):
    for i in range(len(a)):
        b[i] = a[i] * 2
    return b.sum()


def test_a_sum_between_the_loops_is_known_to_be_in_another_order() -> None:
    a, b = np.random.default_rng(5).random(300), np.zeros(300)
    np.testing.assert_allclose(doubled(a, b), (a * 2).sum(), rtol=1e-13)
    assert doubled.last.built.reordered["result0"] == 300


def test_what_every_run_raises_is_raised_without_one() -> None:
    a = np.zeros(3)
    with pytest.raises(AssertionError, match="so many") as caught:
        few(a, 9)
    assert isinstance(caught.value, AvialError)
    assert not few.versions
    assert not a.any()


@avial_lab.program
def few(a, n):
    a[0] = 1
    assert n < 9, "so many"


@avial_lab.program
def greatest(a):
    best, length = 0, 0
    for start in range(a.shape[0]):
        steps = a[start]
        if steps > length:
            best, length = start, steps
    return best, length


def test_the_greatest_and_where_it_is() -> None:
    """Both cells are where the loop's parts are combined, whichever is bound first."""
    a = np.array([0, 3, 1, 4, 1, 5, 9, 2, 6])
    assert greatest(a) == (6, 9)


def _as_many_zeros(n):  # type: ignore[no-untyped-def]
    return np.zeros(n) + 1


def test_an_array_of_a_negative_size_is_refused() -> None:
    function = avial_lab.program(_as_many_zeros)
    with pytest.raises(ValueError, match="negative dimensions are not allowed"):
        function(-3)


@avial_lab.program
def put_where(a, b):
    for i in range(a.shape[0]):
        if a[i] >= 0:
            b[i + 1] = a[i]


def test_a_subscript_beyond_the_end_in_a_branch_raises() -> None:
    a, b = np.arange(90.0), np.zeros(90)
    with pytest.raises(IndexError, match="out of bounds"):
        put_where(a, b)
    assert not b.any()


@avial_lab.program
def moved(a, b):
    for i in range(a.shape[0] - 1):
        b[i] = a[i + 1] * 2


@pytest.mark.slow
def test_open_sizes_that_do_not_fit_raise() -> None:
    for n, m in ((50, 60), (100, 100), (80, 200), (90, 10)):
        a, b = np.arange(float(n)), np.zeros(m)
        if m < n - 1:
            with pytest.raises(IndexError):
                moved(a, b)
            assert not b.any()
        else:
            moved(a, b)
            np.testing.assert_array_equal(b[: n - 1], a[1:] * 2)
