"""Calls in the calling process: the same results and exceptions as in another; what may end a
process or run for long stays there.
"""

# ruff: noqa: B007 - as people write functions
from __future__ import annotations

import ctypes
import os
import signal
import threading

import numpy as np
import pytest

import avial_lab
from avial_lab.program import calls_here
from avial_lab.program.calls_here import quick_key
from avial_lab.program.functions import FunctionProgram
from tests.compiler.frontends.python.comparing import translated

SCALE = 2


@avial_lab.program
def mixed(a, index, k, x):
    s = 0
    made = np.zeros(len(index))
    for i in range(len(index)):
        made[i] = a[index[i]] * x + SCALE
        a[index[i]] += 1
        s += index[i] // k
    return s, made


@pytest.fixture(autouse=True)
def _however_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where calls are made does not hang on how fast the machine is just now."""
    monkeypatch.setattr(calls_here, "LONG_S", 60.0)


def is_here(function: FunctionProgram) -> bool:
    return function.last.trace is not None and "calling process" in function.last.trace.note


def test_the_same_as_python_and_its_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    a, index = np.zeros(0), np.zeros(0, int)
    for turn in range(4):
        a, index = np.arange(9.0), np.array([1, -1, 4, turn])
        other = a.copy()
        found, wanted = mixed(a, index, 3, 0.5), mixed.py_func(other, index, 3, 0.5)
        np.testing.assert_array_equal(found[1], wanted[1])
        np.testing.assert_array_equal(a, other)
        assert found[0] == wanted[0]
    assert is_here(mixed)
    np.testing.assert_array_equal(mixed.last.arrays["a"], a)

    line = mixed.py_func.__code__.co_firstlineno
    before = a.copy()
    for turn in range(3):
        with pytest.raises(IndexError) as caught:
            mixed(a, np.array([1, 2, 99, 0]), 3, 0.5)
        assert caught.value.span.line == line + 5  # pyright: ignore[reportAttributeAccessIssue]
        assert "made[i] = a[index[i]]" in str(caught.value)
        np.testing.assert_array_equal(a, before)
    assert mixed(a, np.array([0, 0, 0, 7]), 3, 0.5)[0] == 2

    monkeypatch.setitem(mixed.py_func.__globals__, "SCALE", 5)
    again = a.copy()
    np.testing.assert_array_equal(
        mixed(a, index, 3, 0.5)[1], mixed.py_func(again, index, 3, 0.5)[1]
    )


@avial_lab.program
def moved(a, b):
    for i in range(len(a)):
        b[i] = a[i] + 1.0


def test_arrays_that_share_memory_and_threads() -> None:
    a, b = np.arange(8.0), np.zeros(8)
    for _ in range(3):
        moved(a, b)
    assert is_here(moved)
    whole, other = np.arange(9.0), np.arange(9.0)
    moved(whole[:8], whole[1:])
    moved.py_func(other[:8], other[1:])
    np.testing.assert_array_equal(whole, other)
    assert not is_here(moved)

    wrong: list[int] = []

    def many(number: int) -> None:
        mine, made = np.full(8, float(number)), np.zeros(8)
        for _ in range(50):
            moved(mine, made)
            if made.tolist() != [number + 1.0] * 8:
                wrong.append(number)

    threads = [threading.Thread(target=many, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert is_here(moved)


@avial_lab.program
def repeated(a, times):
    for t in range(times):
        for i in range(len(a)):
            a[i] = a[i] * 0.5 + 1.0


def test_calls_with_other_integers_share_what_is_loaded() -> None:
    for times in (*range(1, 8), *range(1, 8)):
        mine, theirs = np.arange(5.0), np.arange(5.0)
        repeated(mine, times)
        repeated.py_func(theirs, times)
        np.testing.assert_array_equal(mine, theirs)
    assert is_here(repeated)
    assert len(repeated._here) == 7
    assert len(repeated._loaded) == len(repeated.versions) == 3


def test_isolated_is_what_it_says() -> None:
    apart = avial_lab.program(moved.py_func, isolated=True)
    for _ in range(3):
        apart(np.arange(8.0), np.zeros(8))
    assert not is_here(apart)


def test_what_calls_are_alike() -> None:
    a = np.zeros(3)
    assert quick_key((a, 2.0, np.float32(1))) == quick_key((a.copy(), 3.0, np.float32(2)))
    for one, other in ((1, True), (1, np.int64(1)), (1.0, np.float32(1)), (a, a[::-1]), (1, 2)):
        assert quick_key((one,)) != quick_key((other,))
    assert quick_key(([1],)) is None


def unproved(a, n):
    for i in range(n):
        a[i] = 1.0


def endless(a):
    while a[0] > 0:
        a[0] -= 1.0


def as_long_as_loaded(a, n):
    for i in range(n[0]):
        a[0] += 1.0


def proved(a, n):
    for i in range(a.shape[0] - 1):
        if i > 0:
            a[i - 1] = a[i + 1] // n[0] + a[n[0]]


def test_what_is_kept_apart() -> None:
    a, n = np.arange(5.0), np.array([2])
    assert translated(proved, a, n).apart == ""
    assert "subscript reaches" in translated(unproved, a, 9).apart
    first = endless.__code__.co_firstlineno
    assert translated(endless, a).endless.startswith(f"line {first + 1}: how long")
    assert "how long" in translated(as_long_as_loaded, a, n).endless
    assert translated(endless, a).apart == translated(as_long_as_loaded, a, n).apart == ""
    assert not translated(endless, a).is_certain


MANY = 900_000
"""Iterations that are worth threads."""


@avial_lab.program
def until_small(a, b):
    b[0] = 7.0
    for i in range(a.shape[0]):
        x = a[i]
        while x > 0.5:
            x = x * 0.5 + a[0]
        b[i] = x


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="Ctrl-C goes to another"
)
def test_ctrl_c_ends_a_loop_that_does_not_end_and_leaves_the_arrays() -> None:
    fine = np.zeros(MANY)
    for _ in range(2):
        until_small(fine, np.zeros(MANY))
    assert is_here(until_small)
    (kept,) = until_small._here.values()
    a, b = np.ones(MANY), np.full(MANY, 3.0)
    for _ in range(2):
        over = threading.Event()
        stop = kept.run._program.library.avial_stop_here

        def ring(over: threading.Event = over, stop: ctypes._FuncPointer = stop) -> None:
            while not (over.is_set() or stop()):
                pass
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=ring)
        thread.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                until_small(a, b)
        finally:
            over.set()
            thread.join()
        np.testing.assert_array_equal(a, 1.0)
        np.testing.assert_array_equal(b, 3.0)
        until_small(fine, b)
        assert is_here(until_small)
        np.testing.assert_array_equal(b, 0.0)
        b[:] = 3.0
        (kept,) = until_small._here.values()


@avial_lab.program
def thirds(a, b):
    for i in range(a.shape[0]):
        b[i] = a[i] / 3.0


def test_the_faster_of_one_thread_and_all_is_taken() -> None:
    a = np.arange(float(MANY))
    for _ in range(4):
        b = np.zeros(MANY)
        thirds(a, b)
        np.testing.assert_array_equal(b, a / 3.0)
    (kept,) = thirds._here.values()
    if kept.run.threads == 1:
        pytest.skip("there is one core")
    assert set(kept.paces) == {1, kept.run.threads}
    for one, most in ((1.0, 2.0), (2.0, 1.0)):
        kept.paces.update({kept.run.threads: most, 1: one})
        best, other = (1, kept.run.threads) if one < most else (kept.run.threads, 1)
        for calls, wanted in ((4, best), (7, other), (8, best), (31, other), (100, best)):
            kept.calls = calls
            assert kept._threads() == wanted
        kept.calls = 3 * calls_here.CALLS_TO_RETRY - 1
        assert kept._threads() == other


@avial_lab.program
def halves(a, index, b):
    for i in range(index.shape[0]):
        assert a[i] != 5.0, "five"
        b[i] = a[index[i]] * 0.5


def test_of_several_threads_failures_the_first_in_the_loop_is_told() -> None:
    a, b = np.zeros(MANY), np.full(MANY, 2.0)
    index = np.arange(MANY)
    halves(a, index, np.zeros(MANY))
    for early, late, kind in ((10, MANY - 10, AssertionError), (MANY - 10, 10, IndexError)):
        a[:], index[:] = 0.0, np.arange(MANY)
        a[early], index[late] = 5.0, MANY
        for _ in range(3):
            with pytest.raises(kind):
                halves(a, index, b)
            np.testing.assert_array_equal(b, 2.0)
    assert is_here(halves)
    a[:], index[:] = np.arange(MANY) + 6.0, np.arange(MANY)[::-1]
    halves(a, index, b)
    np.testing.assert_array_equal(b, a[::-1] * 0.5)


@avial_lab.program(ranks=1)
def outside_of_loops(a, b):
    total = 0.0
    for k in range(2):
        total += a[k]
    b[5] = total


def test_what_is_written_outside_of_loops_comes_back() -> None:
    for start in range(4):
        b = np.zeros(8)
        outside_of_loops(np.arange(8.0) + start, b)
        assert b.tolist() == [0.0] * 5 + [2.0 * start + 1] + [0.0] * 2
