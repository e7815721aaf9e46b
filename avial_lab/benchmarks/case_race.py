"""Races of cases by name, ours beside others: who they are is said by `array_race`, `python_race`.

Options, a race for each case -> a table of least times; every case as it ends on stderr.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from avial_lab.benchmarks.command import write_file
from avial_lab.benchmarks.contestants import PEERS
from avial_lab.benchmarks.made import made_by
from avial_lab.benchmarks.table import columns
from avial_lab.core.errors import BindError
from avial_lab.machine.host import this_machine

OURS, NUMPY = "avial_lab", "numpy"
ROUNDS = 7
SLEEP_S = 0.2
"""Longer than any runtime's threads look for work by default."""

Sizes = TypeVar("Sizes")


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


def asked_for(
    options: argparse.Namespace,
    kind: str,
    cases: Mapping[str, object],
    sizes: Mapping[str, Sizes],
    peers: Sequence[str],
    taken: str,
) -> tuple[Sequence[str], Sizes, Sequence[str]]:
    """The cases (all), their sizes, and whom to race: a peer that does not take what is `taken`
    stays away, which is told. BindError for a name that is none of a case of that `kind`.
    """
    names = tuple(options.kernels) or tuple(cases)
    for name in names:
        if name not in cases:
            raise BindError(
                f"there is no case '{name}' {kind}", hint=f"there are {', '.join(cases)}"
            )
    if options.size not in sizes:
        raise BindError(
            f"the cases {kind} have no size {options.size}", hint=f"take {', '.join(sizes)}"
        )
    against = peers if options.against is PEERS else options.against
    for name in against:
        if name not in peers:
            print(f"{name} is left out: it is not raced on {taken}", file=sys.stderr)
    return names, sizes[options.size], [name for name in against if name in peers]


def race_all(
    options: argparse.Namespace,
    names: Sequence[str],
    race: Callable[[str], dict[str, Times]],
    form: str,
) -> int:
    """Race and tell, as a table or as JSON of that format; 0 where every answer is right."""
    raced: dict[str, dict[str, Times]] = {}
    for name in names:
        raced[name] = race(name)
        print(_told_of_case(name, raced[name]), file=sys.stderr, flush=True)
    facts = _race_facts(raced, options.size, made_by(options.given), form=form)
    text = json.dumps(facts, indent=2)
    if options.json == "-":
        print(text)
    else:
        if options.json:
            write_file(Path(options.json), text)
        print("\n".join(columns([facts["head"], *facts["rows"]], left=(0,))))
    return 1 if any(t.fault for of in raced.values() for t in of.values()) else 0


def in_rounds(
    found: Mapping[str, Times], turns: Mapping[str, Callable[[], float]], rounds: int
) -> dict[str, Times]:
    """`found` with the seconds that the turns of those in the race say, one after the other, so
    that a busy machine is busy for all, and each when the threads of the one before it sleep.
    """
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name, turn in turns.items():
            _wait_for_sleep()
            seconds[name].append(turn())
    return {**found, **{n: Times(found[n].first_s, tuple(s)) for n, s in seconds.items()}}


def _wait_for_sleep() -> None:
    """Until no other thread of this process runs, nor one of those that it has started: those of
    OpenMP and of a BLAS wait for more work for some ms before they sleep, an engine's too, and
    would keep a core from whoever is next. At most `SLEEP_S`; where the system does not tell (it is
    no Linux), not at all.
    """
    own = str(threading.get_native_id())
    until = time.perf_counter() + SLEEP_S
    while time.perf_counter() < until:
        threads = (task for pid in _started_by("self") for task in _threads_of(pid))
        if "R" not in (_state(task) for task in threads if task.name != own):
            return
        time.sleep(0.001)


def _started_by(process: str) -> Iterator[str]:
    """That process, those that it has started, and theirs."""
    yield process
    for task in _threads_of(process):
        try:
            started = (task / "children").read_text(encoding="utf-8").split()
        except OSError:
            continue
        for each in started:
            yield from _started_by(each)


def _threads_of(process: str) -> Iterator[Path]:
    return Path(f"/proc/{process}/task").glob("*")


def _state(task: Path) -> str:
    """Of a thread, as proc(5) has it: a letter behind its name; nothing of one that has ended."""
    try:
        return (task / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return ""


def difference(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str:
    """In words; nothing where the results are NumPy's, but for rounding."""
    for one, other in zip(found, wanted, strict=True):
        if one.shape != other.shape:
            return f"shape {one.shape}, not {other.shape}"
        if not np.allclose(one, other, rtol=1e-6, atol=1e-9):
            return f"off by {np.max(np.abs(one - other)):.2g}"
    return ""


def _race_facts(
    raced: dict[str, dict[str, Times]], size: str, made: dict[str, Any], *, form: str
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


def _told_of_case(case: str, of: dict[str, Times]) -> str:
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
