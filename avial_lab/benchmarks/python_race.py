"""`avial-lab bench --python`: Python functions, compiled by us, by others that are here, and run by
Python with NumPy.

Names of cases -> a table of least times; every case as it ends on stderr. Answers are compared with
NumPy's before anybody is timed, rounds are interleaved, and what a first call takes (compiling it,
for most) stands apart.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

import avial_lab
from avial_lab.benchmarks.case_race import (
    NUMPY,
    OURS,
    ROUNDS,
    Times,
    asked_for,
    difference,
    in_rounds,
    race_all,
)
from avial_lab.benchmarks.contestants import PYTHON_PEERS
from avial_lab.benchmarks.python_cases import CASES, FORMAT, SIZES, Case


@dataclass(frozen=True)
class Contestant:
    """compiled: a case as its function."""

    name: str
    compiled: Callable[[Case], Callable[..., Any]]


def python_command(options: argparse.Namespace) -> int:
    """Race on the chosen cases (all); 0 where every answer is right."""
    names, sizes, against = asked_for(
        options, "in Python", CASES, SIZES, PYTHON_PEERS, "these functions"
    )
    contestants = list(_contestants(options.ranks, against))
    return race_all(
        options, names, lambda name: race_case(CASES[name], sizes[name], contestants), FORMAT
    )


def race_case(
    case: Case, size: int, contestants: Sequence[Contestant], *, rounds: int = ROUNDS
) -> dict[str, Times]:
    """Everybody's times; each call is on arrays of its own, which are not in the time."""
    given = case.inputs(np.random.default_rng(0), size)
    wanted = _called(case.numpy or case.function, given)[1]
    found: dict[str, Times] = {}
    turns: dict[str, Callable[[], float]] = {}
    for one in contestants:
        function = one.compiled(case)
        try:
            first_s, answers = _called(function, given)
        except Exception as error:
            if one.name.startswith(OURS):
                raise
            print(f"not by {one.name}: {_first_line(error)}", file=sys.stderr)
            continue
        fault = difference(answers, wanted)
        found[one.name] = Times(first_s, fault=fault)
        if not fault:
            turns[one.name] = lambda function=function: _called(function, given)[0]
    return in_rounds(found, turns, rounds)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]:.100}"


def _called(function: Callable[..., Any], given: Sequence[Any]) -> tuple[float, list[np.ndarray]]:
    """How long, and the arrays afterwards, results among them."""
    args = deepcopy(tuple(given))
    begun = time.perf_counter()
    result = function(*args)
    took = time.perf_counter() - begun
    results = () if result is None else (result,)
    return took, [np.asarray(each) for each in (*results, *args) if np.ndim(each)]


def _contestants(ranks: Sequence[int], wanted: Sequence[str]) -> Iterator[Contestant]:
    """Ours, Python with NumPy, and those of the others that are installed."""
    for count in ranks:
        name = f"{OURS}, {count} rank{'s' * (count > 1)}"
        asked: dict[str, Any] = {} if count == 1 else {"ranks": count}
        yield Contestant(name, lambda case, asked=asked: avial_lab.program(case.function, **asked))
    if NUMPY in wanted:
        yield Contestant(NUMPY, lambda case: case.numpy or case.function)
    if "numba" in wanted and importlib.util.find_spec("numba"):
        numba = importlib.import_module("numba")
        for name, parallel in (("numba", False), ("numba parallel", True)):
            compiled = numba.njit(parallel=parallel)
            yield Contestant(name, lambda case, compiled=compiled: compiled(_numbas(case)))


def _numbas(case: Case) -> Callable[..., Any]:
    """With Numba's own prange."""
    prange = importlib.import_module("numba").prange
    function: Any = case.function
    return types.FunctionType(function.__code__, {**function.__globals__, "prange": prange})
