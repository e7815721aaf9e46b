"""`avial-lab bench --arrays`: programs on arrays, ours beside NumPy's and whose packages are there.

Names of cases, ranks -> a table of least times; every case as it ends on stderr. All have their
arrays where they compute; answers are compared with NumPy's before anybody is timed, and rounds are
interleaved, so that a busy machine is busy for all.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from avial_lab.benchmarks.array_cases import CASES, FORMAT, SIZES, Case
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
from avial_lab.benchmarks.contestants import ARRAY_PEERS
from avial_lab.ptensor import on
from avial_lab.runtime.launch.cluster import Cluster


@dataclass(frozen=True)
class Contestant:
    """xp: its functions. of: an array of ours as one of its; done: results that are there."""

    name: str
    xp: Any
    of: Callable[[np.ndarray], Any]
    done: Callable[[Any], Any] = lambda result: result
    changed: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda function: function
    assigns: bool = True

    def prepared(self, case: Case, arrays: Sequence[np.ndarray]) -> Callable[[], Any]:
        """One turn of the case, with its results where it computes."""
        held = [self.of(array) for array in arrays]
        function = self.changed(lambda *given: case.function(self.xp, *given))
        return lambda: self.done(function(*held))


def arrays_command(options: argparse.Namespace) -> int:
    """Race on the chosen cases (all); 0 where every answer is right."""
    names, sizes, against = asked_for(
        options, "of arrays", CASES, SIZES, ARRAY_PEERS, "NumPy's text on arrays"
    )
    with ExitStack() as stack:
        contestants = [*_ours(stack, options.ranks), *_peers(against)]
        return race_all(
            options, names, lambda name: race_case(CASES[name], sizes[name], contestants), FORMAT
        )


def race_case(
    case: Case, size: int, contestants: Sequence[Contestant], *, rounds: int = ROUNDS
) -> dict[str, Times]:
    """Everybody's times; of who cannot assign none, where that is asked."""
    arrays = case.inputs(np.random.default_rng(0), size)
    wanted = _here(case.function(np, *arrays))
    turns: dict[str, Callable[[], float]] = {}
    found: dict[str, Times] = {}
    for one in contestants:
        if case.assigns and not one.assigns:
            continue
        turn = one.prepared(case, arrays)
        begun = time.perf_counter()
        result = turn()
        first_s = time.perf_counter() - begun
        fault = difference(_here(result), wanted)
        found[one.name] = Times(first_s, fault=fault)
        if not fault:
            turns[one.name] = partial(_seconds, turn)
        del result
    return in_rounds(found, turns, rounds)


def _seconds(turn: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    turn()
    return time.perf_counter() - begun


def _here(result: Any) -> list[np.ndarray]:  # noqa: ANN401 - anybody's arrays
    return [np.asarray(each) for each in (result if isinstance(result, list | tuple) else [result])]


def _ours(stack: ExitStack, ranks: Sequence[int]) -> Iterator[Contestant]:
    for count in ranks:
        xp = on(stack.enter_context(Cluster.start(cpu=count, gpu=0)))

        def done(result: Any, run: Callable[[], None] = xp.sync) -> Any:  # noqa: ANN401
            run()
            return result

        yield Contestant(f"{OURS}, {count} rank{'s' * (count > 1)}", xp, xp.asarray, done)


def _peers(wanted: Sequence[str]) -> Iterator[Contestant]:
    """NumPy, and those of the others that are installed."""
    yield Contestant(NUMPY, np, lambda array: array)
    if "jax" in wanted and importlib.util.find_spec("jax"):
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        yield Contestant("jax", jax.numpy, jax.numpy.asarray, jax.block_until_ready, jax.jit)
    if "dask" in wanted and importlib.util.find_spec("dask"):
        dask, da = (importlib.import_module(name) for name in ("dask", "dask.array"))
        dask.config.set(scheduler="threads")
        rows = 2 * (os.cpu_count() or 1)

        def of(array: np.ndarray) -> Any:  # noqa: ANN401 - Dask's array
            return da.from_array(array, chunks=(max(len(array) // rows, 1), *array.shape[1:]))

        def done(result: Any) -> Any:  # noqa: ANN401
            return dask.compute(*result) if isinstance(result, list | tuple) else result.compute()

        yield Contestant("dask", da, of, done, assigns=False)
