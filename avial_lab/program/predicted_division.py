"""`division="auto"`: loops are divided in the way whose run is predicted to be the shortest.

Build -> the same with a division, and a line that says what the others would take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from avial_lab.compiler.requests import Build
from avial_lab.core.words import format_seconds, listed
from avial_lab.planning.distribution import CYCLIC, Division
from avial_lab.program.program import Program


def with_best_division(question: Build, made: Callable[[Build], Program]) -> tuple[Build, str]:
    """`made` compiles a question; of divisions that are predicted to take the same, the first is
    taken, which sends no more messages. Raises ScheduleError for a program of tasks.
    """
    first = made(_divided(question, Division()))
    if not first.of_loops:
        question.options.division.refuse_for_tasks()
    found = {Division(): first.predicted().makespan_s}
    for division in _others(first.schedule.topology.ranks):
        found[division] = made(_divided(question, division)).predicted().makespan_s
    best = min(found, key=lambda division: found[division])
    took = [f"{each} {format_seconds(s)}" for each, s in found.items() if each != best]
    told = f"division    {best}: {format_seconds(found[best])} predicted"
    return _divided(question, best), f"{told}; {listed(took)}" if took else told


def _divided(question: Build, division: Division) -> Build:
    return replace(question, options=replace(question.options, division=division))


def _others(ranks: int) -> list[Division]:
    """One rank has everything anyway; a grid of one column is as blocks are."""
    if ranks == 1:
        return []
    grid = Division(grid=True)
    return [*([grid] if grid.columns(ranks) > 1 else []), Division(block=CYCLIC)]
