"""One round: every contestant builds and is checked, then all run alternately.

Start, Answer -> Round. A contestant that fails is a result with the fault; the others go on.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from avial_lab.benchmarks.contestants import RemoteRunner, Start, contestants
from avial_lab.benchmarks.table import Result, Round
from avial_lab.benchmarks.verification import Answer
from avial_lab.core.element_types import dtype_of_element
from avial_lab.core.errors import AvialError
from avial_lab.machine.roofline import Ceilings

LEAST_RUNS = 5
MOST_RUNS = 25

_ENOUGH_S = 0.5
"""So much of each contestant's time is worth more than the fewest runs."""

_FAR_BEHIND = 20.0
_LONG_S = 1.0
"""Who takes so many times the fastest one's time, and that long, has run enough after twice: the
place is known, and the others would wait for minutes.
"""

_PAUSE_S = 0.005
"""Between two turns: the threads of the one before spin for a while before they sleep."""

_SHORT_S = 0.02
"""A contestant whose run is shorter than this runs twice in a turn, and only the second run counts:
the first refills the caches, which others have used since, and wakes its threads. Threads that spin
for a fixed time are asleep by then; those that count how often they have looked are not, since they
stood still.
"""


def run_round(start: Start, answer: Answer, ceilings: Ceilings) -> Round:
    """The kernel at one size, raced by all contestants with the same ranks and threads."""
    program = start.program
    kernel, element, sizes = program.kernel, program.element, dict(program.sizes)
    with contextlib.ExitStack() as stack:
        results: dict[str, Result] = {}
        runners: dict[str, RemoteRunner] = {}
        for contestant in contestants(start):
            try:
                runner = stack.enter_context(contextlib.closing(contestant.enter()))
                answer.check(runner.arrays())
            except AvialError as error:
                results[contestant.name] = Result(contestant.name, fault=_in_one_line(error))
            else:
                results[contestant.name] = Result(
                    contestant.name, compile_s=runner.compile_s, note=runner.note
                )
                runners[contestant.name] = runner
        results |= run_alternately(runners, results)
    return Round(
        kernel.name,
        element,
        sizes,
        start.ranks,
        start.threads,
        kernel.flops(sizes),  # pyright: ignore[reportAttributeAccessIssue]
        kernel.swept_bytes(sizes, dtype_of_element(element)),  # pyright: ignore
        tuple(results.values()),
        ceilings,
    )


def run_alternately(
    runners: Mapping[str, RemoteRunner], results: Mapping[str, Result]
) -> dict[str, Result]:
    """The results with the seconds of each contestant's runs, one per contestant in each pass:
    whatever else this machine does meanwhile comes to all of them. Their order is another one each
    time: what the one before left in the caches comes to all of them, too.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runners}
    faults: dict[str, str] = {}
    waiting = dict(runners)
    draw = random.Random(0)
    while waiting:
        for name, runner in draw.sample(list(waiting.items()), len(waiting)):
            time.sleep(_PAUSE_S)
            try:
                seconds[name].append(_timed_run(runner))
            except AvialError as error:
                faults[name] = _in_one_line(error)
                del waiting[name]
                continue
            if _has_run_enough(seconds[name]):
                del waiting[name]
        for name in [name for name in waiting if _is_far_behind(name, seconds)]:
            del waiting[name]
    return {
        name: replace(result, fault=faults[name])
        if name in faults
        else replace(result, seconds=tuple(seconds[name]), note=_note(result, seconds[name]))
        for name, result in results.items()
        if name in runners
    }


def _timed_run(runner: RemoteRunner) -> float:
    """Seconds of a run by threads that are awake."""
    first = runner.run()
    return runner.run() if first < _SHORT_S else first


def _has_run_enough(seconds: Sequence[float]) -> bool:
    return len(seconds) >= MOST_RUNS or (len(seconds) >= LEAST_RUNS and sum(seconds) >= _ENOUGH_S)


def _is_far_behind(name: str, seconds: Mapping[str, Sequence[float]]) -> bool:
    own, fastest = seconds[name], min(min(s) for s in seconds.values() if s)
    return len(own) >= 2 and min(own) > max(_LONG_S, _FAR_BEHIND * fastest)


def _note(result: Result, seconds: Sequence[float]) -> str:
    """Its note, with the number of runs where they are few."""
    few = f"{len(seconds)} runs only, being far slower" if len(seconds) < LEAST_RUNS else ""
    return "; ".join(filter(None, (result.note, few)))


def _in_one_line(error: AvialError) -> str:
    return str(error).replace("\n", "; ")
