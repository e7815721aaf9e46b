"""`avial-lab bench --arrays`: programs on arrays, ours beside NumPy's and whose packages are there.

Names of cases, ranks -> a table of least times; every case as it ends on stderr. All have their
arrays where they compute; answers are compared with NumPy's before anybody is timed, and rounds are
interleaved, so that a busy machine is busy for all.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from avial_lab.benchmarks.array_cases import CASES, FORMAT, SIZES, Case
from avial_lab.benchmarks.command import write_file
from avial_lab.benchmarks.contestants import ARRAY_PEERS, PEERS
from avial_lab.benchmarks.made import made_by
from avial_lab.benchmarks.table import columns
from avial_lab.core.errors import BindError
from avial_lab.machine.host import this_machine
from avial_lab.ptensor import on
from avial_lab.runtime.launch.cluster import Cluster

ROUNDS = 7
OURS, NUMPY = "avial_lab", "numpy"


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


@dataclass(frozen=True)
class Times:
    """Of one contestant on one case, in seconds: of the first turn, and of the others; `fault`:
    what was wrong with it.
    """

    first_s: float = math.nan
    seconds: tuple[float, ...] = ()
    fault: str = ""

    @property
    def least_s(self) -> float:
        return min(self.seconds, default=math.nan)


def arrays_command(options: argparse.Namespace) -> int:
    """Race on the chosen cases (all); 0 where every answer is right."""
    names = tuple(options.kernels) or tuple(CASES)
    for name in names:
        if name not in CASES:
            raise BindError(
                f"there is no case '{name}' of arrays", hint=f"there are {', '.join(CASES)}"
            )
    sizes = SIZES.get(options.size)
    if sizes is None:
        raise BindError(
            f"the cases of arrays have no size {options.size}", hint=f"take {', '.join(SIZES)}"
        )
    against = ARRAY_PEERS if options.against is PEERS else options.against
    for name in against:
        if name not in ARRAY_PEERS:
            raise BindError(
                f"{name} does not take NumPy's text on arrays",
                hint=f"against {', '.join(ARRAY_PEERS)}",
            )
    raced: dict[str, dict[str, Times]] = {}
    with ExitStack() as stack:
        contestants = [*_ours(stack, options.ranks), *_peers(against)]
        for name in names:
            raced[name] = race_case(CASES[name], sizes[name], contestants)
            print(told_of_case(name, raced[name]), file=sys.stderr, flush=True)
    facts = race_facts(raced, options.size, made_by(options.given))
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
    """Everybody's times; of who cannot assign none, where that is asked."""
    arrays = case.inputs(np.random.default_rng(0), size)
    wanted = _here(case.function(np, *arrays))
    turns: dict[str, Callable[[], Any]] = {}
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
            turns[one.name] = turn
        del result
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name, turn in turns.items():
            begun = time.perf_counter()
            turn()
            seconds[name].append(time.perf_counter() - begun)
    return found | {n: Times(found[n].first_s, tuple(s)) for n, s in seconds.items()}


def difference(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str:
    """In words; nothing where the results are NumPy's, but for rounding."""
    for one, other in zip(found, wanted, strict=True):
        if one.shape != other.shape:
            return f"shape {one.shape}, not {other.shape}"
        if not np.allclose(one, other, rtol=1e-6, atol=1e-9):
            return f"off by {np.max(np.abs(one - other)):.2g}"
    return ""


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


def race_facts(
    raced: dict[str, dict[str, Times]], size: str, made: dict[str, Any], *, form: str = FORMAT
) -> dict[str, Any]:
    """For a file of that format, and for `results_page`: the table's cells, and the milliseconds
    by themselves.
    """
    head, *rows = cells_of(raced)
    return {
        "format": form,
        "version": 1,
        "machine": this_machine().facts(),
        "made": made,
        "size": size,
        "load": os.getloadavg()[0],
        "head": head,
        "rows": rows,
        "ms": {name: {who: _facts(t) for who, t in of.items()} for name, of in raced.items()},
    }


def cells_of(raced: dict[str, dict[str, Times]]) -> list[list[str]]:
    """Least times in ms, and how many times as fast ours is as the best of the others."""
    names = list(dict.fromkeys(name for of in raced.values() for name in of))
    ours = [name for name in names if name.startswith(OURS)]
    beside = [f"best / {name.removeprefix(OURS + ', ')}" for name in ours]
    rows = [["ms, the least", *names, *beside]]
    ratios: dict[str, list[float]] = {name: [] for name in ours}
    for case, of in raced.items():
        peers = [t.least_s for name, t in of.items() if name not in ours and t.seconds]
        row = [case, *(_ms(of.get(name)) for name in names)]
        for name in ours:
            if peers and of[name].seconds:
                ratios[name].append(min(peers) / of[name].least_s)
                row.append(f"{ratios[name][-1]:.2f} ×")
            else:
                row.append("–")
        rows.append(row)
    return [*rows, ["geometric mean", *("" for _ in names), *(_mean(ratios[n]) for n in ours)]]


def _mean(ratios: Sequence[float]) -> str:
    return f"{statistics.geometric_mean(ratios):.2f} ×" if ratios else "–"


def _ms(times: Times | None) -> str:
    if times is None:
        return "–"
    return f"{times.least_s * 1e3:.3g}" if times.seconds else times.fault


def told_of_case(case: str, of: dict[str, Times]) -> str:
    """A line for whoever watches."""
    told = ", ".join(f"{name} {_ms(t)} (first {t.first_s * 1e3:.0f})" for name, t in of.items())
    return f"{case}: {told}; load {os.getloadavg()[0]:.1f}"


def _facts(times: Times) -> dict[str, Any]:
    if times.fault:
        return {"fault": times.fault}
    return {
        "least": round(times.least_s * 1e3, 4),
        "median": round(statistics.median(times.seconds) * 1e3, 4),
        "first": round(times.first_s * 1e3, 1),
    }
