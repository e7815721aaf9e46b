"""What each optional pass is worth: every program raced against itself without one pass.

Names of programs, Configuration -> Worth: for each program its compile times and, for each pass
without which its code differs, a Race. A pass that changes nothing is not raced.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from avial_lab.benchmarks.builders import OwnEntry
from avial_lab.benchmarks.contestants import RemoteRunner
from avial_lab.benchmarks.mpi_builders import OwnGroup
from avial_lab.benchmarks.mpi_workers import MpiGroup
from avial_lab.benchmarks.rounds import run_alternately
from avial_lab.benchmarks.subjects import Subject, compile_seconds, subject
from avial_lab.benchmarks.table import Result
from avial_lab.benchmarks.worker import BenchmarkWorker
from avial_lab.benchmarks.worth_table import INTERRUPTED, Race, Timed, Worth
from avial_lab.compiler.catalogue import OPTIONAL
from avial_lab.core.errors import AvialError
from avial_lab.machine.host import this_machine
from avial_lab.program.program import Program

LEAST_S = 20e-6
"""A program that is over sooner says nothing of a pass."""

WITH, WITHOUT = "with", "without"


@dataclass(frozen=True)
class Configuration:
    """What passes are timed over. `elements`: of each kernel the first of these that it has a
    version of. `seconds`: after so many no other program or pass is begun. `on_timed` gets
    every program as it is done. `find` and `build` are replaced by tests.
    """

    size: str = "MEDIUM"
    elements: tuple[str, ...] = ()
    ranks: int = 1
    threads: int = 1
    seconds: float | None = None
    passes: tuple[str, ...] = OPTIONAL
    on_timed: Callable[[Timed], None] = field(default=lambda _: None, repr=False)
    find: Callable[[str, str, Sequence[str]], Subject] = field(default=subject, repr=False)
    build: Callable[[Subject, Program, int, int], RemoteRunner] = field(
        default=lambda of, compiled, ranks, threads: built(of, compiled, ranks, threads),
        repr=False,
    )
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)


def worth(names: Sequence[str], configuration: Configuration) -> Worth:
    """Time the passes on each of these programs, in their order.

    At an interrupt, and when the time limit is reached, the rest is reported as not reached.
    """
    until = None if configuration.seconds is None else configuration.clock() + configuration.seconds
    report = Worth(
        configuration.size,
        configuration.ranks,
        configuration.threads,
        this_machine(),
        passes=configuration.passes,
    )
    for k, name in enumerate(names):
        if until is not None and configuration.clock() >= until:
            return replace(
                report, unreached=tuple(names[k:]), notes=("the time limit was reached",)
            )
        timing = _Timing(name, configuration, until)
        try:
            timing.run()
            configuration.on_timed(timing.timed)
        except KeyboardInterrupt:
            notes = (f"{INTERRUPTED}{name}",)
            done = (*report.programs, timing.timed)
            return replace(report, programs=done, unreached=tuple(names[k + 1 :]), notes=notes)
        report = replace(report, programs=(*report.programs, timing.timed))
    return report


class _Timing:
    """One program; `timed` is what is known of it so far."""

    def __init__(self, name: str, configuration: Configuration, until: float | None) -> None:
        self.configuration, self.until = configuration, until
        self.timed = Timed(name, unreached=configuration.passes)
        self.known: dict[str, Race] = {}  # by the text of what was raced

    def run(self) -> None:
        try:
            of = self.configuration.find(
                self.timed.program, self.configuration.size, self.configuration.elements
            )
            whole = of.compiled(self.configuration.ranks)
            took = tuple(compile_seconds(whole, self.configuration.passes).items())
            self.timed = replace(self.timed, element=of.element, compile_s=took)
            with contextlib.closing(self._runner(of, whole)) as runner:
                reason = _too_short(runner)
                if reason:
                    self.timed = replace(self.timed, skipped=reason, unreached=())
                else:
                    self._race_all(of, whole, runner)
        except AvialError as error:
            self.timed = replace(self.timed, skipped=in_one_line(error), unreached=())

    def _runner(self, of: Subject, compiled: Program) -> RemoteRunner:
        """Built, run once, and right."""
        runner = self.configuration.build(
            of, compiled, self.configuration.ranks, self.configuration.threads
        )
        try:
            of.check(compiled, runner.arrays())
        except BaseException:
            runner.close()
            raise
        return runner

    def _race_all(self, of: Subject, whole: Program, runner: RemoteRunner) -> None:
        for k, name in enumerate(self.configuration.passes):
            if self.until is not None and self.configuration.clock() >= self.until:
                return
            race = self._race(of, whole, runner, name)
            races = self.timed.races if race is None else (*self.timed.races, race)
            self.timed = replace(
                self.timed, races=races, unreached=self.configuration.passes[k + 1 :]
            )

    def _race(self, of: Subject, whole: Program, runner: RemoteRunner, name: str) -> Race | None:
        """None where the program is the same without the pass."""
        try:
            other = of.compiled(self.configuration.ranks, name)
            code = code_of(other)
            if code == code_of(whole):
                return None
            if code not in self.known:
                with contextlib.closing(self._runner(of, other)) as rival:
                    self.known[code] = _raced(runner, rival)
        except AvialError as error:
            return Race(name, fault=in_one_line(error))
        return replace(self.known[code], left_out=name)


def code_of(compiled: Program) -> str:
    """What machine code is made of."""
    return compiled.stages["llvmir"].text


def built(of: Subject, compiled: Program, ranks: int, threads: int) -> RemoteRunner:
    """In processes of its own."""
    if ranks == 1:
        entry = OwnEntry(compiled.binary, threads)
        return BenchmarkWorker(entry, of.before, threads=threads, places=of.places)
    group = OwnGroup(compiled.binary, threads)
    return MpiGroup(group, of.before, ranks=ranks, threads=threads, places=of.places)


def _raced(runner: RemoteRunner, rival: RemoteRunner) -> Race:
    runners: Mapping[str, RemoteRunner] = {WITH: runner, WITHOUT: rival}
    results = run_alternately(runners, {name: Result(name) for name in runners})
    fault = "; ".join(
        f"{result.contestant}: {result.fault}" for result in results.values() if result.fault
    )
    if fault:
        return Race("", fault=fault)
    whole, less = results[WITH], results[WITHOUT]
    return Race("", whole.median_s, less.median_s, min(whole.seconds), min(less.seconds))


def _too_short(runner: RemoteRunner) -> str:
    least = min(runner.run() for _ in range(3))
    return f"over in {least * 1e6:.1f} µs" if least < LEAST_S else ""


def in_one_line(error: AvialError) -> str:
    return str(error).replace("\n", "; ")
