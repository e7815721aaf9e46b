"""What each optional pass is worth: every program raced against itself without one pass.

Names of programs, Course -> Worth: for each program its compile times and, for each pass without
which its code is another, a Race. A pass that changes nothing is not raced.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from avial_lab.benchmarks.builders import OwnEntry
from avial_lab.benchmarks.contestants import Team
from avial_lab.benchmarks.mpi_builders import OwnCrew
from avial_lab.benchmarks.mpi_workers import Crew
from avial_lab.benchmarks.rounds import take_turns
from avial_lab.benchmarks.subjects import Subject, compile_seconds, subject
from avial_lab.benchmarks.table import Lane
from avial_lab.benchmarks.worker import Booth
from avial_lab.benchmarks.worth_table import INTERRUPTED, Race, Timed, Worth
from avial_lab.compiler.catalogue import OPTIONAL
from avial_lab.core.errors import AvialError
from avial_lab.machine.host import this_machine
from avial_lab.program.program import Program

LEAST_S = 20e-6
"""A program that is over sooner says nothing of a pass."""

WITH, WITHOUT = "with", "without"


@dataclass(frozen=True)
class Course:
    """What passes are timed over. `elements`: of each kernel the first of these that it has a
    version of. `seconds`: after so many no other program or pass is begun. `told` hears of every
    program as it is done. `find` and `build` are replaced by tests.
    """

    size: str = "MEDIUM"
    elements: tuple[str, ...] = ()
    ranks: int = 1
    threads: int = 1
    seconds: float | None = None
    passes: tuple[str, ...] = OPTIONAL
    told: Callable[[Timed], None] = field(default=lambda _: None, repr=False)
    find: Callable[[str, str, Sequence[str]], Subject] = field(default=subject, repr=False)
    build: Callable[[Subject, Program, int, int], Team] = field(
        default=lambda of, compiled, ranks, threads: built(of, compiled, ranks, threads),
        repr=False,
    )
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)


def worth(names: Sequence[str], course: Course) -> Worth:
    """Time the passes on each of these programs, in their order.

    At an interrupt, and when the time is over, what was done is told, and what was not reached.
    """
    until = None if course.seconds is None else course.clock() + course.seconds
    sheet = Worth(course.size, course.ranks, course.threads, this_machine(), passes=course.passes)
    for k, name in enumerate(names):
        if until is not None and course.clock() >= until:
            return replace(sheet, unreached=tuple(names[k:]), notes=("the time limit was reached",))
        timing = _Timing(name, course, until)
        try:
            timing.run()
            course.told(timing.timed)
        except KeyboardInterrupt:
            notes = (f"{INTERRUPTED}{name}",)
            done = (*sheet.programs, timing.timed)
            return replace(sheet, programs=done, unreached=tuple(names[k + 1 :]), notes=notes)
        sheet = replace(sheet, programs=(*sheet.programs, timing.timed))
    return sheet


class _Timing:
    """One program; `timed` is what is known of it so far."""

    def __init__(self, name: str, course: Course, until: float | None) -> None:
        self.course, self.until = course, until
        self.timed = Timed(name, unreached=course.passes)
        self.known: dict[str, Race] = {}  # by the text of what was raced

    def run(self) -> None:
        try:
            of = self.course.find(self.timed.program, self.course.size, self.course.elements)
            whole = of.compiled(self.course.ranks)
            took = tuple(compile_seconds(whole, self.course.passes).items())
            self.timed = replace(self.timed, element=of.element, compile_s=took)
            with contextlib.closing(self._team(of, whole)) as team:
                reason = _too_short(team)
                if reason:
                    self.timed = replace(self.timed, skipped=reason, unreached=())
                else:
                    self._race_all(of, whole, team)
        except AvialError as error:
            self.timed = replace(self.timed, skipped=in_one_line(error), unreached=())

    def _team(self, of: Subject, compiled: Program) -> Team:
        """Built, run once, and right."""
        team = self.course.build(of, compiled, self.course.ranks, self.course.threads)
        try:
            of.check(compiled, team.arrays())
        except BaseException:
            team.close()
            raise
        return team

    def _race_all(self, of: Subject, whole: Program, team: Team) -> None:
        for k, name in enumerate(self.course.passes):
            if self.until is not None and self.course.clock() >= self.until:
                return
            race = self._race(of, whole, team, name)
            races = self.timed.races if race is None else (*self.timed.races, race)
            self.timed = replace(self.timed, races=races, unreached=self.course.passes[k + 1 :])

    def _race(self, of: Subject, whole: Program, team: Team, name: str) -> Race | None:
        """None where the program is the same without the pass."""
        try:
            other = of.compiled(self.course.ranks, name)
            code = code_of(other)
            if code == code_of(whole):
                return None
            if code not in self.known:
                with contextlib.closing(self._team(of, other)) as rival:
                    self.known[code] = _raced(team, rival)
        except AvialError as error:
            return Race(name, fault=in_one_line(error))
        return replace(self.known[code], left_out=name)


def code_of(compiled: Program) -> str:
    """What machine code is made of."""
    return compiled.stages["llvmir"].text


def built(of: Subject, compiled: Program, ranks: int, threads: int) -> Team:
    """In processes of its own."""
    if ranks == 1:
        entry = OwnEntry(compiled.binary, threads)
        return Booth(entry, of.before, threads=threads, places=of.places)
    crew = OwnCrew(compiled.binary, threads)
    return Crew(crew, of.before, ranks=ranks, threads=threads, places=of.places)


def _raced(team: Team, rival: Team) -> Race:
    teams: Mapping[str, Team] = {WITH: team, WITHOUT: rival}
    lanes = take_turns(teams, {name: Lane(name) for name in teams})
    fault = "; ".join(f"{lane.contestant}: {lane.fault}" for lane in lanes.values() if lane.fault)
    if fault:
        return Race("", fault=fault)
    whole, less = lanes[WITH], lanes[WITHOUT]
    return Race("", whole.median_s, less.median_s, min(whole.seconds), min(less.seconds))


def _too_short(team: Team) -> str:
    least = min(team.run() for _ in range(3))
    return f"over in {least * 1e6:.1f} µs" if least < LEAST_S else ""


def in_one_line(error: AvialError) -> str:
    return str(error).replace("\n", "; ")
