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
import json
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import avial_lab
from avial_lab.benchmarks.array_race import (
    NUMPY,
    OURS,
    ROUNDS,
    Times,
    difference,
    race_facts,
    told_of_case,
)
from avial_lab.benchmarks.command import write_file
from avial_lab.benchmarks.contestants import PEERS, PYTHON_PEERS
from avial_lab.benchmarks.made import made_by
from avial_lab.benchmarks.python_cases import CASES, FORMAT, SIZES, Case
from avial_lab.benchmarks.table import columns
from avial_lab.core.errors import BindError


@dataclass(frozen=True)
class Contestant:
    """compiled: a case as its function."""

    name: str
    compiled: Callable[[Case], Callable[..., Any]]


def python_command(options: argparse.Namespace) -> int:
    """Race on the chosen cases (all); 0 where every answer is right."""
    names = tuple(options.kernels) or tuple(CASES)
    for name in names:
        if name not in CASES:
            raise BindError(
                f"there is no case '{name}' in Python", hint=f"there are {', '.join(CASES)}"
            )
    sizes = SIZES.get(options.size)
    if sizes is None:
        raise BindError(
            f"the cases in Python have no size {options.size}", hint=f"take {', '.join(SIZES)}"
        )
    against = PYTHON_PEERS if options.against is PEERS else options.against
    for name in against:
        if name not in PYTHON_PEERS:
            raise BindError(
                f"{name} does not take these functions", hint=f"against {', '.join(PYTHON_PEERS)}"
            )
    contestants = list(_contestants(options.ranks, against))
    raced: dict[str, dict[str, Times]] = {}
    for name in names:
        raced[name] = race_case(CASES[name], sizes[name], contestants)
        print(told_of_case(name, raced[name]), file=sys.stderr, flush=True)
    facts = race_facts(raced, options.size, made_by(options.given), form=FORMAT)
    text = json.dumps(facts, indent=2)
    if options.json == "-":
        print(text)
    else:
        if options.json:
            write_file(Path(options.json), text)
        print("\n".join(columns([facts["head"], *facts["rows"]], left=(0,))))
    return 1 if any(t.fault for of in raced.values() for t in of.values()) else 0


def race_case(
    case: Case, size: int, contestants: Sequence[Contestant], *, rounds: int = ROUNDS
) -> dict[str, Times]:
    """Everybody's times; each call is on arrays of its own, which are not in the time."""
    given = case.inputs(np.random.default_rng(0), size)
    wanted = _called(case.numpy or case.function, given)[1]
    found: dict[str, Times] = {}
    functions: dict[str, Callable[..., Any]] = {}
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
            functions[one.name] = function
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            seconds[name].append(_called(function, given)[0])
    return found | {n: Times(found[n].first_s, tuple(s)) for n, s in seconds.items()}


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
