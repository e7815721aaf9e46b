"""Tasks in Python functions: the graph that they become, the same values, the same text."""

# ruff: noqa: B007, SIM117 - as people write functions
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab import converge, replicate, task
from avial_lab.core.errors import AvialError
from avial_lab.program.functions import FunctionProgram
from tests.compiler.frontends.python.comparing import translated


def steps(u, v, e, most):
    rows = u.shape[0]
    w = u * 2.0
    total = 0
    for t in range(most):
        with task(name="rhs"):
            for i in range(1, rows - 1):
                v[i, 1] = u[i, 1] + 1.0
            total = total + v[1, 1]
        for i in replicate(range(1, rows - 1), name="back"):
            u[i, 1] = v[i, 1]
    for _ in converge(e, below=1e-3, most=50):
        with avial_lab.task(target="gpu", name="half"):
            e[0] = e[0] * 0.5
    for _ in converge(most=2):
        with task(name="twice"):
            e[0] += 1.0
    with task():
        s = w.sum() + e[0]
    return s, total, w


def given() -> tuple[Any, ...]:
    return np.ones((6, 7)), np.zeros((6, 7)), np.ones(1), 3


def compare(function: FunctionProgram) -> None:
    mine, theirs = given(), given()
    found, wanted = function(*mine), function.py_func(*theirs)
    for one, other in zip((*mine, *found), (*theirs, *wanted), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_graph_the_values_and_the_text() -> None:
    function = avial_lab.program(steps, ranks=1)
    compare(function)
    program = function.last
    tasks = {each.name: each for each in program.graph.tasks}
    first = steps.__code__.co_firstlineno
    assert list(tasks) == [
        f"line{first + 2}", f"line{first + 4}", "rhs", "back", "half", "twice",
        f"line{first + 17}", "result",
    ]  # fmt: skip
    assert {access.buffer for access in tasks["rhs"].reads} > {"u"}
    assert {access.buffer for access in tasks["back"].writes} == {"u"}
    span = tasks["rhs"].span
    assert span is not None
    assert (span.cell, span.line) == ("test_python_tasks.py", first + 5)
    assert "avial.replicate" in function.notation

    again = {name: array.copy() for name, array in program.arrays.items()}
    again |= dict(zip(("u", "v", "e"), given(), strict=False))
    other = avial_lab.compile(function.notation, arrays=again, ranks=1)
    other.run()
    for name, array in program.arrays.items():
        np.testing.assert_array_equal(other.arrays[name], array)


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_on_ranks(ranks: int) -> None:
    compare(avial_lab.program(steps, ranks=ranks))


def test_converge_as_python_runs_it() -> None:
    e = np.array([8.0])
    turns: list[int] = []
    for turn in converge(e, below=1.5, most=10):
        e[0] /= 2
        turns.append(turn)
    assert (turns, e[0]) == ([0, 1, 2], 1.0)
    assert list(converge(most=2)) == [0, 1]
    with pytest.raises(AvialError, match="converge watches an array"):
        converge(e, most=3)


def nested(a):
    with task():
        with task():
            a[0] = 1.0


def in_a_branch(a, n):
    if a[0] > 0:
        with task():
            a[0] = 1.0


def loaded_turns(a, n):
    for t in range(n[0]):
        with task():
            a[0] = 1.0


def unbounded(a):
    for _ in converge(a, below=0.5):  # pyright: ignore[reportCallIssue]
        a[0] = 1.0


def asks_for_the_round(a):
    for k in converge(most=3):
        with task():
            a[0] = k


def early(a):
    with task():
        a[0] = 1.0
        return 3.0


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (nested, "a task holds no other task"),
        (in_a_branch, "tasks stand in the function, and in loops over a range"),
        (loaded_turns, "a loop around tasks has a constant number"),
        (unbounded, "converge takes most="),
        (asks_for_the_round, "which round it is"),
        (early, "a return is at the end"),
    ],
)
def test_what_is_refused(function: Callable[..., Any], words: str) -> None:
    arguments = (np.ones(1), np.array([2]))[: function.__code__.co_argcount]
    with pytest.raises(AvialError, match=words) as caught:
        translated(function, *arguments)
    assert caught.value.span is not None
    assert caught.value.span.line > function.__code__.co_firstlineno
