"""One heat: everybody builds, is checked, and then all take turns.

Start, Answer -> Heat. Who falls is a lane that says why, and the others go on.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from avial_lab.benchmarks.contestants import Start, Team, entrants
from avial_lab.benchmarks.table import Heat, Lane
from avial_lab.benchmarks.verification import Answer
from avial_lab.core.element_types import dtype_of_element
from avial_lab.core.errors import AvialError
from avial_lab.machine.roofline import Ceilings

LEAST_RUNS = 5
MOST_RUNS = 25

_TURN_S = 0.5
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


def run_heat(start: Start, answer: Answer, ceilings: Ceilings) -> Heat:
    """The kernel at one size, raced by everybody with the same ranks and threads."""
    program = start.program
    kernel, element, sizes = program.kernel, program.element, dict(program.sizes)
    with contextlib.ExitStack() as stack:
        lanes: dict[str, Lane] = {}
        teams: dict[str, Team] = {}
        for entrant in entrants(start):
            try:
                team = stack.enter_context(contextlib.closing(entrant.enter()))
                answer.check(team.arrays())
            except AvialError as error:
                lanes[entrant.name] = Lane(entrant.name, fault=_in_one_line(error))
            else:
                lanes[entrant.name] = Lane(entrant.name, compile_s=team.compile_s, note=team.note)
                teams[entrant.name] = team
        lanes |= take_turns(teams, lanes)
    return Heat(
        kernel.name,
        element,
        sizes,
        start.ranks,
        start.threads,
        kernel.flops(sizes),  # pyright: ignore[reportAttributeAccessIssue]
        kernel.swept_bytes(sizes, dtype_of_element(element)),  # pyright: ignore
        tuple(lanes.values()),
        ceilings,
    )


def take_turns(teams: Mapping[str, Team], lanes: Mapping[str, Lane]) -> dict[str, Lane]:
    """The lanes with the seconds of each contestant's runs, one of everybody's after the other:
    whatever else this machine does meanwhile comes to all of them. Their order is another one each
    time: what the one before left in the caches comes to all of them, too.
    """
    seconds: dict[str, list[float]] = {name: [] for name in teams}
    faults: dict[str, str] = {}
    waiting = dict(teams)
    draw = random.Random(0)
    while waiting:
        for name, team in draw.sample(list(waiting.items()), len(waiting)):
            time.sleep(_PAUSE_S)
            try:
                seconds[name].append(_turn(team))
            except AvialError as error:
                faults[name] = _in_one_line(error)
                del waiting[name]
                continue
            if _has_run_enough(seconds[name]):
                del waiting[name]
        for name in [name for name in waiting if _is_far_behind(name, seconds)]:
            del waiting[name]
    return {
        name: replace(lane, fault=faults[name])
        if name in faults
        else replace(lane, seconds=tuple(seconds[name]), note=_told(lane, seconds[name]))
        for name, lane in lanes.items()
        if name in teams
    }


def _turn(team: Team) -> float:
    """Seconds of a run by threads that are awake."""
    first = team.run()
    return team.run() if first < _SHORT_S else first


def _has_run_enough(seconds: Sequence[float]) -> bool:
    return len(seconds) >= MOST_RUNS or (len(seconds) >= LEAST_RUNS and sum(seconds) >= _TURN_S)


def _is_far_behind(name: str, seconds: Mapping[str, Sequence[float]]) -> bool:
    own, fastest = seconds[name], min(min(s) for s in seconds.values() if s)
    return len(own) >= 2 and min(own) > max(_LONG_S, _FAR_BEHIND * fastest)


def _told(lane: Lane, seconds: Sequence[float]) -> str:
    """Its note, with the number of runs where they are few."""
    few = f"{len(seconds)} runs only, being far slower" if len(seconds) < LEAST_RUNS else ""
    return "; ".join(filter(None, (lane.note, few)))


def _in_one_line(error: AvialError) -> str:
    return str(error).replace("\n", "; ")
