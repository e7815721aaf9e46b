"""Python functions for arrays of any size: one compilation, and the values of each size's own."""

# ruff: noqa: B007 - as people write functions
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.program import functions
from avial_lab.program.functions import FunctionProgram


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One for each program that is compiled: whether it is for any size."""
    calls: list[bool] = []
    usual = functions.compile_program

    def counted(*args: Any, **options: Any) -> Any:
        calls.append(options["dynamic"])
        return usual(*args, **options)

    monkeypatch.setattr(functions, "compile_program", counted)
    return calls


def of_all_kinds(u, v, w, steps):
    new = u * 2.0 + v
    for t in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(u.shape[1] // 2):
                w[i, j] = 0.5 * (new[i - 1, j] + new[i + 1, -1 - j])
        new[1:-1] = w[1:-1, ::-1]
    assert steps < 9, "so many"
    return new, new.max(), u[2:, 3:-1], len(u) + 1


def _given(n: int, m: int) -> list[Any]:
    random = np.random.default_rng(n * m).random
    return [random((n, m)), random((n, m)), np.zeros((n, m)), 3]


def _compare(function: FunctionProgram, args: list[Any]) -> None:
    mine, theirs = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in "ab")
    found, wanted = function(*mine), function.py_func(*theirs)
    for one, other in zip((*found, *mine), (*wanted, *theirs), strict=True):
        np.testing.assert_array_equal(one, other)
        assert type(one) is type(other)
    assert np.shares_memory(found[2], mine[0])


def test_the_second_size_is_the_last_that_is_compiled(compiled: list[bool]) -> None:
    program = avial_lab.program(of_all_kinds)
    for n, m in ((20, 31), (12, 40), (9, 17), (200, 300), (20, 31), (13, 16)):
        _compare(program, _given(n, m))
    assert compiled == [False, True]
    shape = program.last.graph.buffers[0].shape  # which is told as of any program
    assert shape == (13, 16)
    assert compiled == [False, True, True]

    args = _given(15, 16)
    before = [a.copy() for a in args[:3]]
    args[3] = 9
    with pytest.raises(AssertionError, match="so many"):
        program(*args)
    for one, other in zip(args, before, strict=False):
        np.testing.assert_array_equal(one, other)


def test_a_size_that_much_is_computed_of_has_its_own(
    compiled: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = avial_lab.program(_scaled)
    for n in (20, 21, 22):
        program(np.ones(n))
    assert compiled == [False, True]
    monkeypatch.setattr(functions, "MOST_OPEN_S", 0.0)
    for _ in range(3):
        assert program(np.ones(23)).tolist() == [2.0] * 23
    assert compiled == [False, True, False]


def _scaled(a):
    return a * 2.0


@pytest.mark.parametrize("dynamic", [True, False])
def test_as_the_person_says(dynamic: bool, compiled: list[bool]) -> None:
    program = avial_lab.program(_scaled, dynamic=dynamic)
    for n in (20, 21, 22):
        assert program(np.ones(n)).tolist() == [2.0] * n
    assert compiled == ([True] if dynamic else [False] * 3)


def reversed_halves(a, b):
    for i in range(b.shape[0]):
        a[i + 1] = b[i]
    return a.reshape(2, -1)


def misses(a, k):
    return a[k] + a[len(a) - 1]


def test_what_needs_its_sizes_is_compiled_for_each(compiled: list[bool]) -> None:
    program = avial_lab.program(reversed_halves)
    for n in (20, 22, 24):
        a, b = np.zeros(n), np.arange(n - 1.0)
        assert program(a, b).tolist() == reversed_halves(np.zeros(n), b).tolist()
    assert compiled == [False] * 3


@pytest.mark.slow
def test_a_subscript_outside_is_told_of_each_size() -> None:
    program = avial_lab.program(misses)
    for n in (20, 21, 22):
        assert program(np.arange(float(n)), 15) == 15 + n - 1
    for n in (12, 13):
        with pytest.raises(IndexError):
            program(np.arange(float(n)), 15)


def test_memory_of_many_sizes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MOST_HERE_BYTES", 3000)
    program = avial_lab.program(_scaled, dynamic=True)
    for n in range(20, 40):
        assert program(np.ones(n)).tolist() == [2.0] * n
    kept = [run.nbytes for run in program._loaded.values() if run is not None]
    assert sum(kept) <= 3000
    assert len(program._here) == len(kept)


@pytest.mark.mpi
def test_on_ranks(compiled: list[bool]) -> None:
    program = avial_lab.program(_shifted, ranks=2)
    for n in (20, 33, 46):
        a, b = np.arange(float(n)), np.zeros(n)
        program(a, b)
        assert b.tolist() == [0.0, *(2 * a[:-1]).tolist()]
    assert compiled == [False, True, True]


def _shifted(a, b):
    for i in range(1, a.shape[0]):
        b[i] = a[i - 1] * 2.0
